//! What is pinned of products by other libraries, judged by bands of reduction order.

use serde_json::Value;

const RECORD: &str = include_str!("../../../records/h200-bands.jsonl");

/// What the documentation says of them, or what of it does not hold.
fn claims(text: &str) -> Result<(), String> {
    let (mut right, mut halves, mut moved) = (0, 0, 0);
    for line in text.lines() {
        let run: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let count = |name: &str| run[name].as_u64().unwrap_or(0);
        let least = run["farthest"]["least"].as_f64().unwrap_or(f64::NAN);
        let holds = match run["kind"].as_str().unwrap_or_default() {
            "tf32" | "bf16" => {
                halves += count("fail");
                count("fail") == count("products") && least > 100.0
            }
            "one element" => {
                moved += count("fail");
                true
            }
            _ => {
                right += count("pass");
                count("pass") == count("products") && run["right"] == true
            }
        };
        if !holds || count("products") == 0 {
            return Err(format!("other than is said: {line}"));
        }
    }
    let found = (right, halves, moved);
    if found == (336, 168, 79) { Ok(()) } else { Err(format!("other numbers: {found:?}")) }
}

#[test]
fn right_products_of_other_libraries_pass_and_those_of_fewer_bits_do_not() {
    claims(RECORD).expect("all of it holds");
}

#[test]
fn a_right_product_outside_its_bands_a_wrong_one_within_and_a_lost_line_are_no_such_record() {
    for (from, to) in [
        (r#""pass": 28, "fail": 0"#, r#""pass": 27, "fail": 1"#),
        (r#""kind": "tf32""#, r#""kind": "numpy""#),
    ] {
        assert!(RECORD.contains(from));
        assert!(claims(&RECORD.replacen(from, to, 1)).is_err(), "{from}");
    }
    let (_, rest) = RECORD.split_once('\n').expect("lines");
    assert!(claims(rest).is_err());
}
