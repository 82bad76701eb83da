//! Tensor maps as the driver encodes them.

use std::ffi::c_void;

use assay_emulator::{PixelBox, TENSOR_MAP_BYTES, TensorElement, TensorMap};

use super::api::Opaque;
use super::context::Context;
use crate::error::DeviceError;

/// `CUtensorMap`: 128 bytes that nobody looks into, aligned as the driver demands.
#[repr(C, align(64))]
pub(super) struct Encoded(pub(super) [u8; TENSOR_MAP_BYTES]);

/// `CU_TENSOR_MAP_L2_PROMOTION_NONE`, and no interleaving.
const NONE: i32 = 0;

/// `CUtensorMapDataType`.
fn number(element: TensorElement) -> i32 {
    match element {
        TensorElement::U8 => 0,
        TensorElement::U16 => 1,
        TensorElement::U32 => 2,
        TensorElement::S32 => 3,
        TensorElement::U64 => 4,
        TensorElement::S64 => 5,
        TensorElement::F16 => 6,
        TensorElement::F32 => 7,
        TensorElement::F64 => 8,
        TensorElement::Bf16 => 9,
        TensorElement::F32Ftz => 10,
        TensorElement::Tf32 => 11,
        TensorElement::Tf32Ftz => 12,
    }
}

/// A map of the tensor at `address`, which keeps to the rules.
pub(super) fn encode(
    context: &Context,
    address: u64,
    map: &TensorMap,
) -> Result<Vec<u8>, DeviceError> {
    let mut encoded = Encoded([0; TENSOR_MAP_BYTES]);
    let at = address as Opaque as *mut c_void;
    match map.pixels {
        None => tiled(context, at, map, &mut encoded)?,
        Some(pixels) => im2col(context, at, map, pixels, &mut encoded)?,
    }
    Ok(encoded.0.to_vec())
}

fn missing() -> DeviceError {
    DeviceError::Unsupported {
        what: "tensor maps: the driver has no cuTensorMapEncode functions".to_string(),
    }
}

#[rustfmt::skip]
fn tiled(
    context: &Context,
    at: *mut c_void,
    map: &TensorMap,
    encoded: &mut Encoded,
) -> Result<(), DeviceError> {
    let encode = context.functions().tensor_map_tiled.ok_or_else(missing)?;
    let sizes = map.sizes.map(u64::from);
    // SAFETY: the map is 128 bytes aligned to 64; the arrays have five entries, four of the
    // strides, and the driver reads as many as the rank, one fewer of the strides, which was
    // checked to be 1 to 5; it does not follow the tensor's address.
    context.call("cuTensorMapEncodeTiled", |_| unsafe {
        encode(
            (&raw mut *encoded).cast(), number(map.element), map.rank as u32, at, sizes.as_ptr(),
            map.strides.as_ptr(), map.box_sizes.as_ptr(), map.element_strides.as_ptr(), NONE,
            map.swizzle as i32, NONE, i32::from(map.fills_nan),
        )
    })
}

#[rustfmt::skip]
fn im2col(
    context: &Context,
    at: *mut c_void,
    map: &TensorMap,
    pixels: PixelBox,
    encoded: &mut Encoded,
) -> Result<(), DeviceError> {
    let encode = context.functions().tensor_map_im2col.ok_or_else(missing)?;
    let sizes = map.sizes.map(u64::from);
    let (lower, upper) = (pixels.lower.map(i32::from), pixels.upper.map(i32::from));
    // SAFETY: as for `tiled`; the corners have three entries and the driver reads two fewer than
    // the rank.
    context.call("cuTensorMapEncodeIm2col", |_| unsafe {
        encode(
            (&raw mut *encoded).cast(), number(map.element), map.rank as u32, at, sizes.as_ptr(),
            map.strides.as_ptr(), lower.as_ptr(), upper.as_ptr(), pixels.channels.into(),
            pixels.pixels.into(), map.element_strides.as_ptr(), NONE, map.swizzle as i32, NONE,
            i32::from(map.fills_nan),
        )
    })
}
