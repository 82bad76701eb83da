//! Builds formulas in Rust. The builder writes the text form, so there is one front end.
