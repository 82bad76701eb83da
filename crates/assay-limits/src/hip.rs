//! The rules of HIP: a work-group against its kernel's compile and one compute unit, or a pair.

use assay_image::HipKernel;

use crate::chips::{HipChip, value};
use crate::occupancy::{Occupancy, Place, Resource, rounded};
use crate::{Fit, Launch, Rule};

/// Checks a launch of a kernel, as compiled for this chip, against the chip.
pub fn fit_hip(chip: &HipChip, kernel: &HipKernel, launch: &Launch) -> Fit {
    let mut fit = Fit::default();
    dimensions(&mut fit, chip, kernel, launch);
    let lds = u64::from(kernel.static_lds_bytes).saturating_add(launch.dynamic_shared_bytes);
    fit.at_most(Rule::Lds, lds, &chip.lds_per_workgroup);
    let Some(room) = Room::of(chip, kernel) else {
        let wave = chip.wave_sizes.value.first().copied().unwrap_or(0);
        fit.problem(Rule::WaveSize, kernel.wave_size.into(), wave, chip.wave_sizes.unconfirmed);
        return fit;
    };
    let waves = launch.threads().div_ceil(kernel.wave_size.into());
    registers(&mut fit, chip, kernel, &room, waves);
    if fit.problems.is_empty() {
        fit.occupancy = occupancy(chip, kernel, &room, waves, lds);
    }
    fit
}

fn dimensions(fit: &mut Fit, chip: &HipChip, kernel: &HipKernel, launch: &Launch) {
    fit.axes([Rule::GridX, Rule::GridY, Rule::GridZ], launch.grid, &chip.grid);
    fit.axes([Rule::BlockX, Rule::BlockY, Rule::BlockZ], launch.block, &chip.block);
    for (blocks, threads) in launch.grid.into_iter().zip(launch.block) {
        fit.at_most(Rule::GridItems, blocks.saturating_mul(threads), &chip.work_items_per_axis);
    }
    fit.at_most(Rule::BlockThreads, launch.threads(), &chip.threads_per_workgroup);
    if launch.threads() > u64::from(kernel.max_workgroup) {
        fit.problem(Rule::LaunchBounds, launch.threads(), kernel.max_workgroup.into(), false);
    }
    if let Some(required) = kernel.required_workgroup {
        fit.required(launch.block, required);
    }
}

/// What one SIMD holds of waves of this kernel's size, and over how many SIMDs a work-group goes.
struct Room {
    vgprs: u64,
    vgpr_allocation: u64,
    unconfirmed: bool,
    simds: u64,
    units: u64,
}

impl Room {
    /// `None` if the chip has no waves of the kernel's size.
    fn of(chip: &HipChip, kernel: &HipKernel) -> Option<Room> {
        let size = u64::from(kernel.wave_size);
        chip.wave_sizes.value.contains(&size).then_some(())?;
        let (vgprs, step) = match size {
            32 => (chip.vgprs_wave32.as_ref()?, chip.vgpr_allocation_wave32.as_ref()?),
            64 => (&chip.vgprs_wave64, &chip.vgpr_allocation_wave64),
            _ => return None,
        };
        let pair = value(chip.compute_units_per_processor.as_ref()).unwrap_or(1);
        let units = if kernel.workgroup_processor_mode { pair } else { 1 };
        Some(Room {
            vgprs: vgprs.value,
            vgpr_allocation: step.value,
            unconfirmed: vgprs.unconfirmed || step.unconfirmed,
            simds: chip.simds_per_compute_unit.value.checked_mul(units)?,
            units,
        })
    }

    /// Vector registers that one wave takes of a SIMD.
    fn vgprs_per_wave(&self, kernel: &HipKernel) -> u64 {
        rounded(kernel.vgprs.max(1).into(), self.vgpr_allocation)
    }
}

/// A work-group's waves are spread over the SIMDs; the fullest must have room for its share.
fn registers(fit: &mut Fit, chip: &HipChip, kernel: &HipKernel, room: &Room, waves: u64) {
    fit.at_most(Rule::VectorRegisters, kernel.vgprs.into(), &chip.vgprs_per_lane);
    fit.at_most(Rule::ScalarRegisters, kernel.sgprs.into(), &chip.sgprs_per_wave);
    let share = waves.div_ceil(room.simds);
    fit.at_most(Rule::WavesPerSimd, share, &chip.waves_per_simd);
    let asked = share.saturating_mul(room.vgprs_per_wave(kernel));
    if asked > room.vgprs {
        fit.problem(Rule::VectorRegistersPerSimd, asked, room.vgprs, room.unconfirmed);
    }
}

fn occupancy(
    chip: &HipChip,
    kernel: &HipKernel,
    room: &Room,
    waves: u64,
    lds: u64,
) -> Option<Occupancy> {
    let on_all = |waves_of_simd: u64| waves_of_simd.saturating_mul(room.simds);
    let most = on_all(chip.waves_per_simd.value);
    let by_vgprs = on_all(room.vgprs / room.vgprs_per_wave(kernel));
    let mut limits = vec![
        (Resource::Warps, most.checked_div(waves)?),
        (Resource::Registers, by_vgprs.checked_div(waves)?),
    ];
    if let (Some(all), Some(step)) = (&chip.sgprs_per_simd, &chip.sgpr_allocation) {
        let given = rounded(kernel.sgprs.max(1).into(), step.value);
        limits.push((Resource::ScalarRegisters, on_all(all.value / given) / waves));
    }
    let on_units = |of_unit: u64| of_unit.saturating_mul(room.units);
    let given = rounded(lds, chip.lds_allocation.value);
    if let Some(blocks) = on_units(chip.lds_per_compute_unit.value).checked_div(given) {
        limits.push((Resource::Shared, blocks));
    }
    // A work-group of one wave needs no barrier, of which there are so many.
    if waves > 1 {
        limits.push((Resource::Blocks, on_units(chip.workgroups_per_compute_unit.value)));
    }
    let place = if room.units > 1 { Place::WorkgroupProcessor } else { Place::ComputeUnit };
    Occupancy::of(&limits, waves, most, place)
}
