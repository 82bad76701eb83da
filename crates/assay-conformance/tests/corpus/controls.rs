//! The corpus can fail: each kind of fault, planted, is found.

use assay_num::Format;

use crate::case::{Case, close, exact, judged};
use crate::census::{Examined, Expected, examine};
use crate::compile::Ptx;

/// `y[i] = 2 x[i]`, for one block of 32 threads.
const TWICE: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 x, .param .u64 y) {
  .reg .u64 %rd<6>;
  .reg .u32 %r<4>;
  .reg .f32 %f<3>;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 4;
  ld.param.u64 %rd2, [x];
  ld.param.u64 %rd3, [y];
  add.u64 %rd4, %rd2, %rd1;
  ld.f32 %f1, [%rd4];
  add.rn.f32 %f2, %f1, %f1;
  add.u64 %rd5, %rd3, %rd1;
  st.f32 [%rd5], %f2;
  ret;
}
";

fn look(text: &str, cases: &[Case], expected: Expected) -> Examined {
    let ptx = Ptx { name: "twice".to_string(), text: text.to_string(), architecture: 80 };
    examine(&ptx, cases, &expected)
}

fn twice(want: f64) -> Case {
    let x: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let y: Vec<f64> = x.iter().map(|&x| want * f64::from(x)).collect();
    Case::new("twice").sized(1, 32).reads(&x).writes(close(Format::F32, &y, 1e-6, 0.0))
}

#[test]
fn a_kernel_that_is_right_has_no_problems() {
    let examined = look(TWICE, &[twice(2.0)], Expected::default());
    assert_eq!(examined.problems, [""; 0]);
    assert_eq!((examined.census.instructions(), examined.census.bases.len()), (10, 6));
}

#[test]
fn a_wrong_reference_is_found() {
    let examined = look(TWICE, &[twice(2.001)], Expected::default());
    assert!(examined.problems[0].contains("element 1 is 2, not 2.001"), "{:?}", examined.problems);
}

#[test]
fn a_wrong_instruction_is_found() {
    let text = TWICE.replace("add.rn.f32", "mul.rn.f32");
    assert_eq!(look(&text, &[twice(2.0)], Expected::default()).problems.len(), 1);
}

#[test]
fn an_opcode_that_does_not_decode_is_found_with_its_line() {
    let text = TWICE.replace("add.rn.f32", "add.frob.f32");
    let problems = look(&text, &[twice(2.0)], Expected::default()).problems;
    assert!(problems[0].contains("14:") && problems[0].contains(".frob"), "{problems:?}");
}

#[test]
fn an_instruction_that_is_not_emulated_is_found_unless_a_list_names_it() {
    let text = TWICE.replace("  ret;", "  multimem.red.global.add.u32 [%rd5], %r1;\n  ret;");
    let problems = look(&text, &[twice(2.0)], Expected::default()).problems;
    assert!(problems[0].contains("multimem"), "{problems:?}");
    let expected = Expected { not_emulated: &[("twice", "multimem.red")], ..Expected::default() };
    assert_eq!(look(&text, &[twice(2.0)], expected).problems, [""; 0]);
    let problems = look(TWICE, &[twice(2.0)], expected).problems;
    assert!(problems[0].contains("a list says that it is not emulated"), "{problems:?}");
}

#[test]
fn a_kernel_without_a_case_is_found_unless_a_list_says_why() {
    let problems = look(TWICE, &[], Expected::default()).problems;
    assert!(problems[0].contains("no case calls it"), "{problems:?}");
    let expected = Expected { not_called: &[("twice", "a control")], ..Expected::default() };
    assert_eq!(look(TWICE, &[], expected).problems, [""; 0]);
    let problems = look(TWICE, &[twice(2.0)], expected).problems;
    assert!(problems[0].contains("a list says that no case calls it"), "{problems:?}");
}

#[test]
fn a_name_that_means_no_kernel_is_found() {
    let case = Case::new("thrice").reads(&[1.0_f32]).writes(exact(&[2.0_f32]));
    let problems = look(TWICE, &[twice(2.0), case], Expected::default()).problems;
    assert!(problems[0].contains("thrice is not the name of one kernel"), "{problems:?}");
}

#[test]
fn bytes_that_depend_on_the_schedule_are_found() {
    // Two warps race for one word.
    let text = TWICE.replace("add.u64 %rd5, %rd3, %rd1;", "mov.u64 %rd5, %rd3;");
    let x: Vec<f32> = (0..512).map(|i| i as f32).collect();
    let case = || Case::new("twice").sized(1, 512).reads(&x).writes(judged(4, |_| Ok(())));
    let problems = look(&text, &[case()], Expected::default()).problems;
    assert!(problems[0].contains("gives other bytes"), "{problems:?}");
    assert_eq!(look(&text, &[case().in_any_order()], Expected::default()).problems, [""; 0]);
}
