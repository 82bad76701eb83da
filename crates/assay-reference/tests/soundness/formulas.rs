//! Random formulas: a replay in fp32, in any order of additions, stays within the bound.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{
    Arithmetic, Evaluation, Formula, Inputs, Order, Program, Replay, Signature, Tensor, dims,
};

const ROWS: i64 = 3;
const COLS: i64 = 37;

/// A random expression over row `r` and column `c`, `depth` levels deep.
fn expression(random: &mut SplitMix64, depth: u32, reduced: &mut u32) -> String {
    if depth == 0 {
        let leaves =
            ["x[r, c]", "w[c]", "third", "x[r, 0]", "w[(c + 5) % cols]", "2", "cols", "0.1"];
        return leaves[random.below(leaves.len() as u64) as usize].to_owned();
    }
    let mut next = |random: &mut SplitMix64| expression(random, depth - 1, reduced);
    match random.below(20) {
        0..=3 => format!("({} + {})", next(random), next(random)),
        4..=6 => format!("({} - {})", next(random), next(random)),
        7..=10 => format!("{} * {}", next(random), next(random)),
        11 => format!("({}) / (3 + abs({}))", next(random), next(random)),
        12 => format!("max({}, {})", next(random), next(random)),
        13 => format!("tanh({})", next(random)),
        14 => format!("exp(min({}, 3))", next(random)),
        15 => format!("sqrt(abs({}) + 1)", next(random)),
        16 => format!(
            "select({} > {}, {}, {})",
            next(random),
            next(random),
            next(random),
            next(random)
        ),
        17 => format!("bf16({})", next(random)),
        18 => format!("rsqrt(1 + abs({}))", next(random)),
        _ => {
            let inner = next(random);
            *reduced += 1;
            let k = format!("k{reduced}");
            let inner = inner.replace(", c]", &format!(", {k}]")).replace("[c]", &format!("[{k}]"));
            let inner = inner.replace("[(c ", &format!("[({k} "));
            let operation = if random.below(4) == 0 { "max" } else { "sum" };
            format!("{operation}({k} in 0..cols if {k} != r: {inner})")
        }
    }
}

fn program(text: &str) -> Option<Program> {
    let tensor = |name, shape: &[&str]| Tensor::new(name, Format::F32, shape).unwrap();
    let signature = Signature {
        dims: vec!["rows".into(), "cols".into()],
        inputs: vec![tensor("x", &["rows", "cols"]), tensor("w", &["cols"])],
        outputs: vec![tensor("y", &["rows", "cols"])],
        scalars: BTreeMap::from([("third".to_owned(), 1.0 / 3.0)]),
    };
    Formula::parse(text).and_then(|formula| formula.check(&signature)).ok()
}

fn inputs(random: &mut SplitMix64) -> Inputs {
    let mut draw = |count: i64| -> Vec<f64> {
        let spread = random.range(0.0, 8.0);
        let value = |random: &mut SplitMix64| {
            f64::from((random.normal() * 2f64.powf(random.range(-spread, spread))) as f32)
        };
        (0..count).map(|_| value(random)).collect()
    };
    Inputs::new([("x", draw(ROWS * COLS)), ("w", draw(COLS))])
}

/// Checks one formula; gives the number of elements whose replay differs from the value at all.
fn check(seed: u64) -> usize {
    let mut random = SplitMix64::new(seed);
    let text = format!("y[r, c] = {}", expression(&mut random, 4, &mut 0));
    let Some(program) = program(&text) else { panic!("seed {seed}: {text} does not read") };
    let (dims, inputs) = (dims([("rows", ROWS), ("cols", COLS)]), inputs(&mut random));
    let arithmetic = Arithmetic::default();
    let evaluation = Evaluation::new(&dims, &inputs, &arithmetic);
    let bounded = &program.error(&evaluation).unwrap()["y"];
    let value = &program.value(&evaluation).unwrap()["y"];
    let range = &program.range(&evaluation).unwrap()["y"];
    if !bounded.problems.is_empty() {
        return 0;
    }
    assert_eq!(&bounded.value, value, "seed {seed}: {text}");
    let orders = [
        Order::Chain,
        Order::Halves,
        Order::Lanes(32),
        Order::Strided { threads: 4, vector: 2 },
        Order::Chunked { threads: 5 },
    ];
    let mut moved = 0;
    for order in orders {
        let replay = Replay { accumulator: Format::F32, order, partials_fp32: false };
        let replayed = &program.replay(&evaluation, &replay).unwrap()["y"];
        for (at, got) in replayed.iter().enumerate() {
            let (value, error) = (bounded.value[at], bounded.error[at]);
            let off = (got - value).abs();
            assert!(off <= error, "seed {seed} {order:?} at {at}: {off:e} over {error:e}\n{text}");
            let (low, high) = range.interval(at);
            let inside = low <= *got && *got <= high;
            assert!(inside, "seed {seed} {order:?} at {at}: {got:e} of {low:e}..{high:e}\n{text}");
            moved += usize::from(off > 0.0);
        }
    }
    moved
}

#[test]
fn random_formulas_replayed_in_fp32_stay_within_their_bounds() {
    let moved: usize = (0..1500).map(check).sum();
    assert!(moved > 100_000, "only {moved} elements were rounded at all");
}
