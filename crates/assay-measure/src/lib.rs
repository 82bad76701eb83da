//! Measures a device and the kernels that run on it: clocks, timing, statistics, probes, dossiers,
//! sweeps and stamps.
//!
//! What is measured here is plain data of `assay-record`, with its unit, sample count, spread and
//! the clock it was taken at. Gates are not known here: a kernel that has passed its checks comes
//! with a token that says so, and only such a kernel is timed.
