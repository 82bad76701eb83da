//! Whether a launch fits a chip: tables of chips, recorded compiles for each compiler release, and
//! the rules of gate 5. Knows the facts of kernels, and not how an image is parsed.

mod launch;

pub use launch::Launch;
