//! `assay limits`: whether the kernels of compiled images fit the chips that run them.

mod files;
mod judge;
mod kernels;
mod offline;
mod render;

use std::path::Path;

use assay_limits::Verdict;
use assay_record::ExitCode;
use clap::Parser as _;

use crate::check;
use crate::cli::{Cli, Command, LimitsArguments};
use crate::console::Console;
use crate::failure::Failure;
use files::Inventory;
use judge::{Asked, Judgement};

/// Runs the command.
pub(crate) fn limits(arguments: &LimitsArguments, console: Console) -> Result<ExitCode, Failure> {
    if let Some(folder) = &arguments.offline {
        return offline::record(folder, console);
    }
    if arguments.images.is_empty() {
        return built_in(arguments, console);
    }
    let chips = judge::chips(arguments)?;
    let mut inventory = Inventory::default();
    for path in &arguments.images {
        inventory.add(path)?;
    }
    let kernels = kernels::of(&inventory, arguments.only.as_deref());
    if kernels.is_empty() {
        return Err(nothing(arguments, &inventory));
    }
    let asked = Asked::of(arguments);
    let judgement = Judgement::new(&kernels, &chips, &asked);
    write(arguments, &inventory, &judgement, console)?;
    Ok(if judgement.holds() { ExitCode::Holds } else { ExitCode::Problems })
}

fn write(
    arguments: &LimitsArguments,
    inventory: &Inventory,
    judgement: &Judgement<'_>,
    console: Console,
) -> Result<(), Failure> {
    let json = || {
        render::json(inventory, judgement).map_err(|error| {
            Failure::new(ExitCode::Internal, "the table has no JSON form").caused_by(&error)
        })
    };
    match &arguments.json {
        Some(path) if path == Path::new("-") => {
            Console::out_plain(&json()?);
            return Ok(());
        }
        Some(path) => std::fs::write(path, json()?).map_err(|error| {
            Failure::request(format!("cannot write {}", path.display())).caused_by(&error)
        })?,
        None => {}
    }
    console.out(&render::tables(inventory, judgement));
    Ok(())
}

/// Gate 5 of the built-in suite, from its records.
fn built_in(arguments: &LimitsArguments, console: Console) -> Result<ExitCode, Failure> {
    let of_chips = !arguments.chip.is_empty() || !arguments.chips.is_empty();
    if arguments.block.is_some() || arguments.shared != 0 || of_chips {
        let message = "--block, --shared, --chip and --chips need an image";
        let hint = "name a cubin, a fatbin, a library or a code object; without one, the suite's \
                    own launches are checked against the chips that each kernel serves";
        return Err(Failure::request(message).hint(hint.to_owned()));
    }
    let mut words = vec![
        "assay".to_owned(),
        "check".to_owned(),
        "--gate=limits".to_owned(),
        "--notes".to_owned(),
    ];
    words.extend(arguments.only.iter().map(|text| format!("--only={text}")));
    words.extend(arguments.json.iter().map(|path| format!("--json={}", path.display())));
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Check(check)) => check::check(&check, console),
        _ => Err(Failure::new(ExitCode::Internal, "the suite's check cannot be asked for")),
    }
}

/// The failure where no kernel is left to check.
fn nothing(arguments: &LimitsArguments, inventory: &Inventory) -> Failure {
    if let (Some(text), true) = (&arguments.only, inventory.has_kernels()) {
        return Failure::request(format!("no kernel's name contains `{text}`"));
    }
    let failure = Failure::request("there are no compiled kernels in what was named");
    match inventory.skipped().next() {
        Some(reason) => failure.hint(format!("found: {reason}; name what the linker made of it")),
        None if inventory.has_ptx() => failure.hint(
            "found PTX only: a driver compiles it for its GPU; compile it with ptxas to check it"
                .to_owned(),
        ),
        None => failure,
    }
}

/// How a verdict is written.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::DoesNotFit => "FAIL",
        Verdict::UnknownUntilCompiled => "unknown",
    }
}
