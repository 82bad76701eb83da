//! Records are written and read back unchanged, and other versions' records are handled.

use assay_record::{
    CaseName, CaseNameError, DeviceRecord, Discrimination, Evidence, ExitCode, FaultResult,
    FaultVerdict, Gate, GateResult, KernelResult, Number, Outcome, Part, ReadError, Report, SCHEMA,
    Shard, Summary,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn case() -> CaseName {
    CaseName {
        kernel: "row_sum_f32".to_owned(),
        gate: Gate::Shapes,
        dims: vec![("rows".to_owned(), 7), ("cols".to_owned(), 4096)],
        fill: "wide".to_owned(),
        seed: 1,
        schedule: "in-order".to_owned(),
    }
}

fn fault() -> FaultResult {
    FaultResult {
        fault: "row_sum_f32_tail".to_owned(),
        of: "row_sum_f32".to_owned(),
        kind: "dropped-tail".to_owned(),
        what: "the last columns are left out".to_owned(),
        gate: Gate::Shapes,
        verdict: FaultVerdict::Elsewhere,
        gates: Vec::new(),
        margin: Some(Number(f64::INFINITY)),
        close: Some("it is".to_owned()),
        remark: None,
        seconds: 0.5,
    }
}

fn report() -> Report {
    let finding = Evidence {
        output: Some("y".to_owned()),
        element: Some(vec![6]),
        got: Some(Number(f64::NAN)),
        value: Some(Number(-0.0)),
        error: Some(Number(f64::INFINITY)),
        excess: Some(Number(f64::NEG_INFINITY)),
        margin: Some(Number(1.0 / 3.0)),
        place: Some("row_sum.ptx:41".to_owned()),
        ..Evidence::new(case(), Outcome::Fail, "one element is wrong")
    };
    let gate = GateResult {
        gate: Gate::Shapes,
        outcome: Outcome::Fail,
        reason: "1 of 12 cases fails".to_owned(),
        cases: 12,
        margin: Some(Number(5e-324)),
        findings: vec![finding],
        notes: vec!["a note".to_owned()],
        chips: Vec::new(),
    };
    Report {
        schema: SCHEMA,
        assay_version: "0.1.0".to_owned(),
        command: "assay check".to_owned(),
        date: "2026-11-29T21:00:00Z".to_owned(),
        seed: u64::MAX,
        device: DeviceRecord {
            name: "emulator".to_owned(),
            backend: "emulator".to_owned(),
            driver: None,
            architecture: "sm_80".to_owned(),
        },
        shard: Some(Shard {
            part: Part { index: 2, of: 3 },
            suite: "0123".to_owned(),
            gates: vec![Gate::Shapes],
            kernels: vec!["row_sum_f32".to_owned()],
            faults: Vec::new(),
            manifests: vec!["mine.toml".to_owned()],
            builds: Some("target/faults".to_owned()),
        }),
        kernels: vec![KernelResult {
            kernel: "row_sum_f32".to_owned(),
            control_for: Some(Gate::Fp32Sums),
            gates: vec![gate],
            error: None,
            build: None,
            seconds: 0.25,
        }],
        faults: vec![fault()],
        discrimination: vec![Discrimination {
            kernel: "row_sum_f32".to_owned(),
            fault: "row_sum_f32_tail".to_owned(),
            gate: Gate::Shapes,
            correct: Number(0.0),
            broken: Number(20.0),
            ratio: Number(f64::INFINITY),
            close: None,
        }],
        summary: Summary { kernels: 1, ..Summary::default() },
        smallest: None,
        exit_code: ExitCode::Problems.code(),
    }
}

/// The report as JSON with one change made to it.
fn changed(change: impl Fn(&mut serde_json::Value)) -> String {
    let mut value = serde_json::to_value(report()).expect("a report has a JSON form");
    change(&mut value);
    value.to_string()
}

#[test]
fn a_report_is_read_back_unchanged() {
    let json = report().to_json().expect("a report has a JSON form");
    let again = Report::from_json(&json).expect("what was written is read");
    assert_eq!(again, report());
    let finding = &again.kernels[0].gates[0].findings[0];
    assert!(finding.value.expect("it was written").0.is_sign_negative());
}

#[test]
fn a_report_of_a_newer_schema_is_refused_by_name() {
    let json = changed(|value| value["schema"] = (SCHEMA + 1).into());
    let error = Report::from_json(&json).expect_err("a newer schema is not read");
    assert!(matches!(error, ReadError::Newer { found: 2, known: 1 }));
    assert_eq!(
        error.to_string(),
        "the report has schema 2, and this version of assay reads schemas up to 1; \
         read it with the version that wrote it, or a later one"
    );
}

#[test]
fn a_newer_schema_is_named_even_where_its_layout_is_unknown() {
    let error = Report::from_json(r#"{"schema": 9, "everything": "else"}"#);
    assert!(matches!(error, Err(ReadError::Newer { found: 9, .. })));
}

#[test]
fn unknown_keys_of_the_same_schema_are_ignored() {
    let json = changed(|value| {
        value["added_later"] = 1.into();
        value["kernels"][0]["gates"][0]["added_later"] = "text".into();
    });
    assert_eq!(Report::from_json(&json).expect("added keys are tolerated"), report());
}

#[test]
fn a_missing_optional_key_reads_as_absent() {
    let json = changed(|value| {
        let gate = value["kernels"][0]["gates"][0].as_object_mut().expect("a gate is an object");
        gate.remove("margin");
        gate.remove("notes");
    });
    let report = Report::from_json(&json).expect("optional keys may be missing");
    assert_eq!(report.kernels[0].gates[0].margin, None);
}

#[test]
fn what_is_no_report_is_said_to_be_none() {
    for text in ["{}", "[]", r#"{"schema": 0}"#, r#"{"schema": "1"}"#] {
        assert!(matches!(Report::from_json(text), Err(ReadError::NoSchema)), "{text}");
    }
    for text in ["", "{", r#"{"schema": 1}"#] {
        assert!(matches!(Report::from_json(text), Err(ReadError::Malformed(_))), "{text}");
    }
    let json = changed(|value| value["kernels"][0]["gates"][0]["outcome"] = "maybe".into());
    assert!(matches!(Report::from_json(&json), Err(ReadError::Malformed(_))));
}

#[test]
fn exit_codes_have_a_strict_precedence() {
    let order = [70, 2, 3, 4, 1, 0].map(|code| ExitCode::from_code(code).expect("a known code"));
    for (index, &first) in order.iter().enumerate() {
        for &second in &order[index..] {
            assert_eq!(first.worst(second), first);
            assert_eq!(second.worst(first), first);
        }
    }
    assert_eq!(ExitCode::from_code(5), None);
}

#[test]
fn gates_are_read_by_name_and_by_number() {
    for (index, gate) in Gate::ALL.into_iter().enumerate() {
        assert_eq!(gate.number() as usize, index + 1);
        assert_eq!(gate.to_string().parse(), Ok(gate));
        assert_eq!(gate.number().to_string().parse(), Ok(gate));
        let json = serde_json::to_string(&gate).expect("a gate has a JSON form");
        assert_eq!(json, format!("\"{gate}\""));
    }
    assert!("speed".parse::<Gate>().is_err());
}

#[test]
fn a_case_name_reads_as_its_parameters() {
    let text = "row_sum_f32/shapes/rows=7,cols=4096/wide/seed=1/in-order";
    assert_eq!(case().to_string(), text);
    assert_eq!(text.parse(), Ok(case()));
    assert!(case().matches("rows=7,cols"));
    assert!(!case().matches("rows=8"));
    let bare = CaseName { dims: Vec::new(), ..case() };
    assert_eq!(bare.to_string(), "row_sum_f32/shapes/-/wide/seed=1/in-order");
    assert_eq!(bare.to_string().parse(), Ok(bare));
}

#[test]
fn a_wrong_case_name_says_which_part_is_wrong() {
    let error = |text: &str| text.parse::<CaseName>().expect_err(text);
    assert!(matches!(error("row_sum"), CaseNameError::Parts { parts: 1, .. }));
    assert!(matches!(error("k/speed/-/f/seed=1/s"), CaseNameError::Gate(_)));
    assert!(matches!(error("k/shapes/rows/f/seed=1/s"), CaseNameError::Dim { .. }));
    assert!(matches!(error("k/shapes//f/seed=1/s"), CaseNameError::Dim { .. }));
    assert!(matches!(error("k/shapes/rows=x/f/seed=1/s"), CaseNameError::Dim { .. }));
    assert!(matches!(error("k/shapes/-/f/1/s"), CaseNameError::Seed { .. }));
    assert!(matches!(error("k/shapes/-/f/seed=-1/s"), CaseNameError::Seed { .. }));
    assert!(matches!(error("/shapes/-/f/seed=1/s"), CaseNameError::Blank { part: "kernel", .. }));
    assert!(matches!(error("k/shapes/-/f/seed=1/"), CaseNameError::Blank { .. }));
}

#[test]
fn a_kernel_passes_only_if_something_passed_and_nothing_else_happened() {
    let gate = |gate, outcome| GateResult {
        gate,
        outcome,
        reason: String::new(),
        cases: 1,
        margin: None,
        findings: Vec::new(),
        notes: Vec::new(),
        chips: Vec::new(),
    };
    let kernel = |gates| KernelResult {
        kernel: "k".to_owned(),
        control_for: Some(Gate::Repeat),
        gates,
        error: None,
        build: None,
        seconds: 0.0,
    };
    let pass = gate(Gate::Shapes, Outcome::Pass);
    assert!(kernel(vec![pass.clone(), gate(Gate::Repeat, Outcome::NotApplicable)]).passes());
    assert!(!kernel(vec![gate(Gate::Repeat, Outcome::NotApplicable)]).passes());
    assert!(!kernel(Vec::new()).passes());
    for outcome in [Outcome::Fail, Outcome::Known, Outcome::Unproven, Outcome::Unsupported] {
        let kernel = kernel(vec![pass.clone(), gate(Gate::Repeat, outcome)]);
        assert!(!kernel.passes());
        assert_eq!(kernel.is_red(), outcome == Outcome::Fail);
    }
    assert!(!kernel(vec![gate(Gate::Shapes, Outcome::Fail)]).is_red());
}

fn any_case() -> impl Strategy<Value = CaseName> {
    let word = "[a-z0-9_]{1,12}";
    let dims = prop::collection::vec((word, any::<i64>()), 0..4);
    let gate = (0..Gate::ALL.len()).prop_map(|index| Gate::ALL[index]);
    (word, gate, dims, "[a-z0-9.:=+-]{1,16}", any::<u64>(), "[a-z0-9=-]{1,16}").prop_map(
        |(kernel, gate, dims, fill, seed, schedule)| CaseName {
            kernel,
            gate,
            dims,
            fill,
            seed,
            schedule,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_case_name_is_read_back(case in any_case()) {
        prop_assert_eq!(case.to_string().parse::<CaseName>(), Ok(case.clone()));
        let json = serde_json::to_string(&case).expect("a case has a JSON form");
        prop_assert_eq!(serde_json::from_str::<CaseName>(&json).expect("it is read back"), case);
    }

    #[test]
    fn no_text_panics_the_case_name_reader(text in "[a-z/=,\\-0-9 é]{0,40}") {
        if let Ok(case) = text.parse::<CaseName>() {
            prop_assert_eq!(case.to_string().parse::<CaseName>(), Ok(case));
        }
    }

    #[test]
    fn every_number_survives_json(bits in any::<u64>()) {
        let number = Number(f64::from_bits(bits));
        let json = serde_json::to_string(&number).expect("a number has a JSON form");
        let again: Number = serde_json::from_str(&json).expect("it is read back");
        prop_assert_eq!(again, number);
        prop_assert!(number.0.is_nan() || again.0.to_bits() == bits);
    }
}

#[test]
fn a_report_from_before_faults_is_still_read() {
    let old = changed(|value| {
        let keys = value.as_object_mut().expect("a report is an object");
        keys.remove("faults");
        keys.remove("discrimination");
        keys.remove("shard");
    });
    let report = Report::from_json(&old).expect("an old report is read");
    assert!(report.faults.is_empty() && report.discrimination.is_empty());
}

#[test]
fn a_fault_is_near_its_kernel_below_ten_times_and_a_problem_only_unexplained() {
    let apart = |ratio: f64, close: Option<&str>| Discrimination {
        ratio: Number(ratio),
        close: close.map(str::to_owned),
        ..report().discrimination.remove(0)
    };
    assert!(!apart(10.0, None).is_close() && !apart(f64::INFINITY, None).is_problem());
    assert!(apart(9.9, None).is_problem() && apart(f64::NAN, None).is_problem());
    assert!(apart(9.9, Some("why")).is_close() && !apart(9.9, Some("why")).is_problem());
}

#[test]
fn only_what_is_caught_by_its_gate_or_cannot_be_told_apart_is_no_problem() {
    use FaultVerdict::{Caught, Elsewhere, Equivalent, Survived, Unjudged};
    assert!(!Caught.is_problem() && !Equivalent.is_problem());
    assert!(Elsewhere.is_problem() && Survived.is_problem() && Unjudged.is_problem());
}

#[test]
fn a_part_is_one_of_so_many_counted_from_one() {
    assert_eq!("2/3".parse(), Ok(Part { index: 2, of: 3 }));
    assert_eq!(Part { index: 2, of: 3 }.to_string(), "2/3");
    for wrong in ["", "2", "0/3", "4/3", "1/0", "-1/3", "a/b", "1/2/3"] {
        assert!(wrong.parse::<Part>().is_err(), "{wrong}");
    }
}
