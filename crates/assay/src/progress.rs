//! The progress bar, which only this file knows how to draw.

use std::time::Duration;

use assay_record::{Gate, GateResult};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::Console;

/// Progress over a known number of steps, on stderr; silent where nobody watches.
pub(crate) struct Progress {
    bar: ProgressBar,
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
        Progress { bar }
    }

    /// Says what is being worked on.
    pub(crate) fn at(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Counts one step as done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl assay_contract::Progress for Progress {
    fn started(&self, kernel: &str, gate: Gate) {
        self.at(&format!("{kernel} {gate}"));
    }

    fn finished(&self, _kernel: &str, _result: &GateResult) {
        self.step();
    }
}

fn target() -> ProgressDrawTarget {
    if Console::shows_progress() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}
