//! The progress bar, which only this file knows how to draw, and a line on stderr now and then
//! about a case that takes long, which is written where nobody watches a bar too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use assay_device::{Device, Watch};
use assay_record::{CaseName, Gate, GateResult};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::Console;

/// After so long a case is worth a line; after each doubling another.
const LONG: Duration = Duration::from_secs(10);

/// Progress over a known number of steps, on stderr.
pub(crate) struct Progress {
    bar: ProgressBar,
    workers: Arc<Mutex<Workers>>,
}

/// What each worker is at.
#[derive(Default)]
struct Workers(HashMap<ThreadId, Worker>);

#[derive(Default)]
struct Worker {
    case: Option<Under>,
    watch: Arc<Watch>,
}

/// A case under way.
struct Under {
    name: String,
    since: Instant,
    /// When the next line about it is due.
    due: Duration,
}

impl Progress {
    /// Progress over `steps` steps.
    pub(crate) fn new(steps: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(steps), target());
        let template = "{spinner} {pos} of {len} {bar:24} {elapsed} {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if Console::shows_progress() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        let workers = Arc::default();
        report_long_cases(&workers, bar.clone());
        Progress { bar, workers }
    }

    /// Says what is being worked on.
    pub(crate) fn at(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Says which case is being worked on; a line tells of it where it takes long.
    pub(crate) fn at_case(&self, name: &str) {
        self.at(name);
        let (name, since) = (name.to_owned(), Instant::now());
        self.now_at(Some(Under { name, since, due: LONG }));
    }

    /// Counts one step as done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
        lock(&self.workers).0.clear();
    }

    /// Sees how far the launches on this thread's device are.
    pub(crate) fn watch(&self, device: &mut dyn Device) {
        let mut workers = lock(&self.workers);
        let worker = workers.0.entry(thread::current().id()).or_default();
        device.watch(Arc::clone(&worker.watch));
    }

    fn now_at(&self, case: Option<Under>) {
        lock(&self.workers).0.entry(thread::current().id()).or_default().case = case;
    }
}

impl assay_contract::Progress for Progress {
    fn started(&self, kernel: &str, gate: Gate) {
        self.at(&format!("{kernel} {gate}"));
    }

    fn case(&self, case: &CaseName) {
        let (name, since) = (case.to_string(), Instant::now());
        self.now_at(Some(Under { name, since, due: LONG }));
    }

    fn finished(&self, _kernel: &str, _result: &GateResult) {
        self.now_at(None);
        self.step();
    }
}

fn lock(workers: &Mutex<Workers>) -> MutexGuard<'_, Workers> {
    workers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes lines about long cases for as long as anybody counts progress.
fn report_long_cases(workers: &Arc<Mutex<Workers>>, bar: ProgressBar) {
    let workers: Weak<Mutex<Workers>> = Arc::downgrade(workers);
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(500));
            let Some(workers) = workers.upgrade() else { break };
            for line in lock(&workers).due() {
                bar.suspend(|| Console::aside(&line));
            }
        }
    });
}

impl Workers {
    /// The lines that are due.
    fn due(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for Worker { case, watch } in self.0.values_mut() {
            let Some(under) = case else { continue };
            let elapsed = under.since.elapsed();
            if elapsed >= under.due {
                under.due = 2 * elapsed;
                lines.push(line(&under.name, elapsed, watch));
            }
        }
        lines
    }
}

/// `still running after 20 s: CASE: 12 of 4096 blocks, 81000000 instructions of warps`
fn line(name: &str, elapsed: Duration, watch: &Watch) -> String {
    let seen = watch.look();
    let seconds = elapsed.as_secs();
    let launch = match seen.blocks {
        0 => String::new(),
        blocks => format!(
            ": {} of {blocks} blocks, {} instructions of warps",
            seen.finished, seen.instructions
        ),
    };
    format!("still running after {seconds} s: {name}{launch}\n")
}

fn target() -> ProgressDrawTarget {
    if Console::shows_progress() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_case_is_named_once_for_each_doubling_of_its_time() {
        let mut workers = Workers::default();
        let since = Instant::now().checked_sub(Duration::from_secs(11)).expect("a running clock");
        let case = Some(Under { name: "k/shapes/n=1".to_owned(), since, due: LONG });
        workers.0.insert(thread::current().id(), Worker { case, watch: Arc::default() });
        let first = workers.due();
        assert_eq!(first.len(), 1, "{first:?}");
        assert!(first[0].starts_with("still running after 11 s: k/shapes/n=1"), "{first:?}");
        assert!(workers.due().is_empty(), "the next is due at 22 s");
    }

    #[test]
    fn a_short_case_is_not_worth_a_line() {
        let mut workers = Workers::default();
        let case = Some(Under { name: "k".to_owned(), since: Instant::now(), due: LONG });
        workers.0.insert(thread::current().id(), Worker { case, watch: Arc::default() });
        assert!(workers.due().is_empty());
    }
}
