//! CUDA C++ in many styles, through nvcc and NVRTC.

mod atomics;
mod blackwell;
mod calls;
mod clusters;
mod cub;
mod cub_device;
mod data;
mod formats;
mod groups;
mod hopper;
mod integers;
mod models;
mod pointwise;
mod rows;
mod tensor;
mod tma;

use crate::case::Case;
use crate::census::Expected;
use crate::compile::{Compiler, Unit};
use crate::{Entry, run};

/// The release whose PTX the driver of the project's records accepts, and the newest.
const OLD: Compiler = Compiler::Nvcc("13.0.88");
const NEW: Compiler = Compiler::Nvcc("13.5.37");
const LIBRARY: Compiler = Compiler::Nvrtc("13.0.88");

const OPTIMISED: &[&str] = &["-O3"];
const DEBUG: &[&str] = &["-G"];
const FAST: &[&str] = &["-O3", "-use_fast_math"];
const WIDE: &[&str] = &["-device-int128"];
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

/// A source every kernel of which has a case.
fn source(name: &'static str, cases: fn(u32) -> Vec<Case>) -> Source {
    Source { name, cases, expected: Expected::default() }
}

fn entries() -> Vec<Entry> {
    let rows = source("rows", rows::cases);
    let pointwise = source("pointwise", pointwise::cases);
    let fast = Source {
        expected: Expected {
            not_called: &[("rope", "sin.approx promises nothing at 1000 radians")],
            ..Expected::default()
        },
        ..source("pointwise", pointwise::fast_cases)
    };
    let groups = source("groups", groups::cases);
    let integers = source("integers", integers::cases);
    let atomics = source("atomics", atomics::cases);
    let tensor = source("tensor", tensor::cases);
    let formats = source("formats", formats::cases);
    let calls = source("calls", calls::cases);
    let hopper = source("hopper", hopper::cases);
    let blackwell = source("blackwell", blackwell::cases);
    let tma = source("tma", tma::cases);
    let clusters = source("clusters", clusters::cases);
    let models = source("models", models::cases);
    let cub = source("cub_blocks", cub::cases);
    let cub_device = source("cub_device", cub_device::cases);
    vec![
        rows.by(OLD, "80", OPTIMISED),
        rows.by(LIBRARY, "90", NO_FLAGS),
        pointwise.by(NEW, "80", OPTIMISED),
        fast.by(OLD, "90", FAST),
        groups.by(OLD, "80", OPTIMISED),
        groups.by(NEW, "90", OPTIMISED),
        integers.by(OLD, "120", OPTIMISED),
        integers.by(LIBRARY, "80", WIDE),
        formats.by(OLD, "80", OPTIMISED),
        formats.by(NEW, "120a", OPTIMISED),
        calls.by(OLD, "80", OPTIMISED),
        calls.by(NEW, "90", DEBUG),
        hopper.by(OLD, "90a", OPTIMISED),
        tma.by(OLD, "90", OPTIMISED),
        clusters.by(OLD, "90", OPTIMISED),
        models.by(LIBRARY, "80", NO_FLAGS),
        models.by(NEW, "120", OPTIMISED),
        blackwell.by(NEW, "120a", OPTIMISED),
        cub.by(OLD, "80", OPTIMISED),
        cub.by(LIBRARY, "90", NO_FLAGS),
        cub_device.by(OLD, "80", OPTIMISED),
        tensor.by(OLD, "80", OPTIMISED),
        tensor.by(NEW, "90", OPTIMISED),
        atomics.by(OLD, "80", OPTIMISED),
        atomics.by(NEW, "90", OPTIMISED),
    ]
}

#[test]
fn every_kernel_in_cuda_decodes_runs_and_is_right() {
    let entries = entries();
    let outcome = run("CUDA", &entries);
    // Where no compiler is missing and nothing is left out, this much is decoded at least.
    if outcome.texts == entries.len() {
        assert!(outcome.census.instructions() > 25_000, "{}", outcome.census);
        assert!(outcome.census.opcodes.len() > 500, "{}", outcome.census);
        assert!(outcome.census.bases.len() >= 97, "{}", outcome.census);
    }
}
