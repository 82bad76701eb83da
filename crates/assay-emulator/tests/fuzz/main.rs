//! A fuzzer inside the tests: PTX is damaged as a seed says, parsed, compiled and run on a small
//! grid with a small budget. Nothing may panic or take long; what is wrong must be an error or a
//! fault.
//!
//! `ASSAY_FUZZ_RUNS=1000000 cargo test --release -p assay-emulator --test fuzz` runs a million;
//! `ASSAY_FUZZ_SEED` continues elsewhere. `ASSAY_FUZZ_SAVE` names a folder for the text of each
//! panic, and for the text under way, which shows what ended the process.

#![expect(clippy::print_stdout, reason = "a seed and its counts are printed")]
#![allow(clippy::result_large_err, reason = "as in the crate")]

mod kernels;
mod mutate;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use assay_emulator::{
    CompileOptions, Fault, FaultKind, LaunchConfig, Machine, MachineConfig, Program, Schedule,
};
use assay_num::random::SplitMix64;

/// Executions where nothing asks for more.
const RUNS: u64 = 6_000;
/// Longest time that one text may take, in a build of any kind on a machine of any load. The budget
/// of instructions is what ends a launch.
const LONGEST: Duration = Duration::from_secs(300);

fn setting(name: &str, default: u64) -> u64 {
    let Some(value) = std::env::var_os(name) else { return default };
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{name} is no number"))
}

/// What became of the texts.
#[derive(Default)]
struct Counts {
    parsed: u64,
    /// Launches of kernels, and those that ended as they should.
    launched: u64,
    finished: u64,
    faults: BTreeMap<&'static str, u64>,
    panics: BTreeMap<String, u64>,
    slowest: Duration,
}

fn name_of(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::OutOfBounds { .. } | FaultKind::InvalidAddress { .. } => "bad address",
        FaultKind::Misaligned { .. } => "misaligned",
        FaultKind::ReadOnlyWrite { .. } => "read only",
        FaultKind::Deadlock { .. } => "deadlock",
        FaultKind::BarrierMisuse { .. }
        | FaultKind::InactiveLaneRead { .. }
        | FaultKind::WarpMisuse { .. } => "misuse",
        FaultKind::Runaway { .. } => "runaway",
        FaultKind::Trap | FaultKind::Assertion { .. } => "trap",
        FaultKind::Unsupported { .. } => "unsupported",
        FaultKind::InvalidLaunch { .. } => "invalid launch",
        FaultKind::StackOverflow { .. } => "stack overflow",
        FaultKind::Internal { .. } => "internal",
        _ => "other",
    }
}

/// One launch of a kernel, every parameter of eight bytes a pointer, all others a small number.
fn launch(program: &Program, symbol: &str, random: &mut SplitMix64) -> Result<(), Fault> {
    let architecture = [80, 90, 100, 120][random.below(4) as usize];
    let memory_bytes = 1 << 26;
    let config = MachineConfig { architecture, memory_bytes, ..MachineConfig::default() };
    let mut machine = Machine::new(config);
    let buffer = machine.allocate(1 << 14, 256).expect("there is room");
    let layout = program.parameters(symbol).expect("the kernel is there");
    let bytes = program.parameter_bytes(symbol).expect("the kernel is there") as usize;
    let mut parameters = vec![0; bytes];
    for place in layout {
        let at = place.offset as usize;
        let value = if place.size == 8 { buffer } else { 3 };
        for (byte, value) in parameters[at..].iter_mut().zip(value.to_le_bytes()) {
            *byte = value;
        }
    }
    let schedule = match random.below(3) {
        0 => Schedule::InOrder,
        1 => Schedule::Reversed,
        _ => Schedule::Seeded(random.next_u64()),
    };
    let threads = [32, 64, 128][random.below(3) as usize];
    let config = LaunchConfig {
        grid: [2, 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 1024,
        parameters,
        schedule,
        instruction_budget: 20_000,
        ..LaunchConfig::default()
    };
    machine.launch(program, symbol, &config).map(|_| ())
}

/// Parses, compiles and runs a text.
fn execute(text: &str, counts: &mut Counts, random: &mut SplitMix64) {
    let Ok(module) = assay_ptx::parse(text) else { return };
    counts.parsed += 1;
    let options = CompileOptions { portable: random.below(4) == 0, ..CompileOptions::default() };
    let Ok(program) = Program::compile_with(&module, options) else { return };
    for symbol in program.kernels().into_iter().take(2) {
        counts.launched += 1;
        match launch(&program, symbol, random) {
            Ok(()) => counts.finished += 1,
            Err(fault) => {
                assert!(!fault.to_string().is_empty() && !fault.hint().is_empty());
                *counts.faults.entry(name_of(&fault.kind)).or_default() += 1;
            }
        }
    }
}

thread_local! {
    /// Where the last panic was, and what it said.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics are counted by their places, so nobody prints them one by one.
fn count_panics_quietly() {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|place| *place = info.to_string().replace('\n', " "));
    }));
}

struct Saver {
    folder: Option<PathBuf>,
}

impl Saver {
    fn write(&self, name: &str, text: &str) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::write(folder.join(name), text);
        }
    }
}

fn fuzz(runs: u64, seed: u64) -> Counts {
    let corpus = kernels::corpus();
    println!("{runs} runs over {} kernels, seed {seed}", corpus.len());
    let saver = Saver { folder: std::env::var_os("ASSAY_FUZZ_SAVE").map(PathBuf::from) };
    let random = SplitMix64::new(seed);
    let mut counts = Counts::default();
    count_panics_quietly();
    for run in 0..runs {
        let mut random = random.fork(&format!("run {run}"));
        let text = &corpus[random.below(corpus.len() as u64) as usize];
        let donor = &corpus[random.below(corpus.len() as u64) as usize];
        let text = mutate::mutate(text, donor, &mut random);
        saver.write("under-way.ptx", &text);
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| execute(&text, &mut counts, &mut random)));
        counts.slowest = counts.slowest.max(start.elapsed());
        if start.elapsed() > LONGEST {
            *counts.panics.entry(format!("run {run} took {:?}", start.elapsed())).or_default() += 1;
            saver.write(&format!("slow-{run}.ptx"), &text);
        }
        if result.is_err() {
            let place = PANIC.with_borrow(Clone::clone);
            let count = counts.panics.entry(place.clone()).or_default();
            *count += 1;
            if *count <= 3 {
                let note = format!("// run {run} of seed {seed}: {place}\n{text}");
                saver.write(&format!("panic-{seed}-{run}.ptx"), &note);
            }
        }
    }
    let _ = std::panic::take_hook();
    counts
}

#[test]
fn damaged_ptx_is_an_error_or_a_fault_and_never_a_panic_or_a_hang() {
    let (runs, seed) = (setting("ASSAY_FUZZ_RUNS", RUNS), setting("ASSAY_FUZZ_SEED", 1));
    let counts = fuzz(runs, seed);
    let Counts { parsed, launched, finished, faults, panics, slowest } = counts;
    println!("{parsed} parsed, {launched} launches, {finished} finished, slowest {slowest:?}");
    println!("faults: {faults:?}");
    assert!(panics.is_empty(), "seed {seed}: {panics:#?}");
    assert!(!faults.contains_key("internal"), "seed {seed}: {faults:?}");
    let reach = parsed > runs / 20 && finished > launched / 20 && faults.len() > 4;
    assert!(runs < 1000 || reach, "the mutations reach every stage");
}

#[test]
fn every_kernel_of_the_corpus_parses_compiles_and_runs_undamaged() {
    let mut random = SplitMix64::new(1);
    for text in kernels::small() {
        let module = assay_ptx::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let program = Program::compile(&module).expect("it compiles");
        for symbol in program.kernels() {
            if let Err(fault) = launch(&program, symbol, &mut random) {
                let expected = text.contains("// faults");
                assert!(expected || fault.is_unsupported(), "{fault}\n{text}");
            }
        }
    }
}
