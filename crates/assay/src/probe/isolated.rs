//! Probes in a child process: one that hangs is stopped after a while, one that dies is a failed
//! probe, and the rest goes on in a fresh process.

use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use assay_measure::probe::{HANG, Probe, Quantity};
use assay_record::{Conditions, Entry, ExitCode, ProbedDevice};

use super::child::{Message, PROTOCOL, Request};
use crate::failure::Failure;
use crate::{parent, protocol};

/// What the probes found, whatever became of some of them.
pub(super) struct Found {
    pub(super) device: ProbedDevice,
    pub(super) before: Option<Conditions>,
    pub(super) after: Option<Conditions>,
    pub(super) entries: Vec<Entry>,
    /// Why the last probes did not run.
    pub(super) incomplete: Option<String>,
}

/// What is found so far.
#[derive(Default)]
struct Findings {
    device: Option<ProbedDevice>,
    before: Option<Conditions>,
    after: Option<Conditions>,
    entries: Vec<Entry>,
    /// Why the last probes did not run.
    incomplete: Option<String>,
}

/// A child that runs probes.
pub(super) struct Talk {
    /// What it says.
    pub(super) messages: Receiver<Message>,
    /// Ends it, and says how it ended and with which words; an error where it cannot be ended.
    pub(super) end: Box<dyn FnOnce() -> Result<String, String>>,
}

/// How far a probe has got.
pub(super) enum Step<'a> {
    Started(&'a str),
    Finished,
}

/// Probes to run, and how.
pub(super) struct Plan<'a> {
    pub(super) request: Request,
    pub(super) probes: Vec<Probe>,
    /// How long one may take.
    pub(super) limit: Duration,
    /// Starts a child.
    pub(super) start: &'a mut dyn FnMut(&Request) -> Result<Talk, Failure>,
}

impl Plan<'_> {
    /// Whether a probe is still to run.
    fn has(&self, title: &str) -> bool {
        self.probes.iter().any(|probe| probe.title == title)
    }
}

/// Why a child's words ended.
enum End {
    /// It has said its last.
    Done,
    /// It has given up the device after a probe, for this reason.
    Lost(String),
    Refused(Box<Failure>),
    /// It went on too long with a probe, or before the first.
    Hung(Option<String>),
    /// It died in a probe, or before the first.
    Died(Option<String>),
    /// It is another program.
    Foreign(u32),
    /// It does what it was not asked for.
    Strayed,
}

/// Runs the probes, each in a process that those before it have left whole.
///
/// # Errors
/// Where there is no device, or no process can be started.
pub(super) fn probe(
    mut plan: Plan<'_>,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<Found, Failure> {
    let mut findings = Findings::default();
    let mut lost: Option<String> = None;
    while !plan.probes.is_empty() {
        plan.request.titles = plan.probes.iter().map(|probe| probe.title.to_owned()).collect();
        let talk = (plan.start)(&plan.request)?;
        let end = listen(&talk.messages, &mut plan, &mut findings, progress);
        let ended = (talk.end)();
        let how = match &ended {
            Ok(words) | Err(words) => words.clone(),
        };
        let limit = plan.limit.as_secs_f64();
        let stop = match end {
            End::Done => break,
            End::Lost(cause) => {
                lost = Some(cause);
                None
            }
            End::Hung(Some(title)) => {
                let why = format!("its probe did not end in {limit} s and was stopped (--timeout)");
                fail(&mut plan, &mut findings, &title, &why, progress);
                lost = Some(format!("the probe of {title} did not end in {limit} s"));
                None
            }
            End::Died(Some(title)) => {
                let why = format!("the process that ran its probe died: {how}");
                fail(&mut plan, &mut findings, &title, &why, progress);
                lost = Some(format!("the process that ran the probe of {title} died"));
                None
            }
            // The first process tells why there is nothing to probe.
            End::Refused(why) if findings.device.is_none() => return Err(*why),
            End::Refused(why) => Some(lost.clone().unwrap_or_else(|| why.words())),
            End::Hung(None) => Some(format!("the device was not there after {limit} s")),
            End::Died(None) => Some(format!("the process that runs probes died: {how}")),
            End::Strayed => Some("the process ran what it was not asked for".to_owned()),
            End::Foreign(found) => {
                Some(format!("the process that runs probes speaks {found}, not {PROTOCOL}"))
            }
        };
        let stop = stop.or(ended.err());
        if let Some(cause) = stop {
            give_up(&mut plan, &mut findings, cause, progress);
        }
    }
    if !plan.probes.is_empty() {
        give_up(&mut plan, &mut findings, "the process ended without them".to_owned(), progress);
    }
    let Findings { device, before, after, entries, incomplete } = findings;
    let Some(device) = device else {
        let failure = Failure::new(ExitCode::Internal, "the probes cannot be run");
        return Err(failure.because(incomplete.unwrap_or_default()));
    };
    Ok(Found { device, before, after, entries, incomplete })
}

/// Takes what a child says until it says no more.
fn listen(
    messages: &Receiver<Message>,
    plan: &mut Plan<'_>,
    findings: &mut Findings,
    progress: &mut dyn FnMut(Step<'_>),
) -> End {
    let mut at: Option<String> = None;
    loop {
        match messages.recv_timeout(plan.limit) {
            Ok(Message::Hello { protocol, .. }) if protocol != PROTOCOL => {
                return End::Foreign(protocol);
            }
            Ok(Message::Hello { device, before, .. }) => {
                findings.device.get_or_insert(*device);
                findings.before.get_or_insert(*before);
            }
            Ok(Message::Refused { why }) => return End::Refused(Box::new(Failure::from(why))),
            Ok(Message::Started { title }) if !plan.has(&title) => return End::Strayed,
            Ok(Message::Finished { title, .. }) if !plan.has(&title) => return End::Strayed,
            Ok(Message::Started { title }) => {
                progress(Step::Started(&title));
                at = Some(title);
            }
            Ok(Message::Finished { title, entries, lost }) => {
                plan.probes.retain(|probe| probe.title != title);
                findings.entries.extend(entries);
                progress(Step::Finished);
                at = None;
                if let Some(cause) = lost {
                    return End::Lost(cause);
                }
            }
            Ok(Message::Done { after }) => {
                findings.after = Some(*after);
                return End::Done;
            }
            Err(RecvTimeoutError::Timeout) => return End::Hung(at),
            Err(RecvTimeoutError::Disconnected) => return End::Died(at),
        }
    }
}

/// Makes the entries of a probe failed ones.
fn fail(
    plan: &mut Plan<'_>,
    findings: &mut Findings,
    title: &str,
    why: &str,
    progress: &mut dyn FnMut(Step<'_>),
) {
    let only = plan.request.only.as_deref();
    let only = only.filter(|_| title != HANG.title);
    let wanted = |quantity: &&Quantity| only.is_none_or(|text| quantity.name.contains(text));
    for probe in plan.probes.iter().filter(|probe| probe.title == title) {
        let quantities = probe.quantities.iter().filter(wanted);
        findings.entries.extend(quantities.map(|quantity| quantity.failed(why)));
        progress(Step::Finished);
    }
    plan.probes.retain(|probe| probe.title != title);
}

/// Says of every probe that is left that it did not run.
fn give_up(
    plan: &mut Plan<'_>,
    findings: &mut Findings,
    cause: String,
    progress: &mut dyn FnMut(Step<'_>),
) {
    let why = format!("not run: the device was lost before it: {cause}");
    for title in plan.probes.iter().map(|probe| probe.title).collect::<Vec<_>>() {
        fail(plan, findings, title, &why, progress);
    }
    findings.incomplete = Some(cause);
}

/// Starts this program as a child.
///
/// # Errors
/// Where it does not start.
pub(super) fn start(request: &Request) -> Result<Talk, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(ExitCode::Internal, "cannot run probes in a process of their own")
            .caused_by(&error)
    };
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    talk(command.arg("probe-child"), request).map_err(failed)
}

/// Starts a command as a child that answers a request.
fn talk(command: &mut Command, request: &Request) -> std::io::Result<Talk> {
    let mut child = protocol::ask(command, request)?;
    let (messages, _) = parent::listen(&mut child);
    let errors = parent::listen_to_errors(&mut child);
    let end = Box::new(move || {
        let how = end(&mut child)?;
        let words = errors.join().map(|errors| errors.last).unwrap_or_default();
        let words = words.trim();
        let space = if words.is_empty() { "" } else { ": " };
        Ok(format!("{how}{space}{words}"))
    });
    Ok(Talk { messages, end })
}

/// Waits a moment for a child's own end, then stops it.
fn end(child: &mut Child) -> Result<String, String> {
    // It has said its last word, or has hung; a driver may take a second to put a context away.
    let own = wait(child, Duration::from_secs(2));
    if let Some(status) = own {
        return Ok(status);
    }
    let _ = child.kill();
    // A driver may take its time to stop a kernel that does not end.
    wait(child, Duration::from_secs(30)).ok_or_else(|| {
        "the process of a probe that hangs could not be stopped, and it holds the device".to_owned()
    })
}

fn wait(child: &mut Child, patience: Duration) -> Option<String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.to_string()),
            Err(error) => return Some(error.to_string()),
            Ok(None) if start.elapsed() > patience => return None,
            Ok(None) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

#[cfg(test)]
#[path = "isolated_tests.rs"]
mod tests;
