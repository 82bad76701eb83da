//! The corpus: what real compilers make of kernels in many styles decodes, runs and is right.
//!
//! The sources are in `tests/corpus/`. Each text is counted (instructions, opcodes, bases), and
//! every kernel in it has a case with a reference or a listed reason why none calls it. Each case
//! runs under three schedules. `ASSAY_CORPUS=rows` runs only the units with that in their name.

mod case;
mod census;
mod compile;
mod controls;
mod cuda;
mod triton;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use case::Case;
use census::{Census, Class, Examined, Expected, examine};
use compile::{Ptx, say};

/// Threads that compile and run at one time.
const WORKERS: usize = 2;

/// One PTX text to be: how it comes about, what runs of it and what is expected of the rest.
pub(crate) struct Entry {
    pub(crate) name: String,
    /// `Ok(None)` where the compiler is missing, which is said.
    pub(crate) compile: Box<dyn Fn() -> Result<Option<Ptx>, String> + Sync + Send>,
    pub(crate) cases: Box<dyn Fn() -> Vec<Case> + Sync + Send>,
    pub(crate) expected: Expected,
}

/// What came of all entries.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) census: Census,
    pub(crate) texts: usize,
    pub(crate) right: usize,
    pub(crate) not_called: usize,
    pub(crate) not_emulated: usize,
    pub(crate) problems: Vec<String>,
}

impl Outcome {
    fn add(&mut self, examined: &Examined) {
        self.texts += 1;
        self.census.add(&examined.census);
        self.problems.extend(examined.problems.iter().cloned());
        for (_, class) in &examined.kernels {
            match class {
                Class::Right => self.right += 1,
                Class::NotCalled(_) => self.not_called += 1,
                Class::NotEmulated(_) => self.not_emulated += 1,
                Class::Wrong(_) => {}
            }
        }
    }
}

/// Compiles and examines every entry, says the census, and fails where anything is not as expected.
pub(crate) fn run(corpus: &str, entries: &[Entry]) -> Outcome {
    let wanted = std::env::var("ASSAY_CORPUS").unwrap_or_default();
    let entries: Vec<&Entry> = entries.iter().filter(|e| e.name.contains(&wanted)).collect();
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new(Outcome::default());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(entry, &outcome);
                }
            });
        }
    });
    let outcome = outcome.into_inner().expect("no worker panics");
    let Outcome { census, texts, right, not_called, not_emulated, .. } = &outcome;
    say(&format!(
        "CENSUS {corpus}: {texts} texts: {census}; {right} kernels ran and were right, \
         {not_called} not called, {not_emulated} not emulated; {}",
        peak_memory().map_or_else(String::new, |megabytes| format!("{megabytes} MB at most")),
    ));
    assert!(outcome.problems.is_empty(), "{}", outcome.problems.join("\n"));
    if let Some(megabytes) = peak_memory() {
        assert!(megabytes < 1000, "the corpus took {megabytes} MB");
    }
    outcome
}

fn work(entry: &Entry, outcome: &Mutex<Outcome>) {
    let examined = match (entry.compile)() {
        Ok(Some(ptx)) => examine(&ptx, &(entry.cases)(), &entry.expected),
        Ok(None) => return,
        Err(reason) => {
            let problem = format!("{} does not compile: {reason}", entry.name);
            return outcome.lock().expect("no worker panics").problems.push(problem);
        }
    };
    say(&examined.lines().join("\n"));
    outcome.lock().expect("no worker panics").add(&examined);
}

/// The most memory that this process has had, in megabytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes / 1000)
}
