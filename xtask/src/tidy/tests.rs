//! Each rule is turned red by a planted control, and stays green on what it allows.

use std::path::Path;

use super::Tree;

const ARCHITECTURE: &str = "\
# Architecture
## Invariants
| crate | may depend on | unsafe | prints |
|---|---|---|---|
| `low` | | yes | no |
| `high` | `low` | no | yes |
";

const LOW: &str = "[package]\nname = \"low\"\n[lints]\nworkspace = true\n[dependencies]\n";

const HIGH: &str = "[package]\n[lints]\nworkspace = true\n[dependencies]\nlow.workspace = true\n";

/// A small tidy workspace with some files replaced or added.
fn tree(changes: &[(&str, &str)]) -> Tree {
    let tidy = [
        ("ARCHITECTURE.md", ARCHITECTURE),
        ("Cargo.toml", "[workspace.dependencies]\nlow = { path = \"crates/low\" }\n"),
        ("crates/low/Cargo.toml", LOW),
        ("crates/low/src/lib.rs", "//! Low.\n"),
        ("crates/high/Cargo.toml", HIGH),
        ("crates/high/src/main.rs", "//! High.\nfn main() {\n    println!(\"high\");\n}\n"),
    ];
    let mut tree = Tree::default();
    let kept = tidy.iter().filter(|(path, _)| changes.iter().all(|(other, _)| other != path));
    for (path, text) in kept.chain(changes) {
        tree.add(Path::new(path), text);
    }
    tree
}

/// The problems of the tidy workspace after these changes, as they are printed.
fn problems(changes: &[(&str, &str)]) -> Vec<String> {
    tree(changes).problems().iter().map(ToString::to_string).collect()
}

/// The problems of one Rust file in the crate that may use unsafe code and may not print.
fn problems_in(text: &str) -> Vec<String> {
    problems(&[("crates/low/src/lib.rs", &format!("//! Low.\n{text}"))])
}

#[track_caller]
fn assert_red(problems: &[String], start: &str) {
    assert!(problems.len() == 1 && problems[0].starts_with(start), "{problems:#?}");
}

#[track_caller]
fn assert_green(problems: &[String]) {
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn the_tidy_workspace_has_no_problems() {
    assert_green(&problems(&[]));
    assert!(tree(&[]).size().starts_with("2 Rust files, 5 lines, 1 functions of 3 lines"));
}

#[test]
fn a_line_over_100_columns_is_red_in_every_language() {
    for path in ["crates/low/src/lib.rs", "kernels/a.cu", "kernels/a.cuh", "kernels/a.toml"] {
        let line = |columns: usize| format!("//!{}\n", "é".repeat(columns - 3));
        assert_green(&problems(&[(path, &line(100))]));
        assert_red(&problems(&[(path, &line(101))]), &format!("{path}:1: 101 columns"));
    }
}

#[test]
fn a_mark_of_a_merge_is_red_in_every_file_that_people_read() {
    for path in ["docs/a.md", "crates/low/src/lib.rs", "records/a.toml"] {
        let text = "//! Low.\n// <<<<<<< is how one begins.\n<<<<<<< HEAD\n";
        assert_red(&problems(&[(path, text)]), &format!("{path}:3: a mark of a merge"));
    }
}

#[test]
fn a_function_over_70_lines_is_red() {
    let function =
        |lines: usize| format!("fn long() {{\n{}}}\n", "    call();\n".repeat(lines - 2));
    assert_green(&problems_in(&function(70)));
    let red = "crates/low/src/lib.rs:2: `long` has 71 lines";
    assert_red(&problems_in(&function(71)), red);
}

#[test]
fn a_long_kernel_is_red_however_its_signature_is_wrapped() {
    let kernel = |lines: usize| {
        format!(
            "// A kernel.\n__global__ void f(\n    int x) {{\n{}}}\n",
            "f();\n".repeat(lines - 2)
        )
    };
    assert_green(&problems(&[("kernels/a.cu", &kernel(70))]));
    assert_red(&problems(&[("kernels/a.cu", &kernel(71))]), "kernels/a.cu:3: `a block` has 71");
}

#[test]
fn braces_and_words_in_strings_comments_and_characters_are_no_code() {
    assert_green(&problems_in(concat!(
        "fn f<'a>(x: &'a str) -> [char; 4] {\n",
        "    let _ = (r#\"}\" todo!() \"#, \"\\\"} dbg!()\", b\"{\", br\"}\", '\\'', '\\u{7d}');\n",
        "    // } println!() /* unsafe { */\n    /* } /* nested } */ unsafe } */\n",
        "    ['{', '}', '\"', 'r']\n}\n",
        "fn g() {\n}\n",
    )));
}

#[test]
fn unfinished_code_is_red() {
    for word in ["todo!()", "unimplemented!()", "dbg!(1)"] {
        let red = format!("crates/low/src/lib.rs:3: `{}!` is", word.split('!').next().unwrap());
        assert_red(&problems_in(&format!("fn f() {{\n    {word}\n}}\n")), &red);
    }
    for attribute in ["#[ignore]", "#[ignore = \"slow\"]"] {
        let text = format!("#[test]\n{attribute}\nfn f() {{}}\n");
        assert_red(&problems_in(&text), "crates/low/src/lib.rs:3: a test that is not run");
    }
}

#[test]
fn unsafe_code_in_a_safe_crate_is_red() {
    let text = "//! High.\nfn main() {\n    // SAFETY: none.\n    unsafe { call() }\n}\n";
    let red = "crates/high/src/main.rs:4: ARCHITECTURE.md allows no unsafe";
    assert_red(&problems(&[("crates/high/src/main.rs", text)]), red);
}

#[test]
fn an_unsafe_block_without_its_argument_is_red() {
    let red = "no comment with `SAFETY:`";
    let naked = problems_in("fn f() {\n    unsafe { g() }\n}\n");
    assert_red(&naked, &format!("crates/low/src/lib.rs:3: {red}"));
    let others =
        "fn f() {\n    // SAFETY: g is fine.\n    unsafe { g() };\n    unsafe { h() };\n}\n";
    assert_red(&problems_in(others), &format!("crates/low/src/lib.rs:5: {red}"));
    assert_red(&problems_in("unsafe impl Send for A {}\n"), "crates/low/src/lib.rs:2: no");
    assert_green(&problems_in("// SAFETY: A is plain.\nunsafe impl Send for A {}\n"));
    assert_green(&problems_in(concat!(
        "fn f() {\n    // SAFETY: g is fine.\n",
        "    let x = call(\n        unsafe { g() },\n    );\n}\n",
    )));
    assert_green(&problems_in("/// # Safety\n/// Fine.\npub unsafe fn f() {}\n"));
}

#[test]
fn printing_outside_the_command_lines_is_red() {
    for word in ["println", "eprintln", "print", "eprint"] {
        let red = format!("crates/low/src/lib.rs:3: `{word}!`: ARCHITECTURE.md allows no");
        assert_red(&problems_in(&format!("fn f() {{\n    {word}!(\"x\");\n}}\n")), &red);
    }
    assert_green(&problems_in("#[cfg(test)]\nmod tests {\n    fn f() { println!(); }\n}\n"));
    assert_green(&problems(&[("crates/low/tests/a.rs", "//! Tests.\nfn f() { println!(); }\n")]));
}

#[test]
fn a_file_without_module_docs_is_red() {
    let red = "crates/low/src/lib.rs:1: the file does not begin with `//!`";
    assert_red(&problems(&[("crates/low/src/lib.rs", "fn f() {}\n")]), red);
    assert_red(&problems(&[("crates/low/src/lib.rs", "")]), red);
    assert_red(&problems(&[("kernels/a.cu", "int x;\n")]), "kernels/a.cu:1: the file does not");
}

#[test]
fn a_dependency_that_the_table_does_not_allow_is_red() {
    for kind in ["", "dev-", "build-", "target.'cfg(unix)'."] {
        let manifest = format!("{LOW}[{kind}dependencies]\nhigh.workspace = true\n");
        let red = "crates/low/Cargo.toml:7: ARCHITECTURE.md does not let `low` know `high`";
        assert_red(&problems(&[("crates/low/Cargo.toml", &manifest)]), red);
    }
}

#[test]
fn a_crate_without_a_row_and_a_row_without_a_crate_are_red() {
    let manifest = "[lints]\nworkspace = true\n";
    let red = "crates/new/Cargo.toml:1: `new` has no row under `## Invariants`";
    assert_red(&problems(&[("crates/new/Cargo.toml", manifest)]), red);
    let table = format!("{ARCHITECTURE}| `gone` | | no | no |\n");
    let red = "ARCHITECTURE.md:7: there is no crate `gone`";
    assert_red(&problems(&[("ARCHITECTURE.md", &table)]), red);
}

#[test]
fn a_missing_or_malformed_table_is_red() {
    let missing = problems(&[("ARCHITECTURE.md", "# Architecture\n")]);
    assert!(missing[0].starts_with("ARCHITECTURE.md:1: there is no table"), "{missing:#?}");
    let table = format!("{ARCHITECTURE}| `low` | | maybe | no |\n");
    let red = "ARCHITECTURE.md:7: a row is:";
    assert_red(&problems(&[("ARCHITECTURE.md", &table)]), red);
}

#[test]
fn a_manifest_outside_the_workspace_tables_is_red() {
    let manifest = "[package]\n[dependencies]\n";
    let red = "crates/low/Cargo.toml:1: the workspace's lints";
    assert_red(&problems(&[("crates/low/Cargo.toml", manifest)]), red);
    let manifest = format!("{LOW}rand = \"1\"\n");
    let red = "crates/low/Cargo.toml:6: `rand` is not taken from the workspace's table";
    assert_red(&problems(&[("crates/low/Cargo.toml", &manifest)]), red);
    let root = "[workspace.dependencies]\nlow = { path = \"crates/low\" }\nold = \"1\"\n";
    assert_red(&problems(&[("Cargo.toml", root)]), "Cargo.toml:3: no crate uses `old`");
}

#[test]
fn a_file_that_no_mod_reaches_is_red() {
    let dead = ("crates/low/src/dead.rs", "//! Dead.\n");
    assert_red(&problems(&[dead]), "crates/low/src/dead.rs:1: no `mod` reaches this file");
    assert_green(&problems(&[
        ("crates/low/src/lib.rs", "//! Low.\nmod a;\n#[path = \"odd.rs\"]\nmod c;\n"),
        ("crates/low/src/a.rs", "//! A.\npub(crate) mod b;\n"),
        ("crates/low/src/a/b.rs", "//! B.\nmod d;\n"),
        ("crates/low/src/a/b/d/mod.rs", "//! D.\n"),
        ("crates/low/src/odd.rs", "//! C.\n"),
        ("crates/low/tests/e.rs", "//! E.\nmod common;\n"),
        ("crates/low/tests/common/mod.rs", "//! Common.\n"),
        ("crates/low/build.rs", "//! Build.\n"),
    ]));
}
