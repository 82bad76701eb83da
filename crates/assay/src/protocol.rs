//! What a run says to the child process that judges one kernel at one gate, and what it answers.
//!
//! The parent writes one [`Request`] to the child's stdin as JSON. The child answers on stdout with
//! one [`Message`] a line. Lines that are no message are what a kernel printed on a GPU.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use assay_record::{CaseName, ExitCode, Gate, KernelResult, Smallest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The version of the protocol; both ends are the same program, unless it was replaced meanwhile.
pub(crate) const PROTOCOL: u32 = 2;

/// Starts a child and writes the one request to its stdin; both of its outputs are piped.
///
/// # Errors
/// Where it does not start.
pub(crate) fn ask(command: &mut Command, request: &impl Serialize) -> io::Result<Child> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let line = serde_json::to_string(request).unwrap_or_default();
    if let Some(mut stdin) = child.stdin.take() {
        // A child that died already says so by its exit.
        let _ = stdin.write_all(line.as_bytes());
    }
    Ok(child)
}

/// The one request on stdin of the hidden subcommand `child`, which `parent` starts.
pub(crate) fn request<T: DeserializeOwned>(child: &str, parent: &str) -> Result<T, Failure> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| {
        Failure::new(ExitCode::Internal, "cannot read the request").caused_by(&error)
    })?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::request(format!("`{child}` is not for people: it serves `{parent}`"))
            .caused_by(&error)
    })
}

/// One kernel and one gate to judge.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The version of the protocol.
    pub(crate) protocol: u32,
    /// The device's name.
    pub(crate) device: String,
    /// The manifests in place of the built-in suite.
    pub(crate) manifests: Vec<PathBuf>,
    /// The kernel.
    pub(crate) kernel: String,
    /// The gate.
    pub(crate) gate: Gate,
    /// The seed.
    pub(crate) seed: u64,
    /// The text that case names must hold.
    pub(crate) only: Option<String>,
    /// The one case to run.
    pub(crate) repro: Option<CaseName>,
    /// Where the builds of faults lie, if `kernel` may be one.
    pub(crate) faults: Option<PathBuf>,
    /// Whether to compare a fault with its kernel in place of judging it.
    pub(crate) compare: bool,
    /// The file that holds this case's inputs.
    pub(crate) inputs: Option<PathBuf>,
    /// Instructions of warps after which a launch is stopped, in place of its own budget.
    #[serde(default)]
    pub(crate) budget: Option<u64>,
    /// Where to write the smallest inputs on which the case fails, instead of judging it.
    pub(crate) shrink: Option<PathBuf>,
}

/// What the child says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Message {
    /// It has begun, and speaks this version.
    Hello {
        /// The version of the protocol.
        protocol: u32,
    },
    /// A case is about to run.
    Case {
        /// Its name.
        case: CaseName,
    },
    /// The smallest inputs on which the case fails; the end follows.
    Shrunk {
        /// What they are.
        smallest: Box<Smallest>,
    },
    /// All cases have run; nothing follows.
    Done {
        /// The kernel's result with this one gate.
        result: KernelResult,
        /// The exit code that follows from it.
        exit: u8,
        /// What to do next, where the kernel could not be run.
        hint: Option<String>,
        /// Whether the kernel was left out because it names other backends.
        skipped: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back_from_one_line() {
        let case = "k/repeat/n=1/order/seed=1/in-order".parse().expect("a case");
        for message in [Message::Hello { protocol: PROTOCOL }, Message::Case { case }] {
            let line = serde_json::to_string(&message).expect("a message has a JSON form");
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Message>(&line).expect("it is read"), message);
        }
    }
}
