//! What is written, held against what is read before anything is done.

use std::path::Path;

use super::Arguments;
use super::input::split;
use crate::failure::Failure;
use crate::output;

/// Refuses files that cannot be written, and those that would destroy what is compared.
pub(super) fn expect(arguments: &Arguments) -> Result<(), Failure> {
    let (json, svg) = (arguments.json.as_deref(), arguments.svg.as_deref());
    if svg == Some(Path::new("-")) {
        let hint = "--svg takes the name of a file; --json - writes to stdout";
        return Err(Failure::request("a picture is not written to stdout").hint(hint.to_owned()));
    }
    let bands = &arguments.bands;
    let inputs = arguments.files.iter().chain(&bands.shuffled);
    let inputs: Vec<&Path> =
        inputs.chain(&bands.sum_of).chain(&bands.matmul_of).map(AsRef::as_ref).collect();
    for path in [json, svg] {
        output::expect_to_write(path)?;
        let Some(path) = path else { continue };
        if inputs.iter().any(|input| is_same(&split(input).0, path)) {
            let message = format!("{} is one of the files that are compared", path.display());
            let hint = "writing the result there would destroy it: name another file";
            return Err(Failure::request(message).hint(hint.to_owned()));
        }
    }
    match (json, svg) {
        (Some(json), Some(svg)) if json == svg || is_same(json, svg) => {
            let message = format!("--json and --svg are both {}", json.display());
            Err(Failure::request(message))
        }
        _ => Ok(()),
    }
}

/// Whether two names are of one file that is there.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}
