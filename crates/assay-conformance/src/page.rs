//! A record as a page: docs/conformance.md.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use assay_ptx::Base;

use crate::bounds::in_words;
use crate::known::explanation;
use crate::program::{Check, Program};
use crate::record::{Entry, Record};

/// Columns of a line of text.
const COLUMNS: usize = 120;

/// What is counted of a base's programs.
#[derive(Default)]
struct Count {
    exact: usize,
    bounded: usize,
    runs: usize,
    nan_payloads: usize,
    differing: usize,
    unsupported: usize,
    rejected: usize,
}

impl Count {
    fn add(&mut self, program: &Program, entry: &Entry) {
        let agrees = !entry.rejected && !entry.unsupported && entry.differing == 0;
        self.rejected += usize::from(entry.rejected);
        self.unsupported += usize::from(entry.unsupported);
        self.differing += usize::from(entry.differing > 0);
        self.nan_payloads += usize::from(entry.nan_payloads > 0);
        match program.check {
            Check::Exact => self.exact += usize::from(agrees),
            Check::Bounded => self.bounded += usize::from(agrees),
            Check::Runs => self.runs += usize::from(agrees),
        }
    }

    fn all(&self) -> [usize; 7] {
        let Count { exact, bounded, runs, nan_payloads, differing, unsupported, rejected } = *self;
        [exact, bounded, runs, nan_payloads, differing, unsupported, rejected]
    }
}

/// The page of a record. Programs that it has no entry of are counted.
pub fn page(record: &Record, programs: &[Program], left_out: &[(Base, &str)]) -> String {
    let entries: HashMap<&str, &Entry> =
        record.entries.iter().map(|entry| (entry.form.as_str(), entry)).collect();
    let measured = programs
        .iter()
        .filter_map(|program| entries.get(program.name.as_str()).map(|&entry| (program, entry)));
    let pairs: Vec<(&Program, &Entry)> = measured.collect();
    let mut text = head(record, &pairs);
    let waiting = programs.len() - pairs.len();
    if waiting > 0 {
        let _ = writeln!(text, "{waiting} forms have a program and were not measured yet.\n");
    }
    approximate(&mut text, &pairs);
    by_base(&mut text, &pairs);
    differences(&mut text, &pairs);
    not_run(&mut text, &pairs, left_out);
    text
}

fn head(record: &Record, pairs: &[(&Program, &Entry)]) -> String {
    let mut total = Count::default();
    for (program, entry) in pairs {
        total.add(program, entry);
    }
    let cases: usize = pairs.iter().filter(|(_, e)| !e.rejected).map(|(p, _)| p.cases).sum();
    let Count { exact, bounded, differing, unsupported, .. } = total;
    let head = &record.head;
    format!(
        "# Conformance

Each form of an instruction (base x type x rounding x modifiers), as the decoder's own table lists
it, became one small program, and ran with the same operands on a GPU and on the emulator: at least
4,096 cases each, all special values of the operands' types among them (zeros, subnormals, extremes,
infinities, quiet and signalling NaNs with payloads, ties of the roundings, edges of the integers),
and all 65,536 where one operand of 16 bits says everything.

| device | driver | date | command | seed | cases |
|---|---|---|---|---|---|
| {} ({}) | {} | {} | `{}` | {} | {cases} |

- **{exact} forms are bit-equal** on both. NaNs are compared as NaNs; where payload or sign differ,
  the form is counted below.
- **{bounded} approximate forms** lie within the ISA's stated bound of the true value on both.
- {differing} forms differ, each for a reason given below. {unsupported} forms run on the GPU \
and not
  on the emulator.

The record is `records/h200-conformance.jsonl`: a digest of the GPU's results for each form, and the
cases that differ. The test `emulator` of `assay-conformance` runs the same programs on the emulator
against it, in every CI run; a flipped bit or a wrong rounding turns it red, as it shows too.

",
        head.device, head.architecture, head.driver, head.date, head.command, head.seed
    )
}

fn approximate(text: &mut String, pairs: &[(&Program, &Entry)]) {
    text.push_str(
        "## Approximate instructions

The largest errors, as a part of the stated bound (PTX ISA 9.1, sections 9.7.3 and 9.7.4).
The emulator rounds the true value to nearest, unless a seed places it elsewhere inside the bound.

| form | stated bound | GPU | emulator | cases without a bound |
|---|---|---|---|---|
",
    );
    for (program, entry) in pairs {
        if let (Some(worst), emulator) = (entry.worst, entry.emulator_worst) {
            let emulator = emulator.map_or("-".to_string(), |worst| format!("{worst:.3}"));
            let bound = in_words(&program.opcode);
            let (form, unstated) = (&entry.form, entry.unstated);
            let _ = writeln!(
                text,
                "| `{form}` | {bound} | {worst:.3} | {emulator} | {unstated} of {} |",
                entry.cases
            );
        }
    }
    text.push('\n');
}

fn by_base(text: &mut String, pairs: &[(&Program, &Entry)]) {
    text.push_str(
        "## By instruction

Forms that are bit-equal, within their bound, or run without a result to compare; of all these, the
forms where some NaN has another payload or sign; then the forms that differ, that the emulator does
not run, and that this GPU's compiler rejects. Other architectures have the last; the emulator runs
most of them as the ISA says (model only, unverified).

| instruction | bit-equal | bounded | run | NaN payloads | differ | not emulated | not on this GPU |
|---|---|---|---|---|---|---|---|
",
    );
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for (program, entry) in pairs {
        counts.entry(program.opcode.base.name()).or_default().add(program, entry);
    }
    for (base, count) in counts {
        let cells = count.all().map(|n| if n == 0 { String::new() } else { n.to_string() });
        let _ = writeln!(text, "| `{base}` | {} |", cells.join(" | ").trim_end());
    }
    text.push('\n');
}

fn differences(text: &mut String, pairs: &[(&Program, &Entry)]) {
    text.push_str("## Differences\n\n");
    let mut reasons: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for (_, entry) in pairs.iter().filter(|(_, entry)| entry.differing > 0) {
        reasons
            .entry(explanation(&entry.form).unwrap_or("Not explained."))
            .or_default()
            .push(entry);
    }
    if reasons.is_empty() {
        text.push_str("None.\n\n");
    }
    for (reason, entries) in reasons {
        paragraph(text, reason);
        text.push_str("\n| form | cases | operands | GPU | emulator |\n|---|---|---|---|---|\n");
        for entry in entries {
            let cell = |index: usize| {
                entry.examples.first().map_or(String::new(), |example| example[index].clone())
            };
            let Entry { form, differing, cases, .. } = entry;
            let (operands, gpu, emulator) = (cell(0), cell(1), cell(2));
            let _ = writeln!(
                text,
                "| `{form}` | {differing} of {cases} | {operands} | {gpu} | {emulator} |"
            );
        }
        text.push('\n');
    }
}

fn not_run(text: &mut String, pairs: &[(&Program, &Entry)], left_out: &[(Base, &str)]) {
    text.push_str("## Not compared\n\n");
    let named = |wanted: &dyn Fn(&Entry) -> bool| {
        let names = pairs.iter().filter(|(_, entry)| wanted(entry));
        names.map(|(_, entry)| format!("`{}`", entry.form)).collect::<Vec<_>>().join(", ")
    };
    let unsupported = named(&|entry| entry.unsupported);
    if !unsupported.is_empty() {
        paragraph(text, &format!("The GPU runs these, the emulator not yet: {unsupported}."));
        text.push('\n');
    }
    text.push_str("No program is made of these:\n\n");
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for &(base, reason) in left_out {
        reasons.entry(reason).or_default().push(format!("`{}`", base.name()));
    }
    for (reason, bases) in reasons {
        paragraph(text, &format!("- {}: {reason}", bases.join(", ")));
    }
    text.push_str(
        "\nOf `wgmma`, 8 and 64 columns occur in each form, 24, 128 and 256 in one of halves.\n\
         Tensor maps and multimem have no programs.\n",
    );
}

/// Adds words as lines of text.
fn paragraph(text: &mut String, words: &str) {
    let mut column = 0;
    for (index, word) in words.split(' ').enumerate() {
        if index > 0 && column + 1 + word.len() > COLUMNS {
            text.push('\n');
            column = 0;
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text.push('\n');
}
