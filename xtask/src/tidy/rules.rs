//! The rules about single files.

use super::Problem;
use super::scan::{Source, is_name};
use super::workspace::Invariants;

/// The longest function.
const FUNCTION_LINES: usize = 70;

/// The longest line, in characters.
const LINE_COLUMNS: usize = 100;

/// How far above an `unsafe` block its argument may begin.
const SAFETY_LINES: usize = 8;

/// Checks every rule that one file can break by itself.
pub(super) fn check(source: &Source, invariants: &Invariants, problems: &mut Vec<Problem>) {
    merge_marks(source, problems);
    if source.has_extension("md") {
        return;
    }
    line_lengths(source, problems);
    if source.is_rust() || source.is_cuda() {
        function_lengths(source, problems);
        module_docs(source, problems);
    }
    if source.is_rust() {
        unfinished_code(source, problems);
        unsafe_code(source, invariants, problems);
        printing(source, invariants, problems);
    }
}

/// What a merge leaves where two changes met.
fn merge_marks(source: &Source, problems: &mut Vec<Problem>) {
    for (index, line) in source.lines.iter().enumerate() {
        if ["<<<<<<< ", "||||||| ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark)) {
            let message = "a mark of a merge; decide which side is right";
            problems.push(Problem::new(&source.path, index + 1, message));
        }
    }
}

fn line_lengths(source: &Source, problems: &mut Vec<Problem>) {
    for (index, line) in source.lines.iter().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS {
            let message = format!("{columns} columns; a line has at most {LINE_COLUMNS}");
            problems.push(Problem::new(&source.path, index + 1, message));
        }
    }
}

/// A function and how long it is.
pub(super) struct Function<'a> {
    name: &'a str,
    line: usize,
    /// Lines from its first to its last, both counted.
    pub(super) lines: usize,
}

fn function_lengths(source: &Source, problems: &mut Vec<Problem>) {
    let functions = if source.is_rust() { rust_functions(source) } else { cuda_blocks(source) };
    for Function { name, line, lines } in functions {
        if lines > FUNCTION_LINES {
            let message =
                format!("`{name}` has {lines} lines; a function has at most {FUNCTION_LINES}");
            problems.push(Problem::new(&source.path, line, message));
        }
    }
}

/// The functions of a Rust file that have a body.
pub(super) fn rust_functions(source: &Source) -> Vec<Function<'_>> {
    let starts = source.words().filter(|(_, word)| *word == "fn").map(|(offset, _)| offset);
    starts.filter_map(|start| rust_function(source, start)).collect()
}

fn rust_function(source: &Source, start: usize) -> Option<Function<'_>> {
    let signature = source.code[start + 2..].trim_start();
    let name = &signature[..signature.find(|c| !is_name(c))?];
    if name.is_empty() {
        return None;
    }
    let mut depth = 0;
    let opens = source.code[start..].char_indices().find_map(|(offset, character)| {
        depth += nesting(character, "([", ")]");
        match character {
            '{' | ';' if depth == 0 => Some((start + offset, character)),
            _ => None,
        }
    });
    let (body, opener) = opens?;
    if opener == ';' {
        return None;
    }
    let line = source.line_of(start);
    let last = source.line_of(closing_brace(&source.code, body));
    Some(Function { name, line, lines: last - line + 1 })
}

/// The blocks of a CUDA file that follow a closing parenthesis: functions, and shorter blocks
/// inside them.
fn cuda_blocks(source: &Source) -> Vec<Function<'_>> {
    let braces = source.code.match_indices('{').map(|(offset, _)| offset);
    let bodies = braces.filter(|&offset| source.code[..offset].trim_end().ends_with(')'));
    bodies
        .map(|body| {
            let line = source.line_of(body);
            let last = source.line_of(closing_brace(&source.code, body));
            Function { name: "a block", line, lines: last - line + 1 }
        })
        .collect()
}

fn nesting(character: char, open: &str, close: &str) -> i32 {
    i32::from(open.contains(character)) - i32::from(close.contains(character))
}

/// Where the brace that opens at `open` closes, or the end of the code.
pub(super) fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0;
    let closes = code[open..].char_indices().find(|(_, character)| {
        depth += nesting(*character, "{", "}");
        depth == 0
    });
    closes.map_or(code.len(), |(offset, _)| open + offset)
}

fn module_docs(source: &Source, problems: &mut Vec<Problem>) {
    let wanted = if source.is_rust() { "//!" } else { "//" };
    let first = source.lines.iter().find(|line| !line.trim().is_empty());
    if !first.is_some_and(|line| line.starts_with(wanted)) {
        let message = format!("the file does not begin with `{wanted}` and what it is for");
        problems.push(Problem::new(&source.path, 1, message));
    }
}

fn unfinished_code(source: &Source, problems: &mut Vec<Problem>) {
    for (offset, word) in source.words() {
        let after = &source.code[offset + word.len()..];
        let before = &source.code[..offset];
        let message = match word {
            "todo" | "unimplemented" | "dbg" if after.starts_with('!') => {
                format!("`{word}!` is unfinished work")
            }
            "ignore" if before.ends_with("#[") => {
                "a test that is not run proves nothing: fix it, or assert what happens now"
                    .to_owned()
            }
            _ => continue,
        };
        problems.push(Problem::new(&source.path, source.line_of(offset), message));
    }
}

fn unsafe_code(source: &Source, invariants: &Invariants, problems: &mut Vec<Problem>) {
    let allowed = source.crate_name().is_some_and(|name| invariants.allows_unsafe(name));
    for (offset, word) in source.words() {
        if word != "unsafe" {
            continue;
        }
        let line = source.line_of(offset);
        let after = source.code[offset + word.len()..].trim_start();
        let argues = after.starts_with('{') || after.starts_with("impl");
        if !allowed {
            let message = "ARCHITECTURE.md allows no unsafe code in this crate";
            problems.push(Problem::new(&source.path, line, message));
        } else if argues && !has_safety_argument(source, line) {
            let message = "no comment with `SAFETY:` argues for this unsafe code";
            problems.push(Problem::new(&source.path, line, message));
        }
    }
}

/// Whether a comment with `SAFETY:` stands on the line (from 1) or above the statement it is in.
fn has_safety_argument(source: &Source, line: usize) -> bool {
    let argued = |index: usize| {
        source.comments.get(index).is_some_and(|comment| comment.contains("SAFETY:"))
    };
    let code: Vec<&str> = source.code.lines().collect();
    let mut index = line - 1;
    for _ in 0..SAFETY_LINES {
        if argued(index) {
            return true;
        }
        let Some(above) = index.checked_sub(1) else { return false };
        index = above;
        if code.get(index).is_some_and(|code| code.trim_end().ends_with([';', '}', '{'])) {
            return argued(index);
        }
    }
    false
}

fn printing(source: &Source, invariants: &Invariants, problems: &mut Vec<Problem>) {
    let allowed = source.crate_name().is_some_and(|name| invariants.allows_printing(name));
    // A build script speaks to cargo by printing.
    let allowed = allowed || source.path.ends_with("build.rs");
    if allowed || is_test_file(source) {
        return;
    }
    let tests = test_modules(source);
    for (offset, word) in source.words() {
        let prints = matches!(word, "println" | "eprintln" | "print" | "eprint");
        let is_macro = source.code[offset + word.len()..].starts_with('!');
        if prints && is_macro && !tests.iter().any(|range| range.contains(&offset)) {
            let message = format!("`{word}!`: ARCHITECTURE.md allows no printing in this crate");
            problems.push(Problem::new(&source.path, source.line_of(offset), message));
        }
    }
}

fn is_test_file(source: &Source) -> bool {
    let test = |part: &std::ffi::OsStr| {
        ["tests", "tests.rs", "benches", "examples"].iter().any(|name| part == *name)
    };
    source.path.iter().any(test)
}

/// The bodies of the modules under `#[cfg(test)]`.
fn test_modules(source: &Source) -> Vec<std::ops::Range<usize>> {
    let marks = source.code.match_indices("#[cfg(test)]");
    let bodies = marks.filter_map(|(offset, _)| {
        let end = offset + source.code[offset..].find(['{', ';'])?;
        (source.code.as_bytes()[end] == b'{').then_some(end)
    });
    bodies.map(|open| open..closing_brace(&source.code, open)).collect()
}
