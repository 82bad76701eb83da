//! Which tensor is held against which.

use std::collections::HashSet;

use assay_compare::FileEntry;
use assay_record::{ComparisonReport, NotCompared};

use super::input::{Input, holds};
use super::{Arguments, Reference, Sides};
use crate::failure::Failure;

/// The names of a tensor in the reference and in the candidate.
type Names = (String, String);

/// The names to compare, of the reference and of the candidate. Two files of one array each need
/// not agree on its name.
pub(super) fn pairs(
    arguments: &Arguments,
    sides: &Sides,
    report: &mut ComparisonReport,
) -> Result<Vec<Names>, Failure> {
    let mut seen = HashSet::new();
    let wanted: Vec<&String> = arguments.tensor.iter().filter(|name| seen.insert(*name)).collect();
    let theirs = sides.candidate.entries();
    let Reference::File(reference) = &sides.reference else {
        let candidate = sides.candidate.single(&wanted)?;
        return Ok(vec![(String::new(), candidate.name.clone())]);
    };
    let ours = reference.entries();
    for (input, entries) in [(reference, &ours), (&sides.candidate, &theirs)] {
        if entries.is_empty() {
            return Err(Failure::request(format!("{} holds no array", input.shown)));
        }
    }
    if let ([one], [other], []) = (&ours[..], &theirs[..], &wanted[..]) {
        return Ok(vec![(one.name.clone(), other.name.clone())]);
    }
    // An array without a name is the counterpart of whichever was chosen.
    let pair = match (is_nameless(&ours), is_nameless(&theirs)) {
        (_, true) => Some((reference.single(&wanted)?, theirs[0])),
        (true, false) => Some((ours[0], sides.candidate.single(&wanted)?)),
        (false, false) => None,
    };
    match pair {
        Some((one, other)) => Ok(vec![(one.name.clone(), other.name.clone())]),
        None => by_name(reference, &sides.candidate, &wanted, report),
    }
}

fn is_nameless(entries: &[&FileEntry]) -> bool {
    matches!(entries, [one] if one.name.is_empty())
}

/// Tensors of the same name: those that are wanted, else all of the reference's.
fn by_name(
    reference: &Input,
    candidate: &Input,
    wanted: &[&String],
    report: &mut ComparisonReport,
) -> Result<Vec<Names>, Failure> {
    let names: Vec<String> = if wanted.is_empty() {
        reference.entries().iter().map(|entry| entry.name.clone()).collect()
    } else {
        wanted.iter().map(ToString::to_string).collect()
    };
    if let Some(name) = names.iter().find(|name| reference.entry(name).is_none()) {
        return Err(Failure::request(format!("the reference has no tensor `{name}`"))
            .hint(holds(&reference.entries())));
    }
    if wanted.is_empty() {
        let known: HashSet<&String> = names.iter().collect();
        let entries = candidate.entries();
        let more = entries.iter().filter(|entry| !known.contains(&entry.name));
        report.not_compared.extend(more.map(|entry| NotCompared {
            name: Some(entry.name.clone()),
            reason: "only the candidate has it".to_owned(),
        }));
    }
    Ok(names.into_iter().map(|name| (name.clone(), name)).collect())
}
