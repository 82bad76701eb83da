//! Whole code objects: what is read of good ones, and how bad ones are refused.

use super::read_code_object;
use super::sample::{self, Kernel, Value, kernel};
use crate::error::{ErrorKind, ImageError};
use crate::facts::{HipKernel, Parameter};
use proptest::prelude::*;

fn error_of(kernel: Kernel) -> ImageError {
    read_code_object(&sample::code_object(&[kernel])).expect_err("it is damaged")
}

#[test]
fn every_fact_of_every_kernel_is_read_in_the_order_of_the_names() {
    let image = read_code_object(&sample::code_object(&[kernel("second"), kernel("first")]));
    let image = image.expect("it is well formed");
    assert_eq!(image.architecture, "gfx1100");
    assert_eq!(image.compiler.as_deref(), Some("Some clang version 19.1.7"));
    let names: Vec<&str> = image.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    let expected = HipKernel {
        name: "first".to_owned(),
        vgprs: 20,
        sgprs: 18,
        agprs: 0,
        static_lds_bytes: 64,
        scratch_bytes: 16,
        max_workgroup: 256,
        required_workgroup: None,
        wave_size: 32,
        vgpr_spills: 3,
        sgpr_spills: 1,
        workgroup_processor_mode: true,
        dynamic_stack: false,
        parameter_bytes: 24,
        // Without the one that the system adds.
        parameters: vec![Parameter { offset: 0, size: 8 }, Parameter { offset: 8, size: 4 }],
    };
    assert_eq!(image.kernels.first(), Some(&expected));
}

#[test]
fn a_code_object_without_kernels_is_no_error() {
    let image = read_code_object(&sample::code_object(&[])).expect("it is well formed");
    assert!(image.kernels.is_empty());
}

#[test]
fn what_the_descriptor_denies_is_an_error_that_names_the_key() {
    for (key, value) in [
        (".group_segment_fixed_size", 65),
        (".private_segment_fixed_size", 0),
        (".kernarg_segment_size", 16),
        (".wavefront_size", 64),
        // The descriptor gives a lane 24.
        (".vgpr_count", 25),
        (".workgroup_processor_mode", 0),
    ] {
        let mut changed = kernel("k");
        changed.set(key, value);
        let error = error_of(changed);
        assert_eq!((error.kind, error.field.as_ref()), (ErrorKind::Malformed, key), "{error}");
        assert!(error.detail.contains("in the kernel's descriptor"), "{error}");
    }
    // As many as the descriptor gives are no more than it gives.
    let mut full = kernel("k");
    full.set(".vgpr_count", 24);
    read_code_object(&sample::code_object(&[full])).expect("it is well formed");
}

#[test]
fn a_key_that_every_kernel_has_must_be_there_once() {
    for key in [
        ".vgpr_count",
        ".sgpr_count",
        ".group_segment_fixed_size",
        ".private_segment_fixed_size",
        ".max_flat_workgroup_size",
        ".wavefront_size",
        ".kernarg_segment_size",
    ] {
        let mut without = kernel("k");
        without.set(key, None);
        let error = error_of(without);
        assert_eq!((error.kind, error.field.as_ref()), (ErrorKind::Malformed, key), "{error}");
        assert!(error.detail.contains("not there"), "{error}");

        let mut twice = kernel("k");
        twice.keys.push((key, Value::Number(1)));
        let error = error_of(twice);
        assert_eq!((error.kind, error.field.as_ref()), (ErrorKind::Malformed, key), "{error}");
        assert!(error.detail.contains("twice"), "{error}");
    }
}

#[test]
fn keys_of_later_versions_are_passed_over() {
    let mut later = kernel("k");
    let nested = Value::Map(vec![("a", Value::Array(vec![Value::Number(1 << 40)]))]);
    later.keys.insert(0, (".cluster_dims", nested));
    read_code_object(&sample::code_object(&[later])).expect("unknown keys are no error");
}

#[test]
fn values_of_the_wrong_kind_or_size_are_errors_that_name_the_key() {
    let text = Value::Text("many".to_owned());
    let size = Value::Array(vec![Value::Number(8), Value::Number(8)]);
    for (key, value) in [
        (".vgpr_count", text.clone()),
        (".vgpr_count", Value::Number(1 << 32)),
        (".wavefront_size", Value::Number(48)),
        (".args", Value::Number(2)),
        (".reqd_workgroup_size", size),
        (".workgroup_processor_mode", Value::Number(2)),
        (".uses_dynamic_stack", text),
    ] {
        let mut wrong = kernel("k");
        wrong.set(key, None);
        wrong.keys.push((key, value));
        let error = error_of(wrong);
        assert_eq!((error.kind, error.field.as_ref()), (ErrorKind::Malformed, key), "{error}");
    }
}

#[test]
fn a_work_group_that_a_kernel_requires_is_read() {
    let mut exact = kernel("k");
    let size = Value::Array(vec![Value::Number(8), Value::Number(4), Value::Number(2)]);
    exact.keys.push((".reqd_workgroup_size", size));
    exact.set(".uses_dynamic_stack", 1);
    let image = read_code_object(&sample::code_object(&[exact])).expect("it is well formed");
    let facts = image.kernels.first().expect("it has one kernel");
    assert_eq!(facts.required_workgroup, Some([8, 4, 2]));
    assert!(facts.dynamic_stack);
}

#[test]
fn a_kernel_whose_descriptor_is_nowhere_is_an_error() {
    let (named, present) = (kernel("named"), kernel("present"));
    let file = sample::code_object_with(&sample::metadata(&[named]), &[present]);
    let error = read_code_object(&file).expect_err("its descriptor is of another name");
    assert_eq!((error.kind, error.field.as_ref()), (ErrorKind::Malformed, ".symbol"), "{error}");
    let mut short = kernel("k");
    short.descriptor.truncate(63);
    let error = error_of(short);
    assert_eq!(error.kind, ErrorKind::Truncated, "{error}");
}

#[test]
fn a_file_for_another_machine_or_without_metadata_is_refused() {
    let good = sample::code_object(&[kernel("k")]);
    let changed = |at: usize, value: u8| {
        let mut file = good.clone();
        file[at] = value;
        read_code_object(&file).expect_err("it is refused")
    };
    let error = changed(18, 62);
    assert_eq!((error.kind, error.offset), (ErrorKind::Unsupported, 18), "{error}");
    let error = changed(7, 0);
    assert_eq!((error.kind, error.offset), (ErrorKind::Unsupported, 7), "{error}");
    // `e_flags`: gfx1101 there, and gfx1100 in the metadata.
    let error = changed(48, 0x46);
    assert_eq!(error.field, "amdhsa.target", "{error}");

    let note = good.windows(7).position(|bytes| bytes == b"AMDGPU\0").expect("it has a note");
    let error = changed(note, b'X');
    assert_eq!(error.field, "NT_AMDGPU_METADATA", "{error}");
    let mut old = good.clone();
    old[note - 12..note + 4].copy_from_slice(b"\x04\0\0\0\0\0\0\0\x0a\0\0\0AMD\0");
    let error = read_code_object(&old).expect_err("version 2 is not read");
    assert_eq!((error.kind, error.field.as_ref()), (ErrorKind::Unsupported, "n_type"), "{error}");
}

#[test]
fn a_file_cut_anywhere_is_an_error_and_never_a_panic() {
    let good = sample::code_object(&[kernel("one"), kernel("two")]);
    for length in 0..good.len() {
        read_code_object(&good[..length]).expect_err("the section table is at the end");
    }
}

proptest! {
    #[test]
    fn any_facts_are_read_as_they_were_written(
        vgprs in 0..=24_u32,
        sgprs: u32,
        lds: u32,
        scratch: u32,
        bound: u32,
        arguments: u32,
        spills: [u32; 2],
        paired: bool,
        waves_of_32: bool,
    ) {
        let mut any = kernel("any");
        any.set(".vgpr_count", u64::from(vgprs));
        any.set(".sgpr_count", u64::from(sgprs));
        any.set(".group_segment_fixed_size", u64::from(lds));
        any.set(".private_segment_fixed_size", u64::from(scratch));
        any.set(".max_flat_workgroup_size", u64::from(bound));
        any.set(".kernarg_segment_size", u64::from(arguments));
        any.set(".vgpr_spill_count", u64::from(spills[0]));
        any.set(".sgpr_spill_count", u64::from(spills[1]));
        any.set(".workgroup_processor_mode", u64::from(paired));
        any.set(".wavefront_size", if waves_of_32 { 32 } else { 64 });
        for (at, value) in [(0, lds), (4, scratch), (8, arguments)] {
            any.descriptor[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        // Six steps of four registers, or three of eight.
        any.descriptor[48] = if waves_of_32 { 2 } else { 5 };
        any.descriptor[51] = u8::from(paired) << 5;
        any.descriptor[57] = u8::from(waves_of_32) << 2;
        let image = read_code_object(&sample::code_object(&[any])).expect("it is well formed");
        let facts = &image.kernels[0];
        prop_assert_eq!((facts.vgprs, facts.sgprs), (vgprs, sgprs));
        prop_assert_eq!((facts.static_lds_bytes, facts.scratch_bytes), (lds, scratch));
        prop_assert_eq!((facts.max_workgroup, facts.parameter_bytes), (bound, arguments));
        prop_assert_eq!([facts.vgpr_spills, facts.sgpr_spills], spills);
        prop_assert_eq!(facts.workgroup_processor_mode, paired);
        prop_assert_eq!(facts.wave_size, if waves_of_32 { 32 } else { 64 });
    }

    #[test]
    fn any_bytes_in_place_of_the_metadata_are_read_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        if let Err(error) = read_code_object(&sample::code_object_with(&bytes, &[kernel("k")])) {
            prop_assert!(!error.field.is_empty());
        }
    }

    #[test]
    fn any_few_changed_bytes_of_the_metadata_are_read_or_refused(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8),
    ) {
        let kernels = [kernel("one"), kernel("two")];
        let mut bytes = sample::metadata(&kernels);
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Err(error) = read_code_object(&sample::code_object_with(&bytes, &kernels)) {
            prop_assert!(!error.field.is_empty());
        }
    }
}
