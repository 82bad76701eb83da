//! What the README says is what the program does.

mod common;

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
    assert!(text.contains("1 of 1 kernels pass gates 1 to 4"), "{text}");
}

#[test]
fn the_readme_counts_the_suites_cases_and_controls() {
    let output = run(&["check", "--list"]);
    let counted = String::from_utf8_lossy(&output.stderr).into_owned();
    let number = |label: &str| {
        let after = counted.split(label).nth(1).expect("the label is there");
        after.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    let (cases, controls) = (number("cases: "), number("run with them: "));
    let caption = format!("{controls} controls, {} cases", grouped(&cases));
    assert!(readme().contains(&caption), "the README's caption should say: {caption}");
    let red = format!("{controls} of {controls} controls red");
    assert!(readme().contains(&red), "the README's output should say: {red}");
}

#[test]
fn the_readme_shows_every_kernel_of_the_suite() {
    let listed = String::from_utf8_lossy(&run(&["check", "--list"]).stdout).into_owned();
    for case in listed.lines() {
        let kernel = case.split('/').next().unwrap_or_default();
        assert!(readme().contains(&format!("\n     {kernel} ")), "{kernel} is missing");
    }
}
