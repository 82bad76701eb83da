//! The clock of a multiprocessor, measured on it.

use assay_device::{Argument, Device, Image, Launch, StreamId};

use super::ProbeError;

const PTX: &str = include_str!("../../../../../kernels/measure/clock.ptx");

/// The clock of one multiprocessor in MHz: its cycles while `nanoseconds` of the device's own
/// timer pass. The device is otherwise idle, so this is the clock of a single block; a window of
/// 100000 ns or more keeps the timer's step (1000 ns at most) below 1 %.
///
/// # Errors
/// The device's, and [`ProbeError::Wrong`] where a clock stands still.
pub fn measure_clock(device: &mut dyn Device, nanoseconds: u64) -> Result<f64, ProbeError> {
    let module = device.load(&Image::ptx("clock.ptx", PTX))?;
    let out = device.allocate_bare(16)?;
    device.write(out, 0, &[0; 16])?;
    let arguments = vec![Argument::Buffer(out), Argument::u64(nanoseconds)];
    let launch = Launch { arguments, ..Launch::new(module, "clock_window") };
    device.launch(StreamId::DEFAULT, &launch)?;
    let mut words = [0; 16];
    device.read(out, 0, &mut words)?;
    device.free(out)?;
    device.unload(module)?;
    let word =
        |at: usize| words[at..].iter().take(8).rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
    match (word(0), word(8)) {
        (0, _) | (_, 0) => Err(ProbeError::Wrong("the clock stood still".to_owned())),
        (cycles, ns) => Ok(cycles as f64 / ns as f64 * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use assay_device::emulator::{EmulatedClock, EmulatorDevice, EmulatorOptions};

    use super::*;

    #[test]
    fn the_clock_of_an_emulated_multiprocessor_is_found() {
        let clock = EmulatedClock::default();
        let options = EmulatorOptions { clock: Some(clock), ..EmulatorOptions::default() };
        let mut device = EmulatorDevice::new(options);
        let found = measure_clock(&mut device, 100_000).unwrap();
        let expected = f64::from(clock.sm_clock_mhz);
        assert!((found - expected).abs() < 0.01 * expected, "{found} of {expected}");
    }
}
