//! Tensor maps as the driver encodes them.

use super::api::{Functions, Opaque};
use super::context::Context;
use crate::error::DeviceError;
use assay_emulator::{TENSOR_MAP_BYTES, TensorElement, TensorMap};

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

/// A map of the tensor at `address`.
pub(super) fn encode(
    context: &Context,
    address: u64,
    map: &TensorMap,
) -> Result<Vec<u8>, DeviceError> {
    let missing = || DeviceError::Unsupported {
        what: "tensor maps: the driver has no cuTensorMapEncode functions".to_string(),
    };
    let functions: &Functions = context.functions();
    let (tiled, im2col) = (
        functions.tensor_map_tiled.ok_or_else(missing)?,
        functions.tensor_map_im2col.ok_or_else(missing)?,
    );
    let sizes = map.sizes.map(u64::from);
    let (element, rank) = (number(map.element), map.rank as u32);
    let (swizzle, fill) = (map.swizzle as i32, i32::from(map.fills_nan));
    let mut encoded = Encoded([0; TENSOR_MAP_BYTES]);
    let to = (&raw mut encoded).cast();
    let at = address as Opaque as *mut std::ffi::c_void;
    let (strides, steps) = (map.strides.as_ptr(), map.element_strides.as_ptr());
    match map.pixels {
        None => context.call("cuTensorMapEncodeTiled", |_| {
            let taken = map.box_sizes.as_ptr();
            // SAFETY: `to` is 128 bytes aligned to 64; the arrays have five entries, four of the
            // strides, and the driver reads `rank`, one fewer of the strides, or refuses a rank
            // that is not 1 to 5; it does not follow the tensor's address.
            unsafe {
                tiled(
                    to,
                    element,
                    rank,
                    at,
                    sizes.as_ptr(),
                    strides,
                    taken,
                    steps,
                    NONE,
                    swizzle,
                    NONE,
                    fill,
                )
            }
        })?,
        Some(pixels) => {
            let (lower, upper) = (pixels.lower.map(i32::from), pixels.upper.map(i32::from));
            let (channels, count) = (pixels.channels.into(), pixels.pixels.into());
            context.call("cuTensorMapEncodeIm2col", |_| {
                // SAFETY: as above; the corners have three entries and the driver reads two fewer
                // than `rank`.
                unsafe {
                    im2col(
                        to,
                        element,
                        rank,
                        at,
                        sizes.as_ptr(),
                        strides,
                        lower.as_ptr(),
                        upper.as_ptr(),
                        channels,
                        count,
                        steps,
                        NONE,
                        swizzle,
                        NONE,
                        fill,
                    )
                }
            })?;
        }
    }
    Ok(encoded.0.to_vec())
}
