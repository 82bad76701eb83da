//! A 4096x4096 GEMV in the value and error domains, against a plain `f64` loop in the same run.
//!
//! The plain loop is what one would write first: a chain of multiplies and adds per row. Both
//! domains have to take at most 4 times its time, on one thread and on all.

use std::hint::black_box;
use std::time::{Duration, Instant};

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{
    Arithmetic, Dims, Evaluation, Formula, Inputs, Program, Signature, Tensor, dims,
};
use criterion::{Criterion, criterion_group, criterion_main};
use rayon::prelude::*;

const SIZE: usize = 4096;

struct Gemv {
    program: Program,
    dims: Dims,
    inputs: Inputs,
    arithmetic: Arithmetic,
}

impl Gemv {
    fn new() -> Self {
        let tensor = |name, shape: &[&str]| Tensor::new(name, Format::F32, shape).unwrap();
        let signature = Signature {
            dims: vec!["rows".into(), "cols".into()],
            inputs: vec![tensor("w", &["rows", "cols"]), tensor("x", &["cols"])],
            outputs: vec![tensor("y", &["rows"])],
            ..Signature::default()
        };
        let mut random = SplitMix64::new(1);
        let mut draw = |count: usize| -> Vec<f64> {
            (0..count).map(|_| f64::from(random.normal() as f32)).collect()
        };
        Self {
            program: Formula::family("dense.gemv").unwrap().check(&signature).unwrap(),
            dims: dims([("rows", SIZE as i64), ("cols", SIZE as i64)]),
            inputs: Inputs::new([("w", draw(SIZE * SIZE)), ("x", draw(SIZE))]),
            arithmetic: Arithmetic::default(),
        }
    }

    fn evaluation(&self) -> Evaluation<'_> {
        Evaluation::new(&self.dims, &self.inputs, &self.arithmetic)
    }

    fn value(&self) -> f64 {
        self.program.value(&self.evaluation()).unwrap()["y"][SIZE - 1]
    }

    fn error(&self) -> f64 {
        self.program.error(&self.evaluation()).unwrap()["y"].error[SIZE - 1]
    }

    fn row(&self, row: &[f64]) -> f64 {
        row.iter().zip(&self.inputs.tensors["x"]).fold(0.0, |sum, (w, x)| sum + w * x)
    }

    fn plain(&self) -> f64 {
        let rows = self.inputs.tensors["w"].chunks(SIZE);
        rows.map(|row| self.row(row)).collect::<Vec<f64>>()[SIZE - 1]
    }

    fn plain_parallel(&self) -> f64 {
        let rows = self.inputs.tensors["w"].par_chunks(SIZE);
        rows.map(|row| self.row(row)).collect::<Vec<f64>>()[SIZE - 1]
    }
}

/// The median of several runs of each, taken in turn so that a slow spell hits all.
fn medians<const N: usize>(runs: [&(dyn Fn() -> f64 + Sync); N]) -> [Duration; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..15 {
        for (run, times) in runs.iter().zip(&mut times) {
            let start = Instant::now();
            black_box(run());
            times.push(start.elapsed());
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}

#[expect(clippy::print_stderr, reason = "a benchmark reports what it measured")]
fn report(threads: &str, [plain, value, error]: [Duration; 3]) {
    let ratio = |time: Duration| time.as_secs_f64() / plain.as_secs_f64();
    eprintln!(
        "{threads}: plain loop {plain:.1?}, value {value:.1?} ({:.2}x), error {error:.1?} ({:.2}x)",
        ratio(value),
        ratio(error),
    );
    assert!(ratio(value) <= 4.0 && ratio(error) <= 4.0, "a domain takes over 4 times the loop");
}

fn gemv(criterion: &mut Criterion) {
    let gemv = Gemv::new();
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (value, error) = (|| gemv.value(), || gemv.error());
    let one = single.install(|| medians([&|| gemv.plain(), &value, &error]));
    report("one thread", one);
    report("all threads", medians([&|| gemv.plain_parallel(), &value, &error]));

    let mut group = criterion.benchmark_group("gemv_4096");
    group.sample_size(10);
    group.bench_function("plain", |bench| bench.iter(|| gemv.plain()));
    group.bench_function("value_one_thread", |bench| single.install(|| bench.iter(value)));
    group.bench_function("error_one_thread", |bench| single.install(|| bench.iter(error)));
    group.bench_function("value", |bench| bench.iter(value));
    group.bench_function("error", |bench| bench.iter(error));
    group.finish();
}

criterion_group!(benches, gemv);
criterion_main!(benches);
