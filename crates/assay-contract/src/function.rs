//! Kernels that are Rust functions: for host twins, and for trying the gates without a device.

use crate::kernel::Kernel;
use crate::launcher::Launcher;
use crate::spec::Spec;
use crate::subject::{RunError, RunRequest, RunResult};

type Function = dyn Fn(&RunRequest<'_>) -> Result<RunResult, RunError> + Send + Sync;

/// A kernel whose one launch is a Rust function.
pub struct FunctionKernel {
    spec: Spec,
    function: Box<Function>,
}

impl FunctionKernel {
    /// A kernel that promises `spec` and computes by `function`; the spec's module and launches
    /// are left unused.
    pub fn new(
        spec: Spec,
        function: impl Fn(&RunRequest<'_>) -> Result<RunResult, RunError> + Send + Sync + 'static,
    ) -> FunctionKernel {
        let spec = Spec { module: None, ..spec };
        FunctionKernel { spec, function: Box::new(function) }
    }
}

impl Kernel for FunctionKernel {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run(
        &self,
        _launcher: &mut Launcher<'_>,
        request: &RunRequest<'_>,
    ) -> Result<RunResult, RunError> {
        (self.function)(request)
    }
}
