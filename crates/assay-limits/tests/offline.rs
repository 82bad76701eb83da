//! The step that compiles Metal pipelines on a Mac, on canned output of Xcode's tools: nothing is
//! spawned here, and nothing of it has been seen on hardware.

use std::collections::BTreeMap;

use assay_limits::{
    Chips, MaxThreads, MetalPipeline, MetalRecords, Workshop, native_code, offline,
};

/// A Mach-O file of one segment.
fn mach_o(segment: &str, section: &str, contents: &[u8]) -> Vec<u8> {
    let word = |number: usize| (number as u32).to_le_bytes().to_vec();
    let long = |number: usize| (number as u64).to_le_bytes().to_vec();
    let named = |name: &str| {
        let mut field = name.as_bytes().to_vec();
        field.resize(16, 0);
        field
    };
    let start = 32 + 72 + 80;
    let mut file = word(0xfeed_facf);
    file.extend([word(0), word(0), word(1), word(1), word(152), word(0), word(0)].concat());
    file.extend([word(0x19), word(152), named(segment)].concat());
    file.extend([long(0), long(0), long(0), long(0), long(0), word(1), word(0)].concat());
    file.extend([named(section), named(segment), long(0), long(contents.len())].concat());
    file.extend(
        [word(start), word(0), word(0), word(0), word(0), word(0), word(0), word(0)].concat(),
    );
    assert_eq!(file.len(), start);
    file.extend_from_slice(contents);
    file
}

fn binary(code: &[u8]) -> Vec<u8> {
    mach_o("", "__compute", &mach_o("__TEXT", "__text", code))
}

/// A Mac that compiles `row_sum` to other code past so many threads, by architecture.
struct Canned {
    files: BTreeMap<String, Vec<u8>>,
    runs: Vec<String>,
    most: BTreeMap<&'static str, u64>,
}

impl Canned {
    fn new(most: &[(&'static str, u64)]) -> Canned {
        let files = BTreeMap::from([("rows.metal".to_owned(), b"kernel void row_sum".to_vec())]);
        Canned { files, runs: Vec::new(), most: most.iter().copied().collect() }
    }

    fn compile(&mut self, architecture: &str) -> Result<String, String> {
        let script = String::from_utf8(self.files["assay.mtlp-json"].clone()).expect("JSON");
        let script: serde_json::Value = serde_json::from_str(&script).expect("JSON");
        let pipeline = &script["pipelines"]["compute_pipelines"][0];
        assert_eq!(pipeline["compute_function"], "row_sum");
        let most = *self.most.get(architecture).ok_or("metal-tt failed: unsupported")?;
        let threads = pipeline["max_total_threads_per_threadgroup"].as_u64().unwrap_or(most);
        let code = if threads <= most { vec![1, 2, 3] } else { vec![9, threads as u8] };
        self.files.insert("assay.gpubin".to_owned(), binary(&code));
        Ok(String::new())
    }
}

impl Workshop for Canned {
    fn sources(&mut self) -> Result<Vec<String>, String> {
        Ok(vec!["rows.metal".to_owned()])
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.files.get(name).cloned().ok_or_else(|| format!("{name}: no such file"))
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.files.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn run(&mut self, tool: &str, arguments: &[&str]) -> Result<String, String> {
        self.runs.push(format!("{tool} {}", arguments.join(" ")));
        match (tool, arguments) {
            ("metal", ["--version"]) => Ok("Apple metal version 32023.620\nTarget: x\n".into()),
            ("metal-nm", _) => {
                Ok("00000000 T row_sum\n00000000 t hidden\n         U air.f\n".into())
            }
            ("metal-tt", ["-arch", architecture, ..]) => self.compile(architecture),
            ("metal-lipo", _) => {
                let thin = self.files["assay.gpubin"].clone();
                self.files.insert("assay.thin".to_owned(), thin);
                Ok(String::new())
            }
            _ => Ok(String::new()),
        }
    }
}

fn records(threadgroup_bytes: u64) -> MetalRecords {
    let pipeline =
        MetalPipeline { threadgroup_bytes: Some(threadgroup_bytes), ..MetalPipeline::default() };
    MetalRecords::new(String::new(), BTreeMap::from([("row_sum".to_owned(), pipeline)]))
}

#[test]
fn the_most_threads_that_leave_the_code_as_it_is_are_what_the_plain_pipeline_runs() {
    let mut mac = Canned::new(&[("applegpu_g13g", 512), ("applegpu_g14g", 1024)]);
    let made = offline(&mut mac, &Chips::built_in(), records(128)).expect("it compiles");
    assert_eq!(made.left_out, [] as [&str; 0]);
    let record = made.records.get("row_sum", "M1").expect("it is recorded");
    assert_eq!(record.max_threads, MaxThreads::Compiled(512));
    assert_eq!(record.threadgroup_bytes, Some(128), "what was declared is kept");
    let record = made.records.get("row_sum", "M2").expect("it is recorded");
    assert_eq!(record.max_threads, MaxThreads::Compiled(1024));
    let record = made.records.get("row_sum", "M3").expect("the pipeline is there");
    assert_eq!(record.max_threads, MaxThreads::Unknown, "registers are given out later there");
    assert!(made.records.get("hidden", "M1").is_none());
    assert_eq!(made.records.tools, "Apple metal version 32023.620");
    assert!(!made.records.verified_on_hardware);
    assert!(made.records.stale(&|_| Some(b"kernel void row_sum".to_vec())).is_empty());
    let plain = "metal-tt -arch applegpu_g13g -platform_version macos 14.0 14.0 -o assay.gpubin \
                 rows.metallib assay.mtlp-json";
    assert!(mac.runs.contains(&plain.to_owned()), "{:?}", mac.runs);
}

#[test]
fn a_pipeline_that_does_not_compile_for_a_chip_is_left_out_with_the_reason() {
    let mut mac = Canned::new(&[("applegpu_g13g", 512)]);
    let made = offline(&mut mac, &Chips::built_in(), records(0)).expect("M1 compiles");
    assert_eq!(made.left_out, ["`row_sum` for M2: metal-tt failed: unsupported"]);
    let record = made.records.get("row_sum", "M2").expect("the pipeline is there");
    assert_eq!(record.max_threads, MaxThreads::Unknown);
}

#[test]
fn code_that_no_number_of_threads_gives_is_no_record() {
    let mut mac = Canned::new(&[("applegpu_g13g", 16), ("applegpu_g14g", 16)]);
    let made = offline(&mut mac, &Chips::built_in(), records(0)).expect("it compiles");
    assert!(made.left_out[0].ends_with("from 32 to 1024 leaves its code as it is"));
}

#[test]
fn a_folder_that_cannot_be_compiled_says_what_was_tried() {
    struct NoMac;
    impl Workshop for NoMac {
        fn sources(&mut self) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }
        fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
            Err("nothing".into())
        }
        fn write(&mut self, _: &str, _: &[u8]) -> Result<(), String> {
            Err("nothing".into())
        }
        fn run(&mut self, _: &str, _: &[&str]) -> Result<String, String> {
            Err("xcrun cannot be run".into())
        }
    }
    let error = offline(&mut NoMac, &Chips::built_in(), records(0)).expect_err("no Mac");
    assert_eq!(error.to_string(), "asking for metal: xcrun cannot be run");
}

#[test]
fn native_code_is_found_and_no_file_however_cut_or_changed_makes_the_reader_fail_otherwise() {
    let good = binary(b"code");
    assert_eq!(native_code(&good), Ok(b"code".to_vec()));
    for length in 0..good.len() {
        assert!(native_code(&good[..length]).is_err(), "cut at {length}");
    }
    for at in 0..good.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] = byte;
            if let Ok(code) = native_code(&bad) {
                assert!(code.len() <= bad.len());
            }
        }
    }
    assert_eq!(
        native_code(b"MTLB....").expect_err("another format").to_string(),
        "no native code: no 64-bit Mach-O file at byte 0"
    );
}
