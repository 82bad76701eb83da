//! What the tests of this folder share: images built byte by byte, compilers, and `cuobjdump`.
#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod build;
pub(crate) mod random;
pub(crate) mod tools;
