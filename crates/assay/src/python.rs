//! Python in a process of its own, which may take only so long and say only so much.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// More than any of this program's scripts says.
const MOST_BYTES: u64 = 4 << 20;

/// Runs a command and hands over each line of its stdout as it comes.
///
/// # Errors
/// Why it did not end well: it does not start, ran out of time and was stopped, or failed with
/// these last words. What it said before has been handed over.
pub(crate) fn run(
    command: &mut Command,
    limit: Duration,
    on_line: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name} does not start: {error}"))?;
    let (out, err) = (lines(child.stdout.take()), lines(child.stderr.take()));
    let end = Instant::now() + limit;
    let late = || format!("{name} did not end in {} s and was stopped", limit.as_secs_f64());
    loop {
        match out.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => on_line(&line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                stop(&mut child);
                return Err(late());
            }
        }
    }
    while Instant::now() < end {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                let last = last_words(&err, Duration::from_secs(1));
                let last = last.unwrap_or_else(|| "it said nothing".to_owned());
                return Err(format!("{name} failed ({status}): {last}"));
            }
            Ok(None) => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(format!("{name} is lost: {error}")),
        }
    }
    stop(&mut child);
    Err(late())
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The last line that is not blank. Processes that the child has left behind may hold the stream.
fn last_words(err: &Receiver<String>, patience: Duration) -> Option<String> {
    let end = Instant::now() + patience;
    let next = || err.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    std::iter::from_fn(next).filter(|line| !line.trim().is_empty()).last()
}

/// The lines of a stream, as they come.
fn lines(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(stream) = stream else { return };
        let lines = BufReader::new(stream.take(MOST_BYTES)).split(b'\n');
        for line in lines.map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit_ms: u64) -> (Result<(), String>, Vec<String>) {
        let mut said = Vec::new();
        let mut command = Command::new("sh");
        let limit = Duration::from_millis(limit_ms);
        let end = run(command.args(["-c", script]), limit, &mut |line| said.push(line.to_owned()));
        (end, said)
    }

    #[test]
    fn what_is_said_comes_line_by_line() {
        let (end, said) = shell("echo one; echo aside >&2; echo two", 60_000);
        assert_eq!((end, said), (Ok(()), vec!["one".to_owned(), "two".to_owned()]));
    }

    #[test]
    fn a_process_that_never_ends_is_stopped_and_what_it_said_is_kept() {
        for script in ["echo one; exec sleep 600", "echo one; exec >&-; exec sleep 600"] {
            let (end, said) = shell(script, 300);
            assert_eq!(end, Err("sh did not end in 0.3 s and was stopped".to_owned()), "{script}");
            assert_eq!(said, ["one"]);
        }
    }

    #[test]
    fn a_process_that_fails_is_quoted() {
        let (end, _) = shell("echo first >&2; echo last >&2; echo >&2; exit 3", 60_000);
        assert_eq!(end, Err("sh failed (exit status: 3): last".to_owned()));
        let missing = run(&mut Command::new("no-such-python"), Duration::from_secs(9), &mut |_| {});
        assert!(missing.is_err_and(|why| why.starts_with("no-such-python does not start")));
    }

    #[test]
    fn a_process_that_never_stops_talking_is_read_to_a_limit() {
        let mut bytes = 0;
        let mut command = Command::new("yes");
        let end = run(&mut command, Duration::from_secs(60), &mut |line| bytes += line.len() + 1);
        assert!(end.is_err_and(|why| why.starts_with("yes failed")), "it loses its reader");
        assert!(bytes as u64 <= MOST_BYTES);
    }
}
