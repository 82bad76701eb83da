//! What launches may take and what they took, in instructions of warps: a time limit that an
//! emulator can keep, since a launch on it ends at a count of instructions.

use std::time::Duration;

use assay_device::{DeviceError, FaultKind, LaunchReport};

use crate::subject::RunError;

/// Instructions of warps in a second, as long as none were counted: of a slow core.
const SLOW: f64 = 2e6;
/// Instructions that a launch always has: nothing is stopped before it began.
const LEAST: u64 = 1 << 18;
/// A time after which the rate is known.
const KNOWN: Duration = Duration::from_millis(20);

/// Counts instructions of warps, and holds launches to what is left of them.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    left: Option<u64>,
    counted: u64,
    busy: Duration,
}

impl Meter {
    /// Launches from now on stop after about so much time together; `None` takes the limit away.
    pub(crate) fn limit(&mut self, time: Option<Duration>) {
        let rate =
            if self.busy >= KNOWN { self.counted as f64 / self.busy.as_secs_f64() } else { SLOW };
        self.left = time.map(|time| ((time.as_secs_f64() * rate) as u64).max(LEAST));
    }

    /// What a launch may take whose own limit is `own`.
    pub(crate) fn allowed(&self, own: u64) -> u64 {
        self.left.map_or(own, |left| own.min(left.max(1)))
    }

    /// Counts a launch that was allowed so much in place of its own limit, and tells an end that
    /// the meter brought about from one of the kernel's.
    pub(crate) fn take(
        &mut self,
        result: &Result<LaunchReport, DeviceError>,
        (allowed, own): (u64, u64),
        time: Duration,
    ) -> Result<(), RunError> {
        let hung =
            matches!(result, Err(DeviceError::Fault(fault)) if fault.kind == FaultKind::Hang);
        let counted = match result {
            Ok(report) => report.warp_instructions.unwrap_or(0),
            Err(_) if hung => allowed,
            Err(_) => 0,
        };
        if counted > 0 {
            self.counted += counted;
            self.busy += time;
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(counted);
        }
        if hung && allowed < own { Err(RunError::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_device::KernelFault;

    fn ran(instructions: u64) -> LaunchReport {
        LaunchReport { warp_instructions: Some(instructions), ..LaunchReport::default() }
    }

    fn hung() -> Result<LaunchReport, DeviceError> {
        Err(DeviceError::Fault(KernelFault {
            kind: FaultKind::Hang,
            description: String::new(),
            place: None,
            hint: None,
            lost_context: false,
        }))
    }

    #[test]
    fn a_launch_is_held_to_the_time_left_at_the_rate_that_was_seen() {
        let mut meter = Meter::default();
        assert_eq!(meter.allowed(7_000_000_000), 7_000_000_000, "no limit");
        meter.limit(Some(Duration::from_secs(2)));
        assert_eq!(meter.allowed(7_000_000_000), 4_000_000);
        let taken = meter.take(&Ok(ran(1_000_000)), (4_000_000, 7_000_000_000), KNOWN * 5);
        assert_eq!(taken, Ok(()));
        assert_eq!(meter.allowed(7_000_000_000), 3_000_000);
        meter.limit(Some(Duration::from_secs(1)));
        assert_eq!(meter.allowed(u64::MAX), 10_000_000, "10 million a second were seen");
        assert_eq!(meter.allowed(50), 50, "a launch's own limit is the kernel's");
        meter.limit(Some(Duration::ZERO));
        assert_eq!(meter.allowed(u64::MAX), LEAST);
    }

    #[test]
    fn an_end_is_the_meters_only_where_the_launch_had_more_of_its_own() {
        let mut meter = Meter::default();
        let time = Duration::from_secs(1);
        assert_eq!(meter.take(&hung(), (500, 500), time), Ok(()), "the kernel never ends");
        assert_eq!(meter.take(&hung(), (500, 501), time), Err(RunError::Stopped));
        assert_eq!(meter.take(&Ok(ran(3)), (500, 501), time), Ok(()));
    }
}
