//! Cases in a process of their own, which may hang, be killed by what it runs, or lose its device.
//!
//! The parent starts the process with a greeting on its stdin, which says what to run, then writes
//! a recipe a line; the child answers each with a line of JSON. It lives through many cases, and a
//! new one takes its place when it dies. Lines that are no answer are ignored: what a kernel prints
//! ends there too.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_record::{FuzzCase, FuzzVerdict, Recipe};
use serde::{Deserialize, Serialize};

use crate::candidate::Runner;

/// How long a process may take until it can run cases.
const START: Duration = Duration::from_secs(60);
/// How long the last words of a process that has ended may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long a case may take whatever is left of the time for all of them.
const LEAST: Duration = Duration::from_secs(1);
/// How long a process may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// What the child says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "fuzz", rename_all = "kebab-case")]
enum Answer {
    /// Cases may come.
    Ready,
    /// It cannot run any, and why.
    Unable { why: String },
    /// What became of a case; after the last the child ends.
    Case { case: Box<FuzzCase>, last: bool },
}

/// The last line on a child's stderr so far, and who reads it. A process that the child has started
/// may hold its stderr open for longer than the child lives, so nobody waits for its end.
struct LastWords {
    line: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

/// A runner whose cases run in a child process.
pub struct Isolated {
    command: Box<dyn FnMut() -> Command>,
    greeting: String,
    timeout: Duration,
    limit: Option<Duration>,
    live: Option<Live>,
}

/// A child that can run cases.
struct Live {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<Answer>,
    last_words: LastWords,
}

impl Isolated {
    /// A runner that starts processes by `command`, tells each `greeting` (one line), and stops one
    /// that takes longer than `timeout` over a case.
    pub fn new(
        command: impl FnMut() -> Command + 'static,
        greeting: impl Into<String>,
        timeout: Duration,
    ) -> Isolated {
        let (command, greeting) = (Box::new(command), greeting.into());
        Isolated { command, greeting, timeout, limit: None, live: None }
    }

    /// A child that is ready; the reason where none can be had.
    fn ready(&mut self) -> Result<Live, String> {
        if let Some(live) = self.live.take() {
            return Ok(live);
        }
        let mut command = (self.command)();
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot run a child: {error}"))?;
        let Some(stdin) = child.stdin.take() else {
            return Err("a child has no stdin".to_owned());
        };
        let (answers, last_words) = (listen(&mut child), listen_to_errors(&mut child));
        let mut live = Live { child, stdin, answers, last_words };
        // A child that died already says so by its end.
        let _ = writeln!(live.stdin, "{}", self.greeting);
        match live.answers.recv_timeout(START) {
            Ok(Answer::Ready) => Ok(live),
            Ok(Answer::Unable { why }) => {
                live.end(true);
                Err(why)
            }
            Ok(Answer::Case { .. }) | Err(RecvTimeoutError::Timeout) => {
                live.end(false);
                Err("a child was not ready in time".to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = live.end(true);
                Err(format!("a child ended before any case: {how}"))
            }
        }
    }
}

impl Runner for Isolated {
    fn run(&mut self, recipe: &Recipe) -> FuzzCase {
        let start = Instant::now();
        let case = |verdict, why: String| FuzzCase::new(recipe.clone(), verdict, why);
        let mut live = match self.ready() {
            Ok(live) => live,
            Err(why) => return case(FuzzVerdict::Skipped, why),
        };
        // A child that died already says so by its end.
        let _ = writeln!(live.stdin, "{recipe}");
        let allowed = self.limit.map_or(self.timeout, |limit| limit.max(LEAST).min(self.timeout));
        let mut case = match live.answers.recv_timeout(allowed) {
            Ok(Answer::Case { case, last }) => {
                if last {
                    live.end(true);
                } else {
                    self.live = Some(live);
                }
                return *case;
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {
                live.end(false);
                if allowed < self.timeout {
                    let why = "it was stopped: the time for it was spent (--budget)";
                    return case(FuzzVerdict::Skipped, why.to_owned());
                }
                let seconds = self.timeout.as_secs_f64();
                case(FuzzVerdict::Hang, format!("it did not end within {seconds} s"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = live.end(true);
                case(FuzzVerdict::Crash, format!("its process died: {how}"))
            }
        };
        case.seconds = start.elapsed().as_secs_f64();
        case
    }

    fn limit(&mut self, left: Option<Duration>) -> bool {
        self.limit = left;
        true
    }

    fn is_apart(&self) -> bool {
        true
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            live.end(false);
        }
    }
}

impl Live {
    /// Ends the child, after a grace where it ends by itself, and says how it went.
    fn end(mut self, by_itself: bool) -> String {
        drop(self.stdin);
        let start = Instant::now();
        let mut status = None;
        while by_itself && status.is_none() && start.elapsed() < GRACE {
            status = self.child.try_wait().ok().flatten();
            thread::sleep(Duration::from_millis(1));
        }
        if status.is_none() {
            let _ = self.child.kill();
            status = self.child.wait().ok();
        }
        let status = status.map_or_else(|| "nobody knows how".to_owned(), |s| s.to_string());
        let start = Instant::now();
        while !self.last_words.reader.is_finished() && start.elapsed() < LAST_WORDS {
            thread::sleep(Duration::from_millis(1));
        }
        let words = self.last_words.line.lock().unwrap_or_else(PoisonError::into_inner);
        if words.is_empty() { status } else { format!("{status}: {words}") }
    }
}

/// Reads answers until the child closes its stdout.
fn listen(child: &mut Child) -> Receiver<Answer> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if let Ok(answer) = serde_json::from_slice(&line)
                    && sender.send(answer).is_err()
                {
                    break;
                }
            }
        });
    }
    receiver
}

/// Reads what the child writes to stderr.
fn listen_to_errors(child: &mut Child) -> LastWords {
    let line = Arc::new(Mutex::new(String::new()));
    let (stderr, last) = (child.stderr.take(), Arc::clone(&line));
    let reader = thread::spawn(move || {
        let lines = stderr.map(BufReader::new).into_iter().flat_map(|reader| reader.split(b'\n'));
        for line in lines.map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if !text.is_empty() {
                *last.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
        }
    });
    LastWords { line, reader }
}

/// The child's part, after it has read the greeting: runs the recipes that come a line each.
///
/// # Errors
/// Those of `input` and `output`.
pub fn serve(
    input: impl BufRead,
    mut output: impl Write,
    runner: Result<&mut dyn Runner, String>,
) -> std::io::Result<()> {
    let runner = match runner {
        Ok(runner) => runner,
        Err(why) => return say(&mut output, &Answer::Unable { why }),
    };
    say(&mut output, &Answer::Ready)?;
    for line in input.lines() {
        let line = line?;
        let Ok(recipe) = line.trim().parse::<Recipe>() else { continue };
        let case = Box::new(runner.run(&recipe));
        let last = runner.is_spent();
        say(&mut output, &Answer::Case { case, last })?;
        if last {
            break;
        }
    }
    Ok(())
}

/// Writes an answer on a line of its own, whatever was printed before it.
fn say(output: &mut impl Write, answer: &Answer) -> std::io::Result<()> {
    let line = serde_json::to_string(answer)?;
    writeln!(output, "\n{line}")?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        "a:f32/3/dense/values/seed=1".parse().expect("a recipe")
    }

    fn shell(script: &'static str, timeout: Duration) -> Isolated {
        let command = move || {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        Isolated::new(command, "hello", timeout)
    }

    const READY: &str = r#"echo '{"fuzz":"ready"}'; read hello; read recipe; "#;

    #[test]
    fn a_child_that_dies_at_once_is_no_verdict_on_the_candidate() {
        let case = shell("exit 3", Duration::from_secs(9)).run(&recipe());
        assert_eq!(case.verdict, FuzzVerdict::Skipped);
        assert!(case.reason.contains("before any case: exit status: 3"), "{}", case.reason);
    }

    #[test]
    fn a_program_that_is_not_there_is_no_verdict_either() {
        let command = || Command::new("no-such-program");
        let case = Isolated::new(command, "", Duration::from_secs(9)).run(&recipe());
        assert_eq!(case.verdict, FuzzVerdict::Skipped);
    }

    #[test]
    fn a_child_that_dies_in_a_case_is_a_crash_with_its_last_words() {
        let script: &'static str = Box::leak(format!("{READY}echo bad >&2; kill -9 $$").into());
        let case = shell(script, Duration::from_secs(9)).run(&recipe());
        assert_eq!(case.verdict, FuzzVerdict::Crash);
        assert!(case.reason.contains("signal: 9"), "{}", case.reason);
        assert!(case.reason.ends_with("bad"), "{}", case.reason);
    }

    #[test]
    fn a_child_that_never_answers_is_stopped_and_the_next_case_gets_another() {
        let script: &'static str = Box::leak(format!("{READY}sleep 60").into());
        let mut isolated = shell(script, Duration::from_millis(200));
        for _ in 0..2 {
            let start = Instant::now();
            assert_eq!(isolated.run(&recipe()).verdict, FuzzVerdict::Hang);
            assert!(start.elapsed() < Duration::from_secs(20));
        }
    }

    #[test]
    fn a_case_that_the_time_for_all_of_them_stops_is_no_hang() {
        let script: &'static str = Box::leak(format!("{READY}sleep 60").into());
        let mut isolated = shell(script, Duration::from_secs(50));
        assert!(isolated.limit(Some(Duration::from_millis(200))), "a process can be stopped");
        let start = Instant::now();
        let case = isolated.run(&recipe());
        assert_eq!(case.verdict, FuzzVerdict::Skipped, "{case:?}");
        assert!(case.reason.contains("--budget"), "{}", case.reason);
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_child_serves_recipes_and_skips_lines_that_are_none() {
        struct Passes;
        impl Runner for Passes {
            fn run(&mut self, recipe: &Recipe) -> FuzzCase {
                FuzzCase::new(recipe.clone(), FuzzVerdict::Pass, "so it is")
            }
        }
        let input = format!("nonsense\n{}\n", recipe());
        let mut output = Vec::new();
        serve(input.as_bytes(), &mut output, Ok(&mut Passes)).expect("it serves");
        let text = String::from_utf8(output).expect("text");
        let answers: Vec<Answer> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert!(matches!(&answers[..], [Answer::Ready, Answer::Case { last: false, .. }]));
    }
}
