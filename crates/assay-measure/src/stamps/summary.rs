//! What stamps say of each phase.

use std::collections::BTreeMap;

use assay_record::{Mark, PhaseStatistics, StampLane};

use crate::statistics::quantile;

/// The sorted cycles of every span, by phase.
fn spans(lanes: &[StampLane]) -> BTreeMap<u32, Vec<f64>> {
    let mut spans: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for pair in lanes.iter().flat_map(|lane| lane.marks.windows(2)) {
        if let [Mark { phase: Some(phase), cycles, .. }, next] = pair {
            let cycles = next.cycles.saturating_sub(*cycles) as f64;
            spans.entry(*phase).or_default().push(cycles);
        }
    }
    for spans in spans.values_mut() {
        spans.sort_by(f64::total_cmp);
    }
    spans
}

/// What each phase took over all lanes, in the order of the phases; those that never ran are left
/// out. A phase without a name is called by its number.
pub fn statistics(phases: &[String], lanes: &[StampLane]) -> Vec<PhaseStatistics> {
    let spans = spans(lanes);
    let all: f64 = spans.values().flatten().sum();
    let of_phase = |(phase, spans): (&u32, &Vec<f64>)| PhaseStatistics {
        phase: phases.get(*phase as usize).cloned().unwrap_or_else(|| format!("phase {phase}")),
        spans: spans.len() as u64,
        cycles_median: quantile(spans, 0.5),
        cycles_p5: quantile(spans, 0.05),
        cycles_p95: quantile(spans, 0.95),
        cycles_max: spans.last().copied().unwrap_or(0.0),
        share: if all > 0.0 { spans.iter().sum::<f64>() / all } else { 0.0 },
    };
    spans.iter().map(of_phase).collect()
}

/// The SM clock from both clocks of the lane that took longest, in MHz. `None` where no lane lasted
/// long enough against the steps of the device's clock, 10 us.
pub fn sm_clock_mhz(lanes: &[StampLane]) -> Option<f64> {
    const LEAST_NS: u64 = 10_000;
    let spans = lanes.iter().filter_map(|lane| {
        let (first, last) = (lane.marks.first()?, lane.marks.last()?);
        let nanoseconds = last.time_ns.checked_sub(first.time_ns)?;
        Some((nanoseconds, last.cycles.checked_sub(first.cycles)?))
    });
    let (nanoseconds, cycles) = spans.max()?;
    (nanoseconds >= LEAST_NS).then(|| cycles as f64 / nanoseconds as f64 * 1e3)
}

/// What of the stamps is not as it should be.
pub fn warnings(lanes: &[StampLane], dropped: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if lanes.is_empty() {
        warnings.push("no lane stamped anything: did the kernel get the buffer?".to_owned());
    }
    if dropped > 0 {
        warnings.push(format!("{dropped} stamps did not fit: allocate a larger capacity"));
    }
    let has_end = |lane: &StampLane| lane.marks.last().is_some_and(|mark| mark.phase.is_none());
    let endless = lanes.iter().filter(|lane| !has_end(lane)).count();
    if endless > 0 && dropped == 0 {
        warnings.push(format!("{endless} lanes have no end: their last phase is not counted"));
    }
    let back = |lane: &StampLane| lane.marks.windows(2).any(|m| m[1].cycles < m[0].cycles);
    let back = lanes.iter().filter(|lane| back(lane)).count();
    if back > 0 {
        warnings.push(format!("the cycles of {back} lanes run backwards"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(marks: &[(Option<u32>, u64, u64)]) -> StampLane {
        let mark = |&(phase, cycles, time_ns)| Mark { phase, cycles, time_ns };
        StampLane { lane: 0, multiprocessor: 0, marks: marks.iter().map(mark).collect() }
    }

    #[test]
    fn a_phase_that_recurs_has_a_span_for_each_time() {
        let lanes = [lane(&[
            (Some(0), 0, 10),
            (Some(1), 10, 0),
            (Some(0), 40, 0),
            (Some(7), 60, 0),
            (None, 100, 20_010),
        ])];
        let found = statistics(&["load".into(), "work".into()], &lanes);
        let words: Vec<(&str, u64, f64)> = found
            .iter()
            .map(|phase| (phase.phase.as_str(), phase.spans, phase.cycles_median))
            .collect();
        assert_eq!(words, [("load", 2, 15.0), ("work", 1, 30.0), ("phase 7", 1, 40.0)]);
        let shares: f64 = found.iter().map(|phase| phase.share).sum();
        assert!((shares - 1.0).abs() < 1e-12);
        assert_eq!(sm_clock_mhz(&lanes), Some(5.0));
    }

    #[test]
    fn what_is_not_as_it_should_be_is_told() {
        let sound = lane(&[(Some(0), 0, 1), (None, 5, 2)]);
        assert!(warnings(std::slice::from_ref(&sound), 0).is_empty());
        assert_eq!(warnings(&[], 0).len(), 1);
        assert_eq!(warnings(&[sound], 3).len(), 1);
        let odd = lane(&[(Some(0), 9, 1), (Some(1), 5, 2)]);
        assert_eq!(warnings(&[odd], 0).len(), 2);
        assert_eq!(sm_clock_mhz(&[]), None);
    }
}
