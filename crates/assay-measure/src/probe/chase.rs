//! Chases: loads that each give the address of the next, in a random order that is one cycle.
//!
//! The order is Sattolo's: a random permutation that is a single cycle, so that a chase visits
//! every node before it comes back, and a prefetcher has nothing to guess from. Where a chase must
//! end after so many steps is known beforehand, and a chase that ends elsewhere gives no figure.

use assay_device::{Allocation, Argument, BufferId, Device, Launch, ModuleId, StreamId};
use assay_num::random::SplitMix64;

use super::{ProbeContext, ProbeError};

const CHASE: &str = include_str!("../../../../kernels/measure/chase.ptx");

/// Steps of one turn of a chase's unrolled loop: counts of steps are multiples of it.
pub const TURN: u32 = 16;

/// An order of nodes that is a single cycle: from each node to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle(Vec<u32>);

impl Cycle {
    /// A random one, by Sattolo's algorithm ("An algorithm to generate a random cyclic
    /// permutation", 1986); of at least 2 nodes.
    pub fn random(nodes: u32, seed: u64) -> Cycle {
        let mut next: Vec<u32> = (0..nodes.max(2)).collect();
        let mut random = SplitMix64::new(seed);
        for last in (1..next.len()).rev() {
            let other = random.below(last as u64) as usize;
            next.swap(last, other);
        }
        Cycle(next)
    }

    /// The order that these successors make.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] if it is not one cycle through all nodes: a chase would then stay in
    /// a part of them, and perhaps in a nearer memory.
    pub fn of(next: Vec<u32>) -> Result<Cycle, ProbeError> {
        let (mut at, mut steps) = (0u32, 0usize);
        loop {
            let Some(&to) = next.get(at as usize) else {
                return Err(ProbeError::Wrong(format!("a chase leaves its nodes at {at}")));
            };
            (at, steps) = (to, steps + 1);
            if at == 0 || steps > next.len() {
                break;
            }
        }
        if steps == next.len() {
            return Ok(Cycle(next));
        }
        Err(ProbeError::Wrong(format!(
            "a chase over {} nodes comes back after {steps} steps: it is no single cycle",
            next.len()
        )))
    }

    /// Nodes.
    pub fn nodes(&self) -> u32 {
        self.0.len() as u32
    }

    /// The node that a chase reaches from another in so many steps.
    pub fn after(&self, from: u32, steps: u64) -> u32 {
        let steps = steps % self.0.len() as u64;
        (0..steps).fold(from, |at, _| self.0.get(at as usize).copied().unwrap_or(0))
    }

    /// The successor of each node, as 32-bit words.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|next| next.to_le_bytes()).collect()
    }
}

/// What a stretch of a chase took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stretch {
    /// Cycles of the multiprocessor a step.
    pub cycles: f64,
    /// Nanoseconds a step.
    pub ns: f64,
}

impl Stretch {
    /// Of a kernel's three words, over so many steps.
    pub(super) fn of(words: [u64; 3], steps: u32) -> Stretch {
        let steps = f64::from(steps.max(1));
        Stretch { cycles: words[1] as f64 / steps, ns: words[2] as f64 / steps }
    }
}

/// Which loads a chase is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Loads that the L1 cache may answer.
    L1,
    /// Loads that pass the L1 cache by.
    L2,
}

/// The chase kernels, loaded, and a place for what they say.
#[derive(Clone, Copy, Debug)]
pub struct Chases {
    module: ModuleId,
    out: BufferId,
}

/// A cycle laid out in memory, and where the chase through it is.
#[derive(Debug)]
pub struct Chase {
    kernels: Chases,
    buffer: BufferId,
    place: Vec<u64>,
    cycle: Cycle,
    at: u32,
}

impl Chases {
    /// Loads them.
    ///
    /// # Errors
    /// The device's refusal.
    pub fn new(context: &mut ProbeContext<'_>) -> Result<Chases, ProbeError> {
        let module = context.load("chase.ptx", CHASE)?;
        let out = context.device.allocate(&Allocation::new(3 * 8))?;
        Ok(Chases { module, out })
    }

    /// Lays a cycle out in a buffer, node i at byte `place[i]`, a multiple of 8.
    ///
    /// # Errors
    /// The device's; [`ProbeError::Wrong`] if there is not one place for each node.
    pub fn lay(
        &self,
        device: &mut dyn Device,
        buffer: BufferId,
        place: Vec<u64>,
        cycle: Cycle,
    ) -> Result<Chase, ProbeError> {
        if place.len() != cycle.0.len() {
            return Err(ProbeError::Wrong(
                "a chase has another number of places than nodes".into(),
            ));
        }
        let bytes: Vec<u8> = place.iter().flat_map(|place| place.to_le_bytes()).collect();
        let places = device.allocate_bare(bytes.len() as u64)?;
        device.write(places, 0, &bytes)?;
        let order = cycle.bytes();
        let next = device.allocate_bare(order.len() as u64)?;
        device.write(next, 0, &order)?;
        let nodes = cycle.nodes();
        let launch = Launch {
            grid: [nodes.div_ceil(256).min(1024), 1, 1],
            block: [256, 1, 1],
            arguments: vec![
                Argument::Buffer(buffer),
                Argument::Buffer(places),
                Argument::Buffer(next),
                Argument::u32(nodes),
            ],
            ..Launch::new(self.module, "lay_chase")
        };
        device.launch(StreamId::DEFAULT, &launch)?;
        device.synchronize()?;
        device.free(places)?;
        device.free(next)?;
        Ok(Chase { kernels: *self, buffer, place, cycle, at: 0 })
    }

    /// Chases through a block's shared memory, `warm` steps and then `steps` timed ones.
    ///
    /// # Errors
    /// The device's; [`ProbeError::Wrong`] if the chase ended where it should not.
    pub fn shared(
        &self,
        device: &mut dyn Device,
        cycle: &Cycle,
        warm: u32,
        steps: u32,
    ) -> Result<Stretch, ProbeError> {
        let order = cycle.bytes();
        let next = device.allocate_bare(order.len() as u64)?;
        device.write(next, 0, &order)?;
        let launch = Launch {
            shared_bytes: order.len() as u32,
            arguments: vec![
                Argument::Buffer(next),
                Argument::u32(cycle.nodes()),
                Argument::u32(warm),
                Argument::u32(steps),
                Argument::Buffer(self.out),
            ],
            ..Launch::new(self.module, "chase_shared")
        };
        device.launch(StreamId::DEFAULT, &launch)?;
        let words = self.words(device)?;
        device.free(next)?;
        check_end(words[0], u64::from(cycle.after(0, u64::from(warm) + u64::from(steps))))?;
        Ok(Stretch::of(words, steps))
    }

    fn words(&self, device: &mut dyn Device) -> Result<[u64; 3], ProbeError> {
        read_words(device, self.out)
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// The device's.
    pub fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        device.free(self.out)?;
        Ok(device.unload(self.module)?)
    }
}

impl Chase {
    /// Nodes.
    pub fn nodes(&self) -> u32 {
        self.cycle.nodes()
    }

    /// Goes on from where the chase is: `warm` steps and then `steps` timed ones, both rounded up
    /// to whole turns.
    ///
    /// # Errors
    /// The device's; [`ProbeError::Wrong`] if the chase ended where it should not.
    pub fn go(
        &mut self,
        device: &mut dyn Device,
        level: Level,
        warm: u32,
        steps: u32,
    ) -> Result<Stretch, ProbeError> {
        let symbol = match level {
            Level::L1 => "chase_l1",
            Level::L2 => "chase_l2",
        };
        let [warm, steps] = [warm, steps].map(whole_turns);
        let words = self.launch(device, symbol, [warm, steps], None)?;
        self.arrive(device, words[0], u64::from(warm) + u64::from(steps))?;
        Ok(Stretch::of(words, steps))
    }

    /// Goes on as [`Chase::go`] past the L1 cache, with each timed step's own cycles, which hold
    /// what reading the clock takes too.
    ///
    /// # Errors
    /// As [`Chase::go`].
    pub fn each(
        &mut self,
        device: &mut dyn Device,
        warm: u32,
        steps: u32,
    ) -> Result<Vec<u32>, ProbeError> {
        let (warm, bytes) = (whole_turns(warm), u64::from(steps) * 4);
        let cycles = device.allocate_bare(bytes)?;
        let words = self.launch(device, "chase_each", [warm, steps], Some(cycles))?;
        let mut found = vec![0; bytes as usize];
        device.read(cycles, 0, &mut found)?;
        device.free(cycles)?;
        self.arrive(device, words[0], u64::from(warm) + u64::from(steps))?;
        Ok(found.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    fn launch(
        &self,
        device: &mut dyn Device,
        symbol: &str,
        steps: [u32; 2],
        more: Option<BufferId>,
    ) -> Result<[u64; 3], ProbeError> {
        let place = self.place_of(self.at);
        let mut arguments = vec![
            Argument::BufferOffset(self.buffer, place),
            Argument::u32(steps[0]),
            Argument::u32(steps[1]),
            Argument::Buffer(self.kernels.out),
        ];
        arguments.extend(more.map(Argument::Buffer));
        let launch = Launch { arguments, ..Launch::new(self.kernels.module, symbol) };
        device.launch(StreamId::DEFAULT, &launch)?;
        self.kernels.words(device)
    }

    fn place_of(&self, node: u32) -> u64 {
        self.place.get(node as usize).copied().unwrap_or(0)
    }

    /// Moves on by so many steps, to where the kernel says that it is too.
    fn arrive(&mut self, device: &dyn Device, end: u64, steps: u64) -> Result<(), ProbeError> {
        self.at = self.cycle.after(self.at, steps);
        check_end(end, device.address(self.buffer)? + self.place_of(self.at))
    }
}

fn whole_turns(steps: u32) -> u32 {
    steps.next_multiple_of(TURN)
}

/// Refuses a chase that ended elsewhere than its cycle says.
pub(super) fn check_end(end: u64, expected: u64) -> Result<(), ProbeError> {
    if end == expected {
        return Ok(());
    }
    let text = format!("a chase ended at {end:#x} and not {expected:#x}: it left its cycle");
    Err(ProbeError::Wrong(text))
}

/// The three words that a chase leaves.
pub(super) fn read_words(
    device: &mut dyn Device,
    buffer: BufferId,
) -> Result<[u64; 3], ProbeError> {
    let mut bytes = [0; 24];
    device.read(buffer, 0, &mut bytes)?;
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_cycle_is_a_single_one_and_another_for_another_seed() {
        for nodes in [2, 3, 16, 1000] {
            let cycle = Cycle::random(nodes, 5);
            assert!(Cycle::of(cycle.0.clone()).is_ok(), "{nodes} nodes");
            assert_eq!(cycle.after(0, u64::from(nodes)), 0);
        }
        assert_ne!(Cycle::random(64, 1), Cycle::random(64, 2));
    }

    #[test]
    fn an_order_that_is_no_single_cycle_is_refused() {
        for next in [vec![1, 0, 3, 2], vec![0, 2, 1], vec![1, 2, 3, 1], vec![1, 9], Vec::new()] {
            let refused = Cycle::of(next.clone());
            assert!(matches!(refused, Err(ProbeError::Wrong(_))), "{next:?}: {refused:?}");
        }
        assert!(Cycle::of(vec![2, 0, 1]).is_ok());
    }
}
