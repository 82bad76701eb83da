//! The rules about the workspace: which crate may know which, and that every file is used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::scan::Source;
use super::{Problem, Tree};

/// The file that states the invariants.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// What ARCHITECTURE.md allows one crate.
#[derive(Debug, Default)]
struct Row {
    dependencies: BTreeSet<String>,
    has_unsafe: bool,
    prints: bool,
    line: usize,
}

/// The table under the heading `## Invariants`.
#[derive(Debug, Default)]
pub(super) struct Invariants {
    rows: BTreeMap<String, Row>,
}

impl Invariants {
    /// Reads the table; a missing or malformed one is a problem.
    pub(super) fn read(tree: &Tree, problems: &mut Vec<Problem>) -> Invariants {
        let mut invariants = Invariants::default();
        let lines = tree.file(ARCHITECTURE).map_or(&[][..], |source| &source.lines);
        let heading = lines.iter().position(|line| line.trim() == "## Invariants");
        let section = heading.map_or(&[][..], |index| &lines[index + 1..]);
        let section = section.iter().take_while(|line| !line.starts_with("## "));
        for (index, line) in section.enumerate() {
            let number = heading.unwrap_or(0) + index + 2;
            if line.starts_with("| `") {
                invariants.read_row(line, number, problems);
            }
        }
        if invariants.rows.is_empty() {
            let message = "there is no table of crates under `## Invariants`";
            problems.push(Problem::new(Path::new(ARCHITECTURE), 1, message));
        }
        invariants
    }

    fn read_row(&mut self, line: &str, number: usize, problems: &mut Vec<Problem>) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let answer = |cell: &str| match cell {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        if let [name, dependencies, has_unsafe, prints] = cells[..]
            && let [name] = quoted(name)[..]
            && let (Some(has_unsafe), Some(prints)) = (answer(has_unsafe), answer(prints))
        {
            let dependencies = quoted(dependencies).into_iter().map(str::to_owned).collect();
            let row = Row { dependencies, has_unsafe, prints, line: number };
            self.rows.insert(name.to_owned(), row);
        } else {
            let message = "a row is: | `crate` | `crate` `crate` | yes or no | yes or no |";
            problems.push(Problem::new(Path::new(ARCHITECTURE), number, message));
        }
    }

    pub(super) fn allows_unsafe(&self, name: &str) -> bool {
        self.rows.get(name).is_some_and(|row| row.has_unsafe)
    }

    pub(super) fn allows_printing(&self, name: &str) -> bool {
        self.rows.get(name).is_some_and(|row| row.prints)
    }
}

/// The texts between back-quotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Checks the manifests of all crates against the table.
pub(super) fn check_dependencies(
    tree: &Tree,
    invariants: &Invariants,
    problems: &mut Vec<Problem>,
) {
    let manifests: Vec<&Source> =
        tree.sources.iter().filter(|source| is_crate_manifest(source)).collect();
    let crates: BTreeSet<&str> = manifests.iter().filter_map(|file| file.crate_name()).collect();
    for manifest in &manifests {
        check_manifest(manifest, &crates, invariants, problems);
    }
    for (name, row) in &invariants.rows {
        if !crates.contains(name.as_str()) {
            let message = format!("there is no crate `{name}`");
            problems.push(Problem::new(Path::new(ARCHITECTURE), row.line, message));
        }
    }
    check_workspace_dependencies(tree, &manifests, problems);
}

fn is_crate_manifest(source: &Source) -> bool {
    source.crate_name().is_some() && source.path.file_name().is_some_and(|n| n == "Cargo.toml")
}

fn check_manifest(
    manifest: &Source,
    crates: &BTreeSet<&str>,
    invariants: &Invariants,
    problems: &mut Vec<Problem>,
) {
    let name = manifest.crate_name().unwrap_or_default();
    let Some(row) = invariants.rows.get(name) else {
        let message = format!("`{name}` has no row under `## Invariants` in {ARCHITECTURE}");
        problems.push(Problem::new(&manifest.path, 1, message));
        return;
    };
    for (line, dependency) in dependencies(manifest) {
        if crates.contains(dependency) && !row.dependencies.contains(dependency) {
            let message = format!("{ARCHITECTURE} does not let `{name}` know `{dependency}`");
            problems.push(Problem::new(&manifest.path, line, message));
        }
    }
    let has = |wanted: &str| manifest.lines.iter().any(|line| line.trim() == wanted);
    if !(has("[lints]") && has("workspace = true")) {
        let message = "the workspace's lints are not switched on: [lints] workspace = true";
        problems.push(Problem::new(&manifest.path, 1, message));
    }
}

/// Every dependency of a manifest, of whatever kind, with its line.
fn dependencies(manifest: &Source) -> Vec<(usize, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for (index, line) in manifest.lines.iter().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
        } else if section.ends_with("dependencies") && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or(line);
            found.push((index + 1, name));
        }
    }
    found
}

/// Every dependency is named once for the whole workspace, and used.
fn check_workspace_dependencies(tree: &Tree, manifests: &[&Source], problems: &mut Vec<Problem>) {
    let used: BTreeSet<&str> =
        manifests.iter().flat_map(|file| dependencies(file)).map(|(_, name)| name).collect();
    let Some(root) = tree.file("Cargo.toml") else { return };
    for (line, name) in dependencies(root) {
        if !used.contains(name) {
            let message = format!("no crate uses `{name}`");
            problems.push(Problem::new(&root.path, line, message));
        }
    }
    for manifest in manifests {
        for (line, name) in dependencies(manifest) {
            let text = &manifest.lines[line - 1];
            if !text.contains("workspace = true") && !text.contains(".workspace") {
                let message = format!("`{name}` is not taken from the workspace's table");
                problems.push(Problem::new(&manifest.path, line, message));
            }
        }
    }
}

/// Finds Rust files that no `mod` reaches.
pub(super) fn check_dead_files(tree: &Tree, problems: &mut Vec<Problem>) {
    let files: BTreeMap<&Path, &Source> = tree
        .sources
        .iter()
        .filter(|source| source.is_rust() && source.crate_name().is_some())
        .map(|source| (source.path.as_path(), source))
        .collect();
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    let mut open: Vec<PathBuf> =
        files.keys().filter(|path| is_root(path)).map(|path| path.to_path_buf()).collect();
    while let Some(path) = open.pop() {
        if let Some(source) = files.get(path.as_path())
            && reached.insert(path.clone())
        {
            open.extend(modules(source));
        }
    }
    for path in files.keys().filter(|path| !reached.contains(**path)) {
        problems.push(Problem::new(path, 1, "no `mod` reaches this file; delete it or use it"));
    }
}

/// Whether Cargo compiles the file by itself.
fn is_root(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let below = if parts[0] == "crates" { &parts[2..] } else { &parts[1..] };
    matches!(
        below,
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// The files that a file's `mod name;` declarations and `include!`s may stand for.
fn modules(source: &Source) -> Vec<PathBuf> {
    let folder = source.path.parent().unwrap_or(Path::new("")).to_owned();
    let stem = source.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
    let own =
        if is_root(&source.path) || stem == "mod" { folder.clone() } else { folder.join(stem) };
    let mut found = Vec::new();
    for (offset, word) in source.words() {
        let rest = source.code[offset + word.len()..].trim_start();
        let line = source.line_of(offset);
        if word == "mod" {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if rest[name.len()..].trim_start().starts_with(';') {
                found.push(own.join(format!("{name}.rs")));
                found.push(own.join(&name).join("mod.rs"));
            }
        } else if word == "path" || word == "include" {
            found.extend(string_on(source, line).map(|path| normal(&folder.join(path))));
        }
    }
    found
}

fn string_on(source: &Source, line: usize) -> Option<&str> {
    source.lines[line - 1].split('"').nth(1)
}

/// A path without `..` parts.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts
}
