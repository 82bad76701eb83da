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
pub(crate) mod video;
