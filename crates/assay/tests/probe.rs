//! `assay probe` with no GPU: what it would measure, and what it says instead.

mod common;

use common::{has_driver, recorded, skipped};

#[test]
fn the_list_names_every_quantity_with_its_unit_and_method() {
    let text = recorded(&["probe", "--list"]);
    assert!(text.contains("exit code: 0"), "{text}");
    for name in ["dram_read", "dram_gather", "l2_knee", "shared_read_per_clock"] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
    for place in ["l1", "shared", "l2_near", "l2_far", "dram", "tlb_step", "distributed_shared"] {
        for unit in ["cycles", "ns"] {
            assert!(text.contains(&format!("latency_{place}_{unit}")), "{place} in\n{text}");
        }
    }
}

#[test]
fn a_part_of_the_list_is_asked_for_by_its_text() {
    let text = recorded(&["probe", "--list", "--only", "l2_"]);
    assert!(text.contains("l2_read") && text.contains("latency_l2_far_ns"), "{text}");
    assert!(!text.contains("dram_read"), "{text}");
}

#[test]
fn a_text_that_no_quantity_has_is_a_wrong_request() {
    let text = recorded(&["probe", "--list", "--only", "no_such_thing"]);
    assert!(text.contains("exit code: 2"), "{text}");
    assert!(text.contains("hint: `assay probe --list` names them all"), "{text}");
}

#[test]
fn an_emulator_has_nothing_to_probe_and_says_where_to_run_instead() {
    let text = recorded(&["probe", "--device", "emulator:sm_90", "--quick", "--json", "-"]);
    assert!(text.contains("exit code: 3"), "{text}");
    assert!(text.contains("emulator:sm_90 has no clock that means anything"), "{text}");
    assert!(text.contains("hint: a dossier needs a GPU"), "{text}");
}

#[test]
fn a_device_of_no_such_name_is_no_device() {
    let text = recorded(&["probe", "--device", "gpu"]);
    assert!(text.contains("exit code: 3") && text.contains("cuda:N"), "{text}");
}

#[test]
fn a_machine_without_a_gpu_says_so_and_what_to_do() {
    let test = "a_machine_without_a_gpu_says_so_and_what_to_do";
    if has_driver() {
        return skipped(test, "this machine has a driver");
    }
    let text = recorded(&["probe", "--quick"]);
    assert!(text.contains("exit code: 3"), "{text}");
    assert!(text.contains("error: cannot probe cuda"), "{text}");
    assert!(text.contains("caused by: no NVIDIA driver found"), "{text}");
    assert!(text.contains("a dossier needs a GPU"), "{text}");
}
