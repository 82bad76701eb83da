//! The token of every kernel before it is timed: its checks are run first, on the same device, in
//! a process of their own.

use std::process::{Command, Stdio};

use assay_contract::{Kernel, difference};
use assay_device::DeviceFacts;
use assay_record::{Checked, ExitCode, KernelResult, Report, Standing};

use super::kernels::{Asked, Subject};
use super::{Arguments, read};
use crate::console::Console;
use crate::failure::Failure;

/// The report that was asked to be trusted, where it is of these kernels as they are now. Needs no
/// device.
pub(super) fn trusted(asked: &Asked, arguments: &Arguments) -> Result<Option<Report>, Failure> {
    let Some(path) = &arguments.report else { return Ok(None) };
    let unread = || format!("cannot read {} as a report of `assay check`", path.display());
    let report = Report::from_json(&read(path)?)
        .map_err(|error| Failure::request(unread()).caused_by(&error))?;
    for subject in &asked.subjects {
        let spec = subject.kernel.spec();
        let result = result_of(&report, &spec.name)?;
        let again = || format!("assay check --only {}/ --json FILE judges this one", spec.name);
        let Some(judged) = &result.build else {
            let message =
                format!("the report does not say which build of `{}` it is of", spec.name);
            return Err(Failure::request(message).hint(again()));
        };
        if let Some(difference) = difference(judged, spec) {
            let message = format!("the report is of another `{}`: {difference}", spec.name);
            return Err(Failure::request(message).hint(again()));
        }
    }
    Ok(Some(report))
}

/// Where each kernel stands, in order. A kernel that fails its checks ends everything: it has no
/// time worth knowing.
pub(super) fn standings(
    asked: &Asked,
    arguments: &Arguments,
    trusted: Option<&Report>,
    device: &DeviceFacts,
) -> Result<Vec<Standing>, Failure> {
    if arguments.unchecked {
        let standing = Standing::unchecked("asked for with --unchecked");
        return Ok(vec![standing; asked.subjects.len()]);
    }
    if let Some(report) = trusted {
        refuse_other_device(report, device)?;
    }
    asked
        .subjects
        .iter()
        .map(|subject| {
            let name = &subject.kernel.spec().name;
            match trusted {
                Some(report) => standing(report, name),
                None => standing(&check(subject, arguments)?, name),
            }
        })
        .collect()
}

/// What a report holds of a kernel.
fn result_of<'r>(report: &'r Report, name: &str) -> Result<&'r KernelResult, Failure> {
    report.kernels.iter().find(|result| result.kernel == name).ok_or_else(|| {
        Failure::request(format!("the report says nothing of `{name}`"))
            .hint(format!("assay check --only {name} checks it"))
    })
}

/// What a report says of a kernel.
fn standing(report: &Report, name: &str) -> Result<Standing, Failure> {
    let checked = Checked::of(result_of(report, name)?).map_err(|error| {
        Failure::new(ExitCode::Problems, error.to_string()).hint(
            "mend the kernel first; --unchecked times it all the same, and the record says so"
                .to_owned(),
        )
    })?;
    Ok(Standing::from(&checked))
}

/// A kernel that is right on one device, or through one driver's compiler, may be wrong on another.
fn refuse_other_device(report: &Report, device: &DeviceFacts) -> Result<(), Failure> {
    let judged = &report.device;
    let hint = || "check the kernels on the device and driver that they are timed on".to_owned();
    if judged.name != device.name || judged.architecture != device.architecture {
        let (theirs, ours) = (&judged.name, &device.name);
        let message = format!("the report is of {theirs}, the device is {ours}");
        return Err(Failure::request(message).hint(hint()));
    }
    if judged.driver != device.driver {
        let said = |driver: &Option<String>| driver.clone().unwrap_or_else(|| "none".to_owned());
        let (theirs, ours) = (said(&judged.driver), said(&device.driver));
        let message = format!("the report was made with the driver {theirs}, this one is {ours}");
        return Err(Failure::request(message).hint(hint()));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_another_device_or_driver_is_refused() {
        let device = assay_device::open("emulator").expect("an emulator").facts().clone();
        let report = |name: &str, driver: Option<&str>| {
            let text = format!(
                r#"{{"schema":1,"assay_version":"","command":"","date":"","seed":1,"device":{{
                "name":"{name}","backend":"cuda","driver":{},"architecture":"{}"}},"kernels":[],
                "summary":{},"exit_code":0}}"#,
                driver.map_or("null".to_owned(), |driver| format!("\"{driver}\"")),
                device.architecture,
                serde_json::to_string(&assay_record::Summary::default()).expect("JSON"),
            );
            Report::from_json(&text).expect("a report")
        };
        let facts = DeviceFacts { driver: Some("580.1".to_owned()), ..device.clone() };
        let said = |report: &Report| {
            refuse_other_device(report, &facts).err().map(|failure| failure.to_string())
        };
        assert_eq!(said(&report(&facts.name, Some("580.1"))), None);
        let driver = said(&report(&facts.name, Some("570.9"))).expect("refused");
        assert!(driver.contains("570.9") && driver.contains("580.1"), "{driver}");
        assert!(
            said(&report("another", Some("580.1"))).is_some_and(|text| text.contains("another"))
        );
        assert!(said(&report(&facts.name, None)).is_some());
    }
}
