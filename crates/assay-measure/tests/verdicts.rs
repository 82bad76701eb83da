//! Comparisons on a simulated device: how often a kernel differs from itself, and how often one
//! that is slower by construction is called so, on good days and on bad ones.

#[allow(dead_code, reason = "its board is of another test")]
mod simulated;

use assay_measure::{Bar, Pairs, Stopwatch, VersusPlan, decide, judge};
use assay_num::random::SplitMix64;
use assay_record::{Effect, Verdict, Versus};
use simulated::{Noise, Simulated, kernel};

/// Days from good to bad; the baseline of every one takes 20 microseconds.
fn days() -> [(&'static str, Noise); 6] {
    let quiet = Noise::QUIET;
    [
        ("quiet", quiet),
        ("correlated", Noise { jitter_rel: 0.006, correlation: 0.9, ..quiet }),
        ("outliers", Noise { outliers: 0.05, ..quiet }),
        ("drifting", Noise { drift_rel_per_s: 0.2, ..quiet }),
        ("sagging", Noise { sagged: 0.3, ..quiet }),
        ("coarse timer", Noise { step_ns: 256.0, ..quiet }),
    ]
}

fn versus(noise: Noise, seed: u64, baseline_ns: u64, candidate_ns: u64) -> Versus {
    let mut device = Simulated::new(noise, seed);
    let mut stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    let mut asked = VersusPlan::default();
    asked.plan.seed = seed;
    asked.plan.most_samples = 256;
    let (mut a, mut b) = (kernel(baseline_ns), kernel(candidate_ns));
    let found = stopwatch.versus(&mut device, &asked, ("a", &mut a), ("b", &mut b));
    found.expect("the simulated device compares")
}

#[test]
fn a_kernel_differs_from_itself_at_most_once_in_five_hundred_times() {
    let mut alarms = Vec::new();
    let mut same = 0;
    for trial in 0..504 {
        let (day, noise) = days()[trial as usize % days().len()];
        let found = versus(noise, trial, 20_000, 20_000);
        match found.verdict {
            Verdict::Same => same += 1,
            Verdict::Fast | Verdict::Slow => alarms.push((day, trial, found.reason)),
            Verdict::Ambiguous => {}
        }
    }
    assert!(alarms.len() <= 1, "{alarms:#?}");
    assert!(same >= 450, "only {same} of 504 were called SAME");
}

#[test]
fn a_kernel_slowed_by_two_percent_is_called_slow_and_the_other_way_round_fast() {
    let (mut slow, mut fast) = (0, 0);
    for trial in 0..102 {
        let (_, noise) = days()[trial as usize % days().len()];
        slow += u32::from(versus(noise, trial, 20_000, 20_400).verdict == Verdict::Slow);
        fast += u32::from(versus(noise, trial, 20_400, 20_000).verdict == Verdict::Fast);
    }
    assert!(slow >= 97 && fast >= 97, "{slow} SLOW and {fast} FAST of 102");
}

#[test]
fn a_difference_on_the_threshold_is_never_surely_the_same() {
    for trial in 0..20 {
        let found = versus(Noise { jitter_rel: 0.02, ..Noise::QUIET }, trial, 20_000, 20_200);
        assert!(found.verdict != Verdict::Fast, "{found:?}");
    }
}

fn shifted(random: &mut SplitMix64, n: usize, shift: f64, clock: f64) -> Pairs {
    let mut pairs = Pairs::default();
    for _ in 0..n {
        let time = shift + 0.003 * random.normal();
        pairs.time.push(time);
        pairs.cycles.push(time + clock);
        pairs.control.push(0.003 * random.normal());
    }
    pairs
}

#[test]
fn a_slower_clock_does_not_make_a_slower_kernel() {
    let mut random = SplitMix64::new(1);
    let pairs = shifted(&mut random, 64, 0.05, -0.05);
    let judged = judge(&pairs, &Bar::default());
    assert_eq!(judged.verdict, Verdict::Ambiguous, "{}", judged.reason);
    assert!(judged.reason.contains("the clock differs"), "{}", judged.reason);
    let pairs = shifted(&mut random, 64, 0.05, 0.0);
    assert_eq!(judge(&pairs, &Bar::default()).verdict, Verdict::Slow);
}

#[test]
fn a_noisy_control_raises_the_bar_and_the_reason_says_so() {
    let effect = |rel: f64, half: f64| Effect { rel, lower: rel - half, upper: rel + half };
    let bar = Bar::default();
    let loud = effect(0.0, 0.06);
    let (verdict, reason) = decide(&effect(0.03, 0.01), None, Some(&loud), &bar);
    assert_eq!(verdict, Verdict::Ambiguous);
    assert!(reason.contains("differs from itself"), "{reason}");
    let quiet = effect(0.0, 0.001);
    assert_eq!(decide(&effect(0.03, 0.01), None, Some(&quiet), &bar).0, Verdict::Slow);
    assert_eq!(decide(&effect(-0.03, 0.01), None, Some(&quiet), &bar).0, Verdict::Fast);
    assert_eq!(decide(&effect(0.0, 0.002), None, Some(&quiet), &bar).0, Verdict::Same);
    // Nothing that noisy is the same.
    assert_eq!(decide(&effect(0.0, 0.002), None, Some(&loud), &bar).0, Verdict::Ambiguous);
    assert_eq!(judge(&Pairs::default(), &bar).verdict, Verdict::Ambiguous);
}
