//! What docs/adding-a-kernel.md shows is what the program prints.

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The indented blocks of the page that show a command and its output.
fn shown() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(repository().join("docs/adding-a-kernel.md"));
    let page = page.expect("the page is there");
    let mut blocks: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(text) if text.starts_with("$ assay ") => {
                blocks.push((text["$ assay ".len()..].to_owned(), Vec::new()));
                inside = true;
            }
            Some(text) if inside => {
                if let Some((_, lines)) = blocks.last_mut() {
                    lines.push(text.to_owned());
                }
            }
            None if line.is_empty() => {}
            _ => inside = false,
        }
    }
    blocks
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the target folder can be written");
    for entry in std::fs::read_dir(from).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("the file can be copied");
        }
    }
}

/// A line without its time and its trailing blanks.
fn normal(line: &str) -> String {
    match line.trim_end().rsplit_once("  ") {
        Some((rest, time)) if time.trim().ends_with(" s") => rest.trim_end().to_owned(),
        _ => line.trim_end().to_owned(),
    }
}

#[test]
fn every_output_on_the_page_is_what_the_command_prints() {
    let blocks = shown();
    assert!(blocks.len() >= 4, "the page shows a check, a repro, a pass and the faults");
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guide");
    // The page's paths are relative to the repository, and `--repro` writes beside them.
    copy(&repository().join("examples"), &scratch.join("examples"));
    for (command, lines) in blocks {
        let output = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(command.split_whitespace())
            .current_dir(&scratch)
            .output()
            .expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut printed = text.lines().map(normal);
        for line in lines.iter().map(|line| normal(line)).filter(|line| line.trim() != "...") {
            let found = printed.any(|printed| printed == line);
            assert!(found, "`assay {command}` does not print `{line}` there:\n{text}");
        }
    }
}
