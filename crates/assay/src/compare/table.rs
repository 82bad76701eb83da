//! Comparisons as a person reads them: what, how wrong, where.

use std::borrow::Cow;
use std::fmt::Write as _;

use assay_record::{BandEvidence, Comparison, ComparisonReport, Number, WorstElement};

/// Tensors up to which all are shown in full.
const IN_FULL: usize = 8;

/// Of more than those: how many that do not pass are shown in full, and how many lines of others.
const FAILURES_IN_FULL: usize = 32;
const LINES: usize = 64;

/// The most sizes of a shape that are shown.
const SIZES: usize = 12;

/// All tensors, then what could not be compared, then one line on the whole.
pub(super) fn report(report: &ComparisonReport) -> String {
    let mut text = String::new();
    let is_short = report.comparisons.len() <= IN_FULL;
    let (mut full, mut left_out) = (0, 0);
    let mut lines = [LINES; 2];
    for comparison in &report.comparisons {
        let passes = comparison.passes();
        if is_short || (!passes && full < FAILURES_IN_FULL) {
            full += 1;
            one(&mut text, comparison);
            text.push('\n');
        } else if let Some(left) = lines[usize::from(passes)].checked_sub(1) {
            lines[usize::from(passes)] = left;
            headline(&mut text, comparison);
        } else {
            left_out += 1;
        }
    }
    for missing in report.not_compared.iter().take(LINES) {
        let name = missing.name.as_deref().unwrap_or("the array");
        let _ = writeln!(text, "{}: not compared: {}", plain(name), plain(&missing.reason));
    }
    left_out += report.not_compared.len().saturating_sub(LINES);
    if left_out > 0 {
        let _ = writeln!(text, "{left_out} more tensors: --json FILE has all of them");
    }
    for note in &report.notes {
        let _ = writeln!(text, "UNPROVEN: {}", plain(note));
    }
    summary(&mut text, report);
    text
}

fn summary(text: &mut String, report: &ComparisonReport) {
    let count = |outcome| report.comparisons.iter().filter(|one| one.outcome == outcome).count();
    let _ = writeln!(
        text,
        "SUMMARY {}: {} of {} tensors pass, {} not compared, {:.3} s",
        report.outcome,
        count(assay_record::Outcome::Pass),
        report.comparisons.len(),
        report.not_compared.len(),
        report.seconds
    );
}

/// Words of a file, whose control characters would do things to a terminal.
pub(super) fn plain(words: &str) -> Cow<'_, str> {
    if !words.contains(char::is_control) {
        return Cow::Borrowed(words);
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    words.chars().map(shown).collect::<String>().into()
}

/// A shape as it is read: the first sizes of one with many axes.
fn shape(sizes: &[u64]) -> String {
    match sizes.get(..SIZES) {
        Some(first) if sizes.len() > SIZES => {
            let first = format!("{first:?}");
            format!("{}, ..] of {} axes", first.trim_end_matches(']'), sizes.len())
        }
        _ => format!("{sizes:?}"),
    }
}

/// What a tensor comes to, in a line.
fn headline(text: &mut String, comparison: &Comparison) {
    let name = comparison.name.as_deref().unwrap_or("array");
    let from = comparison.rounded_from.as_ref();
    let from = from.map(|format| format!(" (reference rounded from {format})")).unwrap_or_default();
    let _ = writeln!(
        text,
        "{} {}: {} {}{from}, {} of {} identical, {}",
        comparison.outcome,
        plain(name),
        comparison.format,
        shape(&comparison.shape),
        comparison.identical,
        comparison.elements,
        match &comparison.band {
            Some(band) => format!("{} outside their band", band.outside),
            None => format!("{} outside the tolerance", comparison.outside),
        }
    );
}

fn one(text: &mut String, comparison: &Comparison) {
    headline(text, comparison);
    if let Some(why) = &comparison.broke_off {
        let _ = writeln!(text, "  compared {} elements: {why}", comparison.compared);
    }
    for finding in &comparison.findings {
        let first = finding.first.as_ref().map(|at| format!("; first at {at:?}"));
        let first = first.unwrap_or_default();
        let _ = writeln!(text, "  {}: {}{first}", finding.outcome, finding.reason);
    }
    for note in &comparison.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    if let Some(band) = &comparison.band {
        bands(text, band);
    }
    numbers(text, comparison);
    histogram(text, comparison);
    let (errors, distances) = (&comparison.worst_error, &comparison.worst_ulp);
    if errors == distances {
        return worst(text, "largest errors, and largest distances", errors);
    }
    worst(text, "largest errors", errors);
    worst(text, "largest distances", distances);
}

/// Where the bands come from, how far the candidate leans, and which elements lie far out.
fn bands(text: &mut String, band: &BandEvidence) {
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |v| Number(v).to_string());
    let seed = band.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    let far = band.max_bands.as_ref().map_or("-".to_owned(), ToString::to_string);
    let _ = writeln!(
        text,
        "  bands: {} shuffles ({}{seed}), z {}; the farthest element is {far} half widths out, the \
         widest deviation {} ulp",
        band.shuffles,
        band.shuffle,
        Number(band.z),
        shown(band.widest_ulp)
    );
    let _ = writeln!(
        text,
        "  lean: {} of all elements together, where up to {} is a matter of order; {} away from \
         zero, up to {}",
        shown(band.bias),
        shown(band.bias_limit),
        shown(band.bias_outward),
        shown(band.bias_outward_limit)
    );
    let outside: Vec<&WorstElement> =
        band.worst.iter().filter(|one| one.margin.as_ref().is_some_and(|m| m.0 > 1.0)).collect();
    if !outside.is_empty() {
        let _ = writeln!(text, "  farthest out of their band:");
    }
    for element in outside {
        let _ = writeln!(
            text,
            "    {:>16}  mean      {:>12}  candidate {:>12}  error {:>12}  {} half widths",
            format!("{:?}", element.coordinates),
            element.reference.to_string(),
            element.candidate.to_string(),
            element.error.to_string(),
            element.margin.as_ref().map_or("-".to_owned(), ToString::to_string)
        );
    }
}

fn numbers(text: &mut String, comparison: &Comparison) {
    let (ulp, error) = (&comparison.ulp, &comparison.error);
    let shown =
        |value: Option<f64>| value.map_or("-".to_owned(), |value| Number(value).to_string());
    let _ = writeln!(
        text,
        "  ulp: max {}, mean {}, signed {}; above {}, below {}",
        ulp.max,
        shown(ulp.mean),
        shown(ulp.mean_signed),
        ulp.above,
        ulp.below
    );
    let top = error.top_energy.map_or(String::new(), |[low, high]| {
        let (low, high) = (Number(100.0 * low), Number(100.0 * high));
        format!("; the worst {} hold {low} to {high} % of its energy", error.top_elements)
    });
    let _ = writeln!(
        text,
        "  error: max {}, rms {}, relative Frobenius {}{top}",
        error.max,
        error.rms,
        error.relative_frobenius.map_or("-".to_owned(), |value| value.to_string())
    );
    if let Some(floor) = &comparison.floor {
        let _ = writeln!(
            text,
            "  floor: a difference of {} before rounding to steps of {} shows as {} rms",
            Number(floor.delta),
            Number(floor.ulp),
            Number(floor.floor)
        );
    }
    let other = comparison
        .census
        .iter()
        .filter(|pair| pair.reference != "finite" || pair.candidate != "finite");
    for pair in other {
        let _ = writeln!(
            text,
            "  classes: {} elements are {} in the reference and {} in the candidate",
            pair.count, pair.reference, pair.candidate
        );
    }
}

/// The bins that are not empty, each with a bar.
fn histogram(text: &mut String, comparison: &Comparison) {
    let bins = &comparison.ulp.histogram;
    let total: u64 = bins.iter().sum();
    if total == 0 || bins.len() < 2 {
        return;
    }
    for (bin, &count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let range = match bin {
            0 => "0".to_owned(),
            1 => "1".to_owned(),
            _ => format!("2^{}..", bin - 1),
        };
        // A bin that is not empty is seen, however few it holds.
        let bar = "#".repeat((count as f64 / total as f64 * 40.0).ceil() as usize);
        let _ = writeln!(text, "  {range:>7} ulp {count:>12} {bar}");
    }
}

fn worst(text: &mut String, title: &str, elements: &[WorstElement]) {
    if elements.is_empty() {
        return;
    }
    let _ = writeln!(text, "  {title}:");
    for element in elements {
        let place = format!("{:?}", element.coordinates);
        let ulp = element.ulp.map_or("-".to_owned(), |ulp| ulp.to_string());
        let _ = writeln!(
            text,
            "    {place:>16}  reference {:>12}  candidate {:>12}  error {:>12}  ulp {ulp}",
            element.reference.to_string(),
            element.candidate.to_string(),
            element.error.to_string()
        );
    }
}
