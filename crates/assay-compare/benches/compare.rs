//! How fast the CPU compares, in bytes of both arrays a second, on one core.

use assay_compare::{Options, Tensor, compare};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::Tolerance;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const ELEMENTS: usize = 1 << 22;

/// Values, and the same off by a few ulp.
fn pair(format: Format) -> (Tensor, Tensor) {
    let mut random = SplitMix64::new(5);
    let values: Vec<f64> = (0..ELEMENTS).map(|_| random.normal()).collect();
    let one = format.encode_slice(&values);
    let mut other = one.clone();
    for element in other.chunks_mut(format.bits() as usize / 8) {
        element[0] ^= random.below(4) as u8;
    }
    let tensor = |bytes| Tensor::new(format, &[ELEMENTS as u64], bytes).expect("a tensor");
    (tensor(one), tensor(other))
}

fn speed(criterion: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let mut group = criterion.benchmark_group("compare");
    for format in [Format::F32, Format::F16, Format::Bf16, Format::F64] {
        let (one, other) = pair(format);
        let options = Options { tolerance: Tolerance::new(1e-2, 1e-2), ..Options::default() };
        group.throughput(Throughput::Bytes(2 * one.bytes().len() as u64));
        group.sample_size(10).bench_function(format.name(), |bencher| {
            bencher.iter(|| pool.install(|| compare(&one.view(), &other.view(), &options)));
        });
    }
}

criterion_group!(benches, speed);
criterion_main!(benches);
