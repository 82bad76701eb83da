//! Sets of records: read, written, chosen and found stale.

use std::collections::BTreeMap;

use assay_image::{CudaKernel, Parameter, Release};

use super::*;

fn release(text: &str) -> Release {
    text.parse().unwrap()
}

fn kernel(name: &str, registers: u32) -> CudaKernel {
    CudaKernel {
        name: name.to_owned(),
        registers,
        max_threads: Some([256, 1, 1]),
        ..CudaKernel::default()
    }
}

fn digest_of(text: &str) -> Digest {
    let text = SourceText { path: "sum.cu".to_owned(), text: text.as_bytes().to_vec() };
    Digest::of(&[text], &["-O3".to_owned()])
}

fn set(of: &str, registers: u32) -> RecordSet<CudaKernel> {
    let mut set = RecordSet::new(release(of), vec!["-O3".to_owned()]);
    set.sources.insert("sum".to_owned(), digest_of("sum"));
    for chip in ["sm_80", "sm_120"] {
        set.insert("sum", chip, kernel("sum_f32", 30));
    }
    set.insert("sum", "sm_90", kernel("sum_f32", registers));
    set
}

/// Four releases, of which 13.3.73 differs from the one before it in one kernel.
fn records() -> Records {
    let mut last = set("13.5.37", 40);
    last.remove("sum", "sum_f32", "sm_80");
    Records {
        cuda: vec![set("13.0.88", 32), set("13.2.86", 32), set("13.3.73", 40), last],
        hip: Vec::new(),
    }
}

fn read(files: &[(String, String)]) -> Result<Records, RecordsError> {
    Records::read(files.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

#[test]
fn sets_read_back_as_they_were_written_in_any_order_of_files() {
    let mut files = records().write();
    assert_eq!(read(&files).unwrap(), records());
    files.reverse();
    assert_eq!(read(&files).unwrap(), records());
}

#[test]
fn a_later_release_stores_only_what_differs_one_record_a_line() {
    let files: BTreeMap<String, String> = records().write().into_iter().collect();
    let lines = |name: &str| {
        let text = &files[&format!("cuda-{name}.json")];
        text.lines().filter(|line| line.contains("sum_f32")).collect::<Vec<_>>()
    };
    assert_eq!(lines("13.0.88").len(), 3);
    assert_eq!(lines("13.2.86").len(), 0);
    assert_eq!(
        lines("13.3.73"),
        [r#"{"module":"sum","chip":"sm_90","name":"sum_f32","registers":40,"#.to_owned()
            + r#""static_shared_bytes":0,"stack_bytes":0,"max_threads":[256,1,1],"barriers":0,"#
            + r#""parameter_bytes":0}"#]
    );
    assert_eq!(lines("13.5.37"), [r#"{"module":"sum","chip":"sm_80","name":"sum_f32"}"#]);
}

#[test]
fn a_release_is_checked_against_the_newest_set_at_or_below_it_and_the_answer_says_which() {
    let records = records();
    let chosen = |asked: Option<&str>| records.cuda_for(asked.map(release)).unwrap();
    for (asked, used, said) in [
        (Some("13.0.88"), "13.0.88", "records of nvcc 13.0.88"),
        (Some("13.0.48"), "13.0.88", "records of nvcc 13.0.88, of the same line as 13.0.48"),
        (Some("13.1.115"), "13.0.88", "records of nvcc 13.0.88, the newest at or below 13.1.115"),
        (Some("13.4.92"), "13.3.73", "records of nvcc 13.3.73, the newest at or below 13.4.92"),
        (Some("14.0.1"), "13.5.37", "records of nvcc 13.5.37, the newest at or below 14.0.1"),
        (None, "13.0.88", "records of nvcc 13.0.88, the oldest, since no release is named"),
    ] {
        let chosen = chosen(asked);
        assert_eq!(chosen.release, release(used), "{asked:?}");
        assert_eq!(chosen.to_string(), said);
    }
    assert_eq!(chosen(Some("13.4.92")).get("sum", "sum_f32", "sm_90").unwrap().registers, 40);
    assert_eq!(records.cuda("sum", "sum_f32", "sm_90").unwrap().registers, 32);
    assert_eq!(records.cuda("sum", "sum_f32", "sm_75"), None);
}

#[test]
fn a_missing_set_is_an_error_that_says_what_to_do() {
    let error = records().cuda_for(Some(release("12.8.93"))).unwrap_err().to_string();
    assert!(error.contains("at or below release 12.8.93: the oldest are of 13.0.88"), "{error}");
    assert!(error.contains("`cargo xtask records`"), "{error}");
    let error = records().hip_for(None).unwrap_err().to_string();
    assert_eq!(error, "there are no records of clang: `cargo xtask records` makes them");
    let mut files = records().write();
    files.remove(1);
    let error = read(&files).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "records cuda-13.3.73.json: it stores what differs from 13.2.86, and the set before it \
             is 13.0.88"
        ),
        "{error}"
    );
    assert!(error.contains("`cargo xtask records`"), "{error}");
}

#[test]
fn a_record_altered_by_one_register_is_stale() {
    let (recorded, fresh) = (set("13.0.88", 33), set("13.0.88", 32));
    assert_eq!(fresh.stale_facts(&fresh, |_, _| true), []);
    let stale = recorded.stale_facts(&fresh, |_, _| true);
    let said: Vec<String> = stale.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["stale records of nvcc 13.0.88: sum/sum_f32 on sm_90: registers 33 -> 32; derive them \
          again with `cargo xtask records --release 13.0.88`"]
    );
    let elsewhere = recorded.stale_facts(&fresh, |_, chip| chip != "sm_90");
    assert_eq!(elsewhere, [], "what was not compiled again is not compared");
}

#[test]
fn a_kernel_that_is_new_or_gone_is_stale() {
    let recorded = set("13.0.88", 32);
    let mut fresh = recorded.clone();
    fresh.remove("sum", "sum_f32", "sm_80");
    fresh.insert("sum", "sm_80", kernel("sum_f16", 20));
    let said: Vec<String> =
        recorded.stale_facts(&fresh, |_, _| true).iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2);
    assert!(said[0].contains("sum/sum_f16 on sm_80 is compiled and not recorded"), "{said:?}");
    assert!(said[1].contains("sum/sum_f32 on sm_80: no longer compiled"), "{said:?}");
}

#[test]
fn a_source_with_a_changed_digest_is_stale_and_so_is_one_that_is_new_or_gone() {
    let set = set("13.2.86", 32);
    let today = |sources: &[(&str, &str)]| {
        let sources: BTreeMap<String, Digest> =
            sources.iter().map(|(name, text)| ((*name).to_owned(), digest_of(text))).collect();
        let stale = set.stale_sources(&sources);
        stale.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(today(&[("sum", "sum")]), [""; 0]);
    let changed = today(&[("sum", "sum ")]);
    assert_eq!(
        changed,
        ["stale records of nvcc 13.2.86: what sum is compiled from has changed; derive them \
          again with `cargo xtask records --release 13.2.86`"]
    );
    let moved = today(&[("max", "max")]);
    assert!(moved[0].contains("max is not recorded"), "{moved:?}");
    assert!(moved[1].contains("sum is recorded and is no source"), "{moved:?}");
}

#[test]
fn a_digest_depends_on_every_text_its_path_and_the_options_and_on_no_order() {
    let text = |path: &str, text: &str| SourceText {
        path: path.to_owned(),
        text: text.as_bytes().to_vec(),
    };
    let option = |option: &str| vec![option.to_owned()];
    let (source, header) = (text("a.cu", "int a;"), text("b.cuh", "int b;"));
    let base = Digest::of(&[source.clone(), header.clone()], &option("-O3"));
    assert_eq!(base, Digest::of(&[header.clone(), source.clone()], &option("-O3")));
    for other in [
        Digest::of(&[source.clone(), header.clone()], &option("-O2")),
        Digest::of(std::slice::from_ref(&source), &option("-O3")),
        Digest::of(&[source.clone(), text("c.cuh", "int b;")], &option("-O3")),
        Digest::of(&[source, text("b.cuh", "int b; ")], &option("-O3")),
        Digest::of(&[text("a.cu", "int a;b.cuh"), text("", "int b;")], &option("-O3")),
    ] {
        assert_ne!(base, other);
    }
    assert_eq!(base.to_string().parse(), Ok(base));
    for wrong in ["", "12", "+2345678123456781234567812345678", &"g".repeat(32)] {
        assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
    }
}

#[test]
fn an_empty_digest_is_the_offset_basis_of_fnv() {
    assert_eq!(Digest::of(&[], &[]).to_string(), "6c62272e07bb014262b821756295c58d");
}

#[test]
fn files_that_cannot_be_used_are_errors_that_name_the_file_and_the_place() {
    let good = records().write().swap_remove(0).1;
    let absent = r#""absent":[{"module":"x","chip":"sm_80","name":"y"}]"#;
    let delta = records().write().swap_remove(1).1.replace("\"absent\":[]", absent);
    let last = good.lines().rfind(|line| line.contains("sum_f32")).unwrap();
    for (text, said) in [
        (String::new(), "EOF while parsing"),
        ("[".repeat(100_000), "invalid type"),
        (good.replace("\"schema\":1", "\"schema\":2"), "schema 2, where this version reads 1"),
        (good.replace("\"cuda\"", "\"metal\""), "vendor `metal` is neither `cuda` nor `hip`"),
        (good.replace("13.0.88", "13"), "`13` is not a release"),
        (good.replace("\"registers\":32", "\"registers\":-1"), "line"),
        (good.replace("\"registers\":32", "\"registers\":99999999999"), "line"),
        (good.replace(last, &format!("{last},{last}")), "is recorded twice"),
        (good[..good.len() / 2].to_owned(), "EOF while parsing"),
    ] {
        let error = Records::read([("x.json", text.as_str())]).unwrap_err().to_string();
        assert!(error.starts_with("records x.json: "), "{error}");
        assert!(error.contains(said), "{error}");
    }
    let error = Records::read([("a.json", good.as_str()), ("b.json", &good)]).unwrap_err();
    assert!(error.to_string().contains("13.0.88 has a set already"), "{error}");
    let error = Records::read([("a.json", good.as_str()), ("b.json", &delta)]).unwrap_err();
    assert!(error.to_string().contains("x/y on sm_80 is left out"), "{error}");
}

#[test]
fn parameters_are_not_stored_one_by_one() {
    let mut set = RecordSet::new(release("13.0.88"), Vec::new());
    let parameters = vec![Parameter { offset: 0, size: 8 }];
    set.insert(
        "sum",
        "sm_80",
        CudaKernel { parameters, parameter_bytes: 8, ..kernel("sum_f32", 9) },
    );
    let kept = set.get("sum", "sum_f32", "sm_80").unwrap();
    assert_eq!((kept.parameter_bytes, kept.parameters.len()), (8, 0));
}

#[test]
fn the_built_in_records_can_be_read() {
    Records::built_in().unwrap();
}
