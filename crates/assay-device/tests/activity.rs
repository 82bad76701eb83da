//! Activity records from a CUPTI made for the purpose, without one, and from a GPU.

mod common;
mod fake_library;
mod hardware;

use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_device::cupti::{Activity, ActivityError, KernelRecord};
use assay_device::{Argument, Device, Launch, StreamId};
use common::{buffer, load};
use hardware::{gpu, skip};

/// A process takes one stream of records, so the tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn started(test: &str, options: &[&str]) -> Option<Result<Activity, ActivityError>> {
    let path = fake_library::build(test, "cupti", options)?;
    Some(Activity::start_with_library(&path))
}

#[test]
fn records_come_by_their_start_and_other_kinds_are_left_out() {
    let _turn = turn();
    let Some(activity) = started("records", &[]) else { return };
    let mut activity = activity.expect("the fake starts");
    let records = activity.take().expect("the fake has records");
    let seen: Vec<_> = records.iter().map(|r| (r.start_ns, r.duration_ns())).collect();
    assert_eq!(seen, [(980_000, 3000), (1_000_000, 1000)]);
    let KernelRecord { name, correlation, stream, .. } = &records[0];
    assert_eq!((name.as_str(), *correlation, *stream), ("spin", 9, 13));
    assert!(activity.library().ends_with("version 130001"), "{}", activity.library());
}

#[test]
fn only_one_takes_records_at_a_time() {
    let _turn = turn();
    let Some(first) = started("one_at_a_time", &[]) else { return };
    let first = first.expect("the fake starts");
    let Some(second) = started("one_at_a_time", &[]) else { return };
    assert!(second.err().is_some_and(|error| error.reason.contains("already")));
    drop(first);
    let Some(third) = started("one_at_a_time", &[]) else { return };
    assert!(third.is_ok(), "after the first has ended");
}

#[test]
fn dropped_records_are_an_error_and_never_a_short_list() {
    let _turn = turn();
    let Some(activity) = started("dropped", &["-DDROPPED=5"]) else { return };
    let error = activity.expect("the fake starts").take().expect_err("dropped");
    assert!(error.reason.starts_with("5 of them were dropped"), "{error}");
}

#[test]
fn a_refusal_says_what_to_do_and_leaves_nothing_taken() {
    let _turn = turn();
    let Some(refused) = started("refused", &["-DENABLE_CODE=35"]) else { return };
    let error = refused.err().expect("refused");
    assert!(error.reason.contains("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("root")));
    let Some(again) = started("refused", &[]) else { return };
    assert!(again.is_ok(), "a refusal does not count as taken");
}

#[test]
fn an_unknown_version_is_not_read() {
    let _turn = turn();
    let Some(newer) = started("newer", &["-DVERSION=140000"]) else { return };
    let error = newer.err().expect("refused");
    assert!(error.reason.contains("version 140000"), "{error}");
    let Some(lacking) = started("lacking", &["-DNO_CALLBACKS"]) else { return };
    let error = lacking.err().expect("refused");
    assert!(error.reason.contains("cuptiActivityRegisterCallbacks"), "{error}");
}

#[test]
fn a_missing_library_is_a_reason() {
    let _turn = turn();
    let error = Activity::start_with_library("/nowhere/libcupti.so.13").err().expect("not there");
    assert!(error.to_string().contains("CUPTI does not load"), "{error}");
    if let Err(error) = assay_device::cupti::describe() {
        assert!(error.hint.is_some_and(|hint| hint.contains("nvidia-cuda-cupti")));
    }
}

#[test]
fn every_launch_has_a_record_gpu() {
    let test = "every_launch_has_a_record_gpu";
    let _turn = turn();
    let Some(mut device) = gpu(test) else { return };
    let module = load(&mut *device);
    let target = buffer(&mut *device, 4096 * 4);
    let mut activity = match Activity::start() {
        Ok(activity) => activity,
        Err(error) => return skip(test, &error.to_string()),
    };
    let arguments = vec![Argument::Buffer(target), Argument::u32(4096)];
    let launch = Launch {
        grid: [64, 1, 1],
        block: [64, 1, 1],
        arguments,
        ..Launch::new(module, "increment")
    };
    for _ in 0..10 {
        device.launch(StreamId::DEFAULT, &launch).expect("starts");
    }
    device.synchronize().expect("runs");
    let records = activity.take().expect("there are records");
    assert_eq!(records.len(), 10, "{records:?}");
    for record in &records {
        assert_eq!(record.name, "increment");
        assert!((200..1_000_000).contains(&record.duration_ns()), "{record:?}");
    }
}
