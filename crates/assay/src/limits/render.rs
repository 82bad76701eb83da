//! The tables of `assay limits`, and their JSON form.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use assay_image::Contents;
use assay_limits::{Fit, Resource, Verdict};
use serde::Serialize;
use serde_json::{Value, json};

use super::files::{File, Inventory};
use super::judge::{BlockFrom, Cell, Judgement};
use super::kernels::{Facts, Kernel};
use super::word;
use crate::render::{table, table_text};

/// The version of the JSON form.
const SCHEMA: u32 = 1;
/// The longest name of a kernel in a table.
const LONGEST_NAME: usize = 48;
/// The most problems that are printed; the JSON form has all.
const MOST_PROBLEMS: usize = 40;

/// What was found, the table, and what does not fit.
pub(crate) fn tables(inventory: &Inventory, judgement: &Judgement<'_>) -> String {
    let mut text = String::new();
    for file in &inventory.files {
        let _ = writeln!(text, "{}", found(file));
    }
    let table = if judgement.chips.len() == 1 { one_chip(judgement) } else { matrix(judgement) };
    let _ = write!(text, "\n{table}\n\n{}", legend(judgement));
    text.push_str(&problems(judgement));
    text.push_str(&summary(judgement));
    text
}

/// One line about a file: `libx.so: 165 images (sm_80, ...), 10 of PTX`.
fn found(file: &File) -> String {
    let mut architectures = BTreeSet::new();
    let (mut images, mut ptx, mut skipped) = (0_usize, 0_usize, BTreeSet::new());
    for entry in &file.entries {
        match &entry.contents {
            Contents::Cuda(image) => architectures.insert(order(&image.architecture)),
            Contents::Hip(image) => architectures.insert(order(&image.architecture)),
            Contents::Ptx(_) => {
                ptx += 1;
                continue;
            }
            Contents::Skipped(one) => {
                skipped.insert(format!("{} for {}", one.why, one.architecture));
                continue;
            }
        };
        images += 1;
    }
    let names: Vec<&str> = architectures.iter().map(|(_, name)| name.as_str()).collect();
    let mut line = format!("{}: {} ({})", file.path, counted(images, "image"), names.join(", "));
    if ptx > 0 {
        let _ = write!(line, ", {ptx} of PTX, which a driver compiles");
    }
    for reason in skipped {
        let _ = write!(line, "; not read: {reason}");
    }
    line
}

/// `sm_90` before `sm_100`.
fn order(architecture: &str) -> (usize, String) {
    (architecture.len(), architecture.to_owned())
}

/// One line a kernel, one column a chip.
fn matrix(judgement: &Judgement<'_>) -> String {
    let mut header = vec!["kernel".to_owned(), "block".to_owned()];
    header.extend(judgement.chips.iter().map(|chip| chip.name().to_owned()));
    let mut table = table(&header);
    for (kernel, cells) in judgement.kernels.iter().zip(&judgement.rows) {
        let mut row = vec![short(kernel.name), blocks(cells)];
        row.extend(cells.iter().map(|cell| cell.as_ref().map_or("-".to_owned(), brief)));
        table.add_row(row);
    }
    table_text(&table)
}

/// `75% regs`, or that it does not fit.
fn brief(cell: &Cell<'_>) -> String {
    match (&cell.fit.occupancy, cell.fit.verdict()) {
        (Some(occupancy), Verdict::Fits) => {
            let percent = 100 * u64::from(occupancy.warps) / u64::from(occupancy.warps_max).max(1);
            format!("{percent}% {}", binding(&cell.fit))
        }
        (_, verdict) => word(verdict).to_owned(),
    }
}

fn binding(fit: &Fit) -> String {
    let resources = fit.occupancy.iter().flat_map(|occupancy| &occupancy.binding);
    let words: Vec<&str> = resources
        .map(|resource| match resource {
            Resource::Warps => "warps",
            Resource::Registers => "regs",
            Resource::ScalarRegisters => "sregs",
            Resource::Shared => "shared",
            Resource::Blocks => "blocks",
            Resource::Barriers => "barriers",
        })
        .collect();
    words.join("+")
}

/// One line a kernel with its facts, for one chip.
fn one_chip(judgement: &Judgement<'_>) -> String {
    const HEADER: [&str; 9] =
        ["kernel", "image", "regs", "shared", "stack", "block", "fit", "resident", "bound by"];
    let mut table = table(&HEADER.map(str::to_owned));
    for (kernel, cells) in judgement.kernels.iter().zip(&judgement.rows) {
        let Some(Some(cell)) = cells.first() else {
            table.add_row([short(kernel.name), "no code".to_owned()]);
            continue;
        };
        let (registers, shared, stack) = match cell.facts {
            Facts::Cuda(facts) => (facts.registers, facts.static_shared_bytes, facts.stack_bytes),
            Facts::Hip(facts) => (facts.vgprs, facts.static_lds_bytes, facts.scratch_bytes),
        };
        let resident = cell.fit.occupancy.as_ref().map_or("-".to_owned(), |occupancy| {
            let (blocks, warps, most) = (occupancy.blocks, occupancy.warps, occupancy.warps_max);
            format!("{blocks} ({warps}/{most} warps)")
        });
        table.add_row([
            short(kernel.name),
            cell.architecture.to_owned(),
            registers.to_string(),
            shared.to_string(),
            stack.to_string(),
            shape(cell),
            word(cell.fit.verdict()).to_owned(),
            resident,
            binding(&cell.fit),
        ]);
    }
    table_text(&table)
}

/// The blocks of a row, each once.
fn blocks(cells: &[Option<Cell<'_>>]) -> String {
    let shapes: BTreeSet<String> = cells.iter().flatten().map(shape).collect();
    shapes.into_iter().collect::<Vec<_>>().join(" or ")
}

/// `256`, `256 bound`, `64x2 required`.
fn shape(cell: &Cell<'_>) -> String {
    let [x, y, z] = cell.launch.block;
    let block = match (y, z) {
        (1, 1) => x.to_string(),
        (y, 1) => format!("{x}x{y}"),
        (y, z) => format!("{x}x{y}x{z}"),
    };
    let from = match cell.block_from {
        BlockFrom::Asked | BlockFrom::Default => "",
        BlockFrom::Required => " required",
        BlockFrom::Bound => " bound",
    };
    block + from
}

fn legend(judgement: &Judgement<'_>) -> String {
    let mut lines = String::new();
    if judgement.chips.len() != 1 {
        lines.push_str(
            "Warps resident of those that a multiprocessor (CUDA) or compute unit (HIP) holds, \
             and what binds.\n\"-\": no code for this chip.\n",
        );
    }
    let cells = || judgement.rows.iter().flatten().flatten();
    if cells().any(|cell| cell.block_from == BlockFrom::Default) {
        lines.push_str(
            "A kernel that names no block is checked with 256 threads; --block N asks for more.\n",
        );
    }
    lines
}

/// What does not fit or is not known, a line for each kernel and reason with its chips.
fn problems(judgement: &Judgement<'_>) -> String {
    let mut lines = Vec::new();
    for (kernel, cells) in judgement.kernels.iter().zip(&judgement.rows) {
        let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
        for (chip, cell) in judgement.chips.iter().zip(cells) {
            let Some(cell) = cell else { continue };
            let wrong = cell.fit.problems.iter().map(|problem| format!("FAIL: {problem}"));
            let unknown = cell.fit.unknown.iter().map(|what| format!("unknown: {what}"));
            for text in wrong.chain(unknown) {
                match reasons.iter_mut().find(|(reason, _)| *reason == text) {
                    Some((_, chips)) => chips.push(chip.name()),
                    None => reasons.push((text, vec![chip.name()])),
                }
            }
        }
        let name = short(kernel.name);
        let line = |(text, chips): (String, Vec<&str>)| {
            format!("  {name} on {}: {text}\n", chips.join(", "))
        };
        lines.extend(reasons.into_iter().map(line));
    }
    let more = lines.len().saturating_sub(MOST_PROBLEMS);
    lines.truncate(MOST_PROBLEMS);
    if more > 0 {
        lines.push(format!("  and {more} more; --json FILE has all\n"));
    }
    if lines.is_empty() { String::new() } else { format!("\n{}", lines.concat()) }
}

fn summary(judgement: &Judgement<'_>) -> String {
    let cells = || judgement.rows.iter().flatten().flatten();
    let count = |verdict| cells().filter(|cell| cell.fit.verdict() == verdict).count();
    let (fit, fail) = (count(Verdict::Fits), count(Verdict::DoesNotFit));
    let (unknown, all) = (count(Verdict::UnknownUntilCompiled), cells().count());
    let kernels = judgement.kernels.len();
    let chips = judgement.chips.len();
    let without = judgement.rows.iter().flatten().filter(|cell| cell.is_none()).count();
    format!(
        "\nSUMMARY  {} x {}: {fit} of {all} fit, {fail} do not, {unknown} unknown, {without} \
         without code\n",
        counted(kernels, "kernel"),
        counted(chips, "chip"),
    )
}

/// `1 kernel`, `2 kernels`.
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A name that fits a table: its start and its end.
fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let half = (LONGEST_NAME - 1) / 2;
    let start = letters.iter().take(half);
    let end = letters.iter().skip(letters.len() - half);
    start.chain(['…'].iter()).chain(end).collect()
}

/// Everything as JSON.
pub(crate) fn json(
    inventory: &Inventory,
    judgement: &Judgement<'_>,
) -> Result<String, serde_json::Error> {
    let images: Vec<Value> = inventory.files.iter().flat_map(images).collect();
    let mut launches = Vec::new();
    for (kernel, cells) in judgement.kernels.iter().zip(&judgement.rows) {
        for (chip, cell) in judgement.chips.iter().zip(cells) {
            launches.push(launch(kernel, chip.name(), cell.as_ref())?);
        }
    }
    let value = json!({ "schema": SCHEMA, "images": images, "launches": launches });
    serde_json::to_string_pretty(&value).map(|text| text + "\n")
}

fn images(file: &File) -> Vec<Value> {
    let entries = file.entries.iter().map(|entry| {
        let mut value = match &entry.contents {
            Contents::Cuda(image) => json!({
                "kind": "cuda", "architecture": image.architecture, "release": image.release,
                "kernels": image.kernels.len(),
            }),
            Contents::Hip(image) => json!({
                "kind": "hip", "architecture": image.architecture, "compiler": image.compiler,
                "kernels": image.kernels.len(),
            }),
            Contents::Ptx(image) => json!({ "kind": "ptx", "architecture": image.architecture }),
            Contents::Skipped(skipped) => json!({
                "kind": "skipped", "architecture": skipped.architecture,
                "why": skipped.why.to_string(),
            }),
        };
        if let Some(map) = value.as_object_mut() {
            map.insert("file".to_owned(), json!(file.path));
            map.insert("place".to_owned(), json!(entry.place));
        }
        value
    });
    entries.collect()
}

#[derive(Serialize)]
struct LaunchRecord<'a> {
    file: &'a str,
    module: &'a str,
    kernel: &'a str,
    chip: &'a str,
    /// `fits`, `does-not-fit`, `unknown-until-compiled`, or `no-code`.
    verdict: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    launch: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_from: Option<BlockFrom>,
    /// The problems as sentences; `fit` has their numbers.
    sentences: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<&'a Fit>,
}

fn launch<'a>(
    kernel: &'a Kernel<'a>,
    chip: &'a str,
    cell: Option<&'a Cell<'a>>,
) -> Result<Value, serde_json::Error> {
    let facts = |cell: &Cell<'_>| match cell.facts {
        Facts::Cuda(facts) => serde_json::to_value(facts),
        Facts::Hip(facts) => serde_json::to_value(facts),
    };
    let verdict = match cell {
        Some(cell) => serde_json::to_value(cell.fit.verdict())?,
        None => json!("no-code"),
    };
    let problems = cell.into_iter().flat_map(|cell| &cell.fit.problems);
    serde_json::to_value(LaunchRecord {
        file: kernel.file,
        module: kernel.module,
        kernel: kernel.name,
        chip,
        verdict,
        image: cell.map(|cell| cell.architecture),
        facts: cell.map(facts).transpose()?,
        launch: cell.map(|cell| serde_json::to_value(cell.launch)).transpose()?,
        block_from: cell.map(|cell| cell.block_from),
        sentences: problems.map(ToString::to_string).collect(),
        fit: cell.map(|cell| &cell.fit),
    })
}
