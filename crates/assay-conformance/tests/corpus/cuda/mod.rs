//! CUDA C++ in many styles, through nvcc and NVRTC.

mod clusters;
mod rows;

use crate::case::Case;
use crate::census::Expected;
use crate::compile::{Compiler, Unit};
use crate::{Entry, run};

/// The release whose PTX the driver of the project's records accepts, and the newest.
const OLD: Compiler = Compiler::Nvcc("13.0.88");
const NEW: Compiler = Compiler::Nvcc("13.5.37");
const LIBRARY: Compiler = Compiler::Nvrtc("13.0.88");

const OPTIMISED: &[&str] = &["-O3"];
const NO_FLAGS: &[&str] = &[];

/// A source, its cases and what is expected besides.
#[derive(Clone, Copy)]
struct Source {
    name: &'static str,
    /// The cases for an architecture.
    cases: fn(u32) -> Vec<Case>,
    expected: Expected,
}

impl Source {
    fn by(self, compiler: Compiler, target: &'static str, flags: &'static [&'static str]) -> Entry {
        let unit = Unit { source: self.name, compiler, target, flags };
        let architecture = crate::compile::architecture(target);
        Entry {
            name: unit.name(),
            compile: Box::new(move || unit.compile()),
            cases: Box::new(move || (self.cases)(architecture)),
            expected: self.expected,
        }
    }
}

fn entries() -> Vec<Entry> {
    let rows = Source { name: "rows", cases: rows::cases, expected: Expected::default() };
    let clusters =
        Source { name: "clusters", cases: clusters::cases, expected: Expected::default() };
    vec![
        clusters.by(OLD, "90", OPTIMISED),
        rows.by(OLD, "80", OPTIMISED),
        rows.by(LIBRARY, "90", NO_FLAGS),
    ]
}

#[test]
fn every_kernel_in_cuda_decodes_runs_and_is_right() {
    run("CUDA", &entries());
}
