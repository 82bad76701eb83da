//! The dossier of a device that is here: `assay probe` in a process of its own.

use std::process::{Command, Stdio};

use assay_record::{Dossier, ExitCode};

use crate::failure::Failure;

/// Probes a device, only what has `only` in its name where that is given.
pub(super) fn probe(device: &str, quick: bool, only: Option<&str>) -> Result<Dossier, Failure> {
    let failed = |what: &str| Failure::new(ExitCode::Internal, format!("the probes {what}"));
    let program =
        std::env::current_exe().map_err(|error| failed("cannot be started").caused_by(&error))?;
    let mut command = Command::new(program);
    command.args(["probe", "--json", "-", "--device", device]);
    if quick {
        command.arg("--quick");
    }
    if let Some(text) = only {
        command.args(["--only", text]);
    }
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed("cannot be started").caused_by(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Dossier::from_json(&text).map_err(|error| {
        // What went wrong has been said by the probes themselves.
        let code = output.status.code().and_then(|code| u8::try_from(code).ok());
        let exit = code.and_then(ExitCode::from_code).filter(|exit| *exit != ExitCode::Holds);
        Failure::new(exit.unwrap_or(ExitCode::Internal), "there is no dossier to judge")
            .caused_by(&error)
            .hint("--dossier FILE judges one of another machine, with no GPU".to_owned())
    })
}
