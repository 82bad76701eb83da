//! What instructions compute, one lane at a time.

pub(crate) mod approximate;
pub(crate) mod bits;
pub(crate) mod compare;
pub(crate) mod float;
pub(crate) mod fused;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod soft;
pub(crate) mod tensor;
mod tensor_fast;
pub(crate) mod tensor_plain;
pub(crate) mod tensor_scaled;
pub(crate) mod video;
mod wide;
