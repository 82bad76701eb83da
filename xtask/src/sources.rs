//! The texts that a compile of a suite's source reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A source below `suite` and everything that it includes by a quoted name, with their texts, in
/// the order of their paths.
pub(crate) fn texts(suite: &Path, source: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let (mut texts, mut seen) = (Vec::new(), BTreeSet::new());
    let mut waiting = vec![source.to_owned()];
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let text = fs::read_to_string(suite.join(&path));
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        waiting.extend(included(&text).map(|name| folder.join(name)));
        texts.push((path, text));
    }
    texts.sort();
    Ok(texts)
}

/// The names in `#include "..."`.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        rest.trim_start().strip_prefix('"')?.split('"').next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quoted_includes_are_followed() {
        let text = "#include \"common.cuh\"\n#include <cstdint>\n  # include \"a/b.cuh\" // x\n";
        assert_eq!(included(text).collect::<Vec<_>>(), ["common.cuh", "a/b.cuh"]);
    }

    #[test]
    fn a_header_that_a_header_includes_is_among_the_texts_once() {
        let suite = crate::toolchain::repository().join("kernels/cuda");
        let texts = texts(&suite, Path::new("attention.cu")).unwrap();
        let paths: Vec<_> = texts.iter().map(|(path, _)| path.to_str().unwrap()).collect();
        for path in ["attention.cu", "attention.cuh", "common.cuh", "faults.cuh"] {
            assert_eq!(paths.iter().filter(|found| **found == path).count(), 1, "{paths:?}");
        }
    }
}
