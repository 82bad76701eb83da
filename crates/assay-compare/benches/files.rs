//! How fast two files are compared, beside plain reading of the same files.
//!
//! `cargo bench -p assay-compare --bench files -- 2` takes two files of 2 GiB each (1 GiB if no
//! number is given), of each kind, a quarter as large where they are in archives, which take long
//! to write; they are written to the folder for temporary files and removed.
//! They stay in the system's cache where it has room; if not, the disk is measured. Rates are of
//! the elements, however few bytes of the file they take.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use assay_compare::{ArrayFile, Options, compare_sources};
use assay_num::random::SplitMix64;
use assay_record::Tolerance;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

const SEED: u64 = 11;

const ROUNDS: usize = 5;

/// Bytes that plain reading asks for at a time.
const PLAIN_BYTES: usize = 1 << 22;

/// Two files that are removed when this is dropped.
struct Files([PathBuf; 2]);

impl Drop for Files {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What two files are.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Npy,
    Safetensors,
    Stored,
    Deflated,
}

impl Kind {
    const ALL: [(Kind, &str); 4] = [
        (Kind::Npy, "npy"),
        (Kind::Safetensors, "safetensors"),
        (Kind::Stored, "npz stored"),
        (Kind::Deflated, "npz deflated"),
    ];

    /// What the array is called.
    fn array(self) -> &'static str {
        if self == Kind::Npy { "" } else { "w" }
    }

    fn is_archive(self) -> bool {
        matches!(self, Kind::Stored | Kind::Deflated)
    }
}

/// What stands before the elements.
fn header(kind: Kind, elements: usize) -> Vec<u8> {
    if kind != Kind::Safetensors {
        let words = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({elements},), }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{words:<117}\n").bytes());
        return bytes;
    }
    let bytes = 4 * elements;
    let words = format!(
        "{{\"w\":{{\"dtype\":\"F32\",\"shape\":[{elements}],\"data_offsets\":[0,{bytes}]}}}}"
    );
    let mut all = (words.len() as u64).to_le_bytes().to_vec();
    all.extend(words.bytes());
    all
}

/// Values over and over, in the second file three quarters of them off by up to three steps.
fn write(path: &Path, kind: Kind, elements: usize, changed: bool) -> io::Result<()> {
    let mut random = SplitMix64::new(SEED);
    let values = (0..1 << 20).map(|_| random.normal() as f32);
    let mut tile: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    for element in tile.chunks_mut(4).filter(|_| changed) {
        element[0] ^= random.below(4) as u8;
    }
    let mut file = BufWriter::new(File::create(path)?);
    let all = |file: &mut dyn Write| {
        file.write_all(&header(kind, elements))?;
        (0..elements >> 20).try_for_each(|_| file.write_all(&tile))
    };
    if !kind.is_archive() {
        all(&mut file)?;
        return file.flush();
    }
    let is_deflated = kind == Kind::Deflated;
    let method = if is_deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options = SimpleFileOptions::default()
        .compression_method(method)
        .compression_level(is_deflated.then_some(1))
        .large_file(true);
    let mut archive = ZipWriter::new(file);
    archive.start_file("w.npy", options)?;
    all(&mut archive)?;
    archive.finish()?.flush()
}

fn read_plainly(path: &Path, kind: Kind) -> u64 {
    let mut file = File::open(path).expect("opened");
    if kind.is_archive() {
        let mut archive = ZipArchive::new(file).expect("an archive");
        return drain(&mut archive.by_index(0).expect("a member"));
    }
    drain(&mut file)
}

fn drain(stream: &mut impl Read) -> u64 {
    let (mut buffer, mut all) = (vec![0; PLAIN_BYTES], 0);
    loop {
        let bytes = stream.read(&mut buffer).expect("read");
        all += bytes as u64;
        if bytes == 0 {
            return all;
        }
    }
}

fn compare_files(files: &Files, name: &str) {
    let [one, other] = [0, 1].map(|at| {
        let file = ArrayFile::open(&files.0[at]).expect("opened");
        file.source(name, None).expect("an array")
    });
    let (mut one, mut other) = (one, other);
    let options = Options { tolerance: Tolerance::new(1e-2, 1e-2), ..Options::default() };
    let comparison = compare_sources(&mut *one, &mut *other, &options).expect("compared");
    assert!(comparison.ulp.max == 3 && comparison.broke_off.is_none());
}

/// Seconds that passed, and seconds of all processors, where the system says it (Linux).
fn seconds(run: impl FnOnce()) -> [f64; 2] {
    let (start, used) = (Instant::now(), processor_seconds());
    run();
    let used = processor_seconds().zip(used).map(|(end, start)| end - start);
    [start.elapsed().as_secs_f64(), used.unwrap_or(f64::NAN)]
}

/// What all threads of this process have used, in hundredths of a second.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let ticks = text.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().ok()).sum::<Option<f64>>().map(|ticks| ticks / 100.0)
}

fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn main() {
    let gibibytes = std::env::args().skip(1).find_map(|word| word.parse::<f64>().ok());
    let elements = (gibibytes.unwrap_or(1.0) * f64::from(1 << 28)) as usize >> 20 << 20;
    say(&format!("two files of {elements} fp32 elements, {ROUNDS} rounds, GB/s of both files"));
    say(&format!("{} threads compare", rayon::current_num_threads()));
    for (kind, title) in Kind::ALL {
        let elements = if kind.is_archive() { elements >> 22 << 20 } else { elements };
        measure(kind, title, elements.max(1 << 20)).expect("written");
    }
}

fn measure(kind: Kind, title: &str, elements: usize) -> io::Result<()> {
    let path = |at| {
        let process = std::process::id();
        std::env::temp_dir().join(format!("assay-compare-{process}-{at}"))
    };
    let bytes = 8 * elements;
    let files = Files([path(0), path(1)]);
    for (path, changed) in files.0.iter().zip([false, true]) {
        write(path, kind, elements, changed)?;
    }
    let mut best = [[f64::INFINITY; 2]; 3];
    for _ in 0..ROUNDS {
        let [one, other] = &files.0;
        let both = || read_plainly(one, kind) + read_plainly(other, kind);
        let times = [
            seconds(|| assert!(both() > bytes as u64)),
            seconds(|| {
                thread::scope(|scope| {
                    scope.spawn(|| read_plainly(one, kind));
                    read_plainly(other, kind);
                });
            }),
            seconds(|| compare_files(&files, kind.array())),
        ];
        for (best, time) in best.iter_mut().flatten().zip(times.into_iter().flatten()) {
            *best = best.min(time);
        }
    }
    let rates = best.map(|times| times.map(|seconds| bytes as f64 / seconds / 1e9));
    for (what, [rate, a_core]) in ["read", "read, both at once", "compared"].iter().zip(rates) {
        say(&format!("{title:<12} {what:<19} {rate:>6.3} {a_core:>6.3} a core"));
    }
    let held: u64 = files.0.iter().map(|path| path.metadata().map_or(0, |data| data.len())).sum();
    let part = held as f64 / bytes as f64;
    say(&format!("{title:<12} takes {:.1} % of the elements' bytes", 100.0 * part));
    Ok(())
}
