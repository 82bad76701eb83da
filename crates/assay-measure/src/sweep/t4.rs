//! A search as the open format "T4" for the results of auto-tuners, schema 1.0.0, which Kernel
//! Tuner reads and writes. Times are milliseconds there.

use assay_record::{RowStatus, SweepRecord, SweepRow};
use serde_json::{Value, json};

/// The record as T4. A pruned configuration is a correct one with the samples that it has.
pub fn to_t4(record: &SweepRecord) -> Value {
    let results: Vec<Value> = record.rows.iter().map(|row| result(record, row)).collect();
    json!({ "schema_version": "1.0.0", "results": results })
}

fn result(record: &SweepRecord, row: &SweepRow) -> Value {
    let milliseconds: Vec<f64> = row.duration_ns.iter().map(|ns| ns * 1e-6).collect();
    let (invalidity, correctness) = match row.status {
        RowStatus::Finalist | RowStatus::Pruned => ("correct", 1),
        RowStatus::Wrong => ("correctness", 0),
        RowStatus::Refused => ("runtime", 0),
        RowStatus::Unreached => ("timeout", 0),
    };
    let measurements: Vec<Value> = row
        .median_ns
        .iter()
        .map(|ns| json!({ "name": "time", "value": ns * 1e-6, "unit": "ms" }))
        .collect();
    json!({
        "timestamp": record.date,
        "configuration": row.configuration,
        "times": {
            "compilation_time": 0,
            "framework": 0,
            "search_algorithm": 0,
            "validation": 0,
            "runtimes": milliseconds,
        },
        "invalidity": invalidity,
        "correctness": correctness,
        "measurements": measurements,
        "objectives": ["time"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_record::{SWEEP_SCHEMA, SweepVerdict};

    fn row(status: RowStatus, duration_ns: &[f64]) -> SweepRow {
        SweepRow {
            configuration: [("block".to_owned(), 64)].into(),
            status,
            reason: String::new(),
            rounds: 1,
            median_ns: duration_ns.first().copied(),
            interval_ns: None,
            duration_ns: duration_ns.to_vec(),
            from_cache: false,
        }
    }

    #[test]
    fn every_row_has_what_the_schema_requires() {
        let record = SweepRecord {
            schema: SWEEP_SCHEMA,
            assay_version: String::new(),
            command: String::new(),
            date: "2026-11-30T00:00:00Z".into(),
            kernel: "k".into(),
            dims: [].into(),
            device: String::new(),
            driver: None,
            key: String::new(),
            axes: [].into(),
            constraints: Vec::new(),
            excluded: 0,
            race: false,
            budget_s: 1.0,
            spent_s: 1.0,
            rows: vec![
                row(RowStatus::Finalist, &[2e6, 3e6]),
                row(RowStatus::Wrong, &[]),
                row(RowStatus::Refused, &[]),
                row(RowStatus::Unreached, &[]),
            ],
            verdict: SweepVerdict::Nothing { reason: String::new() },
            notes: Vec::new(),
        };
        let t4 = to_t4(&record);
        let results = t4["results"].as_array().expect("results");
        let words = ["timeout", "compile", "runtime", "correctness", "constraints", "correct"];
        for result in results {
            for name in ["configuration", "times", "invalidity", "correctness"] {
                assert!(!result[name].is_null(), "{name}: {result}");
            }
            assert!(words.contains(&result["invalidity"].as_str().unwrap_or_default()));
        }
        assert_eq!(results[0]["times"]["runtimes"], json!([2.0, 3.0]));
        assert_eq!(results[0]["measurements"][0]["value"], json!(2.0));
        assert_eq!(results[1]["correctness"], json!(0));
    }
}
