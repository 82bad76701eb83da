//! A kernel bound to a device: the subject that the gates see.

use std::time::Duration;

use assay_device::{Device, DeviceFacts};
use assay_record::Gate;
use assay_reference::{Bounded, Dims, Evaluation, Inputs, Replay};

use crate::kernel::Kernel;
use crate::launcher::Launcher;
use crate::spec::Spec;
use crate::subject::{Evaluated, Loaded, RunError, RunRequest, RunResult, Subject};

/// One kernel, with the kernel it replaces if there is one, on one device.
pub struct DeviceSubject<'a> {
    kernel: &'a dyn Kernel,
    replaced: Option<&'a dyn Kernel>,
    pub(crate) launcher: Launcher<'a>,
    obeys_schedules: bool,
}

impl<'a> DeviceSubject<'a> {
    /// Loads the kernels' modules and checks their launches against them.
    ///
    /// # Errors
    /// As [`Launcher::bind`].
    pub fn bind(
        kernel: &'a dyn Kernel,
        replaced: Option<&'a dyn Kernel>,
        device: &'a mut dyn Device,
    ) -> Result<DeviceSubject<'a>, RunError> {
        let obeys_schedules = device.facts().backend != "cuda";
        let mut launcher = Launcher::new(device);
        for kernel in std::iter::once(kernel).chain(replaced) {
            if kernel.spec().module.is_some() {
                launcher.bind(kernel.spec())?;
            }
        }
        Ok(DeviceSubject { kernel, replaced, launcher, obeys_schedules })
    }

    /// Holds launches from now on to a time, as [`Launcher::limit`].
    pub fn limit(&mut self, time: Option<Duration>) -> bool {
        self.launcher.limit(time)
    }
}

impl Subject for DeviceSubject<'_> {
    fn spec(&self) -> &Spec {
        self.kernel.spec()
    }

    fn device(&self) -> Option<&DeviceFacts> {
        let facts = self.launcher.facts();
        facts.multiprocessor.is_some().then_some(facts)
    }

    fn loaded(&mut self, symbol: &str, block: (u32, u32)) -> Result<Loaded, RunError> {
        self.launcher.loaded(self.kernel.spec(), symbol, block)
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        self.kernel.run(&mut self.launcher, request)
    }

    fn run_replaced(&mut self, request: &RunRequest<'_>) -> Option<Result<RunResult, RunError>> {
        Some(self.replaced?.run(&mut self.launcher, request))
    }

    fn obeys_schedules(&self) -> bool {
        self.obeys_schedules
    }

    fn prepare(&self, gate: Gate, dims: &Dims, seed: u64) -> Option<Inputs> {
        self.kernel.prepare(gate, dims, seed)
    }

    fn reference(&self, evaluation: &Evaluation<'_>) -> Option<Evaluated<Bounded>> {
        self.kernel.reference(evaluation)
    }

    fn simulate(
        &self,
        evaluation: &Evaluation<'_>,
        replay: &Replay,
    ) -> Option<Evaluated<Vec<f64>>> {
        self.kernel.simulate(evaluation, replay)
    }
}
