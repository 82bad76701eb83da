//! How many threads a Metal pipeline runs on a chip that is not here, by Xcode's compilers alone.
//!
//! A pipeline is compiled for the chip as it is, and again with its threads held to T, from the
//! most down. The first T that leaves the native code as it was is what the plain pipeline runs:
//! more threads would have left the compiler fewer registers, and it would have made other code.
//! UNVERIFIED on hardware: the tests give it canned output of the tools.

mod mac;
mod native;

use std::collections::BTreeMap;

use crate::{Chip, Chips, Digest, MetalChip, MetalCompile, MetalRecords, SourceText};

pub use mac::Mac;
pub use native::{NotNative, native_code};

/// Threads go down in steps of a SIMD group.
const STEP: u64 = 32;

/// A folder on a Mac with Xcode's tools, or what a test makes of one. Paths are file names in it.
pub trait Workshop {
    /// The names of its `.metal` files, in order.
    ///
    /// # Errors
    /// What is wrong with the folder.
    fn sources(&mut self) -> Result<Vec<String>, String>;

    /// A file's bytes.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn read(&mut self, name: &str) -> Result<Vec<u8>, String>;

    /// Writes a file.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), String>;

    /// Runs a tool of Xcode in the folder and gives what it printed.
    ///
    /// # Errors
    /// What it said when it failed, or why it could not be run.
    fn run(&mut self, tool: &str, arguments: &[&str]) -> Result<String, String>;
}

/// What a folder's pipelines compile to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offline {
    /// The records: those that were there, with what was compiled now.
    pub records: MetalRecords,
    /// A sentence for each pipeline and chip that has no record, and why.
    pub left_out: Vec<String>,
}

/// The folder cannot be compiled at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{doing}: {problem}")]
pub struct OfflineError {
    /// What was tried.
    pub doing: String,
    /// What is wrong.
    pub problem: String,
}

/// Compiles every pipeline of a folder for every Metal chip that Xcode's tools have a name for.
/// What `before` says of threadgroup memory, exemptions and tensor operations is kept.
///
/// # Errors
/// If the folder or a source cannot be read or compiled. A pipeline that cannot be compiled for a
/// chip is left out, with the reason.
pub fn offline(
    workshop: &mut dyn Workshop,
    chips: &Chips,
    before: MetalRecords,
) -> Result<Offline, OfflineError> {
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |problem| OfflineError { doing, problem }
    };
    let version = workshop.run("metal", &["--version"]).map_err(failed("asking for metal"))?;
    let mut offline = Offline { records: before, left_out: Vec::new() };
    version.lines().next().unwrap_or_default().clone_into(&mut offline.records.tools);
    offline.records.verified_on_hardware = false;
    offline.records.sources = BTreeMap::new();
    for source in workshop.sources().map_err(failed("listing the sources"))? {
        let text = workshop.read(&source).map_err(failed(&source))?;
        let digest = Digest::of(&[SourceText { path: source.clone(), text }], &[]);
        offline.records.sources.insert(source.clone(), digest);
        let library = format!("{source}lib");
        workshop.run("metal", &["-o", &library, &source]).map_err(failed(&source))?;
        let symbols = workshop.run("metal-nm", &[&library]).map_err(failed(&library))?;
        for function in functions(&symbols) {
            for chip in chips.all() {
                let Chip::Metal(chip) = chip else { continue };
                offline.pipeline(workshop, &library, function, chip);
            }
        }
    }
    Ok(offline)
}

/// The functions that `metal-nm` lists: an address, `T` and a name a line.
fn functions(symbols: &str) -> Vec<&str> {
    let function = |line: &'_ str| -> Option<usize> {
        let mut words = line.split_whitespace();
        let (_, kind, name) = (words.next()?, words.next()?, words.next()?);
        (kind == "T").then_some(name.len())
    };
    let lines = symbols.lines().map(str::trim_end);
    lines.filter_map(|line| function(line).map(|length| &line[line.len() - length..])).collect()
}

impl Offline {
    fn pipeline(
        &mut self,
        workshop: &mut dyn Workshop,
        library: &str,
        function: &str,
        chip: &MetalChip,
    ) {
        let Some(architecture) = &chip.offline_architecture else { return };
        let build = Build { library, function, architecture: &architecture.value };
        let pipeline = self.records.pipelines.entry(function.to_owned()).or_default();
        match most_threads(workshop, &build, chip.threads_per_threadgroup.value) {
            Ok(threads) => {
                let compile = pipeline.chips.entry(chip.name.clone()).or_default();
                *compile = MetalCompile { max_threads: threads, ..*compile };
            }
            Err(problem) => {
                pipeline.chips.remove(&chip.name);
                self.left_out.push(format!("`{function}` for {}: {problem}", chip.name));
            }
        }
    }
}

/// One pipeline for one chip.
struct Build<'a> {
    library: &'a str,
    function: &'a str,
    architecture: &'a str,
}

/// The most threads, from `most` down, that leave the native code as the plain build has it.
fn most_threads(workshop: &mut dyn Workshop, build: &Build<'_>, most: u64) -> Result<u32, String> {
    let plain = build.native(workshop, None)?;
    let mut threads = most / STEP * STEP;
    while threads > 0 {
        if build.native(workshop, Some(threads))? == plain {
            return u32::try_from(threads).map_err(|error| error.to_string());
        }
        threads -= STEP;
    }
    Err(format!("no number of threads from {STEP} to {most} leaves its code as it is"))
}

impl Build<'_> {
    /// The native code of the pipeline, with its threads held to a number or not.
    fn native(&self, workshop: &mut dyn Workshop, threads: Option<u64>) -> Result<Vec<u8>, String> {
        const SCRIPT: &str = "assay.mtlp-json";
        const OUTPUT: &str = "assay.gpubin";
        const THIN: &str = "assay.thin";
        let mut pipeline = serde_json::json!({ "compute_function": self.function });
        if let Some(threads) = threads {
            pipeline["max_total_threads_per_threadgroup"] = threads.into();
        }
        let script = serde_json::json!({ "pipelines": { "compute_pipelines": [pipeline] } });
        workshop.write(SCRIPT, script.to_string().as_bytes())?;
        let target = ["-arch", self.architecture, "-platform_version", "macos", "14.0", "14.0"];
        let files = ["-o", OUTPUT, self.library, SCRIPT];
        workshop.run("metal-tt", &[&target[..], &files[..]].concat())?;
        let thin = ["-thin", self.architecture, "-output", THIN, OUTPUT];
        workshop.run("metal-lipo", &thin)?;
        native_code(&workshop.read(THIN)?).map_err(|error| error.to_string())
    }
}
