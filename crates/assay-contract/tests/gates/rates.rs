//! How many elements of a broken dot of 4,096 terms are beyond their bound: a kernel fails as soon
//! as one is, so rates like these make failing certain.

use std::collections::BTreeMap;

use assay_num::random::SplitMix64;
use assay_num::{Format, Overflow, Rounding};
use assay_reference::{
    Arithmetic, Bounded, Evaluation, Extent, Formula, Inputs, Program, Signature, Tensor, dims,
};

const ROWS: usize = 400;
const TERMS: usize = 4096;
const LANES: usize = 256;

fn program() -> Program {
    let tensor =
        |name: &str, shape: &[&str]| Tensor::new(name, Format::F32, shape).expect("extents parse");
    let signature = Signature {
        dims: vec!["rows".to_owned(), "cols".to_owned()],
        inputs: vec![tensor("a", &["rows", "cols"]), tensor("b", &["rows", "cols"])],
        outputs: vec![tensor("y", &["rows"])],
        scalars: BTreeMap::new(),
    };
    Formula::family("rows.dot").expect("a family").check(&signature).expect("a program")
}

fn bound(inputs: &Inputs) -> Bounded {
    let program = program();
    let name = program.reductions()[0].name.clone();
    // Each lane adds 16 products by fma; then eight levels.
    let depth = BTreeMap::from([(name, Extent::constant((TERMS / LANES + 8) as i64))]);
    let arithmetic = Arithmetic { depth, ..Arithmetic::default() };
    let dims = dims([("rows", ROWS as i64), ("cols", TERMS as i64)]);
    let evaluation = Evaluation::new(&dims, inputs, &arithmetic);
    program.error(&evaluation).expect("an evaluation")["y"].clone()
}

/// A dot by lanes and halves, each sum and product rounded to a format.
fn lanes(a: &[f64], b: &[f64], sums: Format, products: Option<Format>) -> f64 {
    let mut partials = [0f64; LANES];
    for (place, (a, b)) in a.iter().zip(b).enumerate() {
        let product = products.map_or(a * b, |format| format.round(a * b));
        let partial = &mut partials[place % LANES];
        *partial = sums.round(*partial + product);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            partials[lane] = sums.round(partials[lane] + partials[lane + width]);
        }
    }
    partials[0]
}

/// The share of elements beyond their bound, with an fp32 and with a bf16 output.
fn rejected(
    inputs: &Inputs,
    bounded: &Bounded,
    kernel: impl Fn(&[f64], &[f64]) -> f64,
) -> (f64, f64) {
    let (a, b) = (&inputs.tensors["a"], &inputs.tensors["b"]);
    let mut beyond = [0u32; 2];
    for row in 0..ROWS {
        let span = row * TERMS..(row + 1) * TERMS;
        let got = kernel(&a[span.clone()], &b[span]);
        for (count, format) in beyond.iter_mut().zip([Format::F32, Format::Bf16]) {
            let bits = format.encode(got, Rounding::NearestEven, Overflow::Infinity);
            let excess = format.excess(bounded.value[row], bits);
            *count += u32::from(excess > bounded.error[row]);
        }
    }
    let share = |count: u32| f64::from(count) / ROWS as f64;
    (share(beyond[0]), share(beyond[1]))
}

#[test]
fn broken_dots_are_rejected_at_the_rates_the_contract_states() {
    let mut random = SplitMix64::new(11);
    let mut tensor = || (0..ROWS * TERMS).map(|_| f64::from(random.normal() as f32)).collect();
    let inputs = Inputs::new([("a", tensor()), ("b", tensor())]);
    let bounded = bound(&inputs);
    let rates = |kernel: &dyn Fn(&[f64], &[f64]) -> f64| rejected(&inputs, &bounded, kernel);
    let plain = |a: &[f64], b: &[f64]| lanes(a, b, Format::F32, None);
    assert_eq!(rates(&plain), (0.0, 0.0), "a correct dot");

    // The shares of contract.md, of fp32 and of bf16 outputs, less what chance may take.
    let f16 = rates(&|a, b| lanes(a, b, Format::F16, None));
    let bf16 = rates(&|a, b| lanes(a, b, Format::Bf16, None));
    let last = rates(&|a, b| plain(&a[1..], &b[1..]));
    let tile = rates(&|a, b| plain(&a[..TERMS - 256], &b[..TERMS - 256]));
    let products = rates(&|a, b| lanes(a, b, Format::F32, Some(Format::Bf16)));
    let stated = [
        ("f16 accumulation", f16, (0.95, 0.28)),
        ("bf16 accumulation", bf16, (0.99, 0.76)),
        ("an element dropped", last, (0.98, 0.74)),
        ("a tile dropped", tile, (0.999, 0.97)),
        ("bf16 products", products, (0.97, 0.42)),
    ];
    for (what, (f32_rate, bf16_rate), (f32_stated, bf16_stated)) in stated {
        assert!(
            f32_rate >= f32_stated - 0.04 && bf16_rate >= bf16_stated - 0.08,
            "{what}: {f32_rate} and {bf16_rate}; all: {stated:?}"
        );
    }
}
