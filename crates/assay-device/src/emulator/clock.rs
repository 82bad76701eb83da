//! A clock made up for the emulator: no GPU's, but the same at every run, so that whatever
//! measures can be tested with no GPU, on good days and on bad ones.

use std::collections::HashMap;

use assay_emulator::Timers;

use super::unknown;
use crate::error::DeviceError;
use crate::handle::EventId;
use crate::timing::TimingFacts;

/// What the made-up clock is like. A kernel takes a cycle for each warp instruction of its whole
/// grid, `%clock64` counts them, and `%globaltimer` and events tell the time that passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EmulatedClock {
    /// Cycles of a microsecond.
    pub sm_clock_mhz: u32,
    /// Nanoseconds of every launch, fill and copy besides its instructions or bytes.
    pub launch_ns: u32,
    /// Up to so many nanoseconds more, another number for each launch, drawn from `seed`.
    pub jitter_ns: u32,
    /// Bytes that a fill or copy moves in a nanosecond.
    pub bytes_per_ns: u32,
    /// How the clock changes from launch to launch.
    pub course: ClockCourse,
    /// Where jitter and wandering come from.
    pub seed: u64,
}

impl Default for EmulatedClock {
    fn default() -> Self {
        EmulatedClock {
            sm_clock_mhz: 1000,
            launch_ns: 2000,
            jitter_ns: 0,
            bytes_per_ns: 1000,
            course: ClockCourse::Steady,
            seed: 1,
        }
    }
}

/// How a clock changes. Launches count from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockCourse {
    /// Never.
    Steady,
    /// From a launch on it is slower, for good.
    SagsFrom {
        /// The first slow launch.
        launch: u64,
        /// The slow clock.
        mhz: u32,
    },
    /// Every so many launches it is slower, once.
    DipsEvery {
        /// Launches from one slow one to the next.
        launches: u64,
        /// The slow clock.
        mhz: u32,
    },
    /// Each launch has a clock of its own, down to this one: it never settles.
    Wanders {
        /// The slowest clock.
        least_mhz: u32,
    },
    /// It stands still: no time passes for events, and `%globaltimer` does not move.
    Stopped,
}

/// The clock and what it has shown.
pub(super) struct Clock {
    options: EmulatedClock,
    now_ns: u64,
    cycles: u64,
    launches: u64,
    noise: u64,
    /// When each event was recorded last.
    events: HashMap<EventId, Option<u64>>,
}

impl Clock {
    pub(super) fn new(options: EmulatedClock) -> Clock {
        let noise = options.seed | 1;
        Clock { options, now_ns: 1, cycles: 0, launches: 0, noise, events: HashMap::new() }
    }

    pub(super) fn facts(&self) -> TimingFacts {
        TimingFacts {
            asynchronous: false,
            l2_bytes: 1 << 20,
            l2_persisting_bytes_max: 0,
            sm_clock_max_mhz: f64::from(self.options.sm_clock_mhz),
            memory_clock_max_mhz: f64::from(self.options.sm_clock_mhz),
            memory_bus_bits: 4 * self.options.bytes_per_ns,
            event_resolution_ns: 1.0,
            copy_engines: 0,
            ecc: false,
            pci: None,
        }
    }

    /// Counts a launch and says what its timers show.
    pub(super) fn start(&mut self) -> Timers {
        self.launches += 1;
        let cycle_ps = match self.mhz() {
            0 => 0,
            mhz => 1_000_000 / mhz,
        };
        Timers { cycles: self.cycles, nanoseconds: self.now_ns, cycle_ps }
    }

    /// Lets the time of a launch pass.
    pub(super) fn finish(&mut self, timers: Timers, instructions: u64) {
        self.cycles = timers.cycles_after(instructions);
        if timers.cycle_ps != 0 {
            let extra = u64::from(self.options.launch_ns) + self.jitter();
            self.now_ns = timers.nanoseconds_after(instructions).wrapping_add(extra);
        }
    }

    /// Lets the time of a fill or copy pass.
    pub(super) fn transfer(&mut self, bytes: u64) {
        if self.options.course != ClockCourse::Stopped {
            let moving = bytes / u64::from(self.options.bytes_per_ns.max(1));
            self.now_ns += u64::from(self.options.launch_ns) + moving;
        }
    }

    fn mhz(&mut self) -> u32 {
        let full = self.options.sm_clock_mhz.max(1);
        match self.options.course {
            ClockCourse::SagsFrom { launch, mhz } if self.launches >= launch => mhz.max(1),
            ClockCourse::DipsEvery { launches, mhz } if self.is_nth(launches) => mhz.max(1),
            ClockCourse::Steady | ClockCourse::SagsFrom { .. } | ClockCourse::DipsEvery { .. } => {
                full
            }
            ClockCourse::Wanders { least_mhz } => {
                let width = u64::from(full.saturating_sub(least_mhz)) + 1;
                (u64::from(least_mhz) + self.draw() % width).max(1) as u32
            }
            ClockCourse::Stopped => 0,
        }
    }

    fn is_nth(&self, launches: u64) -> bool {
        self.launches.is_multiple_of(launches.max(1))
    }

    fn jitter(&mut self) -> u64 {
        match self.options.jitter_ns {
            0 => 0,
            most => self.draw() % (u64::from(most) + 1),
        }
    }

    /// Marsaglia's xorshift64.
    fn draw(&mut self) -> u64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        self.noise
    }

    pub(super) fn create(&mut self) -> EventId {
        let id = EventId::new();
        self.events.insert(id, None);
        id
    }

    pub(super) fn destroy(&mut self, event: EventId) -> Result<(), DeviceError> {
        let gone = self.events.remove(&event);
        gone.map(|_| ()).ok_or_else(|| unknown("event", event.number()))
    }

    pub(super) fn check(&self, event: EventId) -> Result<(), DeviceError> {
        let found = self.events.get(&event).map(|_| ());
        found.ok_or_else(|| unknown("event", event.number()))
    }

    pub(super) fn record(&mut self, event: EventId) -> Result<(), DeviceError> {
        self.check(event)?;
        self.events.insert(event, Some(self.now_ns));
        Ok(())
    }

    pub(super) fn time(&self, event: EventId) -> Result<u64, DeviceError> {
        self.check(event)?;
        let time = self.events.get(&event).copied().flatten();
        time.ok_or_else(|| DeviceError::InvalidRequest {
            reason: "an event has no time before it is recorded".to_string(),
            hint: "call record_event for it first".to_string(),
        })
    }
}
