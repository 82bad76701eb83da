//! Gates 1, 3 and 4 on kernels that are plain Rust functions: correct ones pass over many seeds,
//! each broken one fails the gate that is there for it.

mod kernels;
mod rates;
mod steps;
mod subjects;

use assay_contract::gates::{Filter, GateContext, check};
use assay_contract::subject::Subject;
use assay_num::Format;
use assay_record::{Gate, GateResult, Outcome};

use kernels as k;
use subjects::{Compute, Gather, Replacement, RowKernel, TopK};

const SEEDS: u64 = 20;
const SILU: &str = "y[r, c] = x[r, c] / (1 + exp(-x[r, c]))";

fn result(gate: Gate, subject: &mut dyn Subject, seed: u64) -> GateResult {
    check(gate, subject, &GateContext::new(seed, &|_| ()))
}

fn describe(result: &GateResult) -> String {
    let findings: Vec<String> =
        result.findings.iter().map(|f| format!("  {} {}", f.case, f.reason)).collect();
    format!("{} {}\n{}\n{:?}", result.outcome, result.reason, findings.join("\n"), result.notes)
}

fn must_be(outcome: Outcome, gate: Gate, subject: &mut dyn Subject, seeds: u64) {
    for seed in 0..seeds {
        let result = result(gate, subject, seed);
        assert_eq!(result.outcome, outcome, "{gate} seed {seed}: {}", describe(&result));
    }
}

fn must_pass(mut subject: RowKernel) {
    for gate in [Gate::NonFinite, Gate::Shapes, Gate::Fp32Sums] {
        let nothing_summed = gate == Gate::Fp32Sums && !has_sum(&subject);
        let outcome = if nothing_summed { Outcome::NotApplicable } else { Outcome::Pass };
        must_be(outcome, gate, &mut subject, SEEDS);
    }
}

fn has_sum(subject: &dyn Subject) -> bool {
    let program = subject.spec().program.as_ref().expect("a formula");
    program.reductions().iter().any(|r| r.operation == assay_reference::ReduceOperation::Sum)
}

fn must_fail(gate: Gate, mut subject: impl Subject) {
    must_be(Outcome::Fail, gate, &mut subject, 5);
}

fn f32_kernel(family: &str, compute: Compute) -> RowKernel {
    RowKernel::new(family, Format::F32, compute)
}

#[test]
fn correct_sums_pass() {
    must_pass(f32_kernel("rows.sum", k::sum));
    must_pass(f32_kernel("rows.sum", k::sum_chain));
    must_pass(RowKernel::new("rows.sum", Format::Bf16, k::sum));
}

#[test]
fn a_correct_maximum_passes() {
    must_pass(f32_kernel("rows.max", k::max));
}

#[test]
fn correct_dots_pass() {
    must_pass(f32_kernel("rows.dot", k::dot));
    must_pass(f32_kernel("dense.gemv", k::dot));
    must_pass(RowKernel::new("dense.gemv", Format::Bf16, k::dot));
}

#[test]
fn a_correct_softmax_passes() {
    must_pass(f32_kernel("rows.softmax", k::softmax));
}

#[test]
fn a_correct_rms_norm_passes() {
    must_pass(f32_kernel("rows.rms_norm", k::rms_norm));
}

#[test]
fn a_correct_layer_norm_passes() {
    must_pass(f32_kernel("rows.layer_norm", k::layer_norm));
}

#[test]
fn a_correct_formula_of_ones_own_passes() {
    must_pass(RowKernel::elementwise(SILU, k::silu));
}

#[test]
fn correct_kernels_of_half_precision_tensors_pass() {
    for input in [Format::F16, Format::Bf16] {
        for output in [Format::F32, input] {
            let kernel = |family: &str, compute: Compute| {
                RowKernel::new(family, output, compute).with_inputs(input)
            };
            for gate in [Gate::NonFinite, Gate::Shapes, Gate::Fp32Sums] {
                must_be(Outcome::Pass, gate, &mut kernel("rows.sum", k::sum), 4);
                must_be(Outcome::Pass, gate, &mut kernel("rows.dot", k::dot), 4);
                must_be(Outcome::Pass, gate, &mut kernel("rows.softmax", k::softmax), 4);
                must_be(Outcome::Pass, gate, &mut kernel("rows.rms_norm", k::rms_norm), 4);
                must_be(Outcome::Pass, gate, &mut kernel("rows.layer_norm", k::layer_norm), 4);
            }
        }
    }
}

#[test]
fn an_accumulator_that_takes_one_term_cannot_differ_and_is_listed() {
    let mut wide = f32_kernel("rows.sum", k::sum).with_inputs(Format::Bf16).with(|spec| {
        spec.orders = vec![assay_reference::Order::Strided { threads: 512, vector: 1 }];
    });
    let result = result(Gate::Fp32Sums, &mut wide, 1);
    assert_eq!(result.outcome, Outcome::Pass, "{}", describe(&result));
    let notes = result.notes.join("\n");
    let idle = "sum `c` of 300 terms: bf16 strided-512 with fp32 partials cannot differ";
    assert!(notes.contains(idle), "{notes}");
}

#[test]
fn a_correct_top_k_passes() {
    for gate in [Gate::NonFinite, Gate::Shapes] {
        must_be(Outcome::Pass, gate, &mut TopK::new(k::top_k), SEEDS);
    }
    must_be(Outcome::NotApplicable, Gate::Fp32Sums, &mut TopK::new(k::top_k), 1);
}

#[test]
fn gate_1_plants_where_a_kernel_reads_though_few_pages_are_read() {
    must_be(Outcome::Pass, Gate::NonFinite, &mut Gather::new(|value| value), SEEDS);
    must_fail(Gate::NonFinite, Gather::new(|value| value.max(f32::MIN)));
}

#[test]
fn gate_1_catches_what_loses_a_nan_or_an_infinity() {
    must_fail(Gate::NonFinite, f32_kernel("rows.max", k::max_that_drops_nan));
    must_fail(Gate::NonFinite, f32_kernel("rows.softmax", k::softmax_online_unguarded));
    must_fail(Gate::NonFinite, RowKernel::elementwise(SILU, k::silu_by_a_large_exponential));
    must_fail(Gate::NonFinite, f32_kernel("rows.sum", k::sum_with_short_tail));
    must_fail(Gate::NonFinite, TopK::new(k::top_k_without_nan));
}

#[test]
fn gate_3_catches_lost_terms() {
    must_fail(Gate::Shapes, f32_kernel("rows.sum", k::sum_with_short_tail));
    must_fail(Gate::Shapes, f32_kernel("rows.sum", k::sum_without_a_tile_edge));
    must_fail(Gate::Shapes, TopK::new(k::top_k_without_the_last));
    must_fail(Gate::Shapes, TopK::new(k::top_k_with_late_ties));
}

#[test]
fn gate_3_catches_what_random_data_cannot() {
    must_fail(Gate::Shapes, f32_kernel("rows.max", k::max_from_zero));
    must_fail(Gate::Shapes, f32_kernel("rows.softmax", k::softmax_from_zero));
    must_fail(Gate::Shapes, f32_kernel("rows.softmax", k::softmax_without_a_maximum));
    must_fail(Gate::Shapes, f32_kernel("rows.rms_norm", k::rms_norm_with_eps_outside));
    must_fail(Gate::Shapes, f32_kernel("rows.layer_norm", k::layer_norm_in_one_pass));
}

#[test]
fn gate_3_catches_narrow_terms() {
    must_fail(Gate::Shapes, f32_kernel("rows.dot", k::dot_with_bf16_products));
    must_fail(Gate::Shapes, f32_kernel("rows.softmax", k::softmax_with_half_exponentials));
}

#[test]
fn gate_4_catches_narrow_sums_behind_bf16_outputs() {
    let kernel = |family: &str, compute: Compute| RowKernel::new(family, Format::Bf16, compute);
    must_fail(Gate::Fp32Sums, kernel("rows.dot", k::dot_in_half));
    must_fail(Gate::Fp32Sums, kernel("rows.dot", k::dot_in_bf16));
    must_fail(Gate::Fp32Sums, kernel("rows.softmax", k::softmax_in_half));
    must_fail(Gate::Fp32Sums, kernel("rows.rms_norm", k::rms_norm_in_bf16));
    must_fail(Gate::Fp32Sums, kernel("rows.layer_norm", k::layer_norm_with_bf16_mean));
    must_fail(Gate::Fp32Sums, kernel("rows.layer_norm", k::layer_norm_with_bf16_variance));
}

#[test]
fn gate_4_catches_narrow_sums() {
    must_fail(Gate::Fp32Sums, f32_kernel("rows.sum", k::sum_in_bf16));
    for compute in [k::dot_in_half, k::dot_in_bf16, k::dot_with_half_partials] {
        must_fail(Gate::Fp32Sums, f32_kernel("rows.dot", compute));
        must_fail(Gate::Fp32Sums, f32_kernel("dense.gemv", compute));
    }
    must_fail(Gate::Fp32Sums, f32_kernel("rows.softmax", k::softmax_in_half));
    must_fail(Gate::Fp32Sums, f32_kernel("rows.rms_norm", k::rms_norm_in_bf16));
    must_fail(Gate::Fp32Sums, f32_kernel("rows.layer_norm", k::layer_norm_with_bf16_mean));
    must_fail(Gate::Fp32Sums, f32_kernel("rows.layer_norm", k::layer_norm_with_bf16_variance));
}

/// A sum that does not reach the output, by a formula with the same flaw.
fn without_its_sum() -> RowKernel {
    let formula = "s[r] = sum(k in 0..cols: x[r, k])\ny[r, c] = x[r, c] + 0 * s[r]";
    RowKernel::elementwise(formula, |row| row.x.iter().map(|x| x + 0.0 * k::sum(row)[0]).collect())
}

#[test]
fn a_fixture_that_could_not_fail_proves_nothing() {
    let mut finite = RowKernel::elementwise("y[r, c] = select(x[r, c] < 0, 0, 1)", |row| {
        row.x.iter().map(|x| if *x < 0.0 { 0.0 } else { 1.0 }).collect()
    });
    must_be(Outcome::Unproven, Gate::NonFinite, &mut finite, 3);
    must_be(Outcome::Unproven, Gate::Shapes, &mut without_its_sum(), 3);
    must_be(Outcome::Unproven, Gate::Fp32Sums, &mut without_its_sum(), 3);
}

#[test]
fn a_hidden_sum_that_is_declared_passes_with_what_could_be_proved() {
    let mut declared = without_its_sum()
        .with(|spec| spec.hides_sums = Some("the sum is multiplied by 0".to_owned()));
    let result = result(Gate::Fp32Sums, &mut declared, 1);
    assert_eq!(result.outcome, Outcome::Pass, "{}", describe(&result));
    let notes = result.notes.join("\n");
    assert!(notes.contains("declared hidden: the sum is multiplied by 0"), "{notes}");
    assert!(notes.contains("bf16 chain misses by 0.0 times the bound"), "{notes}");
}

#[test]
fn a_kernel_with_neither_formula_nor_rule_has_nothing_to_check() {
    let mut subject = f32_kernel("rows.sum", k::sum).with(|spec| spec.program = None);
    must_be(Outcome::NotApplicable, Gate::Shapes, &mut subject, 1);
}

#[test]
fn a_replacement_gives_the_bytes_of_what_it_replaces() {
    let sum = || f32_kernel("rows.sum", k::sum);
    let mut same = Replacement { kernel: sum(), replaced: sum() };
    must_be(Outcome::Pass, Gate::Shapes, &mut same, 3);
    let chain = f32_kernel("rows.sum", k::sum_chain);
    must_fail(Gate::Shapes, Replacement { kernel: sum(), replaced: chain });
}

#[test]
fn a_replacement_s_order_of_sums_shows_behind_a_16_bit_output() {
    let replacing = || {
        let kernel = RowKernel::new("rows.sum", Format::Bf16, k::sum);
        kernel.with(|spec| spec.replaces = Some("another".to_owned()))
    };
    let mut same = Replacement { kernel: replacing(), replaced: replacing() };
    must_be(Outcome::Pass, Gate::Shapes, &mut same, 2);
    let chain = RowKernel::new("rows.sum", Format::Bf16, k::sum_chain);
    let mut other = Replacement { kernel: replacing(), replaced: chain };
    for seed in 0..5 {
        let filter = Filter::Holding("order-");
        let context = GateContext::new(seed, &|_| ()).only(filter);
        let result = check(Gate::Shapes, &mut other, &context);
        assert_eq!(result.outcome, Outcome::Fail, "seed {seed}: {}", describe(&result));
    }
}

#[test]
fn a_run_of_the_same_seed_says_the_same() {
    let mut subject = f32_kernel("rows.softmax", k::softmax);
    for gate in [Gate::NonFinite, Gate::Shapes, Gate::Fp32Sums] {
        assert_eq!(result(gate, &mut subject, 7), result(gate, &mut subject, 7));
    }
}
