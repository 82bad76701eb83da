//! What a gate sees of a kernel: inputs go in, bytes and evidence of misbehaviour come out.

use std::collections::BTreeMap;

use assay_device::{DeviceFacts, KernelFacts, Schedule};
use assay_record::Gate;
use assay_reference::{Bounded, Dims, Evaluation, EvaluationError, Inputs, Replay};
use thiserror::Error;

use crate::spec::Spec;

/// One kernel bound to something that can run it. Gates know no more than this.
pub trait Subject {
    /// The kernel's contract.
    fn spec(&self) -> &Spec;

    /// Runs every launch of the kernel once on `request.inputs` and waits for the end.
    ///
    /// # Errors
    /// Whatever kept the outputs from being made; see [`RunError`].
    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError>;

    /// Runs the kernel that this one replaces; `None` if it replaces none.
    fn run_replaced(&mut self, _request: &RunRequest<'_>) -> Option<Result<RunResult, RunError>> {
        None
    }

    /// The device that the kernel is loaded on, where that device allots registers and shared
    /// memory, so that it can tell what the kernel takes.
    fn device(&self) -> Option<&DeviceFacts> {
        None
    }

    /// What that device says of one of the kernel's symbols, launched in blocks of so many threads
    /// and dynamic shared bytes.
    ///
    /// # Errors
    /// The device's refusal; always where [`Subject::device`] has none.
    fn loaded(&mut self, symbol: &str, _block: (u32, u32)) -> Result<Loaded, RunError> {
        Err(RunError::request(format!("`{symbol}` is loaded on no device")))
    }

    /// True if [`RunRequest::schedule`] decides the order in which blocks and warps run. Where it
    /// does not, [`RunRequest::perturb`] asks for a disturbed run.
    fn obeys_schedules(&self) -> bool {
        true
    }

    /// Inputs that the kernel builds itself for a gate; `None` leaves them to the family's fills.
    fn prepare(&self, _gate: Gate, _dims: &Dims, _seed: u64) -> Option<Inputs> {
        None
    }

    /// The real-number values and their error bounds; `None` if a rule judges the kernel.
    fn reference(&self, evaluation: &Evaluation<'_>) -> Option<Evaluated<Bounded>> {
        self.spec().bounds(evaluation)
    }

    /// The outputs with the sums carried in another format; `None` if a rule judges the kernel.
    fn simulate(
        &self,
        evaluation: &Evaluation<'_>,
        replay: &Replay,
    ) -> Option<Evaluated<Vec<f64>>> {
        self.spec().replays(evaluation, replay)
    }
}

/// What a device says of a kernel that it has loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What the kernel takes of it.
    pub kernel: KernelFacts,
    /// The blocks that a multiprocessor holds at a time, where the device counts them.
    pub blocks: Option<u32>,
}

/// What a subject that wraps another one answers as that one does: everything but its runs.
macro_rules! answers_as {
    ($inner:ident) => {
        fn spec(&self) -> &$crate::spec::Spec {
            self.$inner.spec()
        }

        fn device(&self) -> Option<&assay_device::DeviceFacts> {
            self.$inner.device()
        }

        fn loaded(
            &mut self,
            symbol: &str,
            block: (u32, u32),
        ) -> Result<$crate::subject::Loaded, $crate::subject::RunError> {
            self.$inner.loaded(symbol, block)
        }

        fn obeys_schedules(&self) -> bool {
            self.$inner.obeys_schedules()
        }

        fn prepare(
            &self,
            gate: assay_record::Gate,
            dims: &assay_reference::Dims,
            seed: u64,
        ) -> Option<assay_reference::Inputs> {
            self.$inner.prepare(gate, dims, seed)
        }

        fn reference(
            &self,
            evaluation: &assay_reference::Evaluation<'_>,
        ) -> Option<$crate::subject::Evaluated<assay_reference::Bounded>> {
            self.$inner.reference(evaluation)
        }

        fn simulate(
            &self,
            evaluation: &assay_reference::Evaluation<'_>,
            replay: &assay_reference::Replay,
        ) -> Option<$crate::subject::Evaluated<Vec<f64>>> {
            self.$inner.simulate(evaluation, replay)
        }
    };
}
pub(crate) use answers_as;

/// One value per output tensor, or why there is none.
pub type Evaluated<T> = Result<BTreeMap<String, T>, EvaluationError>;

/// Everything that decides one run.
#[derive(Debug, Clone)]
pub struct RunRequest<'a> {
    /// The shape.
    pub dims: &'a Dims,
    /// The input tensors, exactly representable in their formats.
    pub inputs: &'a Inputs,
    /// The byte that outputs and scratch hold beforehand.
    pub poison: u8,
    /// The order in which an emulator runs blocks and warps.
    pub schedule: Schedule,
    /// Above zero: run beside unrelated work, a different one for each number.
    pub perturb: u32,
    /// Which alignment class, among those the spec allows, buffers start in; 0 is the widest.
    pub misalign: u64,
    /// Place outputs in the inputs' buffers wherever the spec allows it.
    pub alias: bool,
}

impl<'a> RunRequest<'a> {
    /// A plain run: poison 0x55, blocks in order, nothing disturbed.
    pub fn new(dims: &'a Dims, inputs: &'a Inputs) -> RunRequest<'a> {
        RunRequest {
            dims,
            inputs,
            poison: 0x55,
            schedule: Schedule::InOrder,
            perturb: 0,
            misalign: 0,
            alias: false,
        }
    }
}

/// What one run left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunResult {
    /// Each output's bytes, dense and row-major in its declared format.
    pub outputs: BTreeMap<String, Vec<u8>>,
    /// Input elements that the kernel overwrote; the first few.
    pub changed_inputs: Vec<Change>,
    /// Writes outside every buffer's payload: (argument, what happened).
    pub guard_damage: Vec<(String, String)>,
    /// Lane operations the emulator counted; 0 where nobody counts.
    pub lane_operations: u64,
    /// What the kernel printed, where the device keeps it.
    pub printed: String,
}

/// An input element that a run changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The argument.
    pub tensor: String,
    /// The element's index along each axis.
    pub element: Vec<i64>,
    /// The element's bits before the run.
    pub before: u64,
    /// The element's bits after the run.
    pub after: u64,
}

/// Why a run made no outputs.
#[derive(Debug, Clone, Error, PartialEq)]
#[non_exhaustive]
pub enum RunError {
    /// The device cannot run this kernel; no fault of the kernel.
    #[error("unsupported: {what}")]
    Unsupported {
        /// The instruction or feature that is missing.
        what: String,
    },
    /// The kernel misbehaved: out of bounds, deadlock, trap, never ending.
    #[error("{description}")]
    Fault {
        /// What it did.
        description: String,
        /// The guilty line, as `row_sum.ptx:42`.
        place: Option<String>,
        /// True if the device cannot be used any more.
        lost_device: bool,
    },
    /// The contract asks for what cannot be: a symbol that is missing, a launch of zero threads,
    /// more memory than there is.
    #[error("{message}")]
    Request {
        /// What was wrong and where.
        message: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// The time for it was spent before it ended, which says nothing about the kernel.
    #[error("it was stopped in its launch: the time for it was spent (--budget)")]
    Stopped,
    /// The device is gone.
    #[error("the device failed: {message}")]
    Device {
        /// The driver's words.
        message: String,
    },
    /// A defect of Assay itself.
    #[error("internal error: {message}")]
    Internal {
        /// What was inconsistent.
        message: String,
    },
}

impl RunError {
    /// A request that cannot be served.
    pub fn request(message: impl Into<String>) -> RunError {
        RunError::Request { message: message.into(), hint: None }
    }

    /// The guilty line, where one is known.
    pub fn place(&self) -> Option<&str> {
        match self {
            RunError::Fault { place, .. } => place.as_deref(),
            _ => None,
        }
    }

    /// True if the kernel is to blame: the gate that sees it fails.
    pub fn is_fault(&self) -> bool {
        matches!(self, RunError::Fault { .. })
    }
}
