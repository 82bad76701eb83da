//! The rate of a library's large fp16 matrix product, by torch in a process of its own.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

const SCRIPT: &str = include_str!("gemm.py");
/// Importing torch takes seconds, the product itself far less than one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What the script prints.
#[derive(Deserialize)]
struct Answer {
    flops: f64,
    torch: String,
    samples: u32,
}

/// The rate in FLOP/s and what it is of, or why there is none.
pub(super) fn measure() -> Result<(f64, String), String> {
    let mut child = Command::new("python3")
        .args(["-c", SCRIPT])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("python3 does not start: {error}"))?;
    let ended = wait(&mut child)?;
    let (out, err) = (text(child.stdout.take()), text(child.stderr.take()));
    if !ended {
        let last = err.lines().last().unwrap_or("it said nothing").trim();
        return Err(format!("python3 failed: {last}"));
    }
    let answer: Answer =
        serde_json::from_str(&out).map_err(|error| format!("no answer to read: {error}"))?;
    if !(answer.flops.is_finite() && answer.flops > 0.0) {
        return Err(format!("torch measured {} FLOP/s", answer.flops));
    }
    let source = format!("torch {}, 8192^3, median of {}", answer.torch, answer.samples);
    Ok((answer.flops, source))
}

/// Whether the child ended well. One that takes too long is ended.
fn wait(child: &mut Child) -> Result<bool, String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if start.elapsed() > TIMEOUT => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("python3 took longer than {} s", TIMEOUT.as_secs()));
            }
            Ok(None) => thread::sleep(Duration::from_millis(50)),
            Err(error) => return Err(format!("python3 is lost: {error}")),
        }
    }
}

/// What a stream of the script held: a few lines.
fn text(stream: Option<impl Read>) -> String {
    let mut text = String::new();
    if let Some(stream) = stream {
        let _ = stream.take(1 << 16).read_to_string(&mut text);
    }
    text
}
