//! `assay compare` with bands of reduction order: computed from inputs, or given as outputs for
//! shuffled inputs. A sum in another order passes, a wrong one does not.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use assay_compare::{NpzWriter, Tensor};
use assay_num::random::SplitMix64;
use serde_json::Value;

const SEED: u64 = 5;
const ROWS: usize = 2048;
const COLS: usize = 129;

/// A folder of this test's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = format!("assay-bands-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::create_dir_all(&path).expect("a folder");
        Scratch(path)
    }

    /// An archive of named tensors; returns its path.
    fn arrays(&self, name: &str, arrays: &[(&str, &[u64], &[f32])]) -> String {
        let path = self.0.join(name);
        let mut writer = NpzWriter::create(&path).expect("created");
        for (name, shape, values) in arrays {
            let tensor = Tensor::from_f32(shape, values).expect("a tensor");
            writer.tensor(name, &tensor).expect("written");
        }
        writer.finish().expect("finished");
        path.display().to_string()
    }

    fn sums(&self, name: &str, sums: &[f32]) -> String {
        self.arrays(name, &[("y", &[sums.len() as u64], sums)])
    }

    fn input(&self) -> String {
        self.arrays("x.npz", &[("x", &[ROWS as u64, COLS as u64], &terms())])
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn normal(count: usize, seed: u64) -> Vec<f32> {
    let mut random = SplitMix64::new(seed);
    (0..count).map(|_| random.normal() as f32).collect()
}

fn terms() -> Vec<f32> {
    normal(ROWS * COLS, SEED)
}

fn in_order(row: &[f32]) -> f32 {
    row.iter().fold(0.0, |sum, x| sum + x)
}

fn row_sums(sum: impl Fn(&[f32]) -> f32) -> Vec<f32> {
    terms().chunks(COLS).map(sum).collect()
}

fn reordered() -> Vec<f32> {
    row_sums(|row| row.chunks(16).map(in_order).rev().fold(0.0, |sum, part| sum + part))
}

/// Every second sum one ulp up: half an ulp on the average.
fn biased() -> Vec<f32> {
    let up = |(at, sum): (usize, f32)| {
        let step = i32::from(at % 2 == 0) * if sum > 0.0 { 1 } else { -1 };
        f32::from_bits(sum.to_bits().wrapping_add_signed(step))
    };
    row_sums(in_order).into_iter().enumerate().map(up).collect()
}

fn one_wrong() -> Vec<f32> {
    let mut sums = reordered();
    sums[1234] += 1e-3;
    sums
}

fn assay(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.arg("compare").args(arguments).env("NO_COLOR", "1");
    let Output { status, stdout, stderr } = command.output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

fn findings(json: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(json).expect("JSON");
    let findings = report["comparisons"][0]["findings"].as_array().expect("findings").clone();
    findings.iter().map(|one| one["kind"].as_str().expect("a kind").to_owned()).collect()
}

#[test]
fn a_reordered_sum_passes_and_a_wrong_element_and_a_bias_of_half_an_ulp_do_not() {
    let scratch = Scratch::new("sum");
    let x = scratch.input();
    let judged = |name: &str, sums: &[f32], expected: &[&str]| {
        let candidate = scratch.sums(name, sums);
        let options = ["--sum-of", &x, "--shuffles", "16", "--seed", "3", &candidate];
        let (code, json, error) = assay(&[&options[..], &["--json", "-"]].concat());
        assert_eq!(code, i32::from(!expected.is_empty()), "{json}{error}");
        assert_eq!(findings(&json), expected);
        let report: Value = serde_json::from_str(&json).expect("JSON");
        assert!(report["reference"].as_str().is_some_and(|text| text.contains("the sum of")));
        let band = report["comparisons"][0]["band"].clone();
        assert_eq!(
            (&band["shuffle"], &band["shuffles"], &band["seed"]),
            (&"last_dim".into(), &16.into(), &3.into())
        );
        (assay(&options).1, band)
    };
    let (_, band) = judged("reordered", &reordered(), &[]);
    assert_eq!(band["outside"], 0);
    let (table, band) = judged("wrong", &one_wrong(), &["band"]);
    assert_eq!((&band["outside"], &band["first_outside"][0]), (&1.into(), &1234.into()));
    assert!(band["worst"][0]["margin"].as_f64().is_some_and(|margin| margin > 2.0), "{band}");
    for part in ["1 outside their band", "first at [1234]", "16 shuffles (last_dim, seed 3), z "] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(table.contains("half widths") && table.contains("lean:"), "{table}");
    let (table, band) = judged("biased", &biased(), &["bias"]);
    assert_eq!(band["outside"], 0);
    assert!(table.contains("the tensor leans"), "{table}");
}

#[test]
fn outputs_for_shuffled_inputs_serve_as_files_as_one_array_and_as_named_ones() {
    let scratch = Scratch::new("given");
    let mut random = SplitMix64::new(SEED + 1);
    let shuffled: Vec<Vec<f32>> = (0..12)
        .map(|_| {
            let mut order: Vec<usize> = (0..COLS).collect();
            random.shuffle(&mut order);
            row_sums(|row| order.iter().fold(0.0, |sum, &at| sum + row[at]))
        })
        .collect();
    let reference = scratch.sums("reference", &row_sums(in_order));
    let files: Vec<String> = shuffled
        .iter()
        .enumerate()
        .map(|(at, sums)| scratch.sums(&format!("shuffled-{at}"), sums))
        .collect();
    let stacked = scratch.arrays("stacked", &[("s", &[12, ROWS as u64], &shuffled.concat())]);
    let names: Vec<String> = (0..12).map(|at| format!("y.{at}")).collect();
    let rows = [ROWS as u64];
    let named: Vec<(&str, &[u64], &[f32])> = names
        .iter()
        .zip(&shuffled)
        .map(|(name, sums)| (name.as_str(), &rows[..], &sums[..]))
        .collect();
    let named = scratch.arrays("named", &named);
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut bands = Vec::new();
    for given in [&files[..], &[&stacked], &[&named]] {
        let judged = |name: &str, sums: &[f32]| {
            let candidate = scratch.sums(name, sums);
            let pair = [&reference, candidate.as_str(), "--json", "-", "--shuffled"];
            let (_, json, error) = assay(&[&pair[..], given].concat());
            assert!(!json.is_empty(), "{error}");
            let report: Value = serde_json::from_str(&json).expect("JSON");
            (findings(&json), report["comparisons"][0]["band"].clone())
        };
        let (found, band) = judged("reordered", &reordered());
        assert!(found.is_empty(), "{found:?} {band}");
        assert_eq!((&band["shuffles"], &band["seed"]), (&12.into(), &Value::Null));
        assert_eq!(judged("wrong", &one_wrong()).0, ["band"]);
        assert_eq!(judged("biased", &biased()).0, ["bias"]);
        bands.push(band);
    }
    assert!(bands.iter().all(|band| *band == bands[0]), "{bands:?}");
    // Fewer of them, and such as do not fit.
    let (code, out, _) = assay(&[&reference, &reference, "--shuffled", files[0]]);
    assert!(code == 2 && out.contains("1 shuffles are too few"), "{out}");
    let other = scratch.sums("other", &[1.0, 2.0]);
    let (code, out, _) = assay(&[&reference, &reference, "--shuffled", &other]);
    assert!(code == 2 && out.contains("has the shape [2], and the reference [2048]"), "{out}");
}

/// A product with dots taken by a function of a row and a column.
fn product(a: &[f32], b: &[f32], dot: impl Fn(&[f32], &[f32]) -> f32) -> Vec<f32> {
    let column = |j: usize| (0..K).map(|at| b[at * N + j]).collect::<Vec<f32>>();
    let columns: Vec<Vec<f32>> = (0..N).map(column).collect();
    (0..M * N).map(|at| dot(&a[at / N * K..][..K], &columns[at % N])).collect()
}

const M: usize = 24;
const K: usize = 96;
const N: usize = 20;

#[test]
fn a_product_with_fma_or_split_along_k_passes_and_one_that_loses_a_term_does_not() {
    let scratch = Scratch::new("product");
    let (a, b) = (normal(M * K, 7), normal(K * N, 8));
    let shape = |rows: usize, cols: usize| [rows as u64, cols as u64];
    let inputs = scratch.arrays("ab.npz", &[("a", &shape(M, K), &a), ("b", &shape(K, N), &b)]);
    let judged = |dot: &dyn Fn(&[f32], &[f32]) -> f32| {
        let candidate = scratch.arrays("c.npz", &[("c", &shape(M, N), &product(&a, &b, dot))]);
        let (left, right) = (format!("{inputs}:a"), format!("{inputs}:b"));
        assay(&["--matmul-of", &left, &right, &candidate])
    };
    let plain = |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0, |sum: f32, (x, y)| sum + x * y);
    let fused =
        |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0, |sum: f32, (x, y)| x.mul_add(*y, sum));
    let split = |a: &[f32], b: &[f32]| {
        a.chunks(24).zip(b.chunks(24)).map(|(a, b)| plain(a, b)).fold(0.0, |sum, part| sum + part)
    };
    for right in [&fused as &dyn Fn(&[f32], &[f32]) -> f32, &split] {
        let (code, out, error) = judged(right);
        assert_eq!(code, 0, "{out}{error}");
        assert!(out.contains("matmul_k, seed 1"), "{out}");
    }
    let (code, out, _) = judged(&|a, b| plain(&a[1..], &b[1..]));
    assert!(code == 1 && out.contains("outside their band of reduction order"), "{out}");
}

#[test]
fn a_device_judges_by_bands_as_the_cpu_does() {
    let scratch = Scratch::new("device");
    let (x, sums) = (scratch.input(), scratch.sums("sums", &one_wrong()));
    let right = scratch.sums("right", &row_sums(in_order));
    let given: Vec<String> = (1..6)
        .map(|by| {
            let turned = row_sums(|row| in_order(&[&row[by * 9..], &row[..by * 9]].concat()));
            scratch.sums(&format!("given-{by}"), &turned)
        })
        .collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    for (arguments, expected) in [
        (vec![sums.as_str(), "--shuffles", "6", "--sum-of", &x], 1),
        (vec![right.as_str(), "--shuffles", "6", "--sum-of", &x], 0),
        ([&[right.as_str(), &sums, "--shuffled"], &given[..]].concat(), 1),
    ] {
        let reports = [&[][..], &["--device", "emulator:sm_90"]].map(|device| {
            let (code, out, error) = assay(&[&arguments[..], device, &["--json", "-"]].concat());
            assert_eq!(code, expected, "{out}{error}");
            serde_json::from_str::<Value>(&out).expect("JSON")
        });
        assert_eq!(reports[0]["comparisons"], reports[1]["comparisons"]);
        assert!(reports[1]["device"].as_str().is_some_and(|device| device.contains("sm_90")));
    }
}

#[test]
fn the_picture_of_bands_shows_what_is_allowed_computed_or_given() {
    let scratch = Scratch::new("picture");
    let (x, sums) = (scratch.input(), scratch.sums("sums", &one_wrong()));
    let right = scratch.sums("right", &row_sums(in_order));
    let svg = scratch.0.join("map.svg").display().to_string();
    let given: Vec<String> = (1..6)
        .map(|by| {
            let turned = row_sums(|row| in_order(&[&row[by * 9..], &row[..by * 9]].concat()));
            scratch.sums(&format!("given-{by}"), &turned)
        })
        .collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    for arguments in [
        vec![sums.as_str(), "--sum-of", &x],
        [&[right.as_str(), &sums, "--shuffled"], &given[..]].concat(),
    ] {
        let (code, out, error) = assay(&[&arguments[..], &["--svg", &svg]].concat());
        assert_eq!(code, 1, "{out}{error}");
        let picture = fs::read_to_string(&svg).expect("drawn");
        assert!(picture.contains("half widths"), "{arguments:?}");
        assert!(picture.contains("1 of 64 cells over 1"), "{arguments:?}");
        assert!(!picture.contains(" ulp"), "{arguments:?}");
    }
}

#[test]
fn outputs_of_inputs_that_were_not_shuffled_are_told_of() {
    let scratch = Scratch::new("same");
    let right = scratch.sums("right", &row_sums(in_order));
    let (_, out, _) =
        assay(&[&[right.as_str(), &right, "--shuffled"], &[right.as_str(); 5][..]].concat());
    assert!(out.contains("note: the shuffled outputs differ from each other by no more"), "{out}");
    let x = scratch.input();
    let (_, out, _) = assay(&[&right, "--sum-of", &x]);
    assert!(!out.contains("were the inputs shuffled"), "{out}");
}

#[test]
fn requests_for_bands_that_make_no_sense_are_refused_with_the_reason() {
    let scratch = Scratch::new("refused");
    let x = scratch.input();
    let sums = scratch.sums("sums", &row_sums(in_order));
    let other = scratch.sums("other", &[1.0, 2.0]);
    let cases: [(&[&str], &str); 10] = [
        (&["--false-alarm", "0.1", &sums, &sums], "--shuffled"),
        (&[&sums], "there is nothing to compare it with"),
        (&["--sum-of", &x, &sums, &sums], "only CANDIDATE is to be named"),
        (&["--sum-of", &x, "--matmul-of", &x, &x, &sums], "cannot be used with"),
        (&["--shuffles", "8", &sums, &sums], "--sum-of"),
        (&["--sum-of", &x, "--accumulate", "i32", &sums], "f16, bf16, f32 or f64"),
        (&["--sum-of", &x, "--shuffles", "2", &sums], "take at least 4"),
        (&["--sum-of", &x, "--false-alarm", "0", &sums], "lies between 0 and 1"),
        (&["--sum-of", &x, &other], "and the candidate [2]"),
        (&["--matmul-of", &x, &x, &sums], "a product takes the shapes [.., M, K] and [.., K, N]"),
    ];
    for (arguments, reason) in cases {
        let (code, out, error) = assay(arguments);
        assert_eq!(code, 2, "{arguments:?}: {out}{error}");
        assert!(format!("{out}{error}").contains(reason), "{arguments:?}: {out}{error}");
    }
}
