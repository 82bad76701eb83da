//! The hidden subcommand that judges one kernel at one gate, in a process that may die of it.

use assay_contract::fault::BuiltFault;
use assay_contract::run::{compare_fault, judge_fault, replay, replay_given, run_one};
use assay_contract::{CheckOptions, Kernel, KernelOutcome, Progress};
use assay_record::{CaseName, ExitCode, KernelResult};

use crate::check::{limited, open, open_for};
use crate::console::Console;
use crate::failure::Failure;
use crate::faults;
use crate::protocol::{self, Message, PROTOCOL, Request};
use crate::repro;
use crate::suite::Suite;

/// Serves the one request on stdin.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    let request: Request = protocol::request("child", "check")?;
    say(&Message::Hello { protocol: PROTOCOL });
    if request.protocol != PROTOCOL {
        return Ok(ExitCode::Internal);
    }
    let outcome = judge(&request)?;
    let exit = outcome.exit.code();
    let (result, hint, skipped) = (outcome.result, outcome.hint, outcome.skipped);
    say(&Message::Done { result, exit, hint, skipped });
    Ok(ExitCode::Holds)
}

fn judge(request: &Request) -> Result<KernelOutcome, Failure> {
    let suite = Suite::load(&request.manifests);
    let fault = match &request.faults {
        Some(folder) => faults::load_one(&suite.faults, &request.kernel, folder)?,
        None => None,
    };
    let mut kernels = suite.kernels();
    if let Some(fault) = &fault {
        if request.repro.is_none() {
            return judge_one_fault(request, fault, &kernels);
        }
        kernels.push(&fault.kernel);
    }
    let kernel = kernels.iter().find(|kernel| kernel.spec().name == request.kernel);
    let Some(kernel) = kernel else {
        let message = format!("there is no kernel `{}` any more", request.kernel);
        return Err(Failure::request(message));
    };
    let mut device = open_for(&request.device, kernel.spec().architecture())?;
    limited(device.as_mut(), request.budget);
    let progress = Telling;
    if let Some(case) = &request.repro {
        if let Some(folder) = &request.shrink {
            progress.case(case);
            if let Some(smallest) = repro::shrink(case, &kernels, device.as_mut(), folder)? {
                say(&Message::Shrunk { smallest: Box::new(smallest) });
            }
            return Ok(nothing_judged(&request.kernel));
        }
        if let Some(file) = &request.inputs {
            progress.case(case);
            let inputs = repro::load(file)?.inputs;
            return replay_given(case, &inputs, &kernels, device.as_mut())
                .map_err(|error| Failure::request("cannot run the case").caused_by(&error));
        }
        return replay(case, &kernels, device.as_mut(), &progress)
            .map_err(|error| Failure::request("cannot run the case").caused_by(&error));
    }
    let options = CheckOptions {
        gates: vec![request.gate],
        seed: request.seed,
        only: request.only.clone(),
        threads: 1,
        part: None,
    };
    Ok(run_one(*kernel, &kernels, device.as_mut(), &options, &progress))
}

/// Takes a fault through one gate, or compares it with its kernel.
fn judge_one_fault(
    request: &Request,
    fault: &BuiltFault,
    kernels: &[&dyn Kernel],
) -> Result<KernelOutcome, Failure> {
    let mut device = open(&request.device)?;
    limited(device.as_mut(), request.budget);
    let gates = vec![request.gate];
    let options = CheckOptions { gates, seed: request.seed, only: None, threads: 1, part: None };
    let surroundings = (kernels, &options);
    if request.compare {
        let result = compare_fault(fault, surroundings, device.as_mut(), &Telling);
        return Ok(faults::comparison(fault.name(), result));
    }
    Ok(judge_fault(fault, request.gate, surroundings, device.as_mut(), &Telling))
}

/// The outcome of a request that asked for no verdict.
fn nothing_judged(kernel: &str) -> KernelOutcome {
    let result = KernelResult {
        kernel: kernel.to_owned(),
        control_for: None,
        gates: Vec::new(),
        error: None,
        build: None,
        seconds: 0.0,
    };
    KernelOutcome { result, exit: ExitCode::Holds, hint: None, skipped: true }
}

/// Tells the parent of every case.
struct Telling;

impl Progress for Telling {
    fn case(&self, case: &CaseName) {
        say(&Message::Case { case: case.clone() });
    }
}

/// Writes a message on a line of its own, whatever the kernel has printed before it.
fn say(message: &Message) {
    if let Ok(line) = serde_json::to_string(message) {
        Console::out_plain(&format!("\n{line}\n"));
    }
}
