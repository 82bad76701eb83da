//! Runs on a GPU: every kernel and gate in a child process of its own.
//!
//! A kernel that faults takes its process's GPU context with it, and one that hangs never gives the
//! device back. In a child, the one is a result like any other and the other is killed.

use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use assay_contract::run::{list, summarize};
use assay_contract::{CheckOptions, Kernel, KernelOutcome, RunOutcome};
use assay_record::{
    CaseName, Evidence, ExitCode, Gate, GateResult, KernelResult, Outcome, Smallest,
};

use serde::de::DeserializeOwned;

use crate::cli::CheckArguments;
use crate::failure::Failure;
use crate::printed::{self, Printed};
use crate::progress::Progress;
use crate::protocol::{self, Message, PROTOCOL, Request};

/// Children at a time. A GPU runs their kernels in turn, but each prepares inputs on a core.
const CHILDREN: usize = 4;

/// What has to be judged, one child each.
pub(crate) struct Jobs {
    requests: Vec<(Request, Option<Gate>)>,
    children: Children,
}

/// How children are run.
pub(crate) struct Children {
    /// The program, which is this one.
    program: PathBuf,
    /// How long one may be silent.
    timeout: Duration,
}

impl Jobs {
    /// The kernels and gates that were asked for.
    pub(crate) fn new(
        kernels: &[&dyn Kernel],
        options: &CheckOptions,
        arguments: &CheckArguments,
    ) -> Result<Jobs, Failure> {
        let request = |kernel: &str, gate: Gate| request(kernel, gate, options, arguments);
        let children = Children::new(arguments)?;
        if let Some(case) = &arguments.repro {
            let requests = vec![(request(&case.kernel, case.gate), None)];
            return Ok(Jobs { requests, children });
        }
        let mut requests = Vec::new();
        for listed in list(kernels, options) {
            let gates = listed.gates.iter().map(|(gate, _)| request(&listed.kernel, *gate));
            requests.extend(gates.map(|request| (request, listed.control_for)));
        }
        Ok(Jobs { requests, children })
    }
}

/// The request to judge one kernel at one gate.
pub(crate) fn request(
    kernel: &str,
    gate: Gate,
    options: &CheckOptions,
    arguments: &CheckArguments,
) -> Request {
    Request {
        protocol: PROTOCOL,
        device: arguments.device.clone(),
        manifests: arguments.manifest.clone(),
        kernel: kernel.to_owned(),
        gate,
        seed: options.seed,
        only: options.only.clone(),
        repro: arguments.repro.clone(),
        faults: arguments.faults.clone(),
        compare: false,
        inputs: arguments.inputs.clone(),
        budget: arguments.budget,
        shrink: None,
    }
}

/// Does `work` on as many threads as children may run at a time.
pub(crate) fn on_each_thread(work: impl Fn() + Sync) {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 1..CHILDREN.min(cores) {
            scope.spawn(&work);
        }
        work();
    });
}

/// Runs all jobs and puts the gates of each kernel together again.
pub(crate) fn run(jobs: &Jobs) -> RunOutcome {
    let progress = Progress::new(jobs.requests.len() as u64);
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Mutex<Option<KernelOutcome>>> =
        jobs.requests.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
            && let Some((request, control_for)) = jobs.requests.get(at)
        {
            progress.at(&format!("{} {}", request.kernel, request.gate));
            let outcome = jobs.children.judge(request, *control_for);
            *outcomes[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(outcome);
            progress.step();
        }
    };
    on_each_thread(work);
    progress.finish();
    let outcomes = outcomes
        .into_iter()
        .filter_map(|slot| slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    let kernels = outcomes.fold(Vec::new(), merge);
    let (summary, exit) = summarize(&kernels);
    RunOutcome { kernels, summary, exit }
}

/// Shrinks the one case of the jobs in a child; nothing where that failed or took too long.
pub(crate) fn shrink(jobs: &Jobs, folder: &Path) -> Option<Smallest> {
    let (request, _) = jobs.requests.first()?;
    let request = Request { shrink: Some(folder.to_owned()), ..request.clone() };
    let mut heard = Heard::default();
    let _ = jobs.children.converse(&request, &mut heard);
    heard.smallest
}

/// Adds one gate's outcome to the kernel's other gates, which come just before it.
pub(crate) fn merge(mut kernels: Vec<KernelOutcome>, outcome: KernelOutcome) -> Vec<KernelOutcome> {
    match kernels.last_mut() {
        Some(kernel) if kernel.result.kernel == outcome.result.kernel => {
            kernel.exit = kernel.exit.worst(outcome.exit);
            kernel.result.gates.extend(outcome.result.gates);
            kernel.result.seconds += outcome.result.seconds;
            kernel.result.build = kernel.result.build.take().or(outcome.result.build);
            if kernel.result.error.is_none() {
                kernel.result.error = outcome.result.error;
                kernel.hint = outcome.hint;
            }
        }
        _ => kernels.push(outcome),
    }
    kernels
}

/// What a child has said before its end.
#[derive(Default)]
struct Heard {
    /// The case it is in.
    at: Option<CaseName>,
    /// The smallest inputs it found.
    smallest: Option<Smallest>,
}

/// Why a child gave no result.
enum Death {
    /// It could not be started, or spoke another protocol.
    Internal(String),
    /// One case took longer than allowed.
    Hang(u64),
    /// It ended by itself.
    Crash(String),
}

impl Children {
    pub(crate) fn new(arguments: &CheckArguments) -> Result<Children, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(ExitCode::Internal, "cannot find this program's file").caused_by(&error)
        })?;
        let timeout = Duration::from_secs(arguments.timeout.max(1));
        Ok(Children { program, timeout })
    }

    /// Runs one child to its end, whatever that is.
    pub(crate) fn judge(&self, request: &Request, control_for: Option<Gate>) -> KernelOutcome {
        let start = Instant::now();
        let mut heard = Heard::default();
        match self.converse(request, &mut heard) {
            Ok(outcome) => outcome,
            Err(death) => {
                let mut outcome = dead(request, control_for, &death, heard.at);
                outcome.result.seconds = start.elapsed().as_secs_f64();
                outcome
            }
        }
    }

    fn converse(&self, request: &Request, heard: &mut Heard) -> Result<KernelOutcome, Death> {
        let internal =
            |error: std::io::Error| Death::Internal(format!("cannot run a child: {error}"));
        let mut command = Command::new(&self.program);
        let mut child = protocol::ask(command.arg("child"), request).map_err(internal)?;
        let last_words = listen_to_errors(&mut child);
        let (messages, printed) = listen(&mut child);
        let mut result = wait_for_result(&messages, self.timeout, heard);
        let status = end(&mut child, &result);
        // The driver writes what is left of a kernel's text as the process ends.
        let printed = printed.join().unwrap_or_default();
        let Errors { last: words, assertion } = last_words.join().unwrap_or_default();
        if let Ok(outcome) = &mut result {
            printed::attach(&mut outcome.result, &printed, assertion.as_deref());
        }
        result.map_err(|silence| match silence {
            Silence::Timeout => Death::Hang(self.timeout.as_secs()),
            Silence::Protocol(found) => {
                Death::Internal(format!("the child speaks protocol {found}, not {PROTOCOL}"))
            }
            Silence::End => {
                let status =
                    status.map_or_else(|error| error.to_string(), |status| status.to_string());
                let words = words.trim();
                let space = if words.is_empty() { "" } else { ": " };
                let printed = printed.last_words().unwrap_or_default();
                Death::Crash(format!("{status}{space}{words}{printed}"))
            }
        })
    }
}

/// Waits for the end of a child that has said its last word; stops one that has not.
fn end<T>(child: &mut Child, result: &Result<T, Silence>) -> std::io::Result<ExitStatus> {
    const GRACE: Duration = Duration::from_secs(5);
    let start = Instant::now();
    let ending = matches!(result, Ok(_) | Err(Silence::End));
    while ending && start.elapsed() < GRACE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    child.wait()
}

/// Why no result came.
enum Silence {
    Timeout,
    Protocol(u32),
    End,
}

fn wait_for_result(
    messages: &Receiver<Message>,
    timeout: Duration,
    heard: &mut Heard,
) -> Result<KernelOutcome, Silence> {
    loop {
        match messages.recv_timeout(timeout) {
            Ok(Message::Hello { protocol }) if protocol != PROTOCOL => {
                return Err(Silence::Protocol(protocol));
            }
            Ok(Message::Hello { .. }) => {}
            Ok(Message::Case { case }) => heard.at = Some(case),
            Ok(Message::Shrunk { smallest }) => heard.smallest = Some(*smallest),
            Ok(Message::Done { result, exit, hint, skipped }) => {
                let exit = ExitCode::from_code(exit).unwrap_or(ExitCode::Internal);
                return Ok(KernelOutcome { result, exit, hint, skipped });
            }
            Err(RecvTimeoutError::Timeout) => return Err(Silence::Timeout),
            Err(RecvTimeoutError::Disconnected) => return Err(Silence::End),
        }
    }
}

/// Reads messages until the child closes its stdout. Lines that are none are the kernel's.
pub(crate) fn listen<M: DeserializeOwned + Send + 'static>(
    child: &mut Child,
) -> (Receiver<M>, thread::JoinHandle<Printed>) {
    let (sender, receiver) = mpsc::channel();
    let stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut printed = Printed::default();
        let Some(mut stdout) = stdout.map(BufReader::new) else { return printed };
        while let Ok(Some(line)) = next_line(&mut stdout) {
            match serde_json::from_slice::<M>(&line) {
                // Nobody may listen any more, but what is printed still counts.
                Ok(message) => drop(sender.send(message)),
                Err(_) => printed.add(&line),
            }
        }
        printed
    });
    (receiver, reader)
}

/// The next line, or as much of it as a message may have; nothing at the end.
fn next_line(from: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    const LONGEST: u64 = 256 << 20;
    let mut line = Vec::new();
    let read = from.take(LONGEST).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok((read > 0).then_some(line))
}

/// What is kept of a child's stderr.
#[derive(Default)]
pub(crate) struct Errors {
    /// The last line.
    pub(crate) last: String,
    /// The first assertion that failed.
    assertion: Option<String>,
}

/// Reads what the child writes to stderr.
pub(crate) fn listen_to_errors(child: &mut Child) -> thread::JoinHandle<Errors> {
    let stderr = child.stderr.take();
    thread::spawn(move || {
        let mut errors = Errors::default();
        let lines = stderr.map(BufReader::new).into_iter().flat_map(|from| from.split(b'\n'));
        for line in lines.map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if errors.assertion.is_none() && printed::is_assertion(&line) {
                errors.assertion = Some(line.clone().into_owned());
            }
            if !line.trim().is_empty() {
                errors.last = line.into_owned();
            }
        }
        errors
    })
}

/// The outcome of a kernel whose child gave no result: its own failure, at the case it was in. A
/// planted control must be caught by its gate, so for it this is an error.
fn dead(
    request: &Request,
    control_for: Option<Gate>,
    death: &Death,
    at: Option<CaseName>,
) -> KernelOutcome {
    let reason = match death {
        Death::Internal(what) => what.clone(),
        Death::Hang(seconds) => {
            format!("the kernel did not end within {seconds} s and was stopped (--timeout)")
        }
        Death::Crash(how) => format!("the process that ran the kernel died: {how}"),
    };
    let internal = matches!(death, Death::Internal(_)) || at.is_none();
    let mut result = KernelResult {
        kernel: request.kernel.clone(),
        control_for,
        gates: Vec::new(),
        error: None,
        build: None,
        seconds: 0.0,
    };
    match at {
        Some(case) if !internal && control_for.is_none() => {
            let findings = vec![Evidence::new(case, Outcome::Fail, reason.clone())];
            result.gates.push(GateResult {
                gate: request.gate,
                outcome: Outcome::Fail,
                reason,
                cases: 1,
                margin: None,
                findings,
                notes: Vec::new(),
                chips: Vec::new(),
            });
        }
        _ => result.error = Some(reason),
    }
    let exit = if internal { ExitCode::Internal } else { ExitCode::Problems };
    KernelOutcome { result, exit, hint: None, skipped: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            protocol: PROTOCOL,
            device: "emulator".to_owned(),
            manifests: Vec::new(),
            kernel: "k".to_owned(),
            gate: Gate::Repeat,
            seed: 1,
            only: None,
            repro: None,
            faults: None,
            compare: false,
            inputs: None,
            budget: None,
            shrink: None,
        }
    }

    fn case() -> CaseName {
        "k/repeat/n=1/plain/seed=1/5-runs".parse().expect("a case")
    }

    #[test]
    fn a_child_that_dies_at_once_is_an_internal_error_and_no_verdict() {
        let children = Children { program: "false".into(), timeout: Duration::from_secs(60) };
        let outcome = children.judge(&request(), None);
        assert_eq!(outcome.exit, ExitCode::Internal);
        let error = outcome.result.error.expect("it says why");
        assert!(error.contains("died: exit status: 1"), "{error}");
        assert!(outcome.result.gates.is_empty());
    }

    #[test]
    fn a_child_that_never_answers_is_stopped() {
        let children = Children { program: "yes".into(), timeout: Duration::from_millis(200) };
        let outcome = children.judge(&request(), None);
        assert!(outcome.result.error.expect("it says why").contains("did not end within"));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_internal_error() {
        let program = "no-such-program".into();
        let children = Children { program, timeout: Duration::from_secs(60) };
        assert_eq!(children.judge(&request(), None).exit, ExitCode::Internal);
    }

    /// A child that answers what a shell script says.
    #[cfg(unix)]
    fn scripted(name: &str, script: &str) -> KernelOutcome {
        use std::os::unix::fs::PermissionsExt as _;
        let program = std::env::temp_dir().join(format!("assay-{name}-{}", std::process::id()));
        let text = format!("#!/bin/sh\ncat >/dev/null\n{script}\n");
        std::fs::write(&program, text).expect("the script is written");
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, all).expect("it may run");
        let children = Children { program: program.clone(), timeout: Duration::from_secs(60) };
        let outcome = children.judge(&request(), None);
        std::fs::remove_file(&program).expect("the script goes");
        outcome
    }

    #[cfg(unix)]
    fn said(message: &Message) -> String {
        let line = serde_json::to_string(message).expect("a message has a JSON form");
        format!("printf '\\n%s\\n' '{line}'")
    }

    #[cfg(unix)]
    #[test]
    fn what_a_kernel_prints_between_the_messages_becomes_a_note_of_the_gate() {
        let death = Death::Crash("x".to_owned());
        let mut result = dead(&request(), None, &death, Some(case())).result;
        result.gates[0].notes.clear();
        let done = Message::Done { result, exit: 1, hint: None, skipped: false };
        let assertion = "k.cu:3: void k(): block: [0,0,0], thread: [1,0,0] Assertion `ok` failed.";
        let lines = [
            said(&Message::Hello { protocol: PROTOCOL }),
            "echo 'row 0: 3.5'; printf 'row 1: 4'".to_owned(),
            said(&Message::Case { case: case() }),
            format!("echo \"{}\" >&2; echo and this >&2", assertion.replace('`', "\\`")),
            said(&done),
            // What the driver still holds comes as the process ends.
            "echo 'row 2: 5'".to_owned(),
        ];
        let outcome = scripted("prints", &lines.join("\n"));
        let notes = &outcome.result.gates[0].notes;
        assert_eq!(notes[0], "it printed in its runs: row 0: 3.5 | row 1: 4 | row 2: 5");
        assert_eq!(notes[1], format!("its assertion failed: {assertion}"));
        assert_eq!(notes.len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_dies_says_what_its_kernel_had_printed() {
        let hello = said(&Message::Hello { protocol: PROTOCOL });
        let at = said(&Message::Case { case: case() });
        let outcome = scripted("dies", &format!("{hello}\n{at}\necho at step 7\nkill -9 $$"));
        let reason = &outcome.result.gates[0].reason;
        assert!(reason.contains("died: signal: 9") && reason.contains("at step 7"), "{reason}");
    }

    #[test]
    fn a_kernel_whose_process_dies_in_a_case_fails_its_gate() {
        let death = Death::Crash("signal: 11".to_owned());
        let outcome = dead(&request(), None, &death, Some(case()));
        assert_eq!(outcome.exit, ExitCode::Problems);
        let gate = outcome.result.gate(Gate::Repeat).expect("the gate has a result");
        assert_eq!(gate.outcome, Outcome::Fail);
        assert_eq!(gate.findings[0].case, case());
    }

    #[test]
    fn a_control_whose_process_dies_was_not_caught_by_its_gate() {
        let death = Death::Hang(120);
        let outcome = dead(&request(), Some(Gate::Repeat), &death, Some(case()));
        assert!(!outcome.result.is_red());
        assert_eq!(outcome.exit, ExitCode::Problems);
        assert!(outcome.result.error.is_some());
    }

    #[test]
    fn the_gates_of_one_kernel_are_put_together() {
        let one = |gate, exit| {
            let death = Death::Crash("x".to_owned());
            let request = Request { gate, ..request() };
            KernelOutcome { exit, ..dead(&request, None, &death, Some(case())) }
        };
        let first = one(Gate::Repeat, ExitCode::Problems);
        let second = one(Gate::Shapes, ExitCode::Request);
        let merged = [first, second].into_iter().fold(Vec::new(), merge);
        assert_eq!(merged.len(), 1);
        assert_eq!(merged[0].result.gates.len(), 2);
        assert_eq!(merged[0].exit, ExitCode::Request);
    }
}
