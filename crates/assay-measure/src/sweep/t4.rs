//! A search as the open format "T4" for the results of auto-tuners, schema 1.0.0, which Kernel
//! Tuner writes and its companions read. Times are milliseconds there.

use assay_record::{RowStatus, SweepRecord, SweepRow};
use serde_json::{Value, json};

/// The record as T4. A pruned configuration is a correct one with the samples that it has. Times
/// that nobody took, such as those of the search itself, are left out.
///
/// What compiles a configuration is `compilation_time` in the schema and `compilation` in the files
/// that Kernel Tuner writes; nothing is compiled in a sweep, and both say so.
pub fn to_t4(record: &SweepRecord) -> Value {
    let results: Vec<Value> = record.rows.iter().map(|row| result(record, row)).collect();
    let SweepRecord { kernel, device, dims, .. } = record;
    json!({
        "schema_version": "1.0.0",
        "metadata": {
            "timeunit": "milliseconds",
            "kernel": kernel,
            "dims": dims,
            "device": device,
            "driver": record.driver,
        },
        "results": results,
    })
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
            "compilation": 0,
            "benchmark": milliseconds.iter().sum::<f64>(),
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

    fn record() -> SweepRecord {
        SweepRecord {
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
                row(RowStatus::Pruned, &[4e6]),
                row(RowStatus::Wrong, &[]),
                row(RowStatus::Refused, &[]),
                row(RowStatus::Unreached, &[]),
            ],
            verdict: SweepVerdict::Nothing { reason: String::new() },
            notes: Vec::new(),
        }
    }

    /// What the results schema 1.0.0 demands that a file does not have, in words. Names, types and
    /// words are those of Kernel Tuner 1.5.0, `schema/T4/1.0.0/results-schema.json`.
    fn objections(t4: &Value) -> Vec<String> {
        let mut objections = Vec::new();
        let mut demand = |holds: bool, what: &str| {
            if !holds {
                objections.push(what.to_owned());
            }
        };
        demand(t4.is_object(), "a file is an object");
        let version = t4["schema_version"].as_str().unwrap_or_default();
        let parts: Vec<&str> = version.split('.').collect();
        let digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        demand(
            parts.len() == 3 && parts.iter().all(digits),
            "`schema_version` is major.minor.patch",
        );
        demand(t4["results"].is_array(), "`results` is an array");
        for result in t4["results"].as_array().into_iter().flatten() {
            for name in ["configuration", "times", "invalidity", "correctness"] {
                demand(result.get(name).is_some(), name);
            }
            let optional = |value: &Value, fits: bool| value.is_null() || fits;
            demand(result["configuration"].is_object(), "`configuration` is an object");
            let times = &result["times"];
            demand(times.is_object(), "`times` is an object");
            for name in ["compilation_time", "framework", "search_algorithm", "validation"] {
                demand(optional(&times[name], times[name].is_number()), name);
            }
            demand(optional(&times["runtimes"], times["runtimes"].is_array()), "`runtimes`");
            let words = ["timeout", "compile", "runtime", "correctness", "constraints", "correct"];
            let word = result["invalidity"].as_str().unwrap_or_default();
            demand(words.contains(&word), "`invalidity` is one of six words");
            demand(result["correctness"].is_number(), "`correctness` is a number");
            for (name, fits) in [
                ("timestamp", result["timestamp"].is_string()),
                ("objectives", result["objectives"].is_array()),
                ("measurements", result["measurements"].is_array()),
            ] {
                demand(optional(&result[name], fits), name);
            }
            for one in result["measurements"].as_array().into_iter().flatten() {
                demand(one.is_object() && one["name"].is_string(), "a measurement has a name");
                let value = &one["value"];
                let fits = value.is_number() || value.is_string() || value.is_array();
                demand(fits, "a measurement's value is a number, words or several");
                demand(one["unit"].is_string(), "a measurement's unit");
            }
        }
        objections
    }

    #[test]
    fn a_search_holds_to_every_demand_of_the_results_schema() {
        let t4 = to_t4(&record());
        assert_eq!(objections(&t4), Vec::<String>::new());
        let results = t4["results"].as_array().expect("results");
        let words: Vec<_> = results.iter().map(|result| result["invalidity"].as_str()).collect();
        let expected = ["correct", "correct", "correctness", "runtime", "timeout"];
        assert_eq!(words, expected.map(Some));
        let right: Vec<_> = results.iter().map(|r| r["correctness"].as_u64()).collect();
        assert_eq!(right, [1, 1, 0, 0, 0].map(Some));
        assert_eq!(results[0]["times"]["runtimes"], json!([2.0, 3.0]), "milliseconds");
        let time = json!([{ "name": "time", "value": 2.0, "unit": "ms" }]);
        assert_eq!(results[0]["measurements"], time);
        // Without it readers take times for seconds.
        assert_eq!(t4["metadata"]["timeunit"], "milliseconds");
    }

    #[test]
    fn what_the_schema_does_not_allow_is_seen() {
        let whole = to_t4(&record());
        for (pointer, value) in [
            ("/schema_version", json!("1.0")),
            ("/results", json!({})),
            ("/results/0/configuration", json!([64])),
            ("/results/0/times", json!(2.0)),
            ("/results/0/times/compilation_time", json!("none")),
            ("/results/0/times/runtimes", json!(2.0)),
            ("/results/0/invalidity", json!("pruned")),
            ("/results/0/correctness", json!("yes")),
            ("/results/0/timestamp", json!(0)),
            ("/results/0/objectives", json!("time")),
            ("/results/0/measurements", json!({ "time": 2.0 })),
            ("/results/0/measurements/0/name", json!(1)),
            ("/results/0/measurements/0/value", json!(true)),
            ("/results/0/measurements/0/unit", json!(1)),
        ] {
            let mut doctored = whole.clone();
            *doctored.pointer_mut(pointer).expect(pointer) = value;
            assert_ne!(objections(&doctored), Vec::<String>::new(), "{pointer}");
        }
        for name in ["configuration", "times", "invalidity", "correctness"] {
            let mut doctored = whole.clone();
            doctored["results"][0].as_object_mut().expect("a result").remove(name);
            assert_ne!(objections(&doctored), Vec::<String>::new(), "without {name}");
        }
    }
}
