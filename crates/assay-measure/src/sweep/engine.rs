//! Rounds, pruning, finals.

use assay_record::{Configuration, RowStatus, SweepRow, SweepVerdict};

use super::{Cache, Gate, Subject};
use crate::statistics::{effective_samples, median, median_interval, sorted};

/// How to search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SweepPlan {
    /// The wall time allowed, in seconds.
    pub budget_s: f64,
    /// Whether a configuration leaves only when its interval says that another is faster; else the
    /// slower half leaves after each round.
    pub race: bool,
    /// Samples of each configuration in the first round; each round doubles them.
    pub first_samples: u32,
    /// Configurations that reach the finals, where that many are right.
    pub finalists: usize,
    /// Samples of each in each of the two finals.
    pub final_samples: u32,
    /// The confidence of every interval.
    pub confidence: f64,
}

impl Default for SweepPlan {
    fn default() -> Self {
        SweepPlan {
            budget_s: 60.0,
            race: false,
            first_samples: 8,
            finalists: 4,
            final_samples: 64,
            confidence: 0.95,
        }
    }
}

/// Rounds after which all that is left goes to the finals.
const MOST_ROUNDS: u32 = 6;
/// Samples that a finalist takes before the next has its turn.
const TURN: u32 = 8;
/// The most finalists: where more cannot be told apart, the slower ones by median stay out.
const MOST_FINALISTS: usize = 16;

/// What a search gave.
#[derive(Clone, PartialEq, Debug)]
pub struct Search {
    /// A row for each configuration, the fastest first, those not timed last.
    pub rows: Vec<SweepRow>,
    /// Who won.
    pub verdict: SweepVerdict,
    /// Why the search ended before its end, where it did.
    pub stopped: Option<String>,
    /// The wall time spent, in seconds.
    pub spent_s: f64,
}

/// Searches. `now` tells the seconds since some moment; `progress` is told what is done.
///
/// What ends early, by its budget or by a lost device, gives the rows that there are.
pub fn sweep(
    plan: &SweepPlan,
    configurations: Vec<Configuration>,
    subject: &mut dyn Subject,
    cache: &mut Cache,
    now: &mut dyn FnMut() -> f64,
    progress: &mut dyn FnMut(&str),
) -> Search {
    let began = now();
    let rows = configurations.into_iter().map(row).collect();
    let mut running = Running { plan, rows, subject, cache, now, progress, began };
    let stopped = running.whole().err();
    let spent_s = (running.now)() - began;
    let mut rows = running.rows;
    let verdict = verdict(plan, &rows, stopped.as_deref());
    for row in &mut rows {
        summed(row, plan.confidence);
    }
    rows.sort_by(|a, b| {
        let place = |row: &SweepRow| row.median_ns.unwrap_or(f64::INFINITY);
        place(a).total_cmp(&place(b)).then_with(|| a.configuration.cmp(&b.configuration))
    });
    for row in &mut rows {
        row.duration_ns.retain(|ns| ns.is_finite());
    }
    Search { rows, verdict, stopped, spent_s }
}

fn row(configuration: Configuration) -> SweepRow {
    SweepRow {
        configuration,
        status: RowStatus::Unreached,
        reason: "its turn never came".to_owned(),
        rounds: 0,
        median_ns: None,
        interval_ns: None,
        duration_ns: Vec::new(),
        from_cache: false,
    }
}

/// Puts a row's samples into its figures.
fn summed(row: &mut SweepRow, confidence: f64) {
    if !row.duration_ns.is_empty() {
        row.median_ns = Some(median(&row.duration_ns));
        row.interval_ns = Some(interval(&row.duration_ns, confidence));
    }
}

fn interval(samples: &[f64], confidence: f64) -> (f64, f64) {
    median_interval(&sorted(samples), effective_samples(samples), confidence)
}

struct Running<'a> {
    plan: &'a SweepPlan,
    rows: Vec<SweepRow>,
    subject: &'a mut dyn Subject,
    cache: &'a mut Cache,
    now: &'a mut dyn FnMut() -> f64,
    progress: &'a mut dyn FnMut(&str),
    began: f64,
}

impl Running<'_> {
    fn whole(&mut self) -> Result<(), String> {
        let mut live = self.gates()?;
        for round in 1..=MOST_ROUNDS {
            let first = self.plan.first_samples.clamp(2, 4096);
            let wanted = first * ((1 << round) - 1);
            self.round(&live, round, wanted)?;
            live = self.pruned(live, round);
            if live.len() <= self.plan.finalists.max(1) {
                break;
            }
        }
        self.finals(live)
    }

    /// The rows that are right.
    fn gates(&mut self) -> Result<Vec<usize>, String> {
        let mut right = Vec::new();
        for index in 0..self.rows.len() {
            self.in_time()?;
            let configuration = self.rows[index].configuration.clone();
            (self.progress)(&format!("gate of {}", shown(&configuration)));
            let known = self.cache.known(&configuration).and_then(|known| known.gate.clone());
            self.rows[index].from_cache = known.is_some();
            let gate = if let Some(gate) = known {
                gate
            } else {
                let gate = self.subject.gate(&configuration)?;
                self.cache.gated(&configuration, &gate)?;
                gate
            };
            let row = &mut self.rows[index];
            match gate {
                Gate::Right => right.push(index),
                Gate::Wrong(why) => (row.status, row.reason) = (RowStatus::Wrong, why),
                Gate::Refused(why) => (row.status, row.reason) = (RowStatus::Refused, why),
            }
        }
        Ok(right)
    }

    /// Brings every live row to so many samples; every other round in the other order, so that a
    /// device that slows down does not favour those that come first.
    fn round(&mut self, live: &[usize], round: u32, wanted: u32) -> Result<(), String> {
        let mut order = live.to_vec();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        for index in order {
            self.in_time()?;
            let configuration = self.rows[index].configuration.clone();
            (self.progress)(&format!("round {round}: {}", shown(&configuration)));
            let stored = self.cache.known(&configuration).map(|known| known.duration_ns.clone());
            let mut samples = stored.unwrap_or_default();
            samples.truncate(wanted as usize);
            let missing = wanted - samples.len() as u32;
            if missing > 0 {
                let taken = self.subject.time(&configuration, missing)?;
                self.cache.timed(&configuration, &taken)?;
                samples.extend(taken);
            } else {
                self.rows[index].from_cache = true;
            }
            let row = &mut self.rows[index];
            row.rounds = round;
            row.duration_ns = samples;
            if row.duration_ns.is_empty() {
                row.status = RowStatus::Refused;
                "no sample could be taken".clone_into(&mut row.reason);
            }
        }
        Ok(())
    }

    /// The rows that go on: those that may still be the fastest, and without a race the faster
    /// half whatever their intervals say.
    fn pruned(&mut self, live: Vec<usize>, round: u32) -> Vec<usize> {
        let mut order: Vec<usize> =
            live.into_iter().filter(|&index| !self.rows[index].duration_ns.is_empty()).collect();
        order.sort_by(|&a, &b| self.median(a).total_cmp(&self.median(b)));
        let Some(&first) = order.first() else { return order };
        let best = interval(&self.rows[first].duration_ns, self.plan.confidence).1;
        let half = order.len().div_ceil(2).max(self.plan.finalists.max(1));
        let mut kept = Vec::new();
        for (place, index) in order.into_iter().enumerate() {
            let low = interval(&self.rows[index].duration_ns, self.plan.confidence).0;
            let may_be_fastest = low <= best;
            let stays = if self.plan.race { may_be_fastest } else { place < half };
            if stays {
                kept.push(index);
            } else {
                let slower = 100.0 * (self.median(index) / self.median(first) - 1.0);
                self.rows[index].status = RowStatus::Pruned;
                self.rows[index].reason = format!("{slower:.1} % slower after round {round}");
            }
        }
        kept
    }

    fn median(&self, index: usize) -> f64 {
        median(&self.rows[index].duration_ns)
    }

    /// Two finals, each with samples of its own, taken in turns.
    fn finals(&mut self, mut live: Vec<usize>) -> Result<(), String> {
        for &index in live.iter().skip(MOST_FINALISTS) {
            self.rows[index].status = RowStatus::Pruned;
            "too many could not be told apart".clone_into(&mut self.rows[index].reason);
        }
        live.truncate(MOST_FINALISTS);
        for &index in &live {
            self.rows[index].status = RowStatus::Finalist;
            "in the finals".clone_into(&mut self.rows[index].reason);
            self.rows[index].duration_ns.clear();
        }
        for turn in 0..2 * self.turns() {
            // Another one begins each turn.
            let start = turn as usize % live.len().max(1);
            for place in 0..live.len() {
                self.in_time()?;
                let index = live[(start + place) % live.len()];
                let configuration = self.rows[index].configuration.clone();
                (self.progress)(&format!("final: {}", shown(&configuration)));
                let taken = self.subject.time(&configuration, TURN)?;
                self.rows[index].duration_ns.extend(taken.iter().take(TURN as usize));
            }
        }
        Ok(())
    }

    fn turns(&self) -> u32 {
        self.plan.final_samples.div_ceil(TURN).max(1)
    }

    fn in_time(&mut self) -> Result<(), String> {
        let spent = (self.now)() - self.began;
        if spent <= self.plan.budget_s {
            return Ok(());
        }
        Err(format!("the budget of {} s is spent", self.plan.budget_s))
    }
}

/// `block=128 items=4`
fn shown(configuration: &Configuration) -> String {
    let words: Vec<String> = configuration.iter().map(|(k, v)| format!("{k}={v}")).collect();
    words.join(" ")
}

/// A winner has the least median in both halves of the finals' samples, and its interval lies
/// below that of every other finalist.
fn verdict(plan: &SweepPlan, rows: &[SweepRow], stopped: Option<&str>) -> SweepVerdict {
    let finalists: Vec<&SweepRow> =
        rows.iter().filter(|row| row.status == RowStatus::Finalist).collect();
    let timed: Vec<&SweepRow> = rows.iter().filter(|row| !row.duration_ns.is_empty()).collect();
    if let Some(reason) = stopped {
        return if timed.is_empty() {
            SweepVerdict::Nothing { reason: reason.to_owned() }
        } else {
            ambiguous(if finalists.is_empty() { &timed } else { &finalists }, plan, reason)
        };
    }
    let enough = finalists.iter().all(|row| row.duration_ns.len() >= 4);
    if finalists.is_empty() || !enough {
        let reason = "no configuration is right and can be timed".to_owned();
        return SweepVerdict::Nothing { reason };
    }
    let of_half = |second: bool| {
        let half = |row: &&SweepRow| {
            let (first, last) = row.duration_ns.split_at(row.duration_ns.len() / 2);
            median(if second { last } else { first })
        };
        finalists.iter().copied().min_by(|a, b| half(a).total_cmp(&half(b)))
    };
    let (Some(first), Some(second)) = (of_half(false), of_half(true)) else {
        return SweepVerdict::Nothing { reason: "there were no finals".to_owned() };
    };
    if first.configuration != second.configuration {
        return ambiguous(&finalists, plan, "the two finals have different winners");
    }
    let high = interval(&first.duration_ns, plan.confidence).1;
    let others = || finalists.iter().filter(|row| row.configuration != first.configuration);
    if others().any(|row| interval(&row.duration_ns, plan.confidence).0 <= high) {
        return ambiguous(&finalists, plan, "the winner of both finals is not clear of the others");
    }
    let runner_up = others().map(|row| median(&row.duration_ns)).reduce(f64::min);
    SweepVerdict::Winner {
        configuration: first.configuration.clone(),
        lead: runner_up.map(|ns| ns / median(&first.duration_ns) - 1.0),
    }
}

/// Those whose intervals reach down to the best one's.
fn ambiguous(rows: &[&SweepRow], plan: &SweepPlan, reason: &str) -> SweepVerdict {
    let with_samples = || rows.iter().filter(|row| !row.duration_ns.is_empty());
    let best =
        with_samples().min_by(|a, b| median(&a.duration_ns).total_cmp(&median(&b.duration_ns)));
    let high = best.map_or(0.0, |row| interval(&row.duration_ns, plan.confidence).1);
    let near = with_samples().filter(|r| interval(&r.duration_ns, plan.confidence).0 <= high);
    SweepVerdict::Ambiguous {
        configurations: near.map(|row| row.configuration.clone()).collect(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
