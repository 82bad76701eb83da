//! Gate 5 on one core: 1,000 launches, each checked on 20 chips from records.
//!
//! The records are of 250 kernels on every CUDA and HIP chip, each launched at four shapes, and of
//! as many Metal pipelines on three. `cargo bench -p assay-limits`.

use std::collections::BTreeMap;

use assay_image::{CudaKernel, HipKernel, Release};
use assay_limits::{
    Chip, Chips, Launch, MetalCompile, MetalPipeline, MetalRecords, RecordSet, Records, Verdict,
    fit_cuda, fit_hip, fit_metal,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const KERNELS: u32 = 250;
const SHAPES: u32 = 4;
const CHIPS: usize = 20;

/// What is checked.
struct Suite {
    chips: Chips,
    records: Records,
    metal: MetalRecords,
    /// Symbol and launch.
    launches: Vec<(String, Launch)>,
}

fn symbol(kernel: u32) -> String {
    format!("kernel_{kernel}")
}

fn cuda(kernel: u32) -> CudaKernel {
    CudaKernel {
        name: symbol(kernel),
        registers: 16 + kernel % 200,
        static_shared_bytes: kernel % 48 * 1024,
        max_threads: Some([256, 1, 1]),
        barriers: kernel % 3,
        parameter_bytes: 40,
        ..CudaKernel::default()
    }
}

fn hip(kernel: u32, wave_size: u32) -> HipKernel {
    HipKernel {
        name: symbol(kernel),
        vgprs: 8 + kernel % 240,
        sgprs: 20,
        static_lds_bytes: kernel % 60 * 1024,
        max_workgroup: 256,
        wave_size,
        workgroup_processor_mode: wave_size == 32,
        ..HipKernel::default()
    }
}

fn suite() -> Suite {
    let release = Release { major: 13, minor: 0, patch: 88 };
    let mut of_cuda = RecordSet::new(release, Vec::new());
    let mut of_hip = RecordSet::new(Release { major: 19, minor: 1, patch: 7 }, Vec::new());
    let mut pipelines = BTreeMap::new();
    let chips = Chips::built_in();
    for kernel in 0..KERNELS {
        let mut pipeline =
            MetalPipeline { threadgroup_bytes: Some(1024), ..MetalPipeline::default() };
        for chip in chips.all() {
            match chip {
                Chip::Cuda(chip) => _ = of_cuda.insert("suite", &chip.name, cuda(kernel)),
                Chip::Hip(chip) => {
                    let wave = if chip.vgprs_wave32.is_some() { 32 } else { 64 };
                    of_hip.insert("suite", &chip.name, hip(kernel, wave));
                }
                Chip::Metal(chip) => {
                    let compile = MetalCompile { max_threads: 512, ..MetalCompile::default() };
                    pipeline.chips.insert(chip.name.clone(), compile);
                }
            }
        }
        pipelines.insert(symbol(kernel), pipeline);
    }
    let launch = |kernel: u32, shape: u32| Launch {
        grid: [u64::from(shape * 1000 + 1), 40_000 + u64::from(kernel) * 120, 1],
        block: [u64::from(64 + shape * 64), 1, 1],
        cluster: [1, 1, 1],
        dynamic_shared_bytes: u64::from(shape) * 16_384,
    };
    let pairs = (0..KERNELS).flat_map(|kernel| (0..SHAPES).map(move |shape| (kernel, shape)));
    Suite {
        chips,
        records: Records { cuda: vec![of_cuda], hip: vec![of_hip] },
        metal: MetalRecords::new("none".to_owned(), pipelines),
        launches: pairs.map(|(kernel, shape)| (symbol(kernel), launch(kernel, shape))).collect(),
    }
}

fn check(suite: &Suite, symbol: &str, launch: &Launch, chip: &Chip) -> Verdict {
    let recorded = "every kernel is recorded on every chip";
    let name = chip.name();
    match chip {
        Chip::Cuda(chip) => {
            let kernel = suite.records.cuda("suite", symbol, name).expect(recorded);
            fit_cuda(chip, kernel, launch).verdict()
        }
        Chip::Hip(chip) => {
            let kernel = suite.records.hip("suite", symbol, name).expect(recorded);
            fit_hip(chip, kernel, launch).verdict()
        }
        Chip::Metal(chip) => {
            let record = suite.metal.get(symbol, name).expect(recorded);
            fit_metal(chip, &record, launch).verdict()
        }
    }
}

/// Checks every launch on every chip; how many fit.
fn run(suite: &Suite) -> usize {
    let chips = &suite.chips.all()[..CHIPS];
    let fits = |(symbol, launch): &(String, Launch)| {
        chips.iter().filter(|chip| check(suite, symbol, launch, chip) == Verdict::Fits).count()
    };
    suite.launches.iter().map(fits).sum()
}

fn benchmark(criterion: &mut Criterion) {
    let made = suite();
    let (fit, all) = (run(&made), made.launches.len() * CHIPS);
    assert!(all == 20_000 && fit > all / 10 && fit < all, "{fit} of {all} fit");
    let mut group = criterion.benchmark_group("limits");
    group.throughput(Throughput::Elements(all as u64));
    group.bench_function("1,000 launches x 20 chips", |bencher| bencher.iter(|| run(&made)));
    let files = made.records.write();
    let read = || {
        let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        Suite { records: Records::read(texts).expect("they were just written"), ..suite() }
    };
    group.sample_size(10);
    group.bench_function("with reading chips and records", |bencher| {
        bencher.iter(|| run(&read()));
    });
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
