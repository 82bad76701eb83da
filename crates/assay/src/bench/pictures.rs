//! The pictures of a benchmark: each kernel's samples, each pair side by side, and the roofline.

use std::path::{Path, PathBuf};

use assay_picture::{Distributions, Histogram, Roofline, distributions, histogram, roofline};
use assay_record::{BenchRecord, Dossier, Series, Timing};

use crate::failure::Failure;
use crate::pictures::save;

/// Draws what the record holds into a folder, or its one picture into a file that ends in `.svg`.
/// `before` and `after` are the records that a comparison of two is of.
pub(super) fn draw(
    record: &BenchRecord,
    (before, after): (&[Timing], &[Timing]),
    dossier: Option<(&Dossier, &str)>,
    path: &Path,
) -> Result<(), Failure> {
    let mut pictures = pairs(record, before, after);
    let own = samples(&record.timings);
    if is_file(path) {
        // Of a pair that is compared the file is the comparison, of a kernel its duration.
        let kernels = record.timings.len().max(1);
        return match (&pictures[..], &own[..]) {
            ([(_, svg)], _) => save(path, svg),
            ([], [(_, svg), ..]) if kernels == 1 => save(path, svg),
            _ => Err(too_many(path)),
        };
    }
    pictures.extend(own);
    if let Some((dossier, compute)) = dossier {
        let roofs = Roofline::with_kernels(dossier, &record.timings, compute);
        pictures.push(("roofline".to_owned(), roofline(&roofs)));
    }
    for (name, svg) in &pictures {
        save(&file(path, name), svg)?;
    }
    Ok(())
}

/// Whether a path is that of one picture, and not a folder's.
pub(super) fn is_file(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "svg")
}

/// A file holds one picture.
pub(super) fn too_many(path: &Path) -> Failure {
    let message = format!("the file {} holds one picture, of one kernel or pair", path.display());
    Failure::request(message).hint("name a folder for all of them".to_owned())
}

/// `rows=64` and the like stay as they are; what a folder cannot hold does not.
fn file(folder: &Path, name: &str) -> PathBuf {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "=,_-.@".contains(letter) { letter } else { '-' }
    };
    folder.join(format!("{}.svg", name.chars().map(plain).collect::<String>()))
}

/// A histogram of every duration and period.
fn samples(timings: &[Timing]) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    for timing in timings {
        let both = [("duration", &timing.duration), ("period", &timing.period)];
        for (what, series) in both {
            let Some(series) = series else { continue };
            let title = format!("{}, {what}, {} cache", timing.name, timing.cache);
            let svg = histogram(&Histogram::of(&title, series));
            pictures.push((format!("{}-{what}", timing.name), svg));
        }
    }
    pictures
}

/// Every comparison whose samples are at hand.
fn pairs(record: &BenchRecord, before: &[Timing], after: &[Timing]) -> Vec<(String, String)> {
    let series = |timings: &'_ [Timing], name: &str| -> Option<Series> {
        timings.iter().find(|timing| timing.name == name)?.duration.clone()
    };
    let mut pictures = Vec::new();
    for versus in &record.versus {
        let found = Distributions::of(versus).or_else(|| {
            let old = series(before, &versus.candidate)?;
            let new = series(after, &versus.candidate)?;
            Some(Distributions::of_series(versus, &old, &new))
        });
        if let Some(found) = found {
            let name = format!("{}-against-{}", versus.candidate, versus.baseline);
            pictures.push((name, distributions(&found)));
        }
    }
    pictures
}
