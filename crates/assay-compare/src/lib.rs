//! Compares two outputs: how far apart, where, in which way, and whether the order in which sums
//! may be taken explains it.
//!
//! Inputs are host arrays, device buffers and files of arrays. The counts are the same to the bit
//! on the CPU and on a GPU.
