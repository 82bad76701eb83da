//! What the README says is what the program does.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::run;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn readme() -> String {
    std::fs::read_to_string(repository().join("README.md")).expect("the README is there")
}

/// `1713` as `1,713`.
fn grouped(number: &str) -> String {
    match number.len().checked_sub(3) {
        Some(split) if split > 0 => format!("{},{}", &number[..split], &number[split..]),
        _ => number.to_owned(),
    }
}

#[test]
fn the_example_that_the_readme_registers_passes() {
    let manifest = repository().join("examples/row_mean/row_mean.toml");
    let output = run(&["check", "--manifest", manifest.to_str().expect("the path is text")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("1 of 1 kernels pass gates 1 to 5"), "{text}");
}

/// What `check --list` counts: kernels, planted controls and cases.
fn counts() -> (usize, usize, String) {
    let output = run(&["check", "--list"]);
    let counted = String::from_utf8_lossy(&output.stderr).into_owned();
    let number = |label: &str| {
        let after = counted.split(label).nth(1).expect("the label is there");
        after.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    let controls = number("run with them: ").parse().expect("a number");
    (names(&output.stdout).len() - controls, controls, grouped(&number("cases: ")))
}

/// The kernels of a list of cases.
fn names(listed: &[u8]) -> BTreeSet<String> {
    let listed = String::from_utf8_lossy(listed).into_owned();
    listed.lines().filter_map(|case| case.split('/').next()).map(str::to_owned).collect()
}

#[test]
fn the_readme_counts_the_suites_kernels_controls_and_cases() {
    let (kernels, controls, cases) = counts();
    let caption = format!("{kernels} kernels, {controls} controls, {cases} cases");
    assert!(readme().contains(&caption), "the README's caption should say: {caption}");
    let red = format!("{controls} of {controls} controls red");
    assert!(readme().contains(&red), "the README's output should say: {red}");
    let summary = format!("of {kernels} kernels pass gates 1 to 5");
    assert!(readme().contains(&summary), "the README's output should say: {summary}");
}

#[test]
fn every_kernel_that_the_readme_shows_is_in_the_suite() {
    let names = names(&run(&["check", "--list"]).stdout);
    let readme = readme();
    let table = readme.split("non-finite   repeat").nth(1).expect("the README shows a table");
    let rows = table.lines().skip(2).take_while(|line| line.trim() != "...");
    let shown: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(shown.len() >= 5, "{shown:?}");
    for kernel in shown {
        assert!(names.contains(kernel), "{kernel} is not in the suite");
    }
}
