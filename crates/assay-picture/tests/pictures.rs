//! Every picture of a fixed record against its stored bytes, and the rules that all pictures keep.
//!
//! `ASSAY_BLESS=1 cargo test -p assay-picture` writes the stored pictures anew. Look at them.

mod records;
mod rules;

use std::path::Path;

use assay_picture::{
    RoofSource, Roofline, Rung, distributions, heat_map, histogram, ladder, roofline, timeline,
};

/// All pictures of the fixed records, by the names of their files.
fn pictures() -> Vec<(&'static str, String)> {
    vec![
        ("roofline", roofline(&records::device())),
        ("roofline_crowded", roofline(&records::crowded())),
        ("histogram", histogram(&records::samples())),
        ("histogram_throttled", histogram(&records::throttled())),
        ("distributions", distributions(&records::turns())),
        ("distributions_apart", distributions(&records::apart())),
        ("ladder", ladder("Latencies of a made-up device", &records::rungs())),
        ("timeline", timeline(&records::stamps(8, 4))),
        ("timeline_many", timeline(&records::stamps(200, 9))),
        ("heat_map", heat_map(&records::errors())),
        ("heat_map_thin", heat_map(&records::thin())),
    ]
}

#[test]
fn every_picture_is_the_stored_one_byte_for_byte() {
    for (name, svg) in pictures() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/pictures/{name}.svg"));
        if std::env::var_os("ASSAY_BLESS").is_some() {
            std::fs::write(&path, &svg).expect("a writable folder");
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stored == svg, "{name}.svg differs; see it, then ASSAY_BLESS=1 to store it");
    }
}

#[test]
fn no_text_hides_another_or_leaves_its_picture() {
    for (name, svg) in pictures() {
        let found = rules::broken(&svg);
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn the_rules_see_texts_that_overlap_or_leave_the_picture() {
    let text = |x: i32| format!(r#"<text class="" font-size="10" text-anchor="start" x="{x}" "#);
    let svg = |a: i32, b: i32| {
        format!(
            "<svg viewBox=\"0 0 100 50\">\n{}y=\"20\">abc</text>\n{}y=\"22\">def</text>\n</svg>",
            text(a),
            text(b)
        )
    };
    assert!(rules::broken(&svg(10, 50)).is_empty());
    assert_eq!(rules::broken(&svg(10, 20)).len(), 1);
    assert_eq!(rules::broken(&svg(10, 90)).len(), 1);
}

#[test]
fn no_record_however_odd_breaks_a_picture() {
    let empty = assay_picture::Roofline::default();
    let odd = [
        roofline(&empty),
        roofline(&records::odd_roofline()),
        histogram(&assay_picture::Histogram::default()),
        histogram(&records::odd_samples()),
        distributions(&assay_picture::Distributions::default()),
        distributions(&records::odd_distributions()),
        ladder("", &[]),
        timeline(&records::stamps(0, 0)),
        heat_map(&assay_record::ErrorMap::new("empty", 0, 0, "ulp")),
        heat_map(&records::torn_map()),
    ];
    for svg in odd {
        assert!(svg.ends_with("</svg>\n"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
        let found = rules::broken(&svg);
        assert!(found.is_empty(), "{found:#?}\n{svg}");
    }
}

#[test]
fn a_kernel_over_its_roof_is_flagged_and_one_at_the_roof_is_not() {
    let record = records::device();
    let place = |name: &str| {
        let point = record.points.iter().find(|point| point.name == name);
        record.place(point.expect("a point")).expect("a place")
    };
    let wrong = place("miscounted_copy");
    assert!(wrong.is_counting_error && wrong.fraction > 1.05, "{wrong:?}");
    assert!(!place("matmul_bf16").is_counting_error);
    assert_eq!(place("softmax_f32").bound_by, "dram_read");
    let svg = roofline(&record);
    let flags = svg.matches("over the roof, a counting error").count();
    assert_eq!(flags, 1, "the flagged kernel says so, and no other");
    let mut honest = record.clone();
    honest.points.retain(|point| point.name != "miscounted_copy");
    assert!(!roofline(&honest).contains("counting error"));
}

#[test]
fn every_roof_says_whether_it_was_measured() {
    let svg = roofline(&records::device());
    let texts = || svg.lines().filter(|line| line.starts_with("<text"));
    assert_eq!(texts().filter(|line| line.contains(", measured")).count(), 7);
    assert_eq!(texts().filter(|line| line.contains(", datasheet")).count(), 1);
}

#[test]
fn a_dossier_gives_its_measured_rates_as_roofs_and_its_latencies_in_order() {
    let roofs = Roofline::of(&records::dossier()).roofs;
    let names: Vec<&str> = roofs.iter().map(|roof| roof.name.as_str()).collect();
    let wanted = ["dram_read", "dram_bus", "fma_f32", "wgmma_f16"];
    assert_eq!(names, wanted, "l2_read failed and is no roof, nor is the slower path to fp16");
    assert_eq!(roofs[1].source, RoofSource::Datasheet);
    let rungs = Rung::all_of(&records::dossier());
    let names: Vec<&str> = rungs.iter().map(|rung| rung.name.as_str()).collect();
    assert_eq!(names, ["shared", "dram"]);
    assert_eq!(rungs[1].nanoseconds, Some(323.0));
}

#[test]
fn a_series_marks_the_kept_samples_next_to_a_throttle_and_no_others() {
    let series = records::series(20_000.0, 10);
    let histogram = assay_picture::Histogram::of("x", &series);
    // Places 3 and 4 are marked, 3 was rejected; of those kept, place 4 is the fourth.
    assert_eq!(histogram.throttled_ns, [series.duration_ns[3]]);
    let mut free = series.clone();
    free.watched = None;
    assert!(assay_picture::Histogram::of("x", &free).throttled_ns.is_empty());
}

#[test]
fn a_comparison_in_turns_has_its_control_beside_it_and_one_of_records_has_none() {
    let rows = |record: &assay_picture::Distributions| -> Vec<String> {
        record.rows.iter().map(|row| row.name.clone()).collect()
    };
    let turns = records::turns();
    assert_eq!(rows(&turns), ["plain", "changed", "plain again"]);
    assert_eq!(turns.rows[0].rejected_ns.len(), 2, "rejected rounds are apart");
    assert_eq!(turns.effects.bars.len(), 3);
    assert_eq!(rows(&records::apart()), ["plain", "changed"]);
}
