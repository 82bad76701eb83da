//! `--device`: tensors of files compared on a device, a piece at a time.

use assay_compare::{
    BandOptions, CompareError, DeviceComparer, Operation, Options, Shuffle, Source, Tensor,
};
use assay_device::Device;
use assay_record::Comparison;

use crate::failure::Failure;

/// A device with the comparison loaded.
pub(super) struct There {
    device: Box<dyn Device>,
    comparer: DeviceComparer,
}

impl There {
    /// Opens a device by its name.
    pub(super) fn open(name: &str) -> Result<There, Failure> {
        let mut device = crate::check::open(name)?;
        let comparer = DeviceComparer::new(&mut *device).map_err(|error| {
            Failure::new(assay_record::ExitCode::NoDevice, format!("cannot compare on {name}"))
                .caused_by(&error)
                .hint("without --device the CPU compares, with the same result".to_owned())
        })?;
        Ok(There { device, comparer })
    }

    /// What the report calls the device.
    pub(super) fn name(&self) -> String {
        let facts = self.device.facts();
        format!("{} ({})", facts.name, facts.architecture)
    }

    /// Compares two tensors; `progress` is told how many elements are done.
    pub(super) fn compare(
        &mut self,
        pair: (&mut dyn Source, &mut dyn Source),
        options: &Options,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Comparison, CompareError> {
        self.comparer.compare_sources(&mut *self.device, pair, options, progress)
    }

    /// Holds a tensor against the bands of outputs that are given.
    pub(super) fn compare_shuffled(
        &mut self,
        pair: (&mut dyn Source, &mut dyn Source),
        outputs: &mut [Box<dyn Source>],
        options: (&Options, &BandOptions),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Comparison, CompareError> {
        self.comparer.compare_shuffled(&mut *self.device, pair, outputs, options, progress)
    }

    /// Holds a tensor against the bands of a reference that is computed here.
    pub(super) fn compare_with_shuffles_of(
        &mut self,
        reference: (&mut Operation<'_>, &[Tensor]),
        candidate: &mut dyn Source,
        shuffle: &Shuffle<'_>,
        options: (&Options, &BandOptions),
    ) -> Result<Comparison, CompareError> {
        let device = &mut *self.device;
        self.comparer.compare_with_shuffles_of(device, reference, candidate, shuffle, options)
    }
}
