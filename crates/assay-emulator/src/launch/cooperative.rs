//! How many blocks are resident at once, and launches that need all of theirs to be.

use crate::execute::engine::Launch;
use crate::machine::{LaunchConfig, MachineConfig};
use crate::program::Function;

/// More multiprocessors than any chip has.
const MOST_MULTIPROCESSORS: u64 = 256;

/// Blocks of a kernel that fit on a multiprocessor at once.
fn per_multiprocessor(machine: &MachineConfig, function: &Function, config: &LaunchConfig) -> u64 {
    let threads = config.block.iter().product::<u32>().next_multiple_of(32);
    let registers = function.resources.registers.clamp(16, 255) * threads;
    let shared = function.resources.static_shared + config.shared_bytes;
    let fits = [
        machine.threads_per_multiprocessor / threads.max(1),
        machine.blocks_per_multiprocessor,
        machine.registers_per_multiprocessor / registers.max(1),
        machine.shared_per_multiprocessor / shared.max(1),
    ];
    u64::from(fits.into_iter().min().unwrap_or(1).max(1))
}

/// How many blocks are resident at once: what the machine holds, or all of a cooperative launch.
pub(super) fn window(
    machine: &MachineConfig,
    function: &Function,
    config: &LaunchConfig,
    launch: &Launch,
) -> u64 {
    let blocks = launch.grid.iter().map(|&axis| u64::from(axis)).product();
    let fits = per_multiprocessor(machine, function, config);
    let held = fits * u64::from(machine.multiprocessors.max(1));
    if config.cooperative { held.max(blocks) } else { held }
}

/// What is wrong with a cooperative launch: that no chip holds it.
pub(super) fn problem(
    machine: &MachineConfig,
    function: &Function,
    config: &LaunchConfig,
) -> Option<String> {
    let blocks: u64 = config.grid.iter().map(|&axis| u64::from(axis)).product();
    let most = MOST_MULTIPROCESSORS * per_multiprocessor(machine, function, config);
    (config.cooperative && blocks > most).then(|| {
        format!("a cooperative launch of {blocks} blocks; no chip holds more than {most} of them")
    })
}
