//! The records of gate 5: what each release of a compiler makes of the suite's kernels.
//!
//! `cargo xtask records` compiles every source of the suite for every chip with each compiler that
//! is installed, compares the facts that `assay-image` reads in the images with what the
//! compiler's own tools say, prints a RECORD line for each and writes `records/limits/`.
//! `--check` derives one release again, compares it with what is recorded, and compares the
//! digests of all other sets with the sources of today.

mod cuda;
mod hip;
mod listing;
mod module;
mod store;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use assay_image::Release;
use assay_limits::{Digest, RECORDS_COMMAND, RecordSet, Recorded, Stale};

use crate::kernels::host_compiler;
use crate::toolchain::{EXIT_REQUEST, EXIT_UNAVAILABLE};
use cuda::Nvcc;
use hip::Clang;
use store::Store;

const USAGE: &str = "usage: cargo xtask records [--check] [--release R]";

/// What was asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Request {
    check: bool,
    release: Option<Release>,
}

/// Why a command ends before its work is done.
enum Stop {
    /// A compiler is not installed: a reason to skip.
    Unavailable(String),
    /// Something does not hold.
    Failed(Vec<String>),
}

/// `cargo xtask records [--check] [--release R]`.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    let Some(request) = parse(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(EXIT_REQUEST);
    };
    let done = if request.check { check(request.release) } else { make(request.release) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Unavailable(reason)) => {
            eprintln!("SKIPPED records: {reason}");
            ExitCode::from(EXIT_UNAVAILABLE)
        }
        Err(Stop::Failed(problems)) => {
            for problem in &problems {
                eprintln!("error: {problem}");
            }
            eprintln!("{} problems", problems.len());
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Option<Request> {
    let mut request = Request { check: false, release: None };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--check" => request.check = true,
            "--release" => request.release = Some(arguments.next()?.parse().ok()?),
            _ => return None,
        }
    }
    Some(request)
}

/// Derives the sets of the compilers that are installed, or of one, and writes them.
fn make(release: Option<Release>) -> Result<(), Stop> {
    let modules = module::all().map_err(one)?;
    let mut store = Store::open_to_replace();
    let compilers = compilers(release)?;
    for nvcc in &compilers.nvccs {
        let set = nvcc.derive(&modules).map_err(Stop::Failed)?;
        print_records(&set);
        store::put(&mut store.records.cuda, set);
    }
    for clang in &compilers.clangs {
        let set = clang.derive(&modules).map_err(Stop::Failed)?;
        print_records(&set);
        store::put(&mut store.records.hip, set);
    }
    store.write().map_err(one)?;
    report(&store.records.cuda);
    report(&store.records.hip);
    compilers.missing.map_or(Ok(()), |reason| Err(Stop::Unavailable(reason)))
}

fn print_records<K: Recorded>(set: &RecordSet<K>) {
    for line in set.lines() {
        println!("RECORD {} {} {line}", K::COMPILER, set.release);
    }
}

/// Derives one release of each compiler again, the oldest unless another is named, and compares.
fn check(release: Option<Release>) -> Result<(), Stop> {
    let modules = module::all().map_err(one)?;
    let store = Store::open().map_err(one)?;
    compare_sources(&store.records.cuda, &cuda::digests(&modules))?;
    compare_sources(&store.records.hip, &hip::digests(&modules).map_err(one)?)?;
    let compilers = compilers(release)?;
    if let Some(nvcc) = compilers.nvccs.first() {
        let fresh = nvcc.derive(&modules).map_err(Stop::Failed)?;
        compare_facts(&store.records.cuda, &fresh)?;
    }
    if let Some(clang) = compilers.clangs.first() {
        let fresh = clang.derive(&modules).map_err(Stop::Failed)?;
        compare_facts(&store.records.hip, &fresh)?;
    }
    compilers.missing.map_or(Ok(()), |reason| Err(Stop::Unavailable(reason)))
}

/// Compares what a compiler has just made with the set of its release.
fn compare_facts<K: Recorded>(sets: &[RecordSet<K>], fresh: &RecordSet<K>) -> Result<(), Stop> {
    let (compiler, release) = (K::COMPILER, fresh.release);
    let recorded = sets.iter().find(|set| set.release == release).ok_or_else(|| {
        one(format!("{compiler} {release} has no records: `{RECORDS_COMMAND} --release {release}`"))
    })?;
    fails_if_any(&recorded.stale_facts(fresh, |_, _| true))?;
    println!("{} records of {compiler} {release} are what it makes", fresh.len());
    Ok(())
}

/// Compares the digests of every set of a compiler with those of today.
fn compare_sources<K: Recorded>(
    sets: &[RecordSet<K>],
    today: &BTreeMap<String, Digest>,
) -> Result<(), Stop> {
    if sets.is_empty() {
        return Err(one(format!("{} has no records: `{RECORDS_COMMAND}`", K::COMPILER)));
    }
    let stale: Vec<Stale> = sets.iter().flat_map(|set| set.stale_sources(today)).collect();
    fails_if_any(&stale)?;
    let (count, modules) = (sets.len(), today.len());
    println!("{count} sets of {} hold the digests of {modules} sources", K::COMPILER);
    Ok(())
}

fn fails_if_any(stale: &[Stale]) -> Result<(), Stop> {
    if stale.is_empty() {
        return Ok(());
    }
    Err(Stop::Failed(stale.iter().map(ToString::to_string).collect()))
}

/// Says how much is recorded, and what each release compiles differently from the one before.
fn report<K: Recorded>(sets: &[RecordSet<K>]) {
    let Some(oldest) = sets.first() else { return };
    println!("\n{} {}: {} records", K::COMPILER, oldest.release, oldest.len());
    for pair in sets.windows(2) {
        let [before, set] = pair else { continue };
        let differences = before.differences(set, |_, _| true);
        let (count, all) = (differences.len(), set.len());
        println!(
            "{} {}: {count} of {all} records differ from {}",
            K::COMPILER,
            set.release,
            before.release
        );
        for difference in differences {
            println!("  {difference}");
        }
    }
}

/// The compilers at hand, each kind oldest first.
struct Compilers {
    nvccs: Vec<Nvcc>,
    clangs: Vec<Clang>,
    /// Why there are none of one kind, where both were asked for.
    missing: Option<String>,
}

/// Every release that is installed, or the one that is asked for.
fn compilers(release: Option<Release>) -> Result<Compilers, Stop> {
    let asked = |found| release.is_none_or(|release| release == found);
    let mut nvccs = Nvcc::installed().map_err(one)?;
    nvccs.retain(|nvcc| asked(nvcc.release));
    let (mut clangs, no_clang) = match Clang::installed() {
        Ok(clangs) => (clangs, None),
        Err(unavailable) => (Vec::new(), Some(unavailable.to_string())),
    };
    clangs.retain(|clang| asked(clang.release));
    if let Some(first) = nvccs.first() {
        host_compiler(&first.path)
            .map_err(|reason| Stop::Unavailable(format!("{reason}\nhint: install g++")))?;
    } else if release.is_none() || clangs.is_empty() {
        let which = release.map_or("nvcc".to_owned(), |release| format!("release {release}"));
        return Err(Stop::Unavailable(format!(
            "{which} is not installed\nhint: cargo xtask toolchain, or `toolchain --records` for \
             every release recorded"
        )));
    }
    let missing = no_clang.filter(|_| release.is_none());
    Ok(Compilers { nvccs, clangs, missing })
}

fn one(problem: String) -> Stop {
    Stop::Failed(vec![problem])
}

/// Calls a function on every item, on as many threads as there are cores; the results keep the
/// order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], call: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let queue = Mutex::new(items.iter().enumerate());
    let results = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((index, item)) = queue.lock().ok().and_then(|mut q| q.next()) {
                    let result = call(item);
                    if let Ok(mut results) = results.lock() {
                        results.push((index, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<Request> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_release_can_be_named_for_making_and_for_checking() {
        let release = "13.2.86".parse().ok();
        assert_eq!(parsed(""), Some(Request { check: false, release: None }));
        assert_eq!(parsed("--check"), Some(Request { check: true, release: None }));
        assert_eq!(parsed("--release 13.2.86"), Some(Request { check: false, release }));
        assert_eq!(parsed("--check --release 13.2.86"), Some(Request { check: true, release }));
        for wrong in ["--chekc", "--release", "--release new", "13.2.86"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        assert_eq!(
            in_parallel(&items, |item| item * 2),
            items.iter().map(|i| i * 2).collect::<Vec<_>>()
        );
    }
}
