//! Operations counted from formulas, against counts by hand.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_reference::{Formula, Operations, Program, Signature, Tensor, Uncountable, dims};

type Tensors<'a> = &'a [(&'a str, &'a [&'a str])];

fn program(text: &str, names: &[&str], inputs: Tensors<'_>, outputs: Tensors<'_>) -> Program {
    let tensors = |list: Tensors<'_>| {
        list.iter().map(|(name, shape)| Tensor::new(name, Format::F32, shape).unwrap()).collect()
    };
    let signature = Signature {
        dims: names.iter().map(ToString::to_string).collect(),
        inputs: tensors(inputs),
        outputs: tensors(outputs),
        scalars: BTreeMap::from([("eps".to_owned(), 1e-5)]),
    };
    let formula = Formula::family(text).unwrap_or_else(|| Formula::parse(text).unwrap());
    formula.check(&signature).unwrap()
}

const MATRIX: &[&str] = &["rows", "cols"];

fn rows(text: &str, output: &[&str]) -> Program {
    let inputs: Tensors<'_> = &[("x", MATRIX), ("w", &["cols"]), ("b", &["cols"])];
    program(text, MATRIX, inputs, &[("y", output)])
}

fn counted(program: &Program, rows: i64, cols: i64) -> Result<Operations, Uncountable> {
    program.operations(&dims([("rows", rows), ("cols", cols)]))
}

#[test]
fn a_row_sum_adds_every_element_once() {
    let found = counted(&rows("rows.sum", &["rows"]), 7, 1000).unwrap();
    assert_eq!(found, Operations { additions: 7000, ..Operations::default() });
    assert_eq!(found.flop(), 7000.0);
}

#[test]
fn a_row_maximum_has_no_operations_that_count() {
    let found = counted(&rows("rows.max", &["rows"]), 7, 1000).unwrap();
    assert_eq!(found, Operations::default());
}

#[test]
fn a_matrix_times_a_vector_is_two_operations_an_element() {
    let inputs: Tensors<'_> = &[("w", MATRIX), ("x", &["cols"])];
    let program = program("dense.gemv", MATRIX, inputs, &[("y", &["rows"])]);
    let found = counted(&program, 512, 2048).unwrap();
    let each = 512 * 2048;
    let wanted = Operations { additions: each, multiplications: each, ..Operations::default() };
    assert_eq!((found, found.flop()), (wanted, 2.0 * 512.0 * 2048.0));
}

#[test]
fn a_softmax_is_counted_statement_by_statement() {
    let found = counted(&rows("rows.softmax", MATRIX), 3, 100).unwrap();
    // The sum: a difference, an exponential and an addition; the output: a difference, an
    // exponential and a division. The maximum counts nothing.
    let each = 3 * 100;
    let wanted = Operations {
        additions: 3 * each,
        multiplications: 0,
        divisions: each,
        functions: 2 * each,
    };
    assert_eq!(found, wanted);
}

#[test]
fn a_layer_norm_is_counted_with_what_is_once_a_row() {
    let (rows_of, cols) = (5, 64);
    let found = counted(&rows("rows.layer_norm", MATRIX), rows_of, cols).unwrap();
    let (row, each) = (rows_of as u128, (rows_of * cols) as u128);
    // mean: each addition, a division a row. variance: a difference (shared), a product, an
    // addition, a division a row. y: a difference, eps, a root, two products, a sum.
    let wanted = Operations {
        additions: each + 2 * each + 3 * each,
        multiplications: each + 2 * each,
        divisions: 2 * row,
        functions: each,
    };
    assert_eq!(found, wanted);
}

#[test]
fn terms_that_depend_on_an_index_are_gone_through() {
    let text = "y[r, c] = sum(k in 0..c + 1: x[r, k] * w[k])";
    let found = counted(&rows(text, MATRIX), 4, 10).unwrap();
    // 1 + 2 + ... + 10 terms in each of 4 rows.
    let wanted = Operations { additions: 220, multiplications: 220, ..Operations::default() };
    assert_eq!(found, wanted);
}

#[test]
fn what_is_the_same_for_all_elements_counts_nothing() {
    let found = counted(&rows("y[r, c] = x[r, c] * (eps * eps + sqrt(cols))", MATRIX), 4, 10);
    let wanted = Operations { multiplications: 40, ..Operations::default() };
    assert_eq!(found.unwrap(), wanted);
}

#[test]
fn a_recurrence_counts_its_steps_and_its_start_once() {
    let text = "y[r, c] = scan(c, before = w[0] * b[0]: before * w[c] + x[r, c])";
    let found = counted(&rows(text, MATRIX), 4, 10).unwrap();
    let wanted = Operations { additions: 40, multiplications: 40 + 4, ..Operations::default() };
    assert_eq!(found, wanted);
}

#[test]
fn what_depends_on_data_is_said_to_be_uncountable() {
    let select = "y[r, c] = select(x[r, c] > 0, x[r, c], x[r, c] * w[c])";
    let found = counted(&rows(select, MATRIX), 4, 10);
    assert!(matches!(&found, Err(Uncountable::Condition { statement }) if statement == "y"));
    let masked = "y[r] = sum(c in 0..cols if x[r, c] > 0: x[r, c] * w[c])";
    let found = counted(&rows(masked, &["rows"]), 4, 10);
    assert!(matches!(found, Err(Uncountable::Condition { .. })), "{found:?}");
    let missing = rows("rows.sum", &["rows"]).operations(&dims([("rows", 4)]));
    assert!(matches!(missing, Err(Uncountable::Dims(_))), "{missing:?}");
}
