//! What a probe works with: the device, how thorough to be, and how to end without a value.

use assay_device::{Device, DeviceError, Image, ModuleId, TimingFacts};
use assay_record::Entry;
use thiserror::Error;

use super::Quantity;

/// Why a probe has no figure.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device has no such thing.
    #[error("{0}")]
    Unsupported(String),
    /// The kernel did not do what its figure would be counted from, or no steady figure came.
    #[error("{0}")]
    Wrong(String),
}

/// A device under probes.
pub struct ProbeContext<'a> {
    /// The device. Probes run alone on it.
    pub device: &'a mut dyn Device,
    /// Fewer samples and smaller buffers.
    pub quick: bool,
    /// Where random data and random orders come from.
    pub seed: u64,
    lost: Option<String>,
}

impl<'a> ProbeContext<'a> {
    /// Probes of a device, short ones if `quick`.
    pub fn new(device: &'a mut dyn Device, quick: bool, seed: u64) -> ProbeContext<'a> {
        ProbeContext { device, quick, seed, lost: None }
    }

    /// What the device was lost of, if it was.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// The architecture's number: 90 of `sm_90`; 0 where it has none.
    pub fn architecture(&self) -> u32 {
        self.device.facts().architecture_number().unwrap_or(0)
    }

    /// Multiprocessors, at least 1.
    pub fn multiprocessors(&self) -> u32 {
        self.device.facts().multiprocessors.max(1)
    }

    /// What the device says of its clocks and caches.
    pub fn timing(&self) -> Option<TimingFacts> {
        self.device.timing_facts()
    }

    /// Loads PTX text.
    ///
    /// # Errors
    /// The device's refusal.
    pub fn load(&mut self, name: &str, ptx: &str) -> Result<ModuleId, ProbeError> {
        Ok(self.device.load(&Image::ptx(name, ptx))?)
    }

    /// The entry that `probe` makes, or the quantity's entry with the reason why it made none.
    /// Remembers a lost device.
    pub fn attempt(
        &mut self,
        quantity: &Quantity,
        probe: impl FnOnce(&mut Self) -> Result<Entry, ProbeError>,
    ) -> Entry {
        probe(self).unwrap_or_else(|error| self.refused(quantity, &error))
    }

    /// As [`ProbeContext::attempt`], for a probe that makes the entries of several quantities.
    pub fn attempt_all(
        &mut self,
        quantities: &[Quantity],
        probe: impl FnOnce(&mut Self) -> Result<Vec<Entry>, ProbeError>,
    ) -> Vec<Entry> {
        probe(self).unwrap_or_else(|error| {
            quantities.iter().map(|quantity| self.refused(quantity, &error)).collect()
        })
    }

    /// The entry of a quantity without a figure, and why; a lost device is remembered.
    pub fn refused(&mut self, quantity: &Quantity, error: &ProbeError) -> Entry {
        match error {
            ProbeError::Unsupported(reason) => quantity.unsupported(reason),
            ProbeError::Device(DeviceError::Unsupported { what }) => {
                quantity.unsupported(format!("the device has no {what}"))
            }
            ProbeError::Device(error) => {
                if error.poisons_device() {
                    self.lost.get_or_insert_with(|| error.to_string());
                }
                quantity.failed(error.to_string())
            }
            ProbeError::Wrong(reason) => quantity.failed(reason),
        }
    }
}
