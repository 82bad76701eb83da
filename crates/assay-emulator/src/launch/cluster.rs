//! Clusters of a launch: their rules, and which block is where in them.

use super::Grid;
use crate::execute::block::Block;
use crate::execute::engine::Launch;
use crate::machine::{LaunchConfig, MachineConfig};
use crate::observer::Observer;
use crate::program::Function;

/// The most blocks of a cluster on any chip; every chip with clusters runs 8.
const LARGEST: u64 = 16;
/// The first architecture with clusters.
const FIRST_ARCHITECTURE: u32 = 90;

/// Blocks per cluster: what the launch says, or else the kernel.
pub(super) fn of(function: &Function, config: &LaunchConfig) -> [u32; 3] {
    match function.resources.required_cluster {
        Some(required) if config.cluster == [1; 3] => required.map(|axis| axis.max(1)),
        _ => config.cluster,
    }
}

/// Whether the launch or the kernel asked for clusters.
pub(super) fn is_explicit(function: &Function, config: &LaunchConfig) -> bool {
    function.resources.required_cluster.is_some() || config.cluster != [1; 3]
}

/// What is wrong with the clusters of a launch.
pub(super) fn problem(
    machine: &MachineConfig,
    function: &Function,
    config: &LaunchConfig,
) -> Option<String> {
    let (cluster, grid) = (of(function, config), config.grid);
    let blocks = cluster.iter().fold(1, |all: u64, &axis| all.saturating_mul(u64::from(axis)));
    let resources = &function.resources;
    if blocks == 0 || blocks > LARGEST {
        return Some(format!("clusters of {blocks} blocks; 1 to {LARGEST} are possible"));
    }
    if blocks > 1 && machine.architecture < FIRST_ARCHITECTURE {
        return Some(format!("sm_{} has no clusters; sm_90 has", machine.architecture));
    }
    if (0..3).any(|axis| grid[axis] % cluster[axis] != 0) {
        return Some(format!("grid {grid:?} is not whole clusters {cluster:?}"));
    }
    if let Some(required) = resources.required_cluster
        && required != cluster
    {
        return Some(format!("the kernel requires clusters of {required:?}"));
    }
    if resources.explicit_cluster && !is_explicit(function, config) {
        return Some("the kernel must be launched with a cluster (.explicitcluster)".to_owned());
    }
    resources.max_cluster_rank.filter(|&most| blocks > u64::from(most)).map(|most| {
        format!("clusters of {blocks} blocks; the kernel was compiled for at most {most}")
    })
}

/// As many of `blocks` as are whole clusters, and at least one.
pub(super) fn whole(blocks: u64, launch: &Launch) -> u64 {
    let size = launch.cluster.iter().map(|&axis| u64::from(axis)).product::<u64>();
    (blocks / size).max(1) * size
}

/// Tells a block where it is: block `order`, counted cluster after cluster.
pub(super) fn place(block: &mut Block, launch: &Launch, order: u64) {
    let cluster = launch.cluster.map(u64::from);
    let grid = launch.grid.map(u64::from);
    let size = cluster.iter().product::<u64>();
    let (number, rank) = (order / size, order % size);
    block.cluster = number;
    block.rank = rank as u32;
    let clusters = [0, 1, 2].map(|axis| grid[axis] / cluster[axis]);
    block.cluster_index = along(number, clusters);
    block.index_in_cluster = along(rank, cluster);
    block.index = [0, 1, 2].map(|axis| {
        block.cluster_index[axis] * launch.cluster[axis] + block.index_in_cluster[axis]
    });
    let [x, y, z] = block.index.map(u64::from);
    block.number = x + grid[0] * (y + grid[1] * z);
}

/// The position of `number` along each axis, x fastest.
fn along(number: u64, [x, y, _]: [u64; 3]) -> [u32; 3] {
    [(number % x) as u32, (number / x % y) as u32, (number / (x * y)) as u32]
}

/// Where a block of the running one's cluster stood among the resident ones.
type Position = (usize, usize);

impl<O: Observer> Grid<'_, O> {
    /// Gives the engine the other blocks of a block's cluster. Their places stay taken.
    pub(super) fn take_peers(&mut self, block: &Block) -> Vec<Position> {
        let size = self.engine.cluster_size() as usize;
        if size == 1 {
            return Vec::new();
        }
        self.engine.peers.clear();
        self.engine.peers.resize_with(size, || None);
        let mut taken = Vec::new();
        for (index, other) in self.resident.iter_mut().enumerate() {
            if other.cluster == block.cluster {
                let rank = other.rank as usize;
                self.engine.peers[rank] = Some(std::mem::take(other));
                taken.push((index, rank));
            }
        }
        taken
    }

    /// Puts the blocks back that [`Grid::take_peers`] took.
    pub(super) fn return_peers(&mut self, taken: Vec<Position>) {
        for (index, rank) in taken {
            if let Some(block) = self.engine.peers[rank].take() {
                self.resident[index] = block;
            }
        }
    }
}
