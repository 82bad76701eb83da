//! The rules that keep the code readable, and the invariants of ARCHITECTURE.md, as one check.
//!
//! `cargo xtask tidy` runs it by hand; `tests/tidy.rs` runs it with every other test. The rules are
//! found by scanning text, with comments and strings told apart from code, and no parser.

mod rules;
mod scan;
mod workspace;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::toolchain::{EXIT_REQUEST, repository};
use scan::Source;

/// One broken rule at one place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Problem {
    /// The file, relative to the root of the repository.
    path: PathBuf,
    /// The line, from 1.
    line: usize,
    /// What is wrong and what to do.
    message: String,
}

impl Problem {
    fn new(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Problem { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

/// `cargo xtask tidy`.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    if !arguments.is_empty() {
        eprintln!("usage: cargo xtask tidy");
        return ExitCode::from(EXIT_REQUEST);
    }
    let tree = match Tree::read(repository()) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("error: cannot read the repository: {error}");
            return ExitCode::from(EXIT_REQUEST);
        }
    };
    let problems = tree.problems();
    for problem in &problems {
        println!("{problem}");
    }
    println!("{}, {} broken rules", tree.size(), problems.len());
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The files of the repository that have rules, by their paths from its root.
#[derive(Default)]
pub(crate) struct Tree {
    sources: Vec<Source>,
}

impl Tree {
    fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.read_folder(root, root)?;
        tree.sources.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Foreign kernels are tested as their authors write them.
            if name.starts_with('.') || name == "target" || name == "foreign" {
                continue;
            }
            if path.is_dir() {
                self.read_folder(root, &path)?;
            } else if has_rules(&path) {
                let text = fs::read_to_string(&path)?;
                self.add(path.strip_prefix(root).unwrap_or(&path), &text);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, text: &str) {
        self.sources.push(Source::new(path, text));
    }

    fn file(&self, path: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.path == Path::new(path))
    }

    /// Every broken rule, in order of files and lines.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let invariants = workspace::Invariants::read(self, &mut problems);
        for source in &self.sources {
            rules::check(source, &invariants, &mut problems);
        }
        workspace::check_dependencies(self, &invariants, &mut problems);
        workspace::check_dead_files(self, &mut problems);
        problems.sort();
        problems
    }

    /// The size of the code in words.
    fn size(&self) -> String {
        let rust = self.sources.iter().filter(|source| source.is_rust());
        let lines: usize = rust.clone().map(|source| source.lines.len()).sum();
        let mut lengths: Vec<usize> =
            rust.clone().flat_map(rules::rust_functions).map(|function| function.lines).collect();
        lengths.sort_unstable();
        let at = |share: f64| {
            let last = lengths.len().saturating_sub(1);
            lengths.get((last as f64 * share).round() as usize).copied().unwrap_or(0)
        };
        format!(
            "{} Rust files, {lines} lines, {} functions of {} lines at the median, {} at p90, \
             {} at most",
            rust.count(),
            lengths.len(),
            at(0.5),
            at(0.9),
            at(1.0),
        )
    }
}

fn has_rules(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("rs" | "cu" | "cuh" | "toml" | "md"))
}

#[cfg(test)]
mod tests;
