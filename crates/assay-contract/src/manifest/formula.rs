//! The reference of a kernel: a formula in the manifest, or a family's stored one. Errors inside a
//! formula point into the manifest.

use std::sync::Arc;

use assay_reference::rule::choice::{self, Choice, ChoiceError};
use assay_reference::{Formula, FormulaError, Program, Signature};

use super::error::{ManifestError, nearest_hint, quoted};
use super::kernel::named_rule;
use super::reader::{Entry, Table};
use crate::spec::Spec;

/// Reads `formula` or `family` and checks it against the kernel's tensors.
pub(super) fn read_formula(table: &Table<'_>, spec: &mut Spec) -> Result<(), ManifestError> {
    let (formula, entry) = match (table.get("formula"), table.get("family")) {
        (Some(_), Some(family)) => {
            let error = family.error("`formula` and `family` exclude each other");
            return Err(error.hint("a family is a stored formula; keep one of them"));
        }
        (Some(entry), None) => (parse(&entry)?, entry),
        (None, Some(entry)) => (family(&entry, spec)?, entry),
        (None, None) if spec.rule.is_some() => return refuse_other_form(table),
        (None, None) => {
            let error = table.entry.error("the kernel has no reference");
            return Err(error.hint("add `formula`, `family` or `rule`"));
        }
    };
    let planned = |formula: &Formula, entry: &Entry<'_>, spec: &Spec| {
        let program = match table.get("choice") {
            Some(choice) => choose(formula, (entry, &choice), &spec.signature)?,
            None => check(formula, entry, &spec.signature)?,
        };
        Ok::<_, ManifestError>(program.with_limits(spec.limits()))
    };
    let program = planned(&formula, &entry, spec)?;
    check_indices(table, &program, spec)?;
    let program = match table.get("computed_as") {
        Some(entry) => {
            spec.stated = Some(Arc::new(program));
            planned(&parse(&entry)?, &entry, spec)?
        }
        None => program,
    };
    spec.program = Some(Arc::new(program));
    spec.formula = Some(formula);
    Ok(())
}

/// A rule computes nothing that another form could stand for.
fn refuse_other_form(table: &Table<'_>) -> Result<(), ManifestError> {
    let Some(entry) = table.get("computed_as") else { return Ok(()) };
    let error = entry.error("`computed_as` has no formula beside it");
    Err(error.hint("it is another form of `formula` or `family`; a rule has none"))
}

/// Every input that the formula takes indices from has a range: any other value may leave an axis.
fn check_indices(table: &Table<'_>, program: &Program, spec: &Spec) -> Result<(), ManifestError> {
    let limits = program.limits();
    let chosen = program.choice().map(|choice| choice.output().name.as_str());
    let has_range = |name: &str| {
        chosen == Some(name) || limits.get(name).is_some_and(|limits| limits.range.is_some())
    };
    let open = program.index_inputs().into_iter().find(|name| !has_range(name));
    let place = open.and_then(|name| spec.arguments.iter().position(|a| a.name == name));
    let (Some(name), Some(place)) = (open, place) else { return Ok(()) };
    let entry = table.need("args")?.list()?[place].clone();
    let message = format!("the formula takes indices from `{name}`, which states no range");
    Err(entry.error(message).hint("add `range = [\"0\", \"n\"]`, half-open, of dims"))
}

fn parse(entry: &Entry<'_>) -> Result<Formula, ManifestError> {
    Formula::parse(entry.text()?).map_err(|error| place(entry, error))
}

fn family(entry: &Entry<'_>, spec: &mut Spec) -> Result<Formula, ManifestError> {
    let name = entry.text()?;
    let formula = Formula::family(name).ok_or_else(|| {
        entry
            .error(format!("unknown family `{name}`"))
            .maybe_hint(nearest_hint(name, &Formula::family_names()))
    })?;
    spec.family = Some(name.to_owned());
    Ok(formula)
}

fn check(
    formula: &Formula,
    entry: &Entry<'_>,
    signature: &Signature,
) -> Result<Program, ManifestError> {
    formula.check(signature).map_err(|error| {
        if entry.path != "family" {
            return place(entry, error);
        }
        let declared: Vec<&str> =
            signature.inputs.iter().chain(&signature.outputs).map(|t| t.name.as_str()).collect();
        let hint = format!("the family reads `{}`", formula.text().trim());
        let declared = quoted(&declared);
        entry.error(format!("{} (the kernel declares {declared})", error.message)).hint(hint)
    })
}

/// Checks a formula from whose scores a rule makes one of the outputs.
fn choose(
    formula: &Formula,
    (entry, choice): (&Entry<'_>, &Entry<'_>),
    signature: &Signature,
) -> Result<Program, ManifestError> {
    let rule = named_rule(choice, "rule", &choice::NAMES)?;
    Choice::bind(&rule.name, &rule.parameters, formula, signature).map_err(|error| match error {
        ChoiceError::Rule(error) => choice.error(error.to_string()),
        ChoiceError::Formula(error) => place(entry, error),
    })
}

/// Moves an error from the formula's own lines to the manifest's.
pub(super) fn place(entry: &Entry<'_>, error: FormulaError) -> ManifestError {
    let offset = offset_in_manifest(entry, error.line, error.column);
    let span = offset.map_or(entry.span.clone(), |at| at..at);
    let moved = entry.source.error(&span, &error.message);
    let hint = match (offset, error.hint) {
        (Some(_), hint) => hint,
        // Escapes hide the column, so the formula's own line is drawn as well.
        (None, _) => Some(format!(
            "in the formula, {}:{}: {}",
            error.line,
            error.column,
            error.source_line.trim_end()
        )),
    };
    moved.maybe_hint(hint)
}

/// The byte offset of a formula's line and column; `None` where the string has escapes.
fn offset_in_manifest(entry: &Entry<'_>, line: usize, column: usize) -> Option<usize> {
    let text = entry.text().ok()?;
    let raw = entry.source.text.get(entry.span.clone())?;
    let start = entry.span.start + raw.find(text)?;
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let within: usize =
        text.get(before..)?.chars().take(column.checked_sub(1)?).map(char::len_utf8).sum();
    Some(start + before + within)
}
