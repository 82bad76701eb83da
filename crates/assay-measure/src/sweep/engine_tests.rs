//! Searches over made-up kernels: known times with noise from a fixed seed.

use std::collections::BTreeMap;

use assay_num::random::SplitMix64;

use super::*;

/// Kernels whose times are known; a factor of noise, and one that grows with every sample.
struct Made {
    times: BTreeMap<i64, f64>,
    wrong: Vec<i64>,
    noise: f64,
    drift: f64,
    random: SplitMix64,
    taken: u64,
    gated: u64,
    lost_after: u64,
}

impl Made {
    fn new(times: &[(i64, f64)], noise: f64) -> Made {
        Made {
            times: times.iter().copied().collect(),
            wrong: Vec::new(),
            noise,
            drift: 0.0,
            random: SplitMix64::new(5),
            taken: 0,
            gated: 0,
            lost_after: u64::MAX,
        }
    }

    fn configurations(&self) -> Vec<Configuration> {
        self.times.keys().map(|&block| configuration(block)).collect()
    }
}

fn configuration(block: i64) -> Configuration {
    [("block".to_owned(), block)].into()
}

fn block(configuration: &Configuration) -> i64 {
    configuration.get("block").copied().unwrap_or(0)
}

impl Subject for Made {
    fn gate(&mut self, configuration: &Configuration) -> Result<Gate, String> {
        self.gated += 1;
        let block = block(configuration);
        Ok(match block {
            _ if self.wrong.contains(&block) => Gate::Wrong("element 3 is 1, not 2".into()),
            block if block > 1024 => Gate::Refused("1024 threads at most".into()),
            _ => Gate::Right,
        })
    }

    fn time(&mut self, configuration: &Configuration, samples: u32) -> Result<Vec<f64>, String> {
        let time = self.times.get(&block(configuration)).copied().ok_or("no such kernel")?;
        let mut all = Vec::new();
        for _ in 0..samples {
            self.taken += 1;
            if self.taken > self.lost_after {
                return Err("the device is lost".into());
            }
            let uniform = self.random.next_u64() as f64 / u64::MAX as f64;
            let drift = 1.0 + self.drift * self.taken as f64;
            all.push(time * drift * (1.0 + self.noise * (uniform - 0.5)));
        }
        Ok(all)
    }
}

fn searched(plan: &SweepPlan, made: &mut Made, cache: &mut Cache) -> Search {
    let mut seconds = 0.0;
    let mut now = || {
        seconds += 0.001;
        seconds
    };
    sweep(plan, made.configurations(), made, cache, &mut now, &mut |_| {})
}

fn status(search: &Search, wanted: i64) -> RowStatus {
    let row = search.rows.iter().find(|row| block(&row.configuration) == wanted);
    row.expect("a row").status
}

fn winner(search: &Search) -> Option<i64> {
    match &search.verdict {
        SweepVerdict::Winner { configuration, .. } => Some(block(configuration)),
        _ => None,
    }
}

const TIMES: [(i64, f64); 9] = [
    (32, 900.0),
    (64, 500.0),
    (96, 450.0),
    (128, 300.0),
    (192, 330.0),
    (256, 320.0),
    (384, 400.0),
    (512, 700.0),
    (1024, 800.0),
];

#[test]
fn the_fastest_wins_and_what_was_pruned_is_still_a_row() {
    for race in [false, true] {
        let plan = SweepPlan { race, ..SweepPlan::default() };
        let search = searched(&plan, &mut Made::new(&TIMES, 0.02), &mut Cache::none());
        assert_eq!(winner(&search), Some(128), "{:?}", search.verdict);
        assert_eq!(search.rows.len(), TIMES.len());
        assert_eq!(status(&search, 32), RowStatus::Pruned);
        assert_eq!(block(&search.rows[0].configuration), 128, "the fastest row is first");
        let slow = search.rows.iter().find(|row| block(&row.configuration) == 32);
        assert!(slow.is_some_and(|row| row.reason.contains("slower after round 1")), "{slow:?}");
    }
}

#[test]
fn the_same_search_twice_has_the_same_winner() {
    let winners: Vec<Option<i64>> = (1..=20)
        .map(|seed| {
            let mut made = Made::new(&TIMES, 0.1);
            made.random = SplitMix64::new(seed);
            winner(&searched(&SweepPlan::default(), &mut made, &mut Cache::none()))
        })
        .collect();
    assert!(winners.iter().all(|winner| *winner == Some(128)), "{winners:?}");
}

#[test]
fn a_fast_wrong_configuration_cannot_win() {
    let mut planted = TIMES.to_vec();
    planted.push((48, 10.0));
    let mut made = Made::new(&planted, 0.02);
    made.wrong.push(48);
    let search = searched(&SweepPlan::default(), &mut made, &mut Cache::none());
    assert_eq!(winner(&search), Some(128));
    assert_eq!(status(&search, 48), RowStatus::Wrong);
    let row = search.rows.iter().find(|row| block(&row.configuration) == 48).expect("a row");
    assert!(row.duration_ns.is_empty() && row.reason.contains("element 3"), "{row:?}");
    // The control: were it right, it would have won.
    let mut right = Made::new(&planted, 0.02);
    let search = searched(&SweepPlan::default(), &mut right, &mut Cache::none());
    assert_eq!(winner(&search), Some(48));
}

#[test]
fn two_that_cannot_be_told_apart_are_ambiguous() {
    let mut twins = TIMES.to_vec();
    twins.push((160, 300.1));
    let search = searched(&SweepPlan::default(), &mut Made::new(&twins, 0.05), &mut Cache::none());
    let SweepVerdict::Ambiguous { configurations, .. } = &search.verdict else {
        panic!("{:?}", search.verdict)
    };
    let blocks: Vec<i64> = configurations.iter().map(block).collect();
    assert_eq!(blocks, [128, 160]);
}

#[test]
fn a_device_that_slows_down_all_the_while_does_not_change_the_winner() {
    let mut made = Made::new(&TIMES, 0.02);
    made.drift = 2e-5;
    let search = searched(&SweepPlan::default(), &mut made, &mut Cache::none());
    assert_eq!(winner(&search), Some(128), "{:?}", search.verdict);
}

#[test]
fn a_spent_budget_gives_the_rows_there_are_and_no_winner() {
    let plan = SweepPlan { budget_s: 0.015, ..SweepPlan::default() };
    let search = searched(&plan, &mut Made::new(&TIMES, 0.02), &mut Cache::none());
    assert!(search.stopped.is_some_and(|reason| reason.contains("budget")));
    assert!(matches!(search.verdict, SweepVerdict::Ambiguous { .. }), "{:?}", search.verdict);
    let timed = search.rows.iter().filter(|row| row.median_ns.is_some()).count();
    assert!(timed > 0 && timed < TIMES.len(), "{timed}");
}

#[test]
fn a_lost_device_and_a_search_with_nothing_right_have_no_winner() {
    let mut lost = Made::new(&TIMES, 0.02);
    lost.lost_after = 30;
    let search = searched(&SweepPlan::default(), &mut lost, &mut Cache::none());
    assert_eq!(search.stopped.as_deref(), Some("the device is lost"));
    assert_eq!(winner(&search), None);
    let mut none = Made::new(&[(2048, 1.0)], 0.0);
    let search = searched(&SweepPlan::default(), &mut none, &mut Cache::none());
    assert!(matches!(search.verdict, SweepVerdict::Nothing { .. }));
    assert_eq!(status(&search, 2048), RowStatus::Refused);
}

#[test]
fn what_the_cache_knows_is_neither_gated_nor_timed_again() {
    let mut cache = Cache::none();
    let mut made = Made::new(&TIMES, 0.02);
    let first = searched(&SweepPlan::default(), &mut made, &mut cache);
    let (gated, taken) = (made.gated, made.taken);
    let second = searched(&SweepPlan::default(), &mut made, &mut cache);
    assert_eq!(made.gated, gated, "no gate ran again");
    let finals = 2 * 64 * 4;
    assert_eq!(made.taken - taken, finals, "only the finals were timed again");
    assert_eq!(winner(&first), winner(&second));
    assert!(second.rows.iter().all(|row| row.from_cache));
}
