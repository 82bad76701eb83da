//! The entries of arithmetic: fused multiply-add, and products on tensor cores.

use assay_device::ModuleId;
use assay_record::Entry;

use super::fma::{Orbits, PIPES, Pipe};
use super::matrix::{Density, Element};
use super::products::{Bench, PAIRS, Products, Shape};
use super::rate::{Rate, calibrate};
use super::{Probe, ProbeContext, ProbeError, Quantity, silicon};

pub(super) const FMA: &str = include_str!("../../../../../kernels/measure/fma.ptx");
pub(super) const MMA: &str = include_str!("../../../../../kernels/measure/mma.ptx");
const MMA_FP8: &str = include_str!("../../../../../kernels/measure/mma_fp8.sm_89.ptx");
const MMA_F64: &str = include_str!("../../../../../kernels/measure/mma_f64.sm_90.ptx");
const WGMMA: &str = include_str!("../../../../../kernels/measure/wgmma.sm_90a.ptx");
const WGMMA_SPARSE: &str = include_str!("../../../../../kernels/measure/wgmma_sparse.sm_90a.ptx");

/// Steps of a kernel's loop at most.
const MOST_ROUNDS: u32 = 1 << 20;

/// Orbits followed over all steps of a timed run.
const FOLLOWED: usize = 64;

/// The quantities of a rate: per second of the device, per cycle of a multiprocessor.
macro_rules! rates {
    ($method:expr, $($name:literal $operation:literal),*) => {
        &[$(
            Quantity { name: $name, unit: concat!($operation, "/s"), method: $method },
            Quantity {
                name: concat!($name, "_per_clock"),
                unit: concat!($operation, "/clk/SM"),
                method: $method,
            },
        )*]
    };
}

const FMA_METHOD: &str = "8 chaotic orbits x -> x*x + c in registers of every thread, each step \
     one fused multiply-add (two operations); ends of orbits compared with the host's; stamps of \
     every block on its own clock";
const MMA_METHOD: &str = "mma.sync from registers, tiles of fragments of random integers; every \
     accumulator of every thread read back and exact; a 2:4 sparse product counts as the dense \
     one; the best of a few numbers of warps";
const WGMMA_METHOD: &str = "wgmma of 64 x 256, B in shared memory, random integers; every \
     accumulator of every thread read back and exact; a 2:4 sparse product counts as the dense \
     one; the best of A in shared memory and in registers";

/// Fused multiply-add outside tensor cores.
pub(super) const FMA_PROBE: Probe = Probe {
    title: "fused multiply-add",
    quantities: rates!(
        FMA_METHOD,
        "fma_f64" "FLOP", "fma_f32" "FLOP", "fma_f16" "FLOP", "fma_bf16" "FLOP"
    ),
    run: |context| {
        let module = context.load("fma.ptx", FMA);
        let quantities = FMA_PROBE.quantities.chunks_exact(2).zip(PIPES);
        let wanted: Vec<_> = quantities.filter(|(pair, _)| any_wanted(context, pair)).collect();
        let pairs = wanted.into_iter().flat_map(|(quantities, pipe)| {
            context
                .attempt_all(quantities, |context| fma(context, module.clone()?, pipe, quantities))
        });
        pairs.collect()
    },
};

/// `mma.sync`.
pub(super) const MMA_PROBE: Probe = Probe {
    title: "mma.sync",
    quantities: rates!(
        MMA_METHOD,
        "mma_f16" "FLOP", "mma_f16_sparse" "FLOP", "mma_bf16" "FLOP", "mma_bf16_sparse" "FLOP",
        "mma_tf32" "FLOP", "mma_tf32_sparse" "FLOP", "mma_s8" "OP", "mma_s8_sparse" "OP",
        "mma_e4m3" "FLOP", "mma_e4m3_sparse" "FLOP", "mma_f64" "FLOP"
    ),
    run: |context| {
        let mut modules = Modules::default();
        tensor(context, MMA_PROBE.quantities, |context, kind| {
            (modules.load(context, false, kind), warp_variants(kind))
        })
    },
};

/// `wgmma`.
pub(super) const WGMMA_PROBE: Probe = Probe {
    title: "wgmma",
    quantities: rates!(
        WGMMA_METHOD,
        "wgmma_f16" "FLOP", "wgmma_f16_sparse" "FLOP", "wgmma_bf16" "FLOP",
        "wgmma_bf16_sparse" "FLOP", "wgmma_tf32" "FLOP", "wgmma_tf32_sparse" "FLOP",
        "wgmma_s8" "OP", "wgmma_s8_sparse" "OP", "wgmma_e4m3" "FLOP", "wgmma_e4m3_sparse" "FLOP"
    ),
    run: |context| {
        let mut modules = Modules::default();
        tensor(context, WGMMA_PROBE.quantities, |context, kind| {
            (modules.load(context, true, kind), warpgroup_variants(kind))
        })
    },
};

/// A kind of product, before how it is launched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    pub element: Element,
    pub density: Density,
}

/// A module's text with only those kernels whose names end in `ending`.
fn kernels(text: &str, ending: &str) -> String {
    const ENTRY: &str = ".visible .entry ";
    let mut parts = text.split(ENTRY);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts.filter(|part| part.split('(').next().unwrap_or_default().ends_with(ending)) {
        kept.push_str(ENTRY);
        kept.push_str(part);
    }
    kept
}

/// Whether one of the quantities is asked for.
fn any_wanted(context: &ProbeContext<'_>, quantities: &[Quantity]) -> bool {
    quantities.iter().any(|quantity| context.wants(quantity))
}

type Loaded = Result<ModuleId, ProbeError>;

/// The modules of products, each loaded when it is first asked for.
#[derive(Default)]
pub(super) struct Modules(Vec<(&'static str, Loaded)>);

impl Modules {
    /// The module with the kernels of a kind, by `wgmma` where it is to be wide.
    pub(super) fn load(
        &mut self,
        context: &mut ProbeContext<'_>,
        wide: bool,
        kind: Kind,
    ) -> Loaded {
        let (name, text) = match (wide, kind.element, kind.density) {
            (false, Element::F64, _) => ("mma_f64.sm_90.ptx", MMA_F64),
            (false, Element::E4m3, _) => ("mma_fp8.sm_89.ptx", MMA_FP8),
            (false, ..) => ("mma.ptx", MMA),
            (true, _, Density::Dense) => ("wgmma.sm_90a.ptx", WGMMA),
            (true, _, Density::Sparse) => ("wgmma_sparse.sm_90a.ptx", WGMMA_SPARSE),
        };
        if let Some((_, loaded)) = self.0.iter().find(|(known, _)| *known == name) {
            return loaded.clone();
        }
        let loaded = match (wide, context.architecture()) {
            (true, architecture) if architecture != 90 => {
                Err(ProbeError::Unsupported("only sm_90a has wgmma".to_owned()))
            }
            (false, ..90) if text == MMA_F64 => {
                Err(ProbeError::Unsupported("this shape of f64 needs sm_90".to_owned()))
            }
            (false, ..89) if text == MMA_FP8 => {
                Err(ProbeError::Unsupported("mma.sync of e4m3 needs sm_89".to_owned()))
            }
            // A quick run asks for the first variant only, and loading is compiling.
            (true, _) if context.quick => context.load(name, &kernels(text, "_registers")),
            _ => context.load(name, text),
        };
        self.0.push((name, loaded.clone()));
        loaded
    }
}

/// Every kind of product, in the order of the quantities; with f64, which is only dense, last.
pub(super) fn kinds(with_f64: bool) -> impl Iterator<Item = Kind> {
    let narrow = Element::NARROW.into_iter().flat_map(|element| {
        [Density::Dense, Density::Sparse].map(|density| Kind { element, density })
    });
    let wide = Kind { element: Element::F64, density: Density::Dense };
    narrow.chain(with_f64.then_some(wide))
}

/// The entries of every kind of product, in the order of the quantities.
fn tensor(
    context: &mut ProbeContext<'_>,
    quantities: &[Quantity],
    mut how: impl FnMut(&mut ProbeContext<'_>, Kind) -> (Loaded, Vec<Products>),
) -> Vec<Entry> {
    let kinds = kinds(true);
    let mut entries = Vec::new();
    for (kind, quantities) in kinds.zip(quantities.chunks_exact(2)) {
        if !any_wanted(context, quantities) {
            continue;
        }
        let (module, variants) = how(context, kind);
        entries.extend(context.attempt_all(quantities, |context| {
            let limit = silicon::tensor(context.architecture(), kind.element, kind.density);
            let rate = best_of(context, module?, &variants)?;
            let wide =
                matches!(variants.first(), Some(Products { shape: Shape::Warpgroup { .. }, .. }));
            let doubt = if wide { None } else { doubt(context.architecture(), kind) };
            Ok(entries_of(context, quantities, &rate, (limit, doubt)))
        }));
    }
    entries
}

/// The kernel that draws the most power: `wgmma` of bf16, on devices that have it.
pub(super) fn heaviest(context: &mut ProbeContext<'_>) -> Result<Bench, ProbeError> {
    let module = context.load("wgmma.sm_90a.ptx", &kernels(WGMMA, "_bf16_registers"))?;
    let shape = Shape::Warpgroup { a_in_registers: true };
    let (element, density) = (Element::Bf16, Density::Dense);
    let products = Products { element, density, shape, warps: 8 };
    let (blocks, seed) = (context.multiprocessors(), context.seed);
    Bench::new(context.device, module, products, blocks, seed)
}

/// Rows and columns of fragments of a warp's tile: fewer where the compiler makes products of e4m3
/// from conversions, which need registers of their own.
pub(super) fn warp_tile(kind: Kind) -> (usize, usize) {
    match (kind.element, kind.density) {
        (Element::E4m3, Density::Dense) => (2, 4),
        (Element::E4m3, Density::Sparse) => (2, 2),
        (Element::F64, _) => (1, 2),
        _ => (4, 4),
    }
}

/// How far to trust a figure that is right, and why no further.
type Doubt = (f64, &'static str);

/// What makes a rate of `mma.sync` say less than the device can do, beyond its distance from the
/// limit.
fn doubt(architecture: u32, kind: Kind) -> Option<Doubt> {
    let emulated = architecture == 90 && kind.element == Element::E4m3;
    match (emulated, warp_tile(kind)) {
        (true, (2, 2)) => Some((
            0.5,
            "sm_90 has no such instruction: the compiler makes it of conversions and products of \
             f16, whose registers leave room for tiles of 2 x 2 fragments only, so that it says \
             more of registers than of tensor cores",
        )),
        (true, _) => Some((
            0.7,
            "sm_90 has no such instruction: the compiler makes it of conversions and products of \
             f16",
        )),
        (false, (rows, columns)) if kind.element == Element::E4m3 && rows * columns < 16 => {
            Some((0.8, "tiles of a warp are smaller than those of other types"))
        }
        _ => None,
    }
}

fn warp_variants(kind: Kind) -> Vec<Products> {
    let Kind { element, density } = kind;
    let (rows, columns) = warp_tile(kind);
    let shape = Shape::Warp { rows, columns };
    [16, 8, 4].map(|warps| Products { element, density, shape, warps }).into()
}

fn warpgroup_variants(kind: Kind) -> Vec<Products> {
    let Kind { element, density } = kind;
    let of = |a_in_registers| {
        let shape = Shape::Warpgroup { a_in_registers };
        Products { element, density, shape, warps: 8 }
    };
    vec![of(true), of(false)]
}

/// The rate of the best variant, all of them checked; of the first alone in a quick run.
fn best_of(
    context: &mut ProbeContext<'_>,
    module: ModuleId,
    variants: &[Products],
) -> Result<Rate, ProbeError> {
    let tried = if context.quick || context.tiny { 1 } else { variants.len() };
    let mut best: Option<Rate> = None;
    for products in variants.iter().take(tried) {
        let rate = rate_of(context, module, *products)?;
        let better = |best: &Rate| rate.clock().value > best.clock().value;
        if best.as_ref().is_none_or(better) {
            best = Some(rate);
        }
    }
    best.ok_or_else(|| ProbeError::Wrong("there is no variant to try".to_owned()))
}

fn rate_of(
    context: &mut ProbeContext<'_>,
    module: ModuleId,
    products: Products,
) -> Result<Rate, ProbeError> {
    let (blocks, seed) = (context.multiprocessors(), context.seed);
    let (samples, target_ns) = effort(context);
    let pairs = if context.tiny { 2 } else { PAIRS };
    let device = &mut *context.device;
    let bench = Bench::new(device, module, products, blocks, seed)?;
    let run = |rounds| bench.run(device, rounds, pairs);
    let rounds = calibrate(target_ns, MOST_ROUNDS, run)?;
    let operations = products.operations(pairs) * f64::from(rounds) * f64::from(blocks);
    let mut rate = Rate::default();
    for sample in 0..samples {
        if sample + 1 == samples {
            bench.forget(device)?;
        }
        rate.add(&bench.run(device, rounds, pairs)?, operations, blocks)?;
    }
    bench.verify(device, rounds, pairs)?;
    bench.free(device)?;
    Ok(rate)
}

fn fma(
    context: &mut ProbeContext<'_>,
    module: ModuleId,
    pipe: Pipe,
    quantities: &[Quantity],
) -> Result<Vec<Entry>, ProbeError> {
    let (multiprocessors, seed) = (context.multiprocessors(), context.seed);
    let (samples, target_ns) = effort(context);
    let threads = if context.tiny { 64 } else { 1024 };
    let device = &mut *context.device;
    let orbits = Orbits::new(device, module, pipe, (multiprocessors, threads), seed)?;
    let rounds = calibrate(target_ns, MOST_ROUNDS, |rounds| orbits.run(device, rounds))?;
    let mut rate = Rate::default();
    for _ in 0..samples {
        let spans = orbits.run(device, rounds)?;
        rate.add(&spans, orbits.operations(rounds), multiprocessors)?;
    }
    orbits.verify(device, rounds, FOLLOWED)?;
    // All of them, over a few steps.
    orbits.run(device, 2)?;
    orbits.verify(device, 2, usize::MAX)?;
    orbits.free(device)?;
    let limit = silicon::fma(context.architecture(), pipe.format);
    Ok(entries_of(context, quantities, &rate, (limit, None)))
}

/// Samples of a rate, and how long each is to take in nanoseconds.
fn effort(context: &ProbeContext<'_>) -> (u32, f64) {
    match (context.tiny, context.quick) {
        (true, _) => (1, 0.0),
        (_, true) => (5, 1.0e6),
        _ => (15, 2.0e6),
    }
}

/// Both entries of a rate, held against the silicon.
fn entries_of(
    context: &ProbeContext<'_>,
    quantities: &[Quantity],
    rate: &Rate,
    (per_clock, doubt): (Option<f64>, Option<Doubt>),
) -> Vec<Entry> {
    let multiprocessors = f64::from(context.multiprocessors());
    let scale = [multiprocessors * rate.clock_mhz() * 1e6, 1.0];
    let figures = [rate.second(), rate.clock()];
    let entry = |((quantity, figure), scale): ((&Quantity, _), f64)| {
        let limit = per_clock.map(|limit| limit * scale);
        let why = "every result was read back and is right; the clock was measured in the kernel";
        let (confidence, why) = match doubt {
            Some((confidence, doubt)) => (confidence, format!("{why}; {doubt}")),
            None => (0.95, why.to_owned()),
        };
        let entry = quantity.measured(figure).trusted(confidence, why);
        entry.within(limit, silicon::SOURCE).best_of_ways()
    };
    quantities.iter().zip(figures).zip(scale).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_that_the_compiler_makes_of_others_are_trusted_less_and_say_why() {
        let kind = |element, density| Kind { element, density };
        let of = |architecture, element, density| doubt(architecture, kind(element, density));
        let sparse = of(90, Element::E4m3, Density::Sparse).expect("a doubt");
        assert!(sparse.0 <= 0.5 && sparse.1.contains("2 x 2"), "{sparse:?}");
        let dense = of(90, Element::E4m3, Density::Dense).expect("a doubt");
        assert!(dense.0 <= 0.7 && dense.1.contains("no such instruction"), "{dense:?}");
        assert!(of(89, Element::E4m3, Density::Dense).is_some_and(|doubt| doubt.0 > 0.7));
        assert_eq!(of(90, Element::F16, Density::Sparse), None, "the control");
    }
}
