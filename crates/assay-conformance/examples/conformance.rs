//! Measures a device against the emulator and writes the record.
//!
//!     cargo run -p assay-conformance --example conformance -- cuda:0 h200-conformance.jsonl
//!     cargo run -p assay-conformance --example conformance -- \
//!         tiles 102400 mma 0/1 cuda:0 h200-tiles.jsonl
//!
//!     cargo run --release -p assay-conformance --example conformance -- judge h200-tiles.jsonl
//!
//! `tiles` runs so many tiles of each form whose name begins so, every n-th of them. `judge` holds
//! today's emulator against the digests of a record of tiles, and says in it where they differ.
//!
//! A GPU's compiler may crash on a form, and take its process with it. So the work is done by a
//! child that writes as it goes; where one dies, the next goes on in small modules, and the form
//! that kills that one too is recorded as rejected. Of a file that is there already, only
//! programs without a line are measured.

mod shared;

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_conformance::{Class, TileEntry, TileRecord, judge_tiles, measure_tiles, tile_forms};
use assay_conformance::{Entry, Head, KERNELS, Program, Record, measure, programs};
use shared::{append, now};

/// The seed of every record; the emulator's test uses the record's.
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [mode, path] if mode == "judge" => judge(path),
        [device, path] => parent(device, path),
        [device, path, kernels] => child(device, path, kernels.parse()?),
        [mode, count, only, share, device, path] if mode == "tiles" => {
            tiles(count.parse()?, only, share, device, path)
        }
        _ => {
            Err("usage: conformance [tiles COUNT PREFIX SHARE/SHARES] DEVICE FILE | judge FILE"
                .into())
        }
    }
}

/// Measures the tiles of the forms of a prefix, and adds them to the file.
fn tiles(
    count: usize,
    only: &str,
    share: &str,
    name: &str,
    path: &str,
) -> Result<(), Box<dyn Error>> {
    let (share, shares) = share.split_once('/').ok_or("a share is 0/1")?;
    let (share, shares): (usize, usize) = (share.parse()?, shares.parse()?);
    let mut device = assay_device::open(name)?;
    let mut emulator = assay_device::open("emulator:sm_90")?;
    if !fs::exists(path)? {
        let command = format!("conformance tiles {count} {only} 0/1 {name} {path}");
        let head = Head::of(&*device, &now(), &command, SEED);
        append(path, &head)?;
    }
    let known = TileRecord::read(&fs::read_to_string(path)?)?.entries;
    let forms = tile_forms();
    let wanted = forms.iter().filter(|form| form.program.name.starts_with(only));
    for form in wanted.skip(share).step_by(shares.max(1)) {
        let chunks = count.div_ceil(form.chunk_tiles() * Class::ALL.len());
        for class in Class::ALL {
            let same = |entry: &TileEntry| {
                entry.form == form.program.name && (entry.class == class.name() || entry.rejected)
            };
            if known.iter().any(same) {
                continue;
            }
            let entry = measure_tiles(&mut *device, &mut *emulator, form, class, chunks, SEED)?;
            append(path, &entry)?;
            if entry.rejected {
                break;
            }
        }
    }
    Ok(())
}

/// Runs all tiles of a record on the emulator, on all cores, and brings the record up to date and
/// into the order of the forms.
fn judge(path: &str) -> Result<(), Box<dyn Error>> {
    let mut record = TileRecord::read(&fs::read_to_string(path)?)?;
    let forms = tile_forms();
    let mut work = Vec::new();
    for (form, class) in forms.iter().flat_map(|form| Class::ALL.map(|class| (form, class))) {
        let entry = record.entry(&form.program.name, class).cloned();
        work.extend(entry.filter(|entry| entry.class == class.name()).map(|e| (form, class, e)));
    }
    let (seed, next) = (record.head.seed, AtomicUsize::new(0));
    let work: Vec<_> = work.into_iter().map(Mutex::new).collect();
    let judged = || -> Result<(), String> {
        let mut emulator = assay_device::open("emulator:sm_90").map_err(|e| e.to_string())?;
        while let Some(item) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut item = item.lock().map_err(|e| e.to_string())?;
            let (form, class, entry) = &mut *item;
            judge_tiles(&mut *emulator, form, *class, entry, seed).map_err(|e| e.to_string())?;
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(judged)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a thread has panicked".to_string()))
        })
    })?;
    let entries = work.into_iter().map(|item| match item.into_inner() {
        Ok((_, _, entry)) => Ok(entry),
        Err(_) => Err("a thread has panicked"),
    });
    record.entries = entries.collect::<Result<_, _>>()?;
    Ok(fs::write(path, record.write()?)?)
}

/// Starts children until each program has its line, then puts the lines in the table's order.
fn parent(device: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let (programs, _) = programs();
    if !fs::exists(path)? {
        let head = Head::of(&*assay_device::open(device)?, &now(), "", SEED);
        let command = format!("conformance {device} {path}");
        append(path, &Head { command, ..head })?;
    }
    let mut kernels = KERNELS;
    loop {
        let left = missing(&programs, path)?;
        let Some(next) = left.first() else { break };
        let mut child = Command::new(std::env::current_exe()?);
        let status = child.args([device, path, &kernels.to_string()]).status()?;
        let stuck = missing(&programs, path)?.len() == left.len();
        if !status.success() && kernels == 1 && stuck {
            let (form, cases) = (next.name.clone(), next.cases);
            let crashed = Entry { form, cases, rejected: true, crashes: true, ..Entry::default() };
            append(path, &crashed)?;
        }
        kernels = if status.success() { KERNELS } else { 1 };
    }
    let mut record: Record = Record::read(&fs::read_to_string(path)?)?;
    let ordered = programs.iter().filter_map(|program| record.entry(&program.name).cloned());
    record.entries = ordered.collect();
    Ok(fs::write(path, record.write()?)?)
}

/// The programs that have no line yet.
fn missing(programs: &[Program], path: &str) -> Result<Vec<Program>, Box<dyn Error>> {
    let record: Record = Record::read(&fs::read_to_string(path)?)?;
    let known: HashSet<&str> = record.entries.iter().map(|entry| entry.form.as_str()).collect();
    let left = programs.iter().filter(|program| !known.contains(program.name.as_str()));
    Ok(left.cloned().collect())
}

/// Runs programs that have no line, and writes each as soon as it is done. In modules of single
/// kernels, only as many as a whole one has.
fn child(device: &str, path: &str, kernels: usize) -> Result<(), Box<dyn Error>> {
    let mut device = assay_device::open(device)?;
    let mut emulator = assay_device::open("emulator:sm_90")?;
    let mut part = missing(&programs().0, path)?;
    if kernels == 1 {
        part.truncate(KERNELS);
    }
    let mut failed = None;
    measure(&mut *device, &mut *emulator, &part, kernels, SEED, |entry| {
        failed = failed.take().or(append(path, &entry).err());
    })?;
    failed.map_or(Ok(()), Err)
}
