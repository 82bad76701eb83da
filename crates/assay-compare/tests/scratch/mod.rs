//! Files of one test, removed at its end.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file of this test's own, removed at its end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// A path that no other test has: they run side by side.
    pub(crate) fn new(name: &str) -> Scratch {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("assay-test-{}-{made}-{name}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }

    /// A file of these bytes.
    pub(crate) fn of(name: &str, bytes: &[u8]) -> Scratch {
        let scratch = Scratch::new(name);
        fs::write(&scratch.0, bytes).expect("written");
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
