//! The hidden subcommand that runs one candidate's cases, in a process that may die of them.

use std::io::{self, BufRead as _};
use std::path::PathBuf;
#[cfg(unix)]
use std::{thread, time::Duration};

use assay_contract::Kernel;
use assay_fuzz::{Candidate as _, Runner, serve};
use assay_record::ExitCode;
use serde::{Deserialize, Serialize};

use super::units::{operations, with_kernel};
use crate::failure::Failure;
use crate::suite::Suite;

/// The first line on a child's stdin.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// The device's name.
    pub(crate) device: String,
    /// The manifests in place of the built-in suite.
    pub(crate) manifests: Vec<PathBuf>,
    /// The candidate.
    pub(crate) candidate: String,
}

/// Time between two looks at whether the parent is there.
#[cfg(unix)]
const LOOK: Duration = Duration::from_millis(500);

/// Ends this process when its parent has gone: a case that never ends would go on for ever, where
/// nobody is left to stop it.
#[cfg(unix)]
#[expect(clippy::exit, reason = "the thread that runs the case does not come back")]
fn end_with_the_parent() {
    use std::os::unix::process::parent_id;
    let parent = parent_id();
    thread::spawn(move || {
        while parent_id() == parent {
            thread::sleep(LOOK);
        }
        std::process::exit(i32::from(ExitCode::Internal.code()));
    });
}

#[cfg(not(unix))]
fn end_with_the_parent() {}

/// Serves the recipes on stdin.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    end_with_the_parent();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|error| {
        Failure::new(ExitCode::Internal, "cannot read the greeting").caused_by(&error)
    })?;
    let greeting: Greeting = serde_json::from_str(&line).map_err(|error| {
        Failure::request("`fuzz-child` is not for people: it serves `fuzz`").caused_by(&error)
    })?;
    let answer =
        |runner: Result<&mut dyn Runner, String>| serve(io::stdin().lock(), io::stdout(), runner);
    let served = serve_candidate(&greeting, answer);
    served.map_err(|error| {
        Failure::new(ExitCode::Internal, "cannot answer the parent").caused_by(&error)
    })?;
    Ok(ExitCode::Holds)
}

fn serve_candidate(
    greeting: &Greeting,
    answer: impl FnOnce(Result<&mut dyn Runner, String>) -> io::Result<()>,
) -> io::Result<()> {
    let mut own = operations();
    if let Some(operation) = own.iter_mut().find(|own| own.name() == greeting.candidate) {
        return answer(Ok(operation));
    }
    let suite = Suite::load(&greeting.manifests);
    let kernels = suite.kernels();
    let named = |name: &str| kernels.iter().find(|kernel| kernel.spec().name == name).copied();
    let Some(kernel) = named(&greeting.candidate) else {
        return answer(Err(format!("there is no candidate `{}` any more", greeting.candidate)));
    };
    let replaced: Option<&dyn Kernel> = kernel.replaced().and_then(named);
    with_kernel(kernel, replaced, &greeting.device, |runner| answer(Ok(runner)))
}
