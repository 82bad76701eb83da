//! `--svg`: where a tensor differs, over its last two axes.

use std::path::Path;

use assay_compare::{Options, error_map};
use assay_record::{ComparisonReport, ErrorMap};

use super::{Arguments, Sides, sources};
use crate::failure::Failure;
use crate::output;

/// Draws the first tensor that does not pass, else the first. `map` is that of bands that were
/// computed.
pub(super) fn draw(
    path: &Path,
    arguments: &Arguments,
    sides: &Sides,
    (report, pairs, map): (&ComparisonReport, &[(String, String)], Option<ErrorMap>),
    options: &Options,
) -> Result<(), Failure> {
    let all = || report.comparisons.iter();
    let Some(shown) = all().find(|one| !one.passes()).or_else(|| all().next()) else {
        return Ok(());
    };
    let name = shown.name.clone().unwrap_or_default();
    let named =
        |(one, other): &&(String, String)| *one == name || (one.is_empty() && *other == name);
    let Some((one, other)) = pairs.iter().find(named) else { return Ok(()) };
    let title = if name.is_empty() { report.candidate.as_str() } else { &name };
    let cannot = |why: String| Failure::request("cannot draw the differences").because(why);
    let map = match (map, &sides.shuffled) {
        (Some(map), _) => map,
        (None, Some(shuffled)) => {
            let (reference, mut candidate) =
                sources(arguments, sides, (one, other)).map_err(cannot)?;
            let asked = arguments.reference_format.or(arguments.format);
            let of = (one.as_str(), pairs.len() == 1, asked);
            shuffled.map(title, (&*reference, &mut *candidate), of, options).map_err(cannot)?
        }
        (None, None) => {
            let (mut one, mut other) = sources(arguments, sides, (one, other)).map_err(cannot)?;
            error_map(title, &mut *one, &mut *other, options)
                .map_err(|error| cannot(error.to_string()))?
        }
    };
    output::save(path, &assay_picture::heat_map(&map))
}
