//! The rules of Metal, each at its boundary, the exemptions, and files of records.

mod common;

use std::collections::BTreeSet;

use assay_limits::{
    Digest, Fit, Launch, MaxThreads, MetalChip, MetalRecord, MetalRecords, Rule, SourceText,
    Verdict, fit_metal,
};
use common::{boundary, launch, metal, rules};

const CHIPS: [&str; 5] = ["M1", "M2", "M3", "M4", "M5"];

fn record(max_threads: MaxThreads) -> MetalRecord {
    MetalRecord {
        pipeline: "row_sum".into(),
        max_threads,
        threadgroup_bytes: Some(0),
        execution_width: Some(32),
        tensor_operations: false,
    }
}

fn fit(chip: &MetalChip, change: impl Fn(&mut MetalRecord, &mut Launch)) -> Fit {
    let mut record = record(MaxThreads::Compiled(1024));
    let mut launch = launch([16, 16, 16], [32, 1, 1]);
    change(&mut record, &mut launch);
    fit_metal(chip, &record, &launch)
}

#[test]
fn threads_of_a_threadgroup_are_bounded_by_the_pipelines_compile() {
    for name in CHIPS {
        boundary(Rule::PipelineThreads, 512, |threads| {
            fit(&metal(name), |record, launch| {
                record.max_threads = MaxThreads::Compiled(512);
                launch.block = [threads, 1, 1];
            })
        });
    }
}

#[test]
fn a_pipeline_recorded_at_512_threads_does_not_run_1024() {
    let red = fit(&metal("M1"), |record, launch| {
        record.max_threads = MaxThreads::Compiled(512);
        launch.block = [1024, 1, 1];
    });
    assert_eq!(
        red.problems[0].to_string(),
        "1,024 threads a threadgroup, where the pipeline was compiled for at most 512: size groups \
         to the pipeline's maximum, or reserve the threads in the source"
    );
}

#[test]
fn threadgroup_memory_is_bounded_static_and_dynamic_together() {
    for name in CHIPS {
        let chip = metal(name);
        boundary(Rule::ThreadgroupBytes, 32 << 10, |bytes| {
            fit(&chip, |record, launch| {
                launch.dynamic_shared_bytes = 4096;
                record.threadgroup_bytes = Some(bytes - 4096);
            })
        });
        let red = fit(&chip, |record, _| record.threadgroup_bytes = Some(36 << 10));
        assert_eq!(rules(&red), [Rule::ThreadgroupBytes]);
        boundary(Rule::ThreadgroupAlignment, 48, |bytes| {
            fit(&chip, |_, launch| launch.dynamic_shared_bytes = bytes)
        });
    }
}

#[test]
fn a_threadgroup_is_bounded_along_each_axis_and_in_all() {
    let chip = metal("M3");
    let with = |block: [u64; 3]| rules(&fit(&chip, |_, launch| launch.block = block));
    assert_eq!(with([1, 1, 1024]), []);
    assert_eq!(with([1025, 1, 1]), [Rule::BlockX, Rule::BlockThreads, Rule::PipelineThreads]);
    assert_eq!(with([1, 1025, 1]), [Rule::BlockY, Rule::BlockThreads, Rule::PipelineThreads]);
    assert_eq!(with([1, 1, 1025]), [Rule::BlockZ, Rule::BlockThreads, Rule::PipelineThreads]);
    assert_eq!(with([0, 1, 1]), [Rule::Empty]);
    assert_eq!(rules(&fit(&chip, |_, launch| launch.grid = [1, 0, 1])), [Rule::Empty]);
}

#[test]
fn what_nobody_compiled_is_unknown_and_does_not_fit() {
    for name in CHIPS {
        let open = fit(&metal(name), |record, _| record.max_threads = MaxThreads::Unknown);
        assert_eq!(open.verdict(), Verdict::UnknownUntilCompiled);
        assert!(!open.fits());
        assert!(open.unknown[0].contains(&format!("no compile of `row_sum` for {name}")));
    }
}

#[test]
fn threadgroup_memory_that_nobody_recorded_is_unknown() {
    let open = fit(&metal("M1"), |record, _| record.threadgroup_bytes = None);
    assert_eq!(open.verdict(), Verdict::UnknownUntilCompiled);
    assert!(open.unknown[0].contains("write threadgroup_bytes"));
}

#[test]
fn what_is_unknown_does_not_hide_what_is_wrong() {
    let red = fit(&metal("M2"), |record, launch| {
        record.max_threads = MaxThreads::Unknown;
        launch.dynamic_shared_bytes = 33 << 10;
    });
    assert_eq!(red.verdict(), Verdict::DoesNotFit);
}

#[test]
fn a_launcher_that_sizes_its_groups_to_the_pipeline_needs_no_record() {
    let chip = metal("M1");
    let sized = |record: &mut MetalRecord| record.max_threads = MaxThreads::SizedToPipeline;
    boundary_of_block(&chip, sized);
}

/// The chip's own limit still holds.
fn boundary_of_block(chip: &MetalChip, change: fn(&mut MetalRecord)) {
    let with = |threads: u64| {
        fit(chip, |record, launch| {
            change(record);
            launch.block = [threads, 1, 1];
        })
    };
    assert!(with(1024).fits());
    assert_eq!(rules(&with(1025)), [Rule::BlockX, Rule::BlockThreads]);
}

#[test]
fn a_source_that_reserves_its_threads_runs_so_many_and_no_more() {
    boundary(Rule::ReservedThreads, 256, |threads| {
        fit(&metal("M2"), |record, launch| {
            record.max_threads = MaxThreads::Reserved(256);
            launch.block = [threads, 1, 1];
        })
    });
}

#[test]
fn a_kernel_of_tensor_operations_is_held_to_256_threads_where_it_cannot_be_compiled_ahead() {
    let with = |name: &str, threads: u64| {
        fit(&metal(name), |record, launch| {
            record.max_threads = MaxThreads::Unknown;
            record.tensor_operations = true;
            launch.block = [threads, 1, 1];
        })
    };
    for name in ["M1", "M2"] {
        boundary(Rule::TensorThreads, 256, |threads| with(name, threads));
    }
    for name in ["M3", "M4", "M5"] {
        assert_eq!(with(name, 256).verdict(), Verdict::UnknownUntilCompiled);
    }
}

#[test]
fn a_record_of_another_execution_width_is_of_another_chip() {
    let red = fit(&metal("M1"), |record, _| record.execution_width = Some(64));
    assert_eq!(rules(&red), [Rule::ExecutionWidth]);
}

const FILE: &str = r#"{
  "schema": 1,
  "pipelines": {
    "row_sum": {
      "threadgroup_bytes": 128,
      "chips": {
        "M1": { "max_threads": 512, "execution_width": 32 },
        "M2": { "max_threads": 576, "threadgroup_bytes": 256 }
      }
    },
    "tiles": { "exemption": { "reserved": 128 }, "chips": { "M1": { "max_threads": 96 } } },
    "rows": { "exemption": "sized-to-pipeline" },
    "mma": { "tensor_operations": true }
  }
}"#;

#[test]
fn a_file_says_what_is_recorded_of_each_pipeline_on_each_chip() {
    let records = MetalRecords::parse(FILE, "f.json").expect("the file is good");
    let threads =
        |pipeline: &str, chip: &str| records.get(pipeline, chip).map(|record| record.max_threads);
    assert_eq!(threads("row_sum", "M1"), Some(MaxThreads::Compiled(512)));
    assert_eq!(threads("row_sum", "M3"), Some(MaxThreads::Unknown));
    assert_eq!(threads("tiles", "M1"), Some(MaxThreads::Compiled(96)), "a compile outweighs");
    assert_eq!(threads("tiles", "M2"), Some(MaxThreads::Reserved(128)));
    assert_eq!(threads("rows", "M2"), Some(MaxThreads::SizedToPipeline));
    assert_eq!(threads("other", "M1"), None);
    let bytes = |chip| records.get("row_sum", chip).and_then(|record| record.threadgroup_bytes);
    assert_eq!((bytes("M1"), bytes("M2")), (Some(128), Some(256)));
    assert!(records.get("mma", "M1").is_some_and(|record| record.tensor_operations));
    assert!(!records.verified_on_hardware, "and nothing has verified it");
    let text = records.write().expect("it writes");
    assert_eq!(MetalRecords::parse(&text, "again.json"), Ok(records));
}

#[test]
fn a_wrong_file_is_refused_with_its_name_and_the_place() {
    let wrong = [
        (FILE.replace("\"schema\": 1", "\"schema\": 2"), "schema 2, where this version reads 1"),
        (FILE.replace("512", "0"), "pipeline `row_sum`, chip `M1`: max_threads is 0"),
        (FILE.replace("128 }", "0 }"), "pipeline `tiles`: reserves 0 threads"),
        (FILE.replace("512", "-1"), "expected u32"),
        (FILE.replace("tensor_operations", "tensors"), "unknown field `tensors`"),
        (FILE[..40].to_owned(), "EOF"),
    ];
    for (text, place) in wrong {
        let error = MetalRecords::parse(&text, "f.json").expect_err(place).to_string();
        assert!(error.starts_with("f.json: ") && error.contains(place), "{error}");
    }
}

#[test]
fn records_of_a_source_that_has_changed_are_stale() {
    let mut records = MetalRecords::parse(FILE, "f.json").expect("the file is good");
    let digest = |text: &[u8]| {
        Digest::of(&[SourceText { path: "a.metal".into(), text: text.to_vec() }], &[])
    };
    records.sources.insert("a.metal".into(), digest(b"kernel"));
    assert_eq!(records.stale(&|_| Some(b"kernel".to_vec())), [] as [&str; 0]);
    for now in [Some(b"kernel ".to_vec()), None] {
        let stale = records.stale(&|_| now.clone());
        assert!(stale[0].contains("`a.metal` are stale") && stale[0].contains("--offline"));
    }
}

#[test]
fn every_rule_of_metal_alone_is_broken_here() {
    let own: BTreeSet<Rule> = Rule::ALL.into_iter().filter(|rule| *rule > Rule::Lds).collect();
    let broken = [
        Rule::PipelineThreads,
        Rule::ReservedThreads,
        Rule::TensorThreads,
        Rule::ThreadgroupBytes,
        Rule::ThreadgroupAlignment,
        Rule::ExecutionWidth,
    ];
    assert_eq!(own, broken.into_iter().collect());
}
