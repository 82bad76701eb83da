//! The hidden subcommand that runs probes, in a process that may hang or die of them.
//!
//! The parent writes one [`Request`] to its stdin as JSON. It answers on stdout with one
//! [`Message`] a line.

use assay_device::Device;
use assay_device::nvml::Telemetry;
use assay_measure::probe::{HANG, Probe, ProbeContext, conditions, describe, probes, run};
use assay_record::{Conditions, Entry, ExitCode, ProbedDevice};
use serde::{Deserialize, Serialize};

use crate::console::Console;
use crate::failure::{Failure, Told};
use crate::protocol;

/// The version of what is said; both ends are the same program, unless it was replaced meanwhile.
pub(super) const PROTOCOL: u32 = 1;

/// Probes to run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) protocol: u32,
    /// The device's name.
    pub(super) device: String,
    pub(super) quick: bool,
    pub(super) seed: u64,
    /// The text that names of quantities must hold.
    pub(super) only: Option<String>,
    /// The titles of the probes, in the order in which they run.
    pub(super) titles: Vec<String>,
}

/// What the child says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum Message {
    /// It has opened the device.
    Hello {
        protocol: u32,
        device: Box<ProbedDevice>,
        /// The device's state before the first probe.
        before: Box<Conditions>,
    },
    /// There is no such device, or none that can be probed; nothing follows.
    Refused { why: Told },
    /// A probe begins.
    Started { title: String },
    /// A probe has ended.
    Finished {
        title: String,
        entries: Vec<Entry>,
        /// Why the device answers no more, in this process; nothing follows then.
        lost: Option<String>,
    },
    /// All probes have run; nothing follows.
    Done {
        /// The device's state after the last.
        after: Box<Conditions>,
    },
}

/// Serves the one request on stdin.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    let request: Request = protocol::request("probe-child", "probe")?;
    match super::open(&request.device) {
        Ok(mut device) => answer(&mut *device, &request, &mut |message| say(&message)),
        Err(failure) => say(&Message::Refused { why: failure.told() }),
    }
    Ok(ExitCode::Holds)
}

/// Writes a message on a line of its own.
fn say(message: &Message) {
    if let Ok(line) = serde_json::to_string(message) {
        Console::out_plain(&format!("\n{line}\n"));
    }
}

/// Runs the probes that are asked for.
pub(super) fn answer(device: &mut dyn Device, request: &Request, say: &mut dyn FnMut(Message)) {
    let telemetry = Telemetry::open(device);
    let state = || match &telemetry {
        Ok(telemetry) => Box::new(conditions(telemetry)),
        Err(error) => {
            Box::new(Conditions { missing: vec![error.to_string()], ..Conditions::default() })
        }
    };
    let described = Box::new(describe(device));
    say(Message::Hello { protocol: PROTOCOL, device: described, before: state() });
    let mut context = ProbeContext::new(device, request.quick, request.seed);
    let all: Vec<Probe> = probes().into_iter().chain([HANG]).collect();
    let asked = request.titles.iter();
    for probe in asked.filter_map(|title| all.iter().find(|probe| probe.title == title)) {
        let title = probe.title.to_owned();
        // The control has a name of its own, and is asked for by its title.
        context.only = request.only.clone().filter(|_| probe.title != HANG.title);
        say(Message::Started { title: title.clone() });
        let entries = run(&mut context, std::slice::from_ref(probe), &mut |_| {});
        let lost = context.lost().map(str::to_owned);
        let is_lost = lost.is_some();
        say(Message::Finished { title, entries, lost });
        if is_lost {
            return;
        }
    }
    say(Message::Done { after: state() });
}
