//! `assay check`: kernels and controls through the gates, and a report of what was found.

use std::fmt::Write as _;
use std::path::PathBuf;

use assay_contract::fault::BuiltFault;
use assay_contract::run::{
    GATES, discriminate, faults_exit, list, replay, replay_given, run, select, selects_fault,
    shard, summarize,
};
use assay_contract::{CheckOptions, Kernel, KernelOutcome, ManifestError, RunOutcome};
use assay_device::{DeviceError, DeviceFacts};
use assay_record::{DeviceRecord, ExitCode, FaultResult, Outcome, Report, SCHEMA, Shard, Smallest};

use crate::cli::CheckArguments;
use crate::console::Console;
use crate::failure::Failure;
use crate::faults;
use crate::output::{self, Files};
use crate::parent::{self, Jobs};
use crate::progress::Progress;
use crate::render::View;
use crate::suite::Suite;
use crate::{VERSION, command_line, date, repro};

/// Runs what was asked for; the exit code says how it ended.
pub(crate) fn check(arguments: &CheckArguments, console: Console) -> Result<ExitCode, Failure> {
    let arguments = &repro::with_case(arguments)?;
    let suite = Suite::load(&arguments.manifest);
    let broken = suite.tell_errors(console);
    let kernels = suite.kernels();
    if kernels.iter().all(|kernel| kernel.spec().is_control()) {
        // What is wrong has been said above.
        return Ok(broken.worst(ExitCode::Request));
    }
    if suite.errors.iter().any(|error| is_all_that_was_asked_for(error, arguments)) {
        return Ok(broken);
    }
    check_kernels(&suite, broken, arguments, console)
        .map(|exit| exit.worst(broken))
        .map_err(|failure| failure.beside(broken))
}

/// Whether the one kernel that was asked for is one that cannot be run.
fn is_all_that_was_asked_for(error: &ManifestError, arguments: &CheckArguments) -> bool {
    let asked = arguments.repro.as_ref().map(|case| &case.kernel).or(arguments.only.as_ref());
    asked.is_some() && error.kernel.as_ref() == asked
}

fn check_kernels(
    suite: &Suite,
    mut broken: ExitCode,
    arguments: &CheckArguments,
    console: Console,
) -> Result<ExitCode, Failure> {
    let options = options(arguments);
    let (faults, failures) = faults::load(&suite.faults, &options, arguments)?;
    for failure in failures {
        broken = broken.worst(failure.exit);
        console.message(&failure);
    }
    let faults: Vec<&BuiltFault> = faults.iter().collect();
    let mut kernels = suite.kernels();
    if arguments.repro.is_some() {
        // A fault whose case is run again is a kernel like any other.
        kernels.extend(faults.iter().map(|fault| &fault.kernel as &dyn Kernel));
    }
    let kernels = kernels.as_slice();
    let asked_for = suite.faults_asked_for(arguments);
    if arguments.repro.is_some() || !asked_for.iter().any(|f| selects_fault(f, &options)) {
        refuse_nothing(kernels, &options, arguments)?;
    }
    if arguments.list {
        list_cases(kernels, &options, console);
        return Ok(ExitCode::Holds);
    }
    let facts = open(&arguments.device)?.facts().clone();
    let started = date::now();
    let isolate = facts.backend == "cuda" || arguments.isolate;
    let (outcome, smallest) = if isolate {
        let jobs = Jobs::new(kernels, &options, arguments)?;
        let outcome = one_case(parent::run(&jobs), arguments)?;
        let shrinks = repro::shrinks(arguments, &outcome);
        let smallest = shrinks.then(|| parent::shrink(&jobs, &arguments.save)).flatten();
        (outcome, smallest)
    } else {
        run_here(kernels, &options, arguments)?
    };
    let faults = match (&arguments.repro, isolate) {
        (Some(_), _) => Vec::new(),
        (None, true) => faults::run_isolated(&faults, &options, arguments)?,
        (None, false) => faults::run_here(&faults, kernels, &options, arguments),
    };
    let shard = shard(kernels, asked_for, &options).map(|shard| given(shard, arguments));
    let mut report = report((outcome, faults, shard), broken, (arguments, started, &facts));
    report.smallest = smallest;
    write(&report, &options, arguments, console)?;
    Ok(ExitCode::from_code(report.exit_code).unwrap_or(ExitCode::Internal))
}

/// A part with the manifests and the folder of builds that were given, for the merged report's
/// commands.
fn given(shard: Shard, arguments: &CheckArguments) -> Shard {
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let manifests = arguments.manifest.iter().map(text).collect();
    Shard { manifests, builds: arguments.faults.as_ref().map(text), ..shard }
}

fn options(arguments: &CheckArguments) -> CheckOptions {
    let mut gates = match &arguments.repro {
        Some(case) => vec![case.gate],
        None if arguments.gate.is_empty() => GATES.to_vec(),
        None => arguments.gate.clone(),
    };
    gates.sort_unstable();
    gates.dedup();
    CheckOptions {
        gates,
        seed: arguments.seed,
        only: arguments.only.clone(),
        threads: 0,
        part: arguments.shard,
    }
}

/// Opens a device by its name.
pub(crate) fn open(name: &str) -> Result<Box<dyn assay_device::Device>, Failure> {
    open_for(name, None)
}

/// Opens a device for a kernel that was compiled for an architecture, if for one.
pub(crate) fn open_for(
    name: &str,
    architecture: Option<&str>,
) -> Result<Box<dyn assay_device::Device>, Failure> {
    device(name, architecture).map_err(|error: DeviceError| {
        Failure::new(ExitCode::NoDevice, format!("cannot use the device {name}"))
            .caused_by(&error)
            .hint(error.hint())
    })
}

/// The device of a name. The plain emulator is the chip that a kernel was compiled for; one whose
/// chip was asked for stays it, as a GPU does.
pub(crate) fn device(
    name: &str,
    architecture: Option<&str>,
) -> Result<Box<dyn assay_device::Device>, DeviceError> {
    match architecture {
        Some(architecture) if name == "emulator" => {
            assay_device::open(&format!("{name}:{architecture}"))
        }
        _ => assay_device::open(name),
    }
}

/// Has a device stop every launch after so many instructions, where that was asked for.
pub(crate) fn limited(device: &mut dyn assay_device::Device, budget: Option<u64>) {
    if let Some(budget) = budget {
        device.limit_instructions(budget);
    }
}

/// Opens a worker's device, and lets the progress see how far its launches are.
pub(crate) fn watched(
    arguments: &CheckArguments,
    architecture: Option<&str>,
    progress: &Progress,
) -> Result<Box<dyn assay_device::Device>, DeviceError> {
    let mut device = device(&arguments.device, architecture)?;
    limited(device.as_mut(), arguments.budget);
    progress.watch(device.as_mut());
    Ok(device)
}

/// The architecture that the kernel of a name was compiled for, if for one.
pub(crate) fn architecture_of<'k>(name: &str, kernels: &[&'k dyn Kernel]) -> Option<&'k str> {
    let kernel = kernels.iter().find(|kernel| kernel.spec().name == name)?;
    kernel.spec().architecture()
}

/// Refuses a request that selects nothing.
fn refuse_nothing(
    kernels: &[&dyn Kernel],
    options: &CheckOptions,
    arguments: &CheckArguments,
) -> Result<(), Failure> {
    if let Some(case) = &arguments.repro {
        let known = kernels.iter().any(|kernel| kernel.spec().name == case.kernel);
        return if known { Ok(()) } else { Err(no_kernel(&case.kernel, kernels)) };
    }
    let text = options.only.as_deref().unwrap_or_default();
    if select(kernels, options).matched { Ok(()) } else { Err(no_match(text, kernels)) }
}

fn no_kernel(name: &str, kernels: &[&dyn Kernel]) -> Failure {
    Failure::request(format!("there is no kernel `{name}`")).hint(names(kernels, name))
}

fn no_match(text: &str, kernels: &[&dyn Kernel]) -> Failure {
    Failure::request(format!("no kernel and no case has `{text}` in its name"))
        .hint(format!("--list prints every case; {}", names(kernels, text)))
}

/// The kernels of a run; of many, those whose names begin most like `text`.
fn names(kernels: &[&dyn Kernel], text: &str) -> String {
    const SHOWN: usize = 8;
    let alike = |name: &str| name.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    let own = kernels.iter().map(|kernel| kernel.spec()).filter(|spec| !spec.is_control());
    let mut names: Vec<&str> = own.map(|spec| spec.name.as_str()).collect();
    names.sort_by_key(|name| std::cmp::Reverse(alike(name)));
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(SHOWN);
    format!("the kernels are {}{more}", names.join(", "))
}

/// Prints the names of the cases that were asked for.
fn list_cases(kernels: &[&dyn Kernel], options: &CheckOptions, console: Console) {
    let text = options.only.as_deref().unwrap_or_default();
    let listed = list(kernels, options);
    let cases = listed.iter().flat_map(|kernel| &kernel.gates).flat_map(|(_, cases)| cases);
    let names: Vec<String> = cases.map(ToString::to_string).collect();
    let names: Vec<String> = names.into_iter().filter(|name| name.contains(text)).collect();
    console.out(&(names.join("\n") + "\n"));
    let controls = listed.iter().filter(|kernel| kernel.control_for.is_some()).count();
    let count = names.len();
    console.message(&format_args!("cases: {count}; planted controls run with them: {controls}\n"));
}

/// Runs on an emulator, in this process; a case that is run again and fails is shrunk too.
fn run_here(
    kernels: &[&dyn Kernel],
    options: &CheckOptions,
    arguments: &CheckArguments,
) -> Result<(RunOutcome, Option<Smallest>), Failure> {
    if let Some(case) = &arguments.repro {
        let mut device = open_for(&arguments.device, architecture_of(&case.kernel, kernels))?;
        limited(device.as_mut(), arguments.budget);
        let progress = Progress::new(1);
        progress.watch(device.as_mut());
        let outcome = match &arguments.inputs {
            None => replay(case, kernels, device.as_mut(), &progress),
            Some(file) => replay_given(case, &repro::load(file)?.inputs, kernels, device.as_mut()),
        };
        progress.finish();
        let outcome =
            outcome.map_err(|error| Failure::request("cannot run the case").caused_by(&error))?;
        let (summary, exit) = summarize(std::slice::from_ref(&outcome));
        let outcome = RunOutcome { kernels: vec![outcome], summary, exit };
        let outcome = one_case(outcome, arguments)?;
        let smallest = if repro::shrinks(arguments, &outcome) {
            repro::shrink(case, kernels, device.as_mut(), &arguments.save)?
        } else {
            None
        };
        return Ok((outcome, smallest));
    }
    let progress = Progress::new(select(kernels, options).unit_count() as u64);
    let devices = |architecture: Option<&str>| watched(arguments, architecture, &progress);
    let outcome = run(kernels, &devices, options, &progress);
    progress.finish();
    Ok((outcome, None))
}

/// Refuses the outcome of a single case that did not exist.
fn one_case(outcome: RunOutcome, arguments: &CheckArguments) -> Result<RunOutcome, Failure> {
    let Some(case) = &arguments.repro else { return Ok(outcome) };
    let gates = outcome.kernels.iter().flat_map(|kernel| &kernel.result.gates);
    let ran = gates.clone().any(|gate| gate.cases > 0 || gate.outcome != Outcome::Unproven);
    if ran || gates.count() == 0 {
        return Ok(outcome);
    }
    let hint = format!("--list --only {} prints the cases of this kernel", case.kernel);
    Err(Failure::request(format!("there is no case {case}")).hint(hint))
}

fn report(
    (outcome, faults, shard): (RunOutcome, Vec<FaultResult>, Option<Shard>),
    broken: ExitCode,
    (arguments, date, facts): (&CheckArguments, String, &DeviceFacts),
) -> Report {
    let kernels: Vec<_> = outcome.kernels.into_iter().map(with_hint).collect();
    let discrimination = discriminate(&kernels, &faults);
    let exit = outcome.exit.worst(broken).worst(faults_exit(&faults, &discrimination));
    Report {
        schema: SCHEMA,
        assay_version: VERSION.to_owned(),
        command: command_line(),
        date,
        seed: arguments.repro.as_ref().map_or(arguments.seed, |case| case.seed),
        device: DeviceRecord {
            name: facts.name.clone(),
            backend: facts.backend.clone(),
            driver: facts.driver.clone(),
            architecture: facts.architecture.clone(),
        },
        shard,
        kernels,
        faults,
        discrimination,
        summary: outcome.summary,
        smallest: None,
        exit_code: exit.code(),
    }
}

/// The record of a kernel; what to do next goes with what went wrong.
fn with_hint(outcome: KernelOutcome) -> assay_record::KernelResult {
    let mut result = outcome.result;
    if let (Some(error), Some(hint)) = (&mut result.error, outcome.hint) {
        let _ = write!(error, "\nhint: {hint}");
    }
    result
}

fn write(
    report: &Report,
    options: &CheckOptions,
    arguments: &CheckArguments,
    console: Console,
) -> Result<(), Failure> {
    let view = View {
        gates: &options.gates,
        device: (arguments.device != "emulator").then_some(arguments.device.as_str()),
        inputs: arguments.inputs.as_deref(),
        manifests: &arguments.manifest,
        faults: arguments.faults.as_deref(),
        notes: arguments.notes,
    };
    let files = Files { json: arguments.json.as_deref(), matrix: arguments.matrix.as_deref() };
    output::write(report, &view, &files, console)
}
