//! The process that compiles: Python with Triton and a script that is part of this program.
//!
//! It may take only so long, and where it dies of one job the others are tried again alone.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use assay_contract::triton::{TritonFacts, TritonSource, TritonValue};
use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::find::{HINT, Triton};
use crate::protocol;

/// The script.
pub(super) const SCRIPT: &str = include_str!("compile.py");

/// How long the targets of one module may take to compile.
const LIMIT: Duration = Duration::from_secs(300);

/// Lines of a message that are shown, counted from its end.
const SHOWN_LINES: usize = 14;

/// One kernel to compile for one target.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Job {
    /// What its files are called.
    pub(super) name: String,
    /// The source.
    pub(super) file: String,
    function: String,
    signature: Vec<String>,
    constexprs: BTreeMap<String, serde_json::Value>,
    options: BTreeMap<String, serde_json::Value>,
    /// 90 for `sm_90`.
    pub(super) target: u32,
}

impl Job {
    pub(super) fn new(source: &TritonSource, file: &Path, target: u32) -> Job {
        let values = |values: &BTreeMap<String, TritonValue>| {
            values.iter().map(|(name, value)| (name.clone(), json(value))).collect()
        };
        // A function's name comes from the manifest: nothing of it may lead out of the folder.
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let stem: String = source.function.chars().take(80).map(plain).collect();
        Job {
            name: format!("{stem}.sm_{target}"),
            file: file.display().to_string(),
            function: source.function.clone(),
            signature: source.signature.clone(),
            constexprs: values(&source.constexprs),
            options: values(&source.options),
            target,
        }
    }
}

fn json(value: &TritonValue) -> serde_json::Value {
    match value {
        TritonValue::Flag(flag) => (*flag).into(),
        TritonValue::Integer(value) => (*value).into(),
        TritonValue::Number(value) => (*value).into(),
        TritonValue::Text(text) => text.as_str().into(),
    }
}

/// What became of a job.
#[derive(Debug)]
pub(super) enum Answer {
    /// It is in the cache.
    Kept,
    /// Triton did not compile it.
    Failed {
        /// Its last words.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

/// The facts of a launch as the script writes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Facts {
    symbol: String,
    warps: u32,
    blocks_per_cluster: u32,
    shared_bytes: u32,
    global_scratch: (u64, u64),
    profile_scratch: (u64, u64),
    cooperative: bool,
}

impl From<Facts> for TritonFacts {
    fn from(facts: Facts) -> TritonFacts {
        TritonFacts {
            symbol: facts.symbol,
            warps: facts.warps,
            blocks_per_cluster: facts.blocks_per_cluster,
            shared_bytes: facts.shared_bytes,
            global_scratch: facts.global_scratch,
            profile_scratch: facts.profile_scratch,
            cooperative: facts.cooperative,
        }
    }
}

/// One line of the script's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    name: String,
    facts: Option<Facts>,
    sources: Vec<String>,
    error: Option<String>,
    hint: Option<String>,
    missing: Option<String>,
}

/// Compiles jobs into the cache; says what became of each.
///
/// # Errors
/// Where nothing could be compiled at all, why, and what to do.
pub(super) fn compile(
    triton: &Triton,
    cache: &Cache,
    jobs: &[Job],
) -> Result<Vec<(String, Answer)>, String> {
    let mut answers = run(triton, cache, jobs)?;
    // What had no answer was killed by a job before it, or by itself.
    let unanswered: Vec<&Job> =
        jobs.iter().filter(|job| !answers.iter().any(|(name, _)| *name == job.name)).collect();
    for job in unanswered {
        answers.extend(run(triton, cache, std::slice::from_ref(job))?);
        if !answers.iter().any(|(name, _)| *name == job.name) {
            let message = "Triton's process died without a word".to_owned();
            answers.push((job.name.clone(), Answer::Failed { message, hint: None }));
        }
    }
    Ok(answers)
}

/// One process for all jobs.
fn run(triton: &Triton, cache: &Cache, jobs: &[Job]) -> Result<Vec<(String, Answer)>, String> {
    let output = cache.workplace()?;
    let request = serde_json::json!({ "output": output.path(), "jobs": jobs });
    let mut command = triton.python();
    command.args(["-c", SCRIPT]).env("TRITON_CACHE_DIR", output.path().join("triton"));
    let mut child = protocol::ask(&mut command, &request)
        .map_err(|error| format!("python3 does not start ({error}); {HINT}"))?;
    let said = collect(child.stdout.take());
    let errors = collect(child.stderr.take());
    let end = wait(&mut child);
    let (said, errors) = (join(said), join(errors));
    let mut answers = Vec::new();
    for line in said.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
        if let Some(missing) = line.missing {
            return Err(format!("Triton does not load ({missing}); {HINT}"));
        }
        if let Some(job) = jobs.iter().find(|job| job.name == line.name) {
            answers.push((line.name.clone(), keep(line, job, (triton, cache), output.path())?));
        }
    }
    if let ([job], [], Some(how)) = (jobs, &answers[..], end) {
        let log = std::fs::read_to_string(output.path().join(format!("{}.log", job.name)));
        let words = log.unwrap_or_default() + &errors;
        let message = format!("its process {how}\n{}", last_lines(&words));
        answers.push((job.name.clone(), Answer::Failed { message, hint: None }));
    }
    Ok(answers)
}

/// Puts what a job made into the cache.
fn keep(
    line: Line,
    job: &Job,
    (triton, cache): (&Triton, &Cache),
    output: &Path,
) -> Result<Answer, String> {
    if let Some(facts) = line.facts {
        cache.put(job, triton, (facts, &line.sources), output)?;
        return Ok(Answer::Kept);
    }
    let mut message = line.error.unwrap_or_default();
    if message.contains("PassManager::run failed") || message.is_empty() {
        // The compiler's own words went to its log, between dumps of the program.
        let log = std::fs::read_to_string(output.join(format!("{}.log", job.name)));
        let log = log.unwrap_or_default();
        let said = log.lines().filter(|line| line.contains(" error: "));
        let said: Vec<&str> = said.filter(|line| line.len() < 400).collect();
        message = format!("{}\n{message}", said.join("\n"));
    }
    Ok(Answer::Failed { message: last_lines(&message), hint: line.hint })
}

/// The end of a long message.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    let from = lines.len().saturating_sub(SHOWN_LINES);
    let cut = if from == 0 { "" } else { "...\n" };
    format!("{cut}{}", lines[from..].join("\n"))
}

type Collected = thread::JoinHandle<String>;

fn collect(stream: Option<impl Read + Send + 'static>) -> Collected {
    /// More than Triton ever says.
    const MOST_BYTES: u64 = 16 << 20;
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let _ = stream.take(MOST_BYTES).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn join(collected: Collected) -> String {
    collected.join().unwrap_or_default()
}

/// Waits for the end, and stops a child that takes too long; how it ended, if not well.
fn wait(child: &mut Child) -> Option<String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(Some(status)) => return Some(format!("died ({status})")),
            Ok(None) if start.elapsed() < LIMIT => thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Some(format!("took over {} s and was stopped", LIMIT.as_secs()));
            }
        }
    }
}
