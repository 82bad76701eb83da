//! Occupancy tables: how many warps of a kernel a multiprocessor holds, as the driver counts and
//! as the rule counts.

use assay_device::{DeviceFacts, KernelFacts, ModuleId, MultiprocessorFacts};
use assay_record::{Entry, Figure};

use super::{Probe, ProbeContext, ProbeError, Quantity, rates};

const THREADS_METHOD: &str = "the driver's count of resident warps for blocks of 32 to 1024 \
     threads, held against the rule of registers, warps and blocks; the value is the most, the \
     curve is over the threads of a block";
const SHARED_METHOD: &str = "the driver's count of resident warps of blocks of 128 threads with \
     more and more dynamic shared memory, up to the most that a kernel may opt in to, held against \
     the rule; the value is the most, the curve is over bytes";

/// Steps in which warps are given registers and blocks shared memory, and the partitions of a
/// multiprocessor: the same on every architecture from `sm_80` on.
const REGISTER_STEP: u32 = 256;
const SHARED_STEP: u32 = 128;
const PARTITIONS: u32 = 4;

/// The driver's answers beside the rule's.
pub(super) const OCCUPANCY_PROBE: Probe = Probe {
    title: "occupancy",
    quantities: &[
        Quantity { name: "occupancy_few_registers", unit: "warps", method: THREADS_METHOD },
        Quantity { name: "occupancy_many_registers", unit: "warps", method: THREADS_METHOD },
        Quantity { name: "occupancy_shared", unit: "warps", method: SHARED_METHOD },
    ],
    run: |context| {
        let [few, many, shared] = OCCUPANCY_PROBE.quantities else { return Vec::new() };
        let fma = context.load("fma.ptx", rates::FMA);
        let mma = context.load("mma.ptx", rates::MMA);
        let threads: Vec<Use> = (1..=32).map(|warps| Use { warps, shared_bytes: 0 }).collect();
        let kib = steps(context.device.facts());
        let mut table = |quantity, module: &Result<ModuleId, ProbeError>, symbol, uses: &[Use]| {
            context.attempt(quantity, |context| {
                table(context, quantity, (module.clone()?, symbol), uses)
            })
        };
        vec![
            table(few, &fma, "fma_f32", &threads),
            table(many, &mma, "mma_f16_4x4", &threads),
            table(shared, &fma, "fma_f32", &kib),
        ]
    },
};

/// Blocks of 128 threads with shared memory in steps of 2 KiB, the last one with all that there is.
/// The device opts in to what lies beyond the portable 48 KiB.
fn steps(facts: &DeviceFacts) -> Vec<Use> {
    const STEP: u32 = 2048;
    let most = facts.shared_per_block_opt_in.max(facts.shared_per_block);
    let whole = (0..=most / STEP).map(|step| STEP * step);
    let last = (!most.is_multiple_of(STEP)).then_some(most);
    whole.chain(last).map(|shared_bytes| Use { warps: 4, shared_bytes }).collect()
}

/// A block of so many warps with so much dynamic shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Use {
    warps: u32,
    shared_bytes: u32,
}

fn table(
    context: &mut ProbeContext<'_>,
    quantity: &Quantity,
    (module, symbol): (ModuleId, &str),
    uses: &[Use],
) -> Result<Entry, ProbeError> {
    let device = &mut *context.device;
    let none = || ProbeError::Unsupported("the device allots nothing that limits blocks".into());
    let limits = device.facts().multiprocessor.ok_or_else(none)?;
    let kernel = device.kernel_facts(module, symbol)?;
    let mut points = Vec::new();
    let by_shared = uses.iter().any(|each| each.shared_bytes > 0);
    let facts = device.facts();
    let most = facts.shared_per_block_opt_in.max(facts.shared_per_block);
    let fits = |each: &&Use| {
        32 * each.warps <= kernel.max_threads && kernel.static_shared + each.shared_bytes <= most
    };
    for each in uses.iter().filter(fits) {
        let found = device.occupancy(module, symbol, 32 * each.warps, each.shared_bytes)?;
        let found = found.ok_or_else(none)?;
        let ours = rule(&limits, &kernel, *each);
        if found != ours {
            return Err(ProbeError::Wrong(format!(
                "{symbol} ({} registers) in blocks of {} warps with {} bytes: the driver holds \
                 {found} blocks, the rule {ours}",
                kernel.registers, each.warps, each.shared_bytes
            )));
        }
        let x = if by_shared { each.shared_bytes } else { 32 * each.warps };
        points.push((f64::from(x), f64::from(found * each.warps)));
    }
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let samples = points.len() as u64;
    let figure = Figure { value: most, samples, p5: most, p95: most, sm_clock_mhz: None };
    let why = "counted, not measured: the driver and the rule agree on every row";
    let unit = if by_shared { "bytes" } else { "threads" };
    Ok(quantity.measured(figure).trusted(1.0, why).along(unit, points))
}

/// Blocks that a multiprocessor holds at a time.
fn rule(limits: &MultiprocessorFacts, kernel: &KernelFacts, each: Use) -> u32 {
    let per_warp = (32 * kernel.registers).next_multiple_of(REGISTER_STEP);
    let partition = limits.registers / PARTITIONS;
    let by_registers = match partition.checked_div(per_warp) {
        Some(warps) => warps * PARTITIONS / each.warps,
        None => u32::MAX,
    };
    let shared = kernel.static_shared + each.shared_bytes + limits.reserved_shared_bytes;
    let by_shared = match shared.next_multiple_of(SHARED_STEP) {
        0 => u32::MAX,
        bytes => limits.shared_bytes / bytes,
    };
    let by_warps = limits.threads / 32 / each.warps;
    by_registers.min(by_shared).min(by_warps).min(limits.blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> MultiprocessorFacts {
        MultiprocessorFacts {
            threads: 2048,
            blocks: 32,
            registers: 65536,
            shared_bytes: 228 << 10,
            reserved_shared_bytes: 1024,
        }
    }

    #[test]
    fn each_resource_can_be_the_one_that_runs_out() {
        let kernel = |registers, static_shared| KernelFacts {
            registers,
            static_shared,
            max_threads: 1024,
            ..KernelFacts::default()
        };
        let each = |warps, shared_bytes| Use { warps, shared_bytes };
        assert_eq!(rule(&h200(), &kernel(32, 0), each(32, 0)), 2, "warps");
        assert_eq!(rule(&h200(), &kernel(16, 0), each(1, 0)), 32, "blocks");
        assert_eq!(rule(&h200(), &kernel(110, 0), each(8, 0)), 2, "registers");
        assert_eq!(rule(&h200(), &kernel(32, 0), each(4, 48 << 10)), 4, "shared");
        assert_eq!(rule(&h200(), &kernel(255, 0), each(16, 0)), 0, "no block fits");
        // A block's share is its own and the driver's 1 KiB: 114 KiB twice, 228 KiB once.
        assert_eq!(rule(&h200(), &kernel(32, 0), each(4, 113 << 10)), 2, "half of the opt-in");
        assert_eq!(rule(&h200(), &kernel(32, 0), each(4, (113 << 10) + 1)), 1, "one byte more");
        assert_eq!(rule(&h200(), &kernel(32, 0), each(4, 227 << 10)), 1, "all that there is");
    }

    #[test]
    fn the_steps_go_on_to_the_last_byte_that_a_kernel_may_opt_in_to() {
        let device = assay_device::open("emulator:sm_90").expect("the emulator opens");
        let facts = DeviceFacts {
            shared_per_block: 48 << 10,
            shared_per_block_opt_in: 227 << 10,
            ..device.facts().clone()
        };
        let steps = steps(&facts);
        assert_eq!(steps.len(), 115);
        assert_eq!(steps.last().map(|each| each.shared_bytes), Some(227 << 10));
        assert!(steps.windows(2).all(|pair| pair[1].shared_bytes - pair[0].shared_bytes <= 2048));
    }
}
