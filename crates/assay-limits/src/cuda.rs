//! The rules of CUDA: a block against its kernel's compile and one multiprocessor.

use assay_image::CudaKernel;

use crate::chips::{CudaChip, value};
use crate::occupancy::{Occupancy, Place, Resource, rounded};
use crate::{Fit, Launch, Need, Rule};

/// Checks a launch of a kernel, as compiled for this chip, against the chip.
pub fn fit_cuda(chip: &CudaChip, kernel: &CudaKernel, launch: &Launch) -> Fit {
    let mut fit = Fit::default();
    dimensions(&mut fit, chip, launch);
    bounds(&mut fit, kernel, launch);
    clusters(&mut fit, chip, kernel, launch);
    registers(&mut fit, chip, kernel, launch);
    shared(&mut fit, chip, kernel, launch);
    fit.at_most(Rule::Barriers, kernel.barriers.into(), &chip.barriers_per_block);
    fit.at_most(Rule::Parameters, kernel.parameter_bytes.into(), &chip.parameter_bytes);
    fit.at_most(Rule::Stack, kernel.stack_bytes.into(), &chip.local_bytes_per_thread);
    if fit.problems.is_empty() {
        fit.occupancy = occupancy(chip, kernel, launch);
    }
    fit
}

fn dimensions(fit: &mut Fit, chip: &CudaChip, launch: &Launch) {
    fit.axes([Rule::GridX, Rule::GridY, Rule::GridZ], launch.grid, &chip.grid);
    fit.axes([Rule::BlockX, Rule::BlockY, Rule::BlockZ], launch.block, &chip.block);
    fit.at_most(Rule::BlockThreads, launch.threads(), &chip.threads_per_block);
}

/// The block that the source promises (`.maxntid`, a product) or demands (`.reqntid`, each axis).
fn bounds(fit: &mut Fit, kernel: &CudaKernel, launch: &Launch) {
    if let Some(most) = kernel.max_threads {
        let most = most.iter().fold(1u64, |most, axis| most.saturating_mul(u64::from(*axis)));
        if launch.threads() > most {
            fit.problem(Rule::LaunchBounds, launch.threads(), most, false);
        }
    }
    if let Some(required) = kernel.required_threads {
        fit.required(launch.block, required);
    }
}

fn clusters(fit: &mut Fit, chip: &CudaChip, kernel: &CudaKernel, launch: &Launch) {
    let built = kernel.cluster.map(|cluster| cluster.map(u64::from));
    let cluster = match built {
        // A launch that names no cluster runs with the kernel's own.
        Some(built) if launch.cluster == [1, 1, 1] => built,
        _ => launch.cluster,
    };
    if let Some(built) = built {
        for (asked, built) in cluster.into_iter().zip(built) {
            if asked != built {
                fit.problem(Rule::ClusterRequired, asked, built, false);
            }
        }
    }
    let blocks = cluster.iter().fold(1u64, |blocks, axis| blocks.saturating_mul(*axis));
    if blocks == 0 {
        return fit.problem(Rule::Empty, 0, 1, false);
    }
    for (grid, cluster) in launch.grid.into_iter().zip(cluster) {
        if !grid.is_multiple_of(cluster) {
            fit.problem(Rule::ClusterDivides, grid, cluster, false);
        }
    }
    cluster_blocks(fit, chip, blocks);
}

/// Every chip with clusters runs those of the portable size; past it a launcher needs leave, and
/// what no primary source says of the chip, only its driver knows.
fn cluster_blocks(fit: &mut Fit, chip: &CudaChip, blocks: u64) {
    let (Some(portable), Some(most)) = (&chip.cluster_portable, &chip.cluster_max) else {
        if blocks > 1 {
            fit.problem(Rule::NoClusters, blocks, 1, false);
        }
        return;
    };
    if blocks > most.value {
        fit.at_most(Rule::ClusterBlocks, blocks, most);
    } else if blocks > portable.value {
        fit.needs.push(Need::NonPortableCluster(blocks));
        if most.unconfirmed {
            fit.unknown.push(format!(
                "whether {} runs clusters of {blocks} blocks is not confirmed: ask \
                 cuOccupancyMaxActiveClusters there, or launch {} or fewer",
                chip.name, portable.value
            ));
        }
    }
}

/// Registers of one warp, rounded up to the step in which they are given.
fn registers_per_warp(chip: &CudaChip, kernel: &CudaKernel) -> u64 {
    let registers = u64::from(kernel.registers).saturating_mul(chip.warp_threads.value);
    rounded(registers, chip.register_allocation.value)
}

fn warps(chip: &CudaChip, launch: &Launch) -> u64 {
    launch.threads().div_ceil(chip.warp_threads.value)
}

/// The hardware assumes that a block's warps take registers of all partitions at once, and so
/// rounds the warps up to the partitions when it decides whether a block may launch.
fn registers(fit: &mut Fit, chip: &CudaChip, kernel: &CudaKernel, launch: &Launch) {
    fit.at_most(Rule::RegistersPerThread, kernel.registers.into(), &chip.registers_per_thread);
    let warps = rounded(warps(chip, launch), chip.partitions.value);
    let assumed = registers_per_warp(chip, kernel).saturating_mul(warps);
    fit.at_most(Rule::RegistersPerBlock, assumed, &chip.registers_per_block);
}

fn shared(fit: &mut Fit, chip: &CudaChip, kernel: &CudaKernel, launch: &Launch) {
    let fixed = u64::from(kernel.static_shared_bytes);
    let all = fixed.saturating_add(launch.dynamic_shared_bytes);
    if fixed > chip.shared_per_block.value {
        fit.at_most(Rule::StaticShared, fixed, &chip.shared_per_block);
    } else if all > chip.shared_per_block_opt_in.value {
        fit.at_most(Rule::Shared, all, &chip.shared_per_block_opt_in);
    } else if all > chip.shared_per_block.value {
        fit.needs.push(Need::DynamicShared(launch.dynamic_shared_bytes));
    }
}

/// As NVIDIA's `cuda_occupancy.h` counts it, with the carve-out left to the driver.
fn occupancy(chip: &CudaChip, kernel: &CudaKernel, launch: &Launch) -> Option<Occupancy> {
    let warps = warps(chip, launch);
    let most = chip.warps_per_multiprocessor.value;
    let mut limits = vec![
        (Resource::Warps, most.checked_div(warps)?),
        (Resource::Registers, by_registers(chip, kernel, warps)),
        (Resource::Shared, by_shared(chip, kernel, launch)),
        (Resource::Blocks, chip.blocks_per_multiprocessor.value),
    ];
    let barriers = value(chip.barriers_per_multiprocessor.as_ref());
    let used = u64::from(kernel.barriers);
    if let Some(blocks) = barriers.and_then(|barriers| barriers.checked_div(used)) {
        limits.push((Resource::Barriers, blocks));
    }
    Occupancy::of(&limits, warps, most, Place::Multiprocessor)
}

fn by_registers(chip: &CudaChip, kernel: &CudaKernel, warps: u64) -> u64 {
    let partition = chip.registers_per_multiprocessor.value / chip.partitions.value;
    match partition.checked_div(registers_per_warp(chip, kernel)) {
        Some(held) => held.saturating_mul(chip.partitions.value) / warps,
        None => u64::MAX,
    }
}

fn by_shared(chip: &CudaChip, kernel: &CudaKernel, launch: &Launch) -> u64 {
    let reserved = value(chip.shared_reserved_per_block.as_ref()).unwrap_or(0);
    let fixed = u64::from(kernel.static_shared_bytes).saturating_add(reserved);
    let all = fixed.saturating_add(launch.dynamic_shared_bytes);
    let given = rounded(all, chip.shared_allocation.value);
    chip.shared_per_multiprocessor.value.checked_div(given).unwrap_or(u64::MAX)
}
