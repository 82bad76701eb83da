//! Random integer tiles through every fragment path, held exactly against the reference product.

use assay_device::{Device, DeviceError, ModuleId};
use assay_num::random::SplitMix64;

use super::products::{Bench, Products, Shape};
use super::rates::{Kind, Modules, kinds, warp_tile};
use super::{ProbeContext, ProbeError};

/// What became of [`mma_tile_check`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TileCheck {
    /// Tiles that were multiplied and compared.
    pub tiles: u64,
    /// Kinds of product that the device cannot run, and why.
    pub unsupported: Vec<String>,
    /// What was wrong, one line a tile; empty for a device that multiplies rightly.
    pub failures: Vec<String>,
}

impl TileCheck {
    /// Whether there were tiles, and all of them were right.
    pub fn passed(&self) -> bool {
        self.tiles > 0 && self.failures.is_empty()
    }
}

/// Multiplies `trials` tiles of random integers of every kind that the device has (`mma.sync` and
/// `wgmma`; f64, f16, bf16, tf32, s8 and e4m3; dense and 2:4 sparse) and compares every accumulator
/// with the product of the integers. One warp, or warpgroup, a tile; the seed gives the tiles.
///
/// # Errors
/// The device's failures; what it refuses to load counts as unsupported.
pub fn mma_tile_check(
    device: &mut dyn Device,
    trials: u32,
    seed: u64,
) -> Result<TileCheck, ProbeError> {
    let mut check = TileCheck::default();
    let mut context = ProbeContext::new(device, true, seed);
    let mut modules = Modules::default();
    for wide in [false, true] {
        for kind in kinds(!wide) {
            let products = one(wide, kind);
            let loaded = modules.load(&mut context, wide, kind);
            check_kind(&mut context, (products, loaded), trials, &mut check)?;
        }
    }
    Ok(check)
}

fn check_kind(
    context: &mut ProbeContext<'_>,
    (products, loaded): (Products, Result<ModuleId, ProbeError>),
    trials: u32,
    check: &mut TileCheck,
) -> Result<(), ProbeError> {
    let module = match loaded {
        Ok(module) => module,
        Err(error) if is_refusal(&error) => {
            check.unsupported.push(format!("{}: {error}", products.symbol()));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let mut random = SplitMix64::new(context.seed).fork("tiles");
    for _ in 0..trials {
        let bench = Bench::new(context.device, module, products, 1, random.next_u64())?;
        bench.run(context.device, 1, 1)?;
        match bench.verify(context.device, 1, 1) {
            Ok(()) => {}
            Err(ProbeError::Wrong(reason)) => check.failures.push(reason),
            Err(error) => return Err(error),
        }
        check.tiles += 1;
        bench.free(context.device)?;
    }
    Ok(())
}

/// Whether a module was not loaded because the device has no such thing.
fn is_refusal(error: &ProbeError) -> bool {
    matches!(
        error,
        ProbeError::Unsupported(_)
            | ProbeError::Device(
                DeviceError::ModuleRejected { .. } | DeviceError::Unsupported { .. }
            )
    )
}

/// The smallest launch of a kind.
fn one(wide: bool, kind: Kind) -> Products {
    let Kind { element, density } = kind;
    if wide {
        let shape = Shape::Warpgroup { a_in_registers: true };
        return Products { element, density, shape, warps: 4 };
    }
    let (rows, columns) = warp_tile(kind);
    Products { element, density, shape: Shape::Warp { rows, columns }, warps: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_multiplies_rightly_passes_with_every_kind() {
        let mut device = assay_device::open("emulator:sm_90").unwrap();
        let check = mma_tile_check(&mut *device, 2, 11).unwrap();
        assert!(check.passed(), "{check:?}");
        assert_eq!((check.tiles, check.unsupported.len()), (42, 0), "{check:?}");
    }

    #[test]
    fn an_older_device_says_what_it_lacks() {
        let mut device = assay_device::open("emulator:sm_80").unwrap();
        let check = mma_tile_check(&mut *device, 1, 11).unwrap();
        assert!(check.passed(), "{check:?}");
        assert_eq!((check.tiles, check.unsupported.len()), (8, 13), "{check:?}");
    }

    #[test]
    fn a_check_of_no_tiles_is_not_passed() {
        let mut device = assay_device::open("emulator:sm_80").unwrap();
        assert!(!mma_tile_check(&mut *device, 0, 1).unwrap().passed());
    }
}
