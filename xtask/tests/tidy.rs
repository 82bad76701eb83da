//! The repository keeps its own rules.

use std::process::Command;

#[test]
fn the_repository_is_tidy() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("tidy")
        .output()
        .expect("the xtask binary runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "\n{text}");
    assert!(text.contains(" 0 broken rules"), "{text}");
}
