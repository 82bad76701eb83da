//! `assay merge`: the reports of all parts of a run, as one.

use std::fs;
use std::path::PathBuf;

use assay_contract::run::{Named, merged_gates};
use assay_record::{ExitCode, Report};

use crate::cli::MergeArguments;
use crate::command_line;
use crate::console::Console;
use crate::failure::Failure;
use crate::output::{self, Files};
use crate::render::View;

/// Reads the parts, refuses those that do not make one run, and shows the whole.
pub(crate) fn merge(arguments: &MergeArguments, console: Console) -> Result<ExitCode, Failure> {
    let mut parts: Vec<Named> = Vec::new();
    for path in &arguments.reports {
        let cannot = |error: &dyn std::error::Error| {
            Failure::request(format!("cannot read {}", path.display())).caused_by(error)
        };
        let text = fs::read_to_string(path).map_err(|error| cannot(&error))?;
        let report = Report::from_json(&text).map_err(|error| cannot(&error))?;
        parts.push((path.display().to_string(), report));
    }
    let gates = merged_gates(&parts);
    let shard = parts.iter().find_map(|(_, report)| report.shard.clone());
    let given = shard.map(|shard| (shard.manifests, shard.builds));
    let (manifests, builds) = given.unwrap_or_default();
    let manifests: Vec<PathBuf> = manifests.into_iter().map(PathBuf::from).collect();
    let builds = builds.map(PathBuf::from);
    let report = assay_contract::run::merge(parts).map_err(|error| {
        let hint = "give one report of each part of one run: `assay check --shard K/N --json FILE`";
        Failure::request("these reports make no whole run").caused_by(&error).hint(hint.to_owned())
    })?;
    let report = Report { command: command_line(), ..report };
    let backend = report.device.backend.clone();
    let device = (backend != "emulator").then_some(backend.as_str());
    let notes = arguments.notes;
    let view = View {
        gates: &gates,
        device,
        inputs: None,
        manifests: &manifests,
        faults: builds.as_deref(),
        notes,
    };
    let files = Files { json: arguments.json.as_deref(), matrix: arguments.matrix.as_deref() };
    output::write(&report, &view, &files, console)?;
    Ok(ExitCode::from_code(report.exit_code).unwrap_or(ExitCode::Internal))
}
