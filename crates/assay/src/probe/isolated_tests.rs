//! Probes that hang, die and lose their device, on the fault-injecting device in threads and in
//! processes of the shell's.

use std::sync::mpsc;

use assay_device::emulator::{EmulatedClock, EmulatorDevice, EmulatorOptions};
use assay_device::fault::{FaultInjecting, FaultPlan, Hang};
use assay_measure::probe::probes;
use assay_record::EntryStatus;

use super::super::child::answer;
use super::*;

fn clocked() -> EmulatorDevice {
    let clock = Some(EmulatedClock::default());
    EmulatorDevice::new(EmulatorOptions { architecture: 90, clock, ..EmulatorOptions::default() })
}

fn request() -> Request {
    Request {
        protocol: PROTOCOL,
        device: "fault".to_owned(),
        quick: true,
        seed: 1,
        only: None,
        titles: Vec::new(),
    }
}

/// One probe that launches nothing and two that do.
fn three() -> Vec<Probe> {
    let mut all = probes();
    all.retain(|probe| ["occupancy", "barriers", "graph cost"].contains(&probe.title));
    assert_eq!(all.len(), 3);
    all.sort_by_key(|probe| ["occupancy", "barriers", "graph cost"].map(|t| t != probe.title));
    all
}

/// Runs the three probes in turn, on devices that fail as planned, one plan a child; children
/// after the last plan have no device.
fn with(plans: &[FaultPlan], limit: Duration) -> (Found, usize) {
    let mut children = 0;
    let mut start = |request: &Request| {
        let plan = plans.get(children).cloned();
        children += 1;
        let (sender, messages) = mpsc::channel();
        let request = request.clone();
        thread::spawn(move || {
            let mut say = |message| drop(sender.send(message));
            if let Some(plan) = plan {
                answer(&mut FaultInjecting::new(clocked(), plan), &request, &mut say);
            } else {
                let why = Failure::new(ExitCode::NoDevice, "it fell off its bus").told();
                say(Message::Refused { why });
            }
        });
        Ok(Talk { messages, end: Box::new(|| Ok("ended".to_owned())) })
    };
    let plan = Plan { request: request(), probes: three(), limit, start: &mut start };
    let mut steps = 0;
    let found = probe(plan, &mut |step| steps += usize::from(matches!(step, Step::Finished)))
        .expect("there is a device");
    assert_eq!(steps, 3, "progress tells of every probe");
    assert_eq!(found.entries.len(), 7, "every quantity has an entry: {:?}", found.entries);
    (found, children)
}

fn of<'a>(found: &'a Found, name: &str) -> (EntryStatus, &'a str) {
    let entry = found.entries.iter().find(|entry| entry.name == name).expect("an entry");
    (entry.status, entry.reason.as_deref().unwrap_or_default())
}

#[test]
fn a_launch_that_never_ends_fails_its_probe_and_the_others_go_on() {
    let hang = Some(Hang { launch: 1, lasting: Duration::from_secs(3600) });
    let plans = [FaultPlan { hang, ..FaultPlan::default() }, FaultPlan::default()];
    let (found, children) = with(&plans, Duration::from_secs(8));
    assert_eq!((children, found.incomplete.as_deref()), (2, None));
    for name in ["grid_barrier", "cluster_barrier"] {
        let (status, reason) = of(&found, name);
        assert_eq!(status, EntryStatus::Failed, "{name}");
        assert_eq!(reason, "its probe did not end in 8 s and was stopped (--timeout)");
    }
    assert_eq!(of(&found, "occupancy_shared").0, EntryStatus::Unsupported, "the probe before");
    assert_eq!(of(&found, "graph_node").0, EntryStatus::Measured, "the probe after");
    // The control: without the fault nothing fails, and one process does it all.
    let (found, children) = with(&[FaultPlan::default()], Duration::from_secs(120));
    assert_eq!(children, 1);
    assert_eq!(of(&found, "grid_barrier").0, EntryStatus::Measured);
    assert!(found.after.is_some());
}

#[test]
fn a_context_that_is_lost_costs_its_probe_and_a_fresh_process_does_the_rest() {
    let lost = FaultPlan { lose_at_launch: Some(1), ..FaultPlan::default() };
    let (found, children) = with(&[lost.clone(), FaultPlan::default()], Duration::from_secs(120));
    assert_eq!((children, found.incomplete.as_deref()), (2, None));
    let (status, reason) = of(&found, "grid_barrier");
    assert_eq!(status, EntryStatus::Failed);
    assert!(reason.contains("lost on plan at launch 1"), "{reason}");
    assert_eq!(of(&found, "graph_node").0, EntryStatus::Measured);
    // A device that is gone for good leaves what was there before.
    let (found, children) = with(&[lost], Duration::from_secs(120));
    assert_eq!(children, 2);
    assert!(found.incomplete.as_ref().is_some_and(|why| why.contains("launch 1")));
    let (status, reason) = of(&found, "graph_node");
    assert_eq!(status, EntryStatus::Failed);
    assert!(reason.starts_with("not run: the device was lost before it: "), "{reason}");
}

#[test]
fn a_device_that_is_not_there_is_the_first_process_own_refusal() {
    let mut start = |_: &Request| {
        let (sender, messages) = mpsc::channel();
        let why = Failure::new(ExitCode::NoDevice, "no driver").hint("get one".to_owned());
        drop(sender.send(Message::Refused { why: why.told() }));
        Ok(Talk { messages, end: Box::new(|| Ok(String::new())) })
    };
    let limit = Duration::from_secs(60);
    let plan = Plan { request: request(), probes: three(), limit, start: &mut start };
    let failure = probe(plan, &mut |_| {}).err().expect("there is no device");
    assert_eq!(failure.exit, ExitCode::NoDevice);
    assert!(failure.to_string().contains("hint: get one"), "{failure}");
}

/// What comes of children that are this script of the shell's.
#[cfg(unix)]
fn scripted(script: &str, limit: Duration) -> Result<Found, Failure> {
    let mut start = |request: &Request| {
        let mut command = Command::new("sh");
        talk(command.args(["-c", &format!("cat >/dev/null; {script}")]), request)
            .map_err(|error| Failure::request("cannot start").caused_by(&error))
    };
    let plan = Plan { request: request(), probes: three(), limit, start: &mut start };
    probe(plan, &mut |_| {})
}

#[cfg(unix)]
fn said(message: &Message) -> String {
    format!("printf '%s\\n' '{}'", serde_json::to_string(message).expect("JSON"))
}

#[cfg(unix)]
fn hello() -> String {
    let device = Box::new(assay_measure::certify::model().device);
    said(&Message::Hello { protocol: PROTOCOL, device, before: Box::default() })
}

#[cfg(unix)]
#[test]
fn a_process_that_hangs_is_killed_and_one_that_dies_is_quoted() {
    let at = |title: &str| said(&Message::Started { title: title.to_owned() });
    let script = format!("{}; {}; exec sleep 3600", hello(), at("occupancy"));
    let found = scripted(&script, Duration::from_millis(400)).expect("it said hello");
    // The next children say the same, and there is no such probe any more.
    assert_eq!(of(&found, "occupancy_shared").0, EntryStatus::Failed);
    assert!(of(&found, "occupancy_shared").1.contains("did not end in 0.4 s"));
    let script = format!("{}; {}; echo of shame >&2; kill -9 $$", hello(), at("occupancy"));
    let found = scripted(&script, Duration::from_secs(60)).expect("it said hello");
    let (_, reason) = of(&found, "occupancy_shared");
    assert!(reason.contains("died: signal: 9") && reason.contains("of shame"), "{reason}");
}

#[cfg(unix)]
#[test]
fn processes_that_never_get_to_a_probe_end_the_run_with_what_there_is() {
    let failure = scripted("exit 3", Duration::from_secs(60)).err().expect("nothing is there");
    assert_eq!(failure.exit, ExitCode::Internal);
    assert!(failure.to_string().contains("exit status: 3"), "{failure}");
    let found = scripted(&format!("{}; exit 0", hello()), Duration::from_secs(60));
    let found = found.expect("it said hello");
    assert!(found.incomplete.is_some());
    assert!(found.entries.iter().all(|entry| entry.status == EntryStatus::Failed));
    let device = Box::new(assay_measure::certify::model().device);
    let foreign = said(&Message::Hello { protocol: 99, device, before: Box::default() });
    let failure = scripted(&foreign, Duration::from_secs(60)).err().expect("another program");
    assert!(failure.to_string().contains("speaks 99, not 1"), "{failure}");
}
