//! The token of every kernel before it is timed: its checks are run first, on the same device, in
//! a process of their own.

use std::path::Path;
use std::process::{Command, Stdio};

use assay_contract::Kernel;
use assay_device::DeviceFacts;
use assay_record::{Checked, ExitCode, Report, Standing};

use super::kernels::{Asked, Subject};
use super::{Arguments, read};
use crate::console::Console;
use crate::failure::Failure;

/// Where each kernel stands, in order. A kernel that fails its checks ends everything: it has no
/// time worth knowing.
pub(super) fn standings(
    asked: &Asked,
    arguments: &Arguments,
    device: &DeviceFacts,
) -> Result<Vec<Standing>, Failure> {
    if arguments.unchecked {
        let standing = Standing::unchecked("asked for with --unchecked");
        return Ok(vec![standing; asked.subjects.len()]);
    }
    let trusted = arguments.report.as_deref().map(|path| load(path, device)).transpose()?;
    asked
        .subjects
        .iter()
        .map(|subject| {
            let name = &subject.kernel.spec().name;
            match &trusted {
                Some(report) => standing(report, name),
                None => standing(&check(subject, arguments)?, name),
            }
        })
        .collect()
}

/// What a report says of a kernel.
fn standing(report: &Report, name: &str) -> Result<Standing, Failure> {
    let Some(result) = report.kernels.iter().find(|result| result.kernel == name) else {
        return Err(Failure::request(format!("the report says nothing of `{name}`"))
            .hint(format!("assay check --only {name} checks it")));
    };
    let checked = Checked::of(result).map_err(|error| {
        Failure::new(ExitCode::Problems, error.to_string()).hint(
            "mend the kernel first; --unchecked times it all the same, and the record says so"
                .to_owned(),
        )
    })?;
    Ok(Standing::from(&checked))
}

/// A report of this device.
fn load(path: &Path, device: &DeviceFacts) -> Result<Report, Failure> {
    let unread = || format!("cannot read {} as a report of `assay check`", path.display());
    let report = Report::from_json(&read(path)?)
        .map_err(|error| Failure::request(unread()).caused_by(&error))?;
    if report.device.name != device.name || report.device.architecture != device.architecture {
        let (theirs, ours) = (&report.device.name, &device.name);
        return Err(Failure::request(format!("the report is of {theirs}, the device is {ours}"))
            .hint("check the kernels on the device that they are timed on".to_owned()));
    }
    Ok(report)
}

/// Runs the checks of a kernel.
fn check(subject: &Subject, arguments: &Arguments) -> Result<Report, Failure> {
    let name = &subject.kernel.spec().name;
    let failed =
        |what: &str| Failure::new(ExitCode::Internal, format!("the checks of `{name}` {what}"));
    Console::aside(&format!("checking {name} before it is timed\n"));
    let program =
        std::env::current_exe().map_err(|error| failed("cannot be started").caused_by(&error))?;
    let mut command = Command::new(program);
    command.args(["check", "--json", "-", "--color", "never"]);
    command.args(["--device", &arguments.device, "--only", &format!("{name}/")]);
    command.args(["--seed", &arguments.seed.to_string()]);
    for manifest in &arguments.manifest {
        command.arg("--manifest").arg(manifest);
    }
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed("cannot be started").caused_by(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Report::from_json(&text).map_err(|error| failed("gave no report").caused_by(&error))
}
