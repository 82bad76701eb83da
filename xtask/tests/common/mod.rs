//! Runs a check of the xtask binary that needs compilers.

use std::io::Write as _;
use std::process::Command;

/// What `xtask` exits with when a compiler cannot be had.
const UNAVAILABLE: i32 = 3;

/// Holds that a check succeeds and says `what`; where a compiler is missing, passes on why.
pub(crate) fn holds(arguments: &[&str], what: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(arguments)
        .output()
        .expect("the xtask binary runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    if output.status.code() == Some(UNAVAILABLE) {
        // Written past the test harness, which would swallow it.
        let _ = std::io::stderr().write_all(text.as_bytes());
        return;
    }
    assert!(output.status.success(), "{text}");
    assert!(text.contains(what), "{text}");
}
