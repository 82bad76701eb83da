//! A kernel on more elements than any reference could go through: its inputs repeat along a dim, so
//! that the outputs of a small run, judged by the formula, say what every part of the large run's
//! outputs must be.
//!
//! A part whose bytes are the small run's needs no more judging. One whose bytes differ (a sum may
//! be taken in another order elsewhere) is judged by the same bound as the small run.

use std::collections::BTreeMap;

use assay_device::{Allocation, BufferId, DeviceError, StreamId};
use assay_record::Outcome;
use assay_reference::{Bounded, Dims, Evaluation, Inputs};

use crate::bind::DeviceSubject;
use crate::gates::trial::{Trial, Tried, case_of, inputs, trial};
use crate::gates::{Tally, judge_part};
use crate::launcher::{Launcher, run_error};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::spec::{ArgumentSpec, Role, Spec};
use crate::subject::{RunError, RunRequest, Subject};

/// Bytes that are copied or compared at a time, at least.
const CHUNK: usize = 64 << 20;
/// Bytes at each end of an input that are looked at again after the run.
const LOOKED_AT: u64 = 64 << 20;
/// Differing parts that are kept to be judged.
const KEPT: usize = 256;

/// What decides a large run.
#[derive(Debug, Clone)]
pub struct Repeated<'a> {
    /// The large shape.
    pub dims: &'a Dims,
    /// The dim along which inputs repeat, the first axis of every tensor that has it.
    pub dim: &'a str,
    /// How many places along it are one period.
    pub period: i64,
    /// What the inputs of a period are drawn from.
    pub seed: u64,
}

/// The bytes of one period of a buffer.
type Periods = BTreeMap<String, Vec<u8>>;

/// One part of an output that differs from the small run's.
struct Part {
    output: String,
    period: u64,
    bytes: Vec<u8>,
}

/// What the large run showed.
#[derive(Default)]
struct Large {
    differing: Vec<Part>,
    /// All that differed, those that are not kept too.
    count: u64,
    damage: Option<String>,
}

/// Runs a kernel once at a large shape.
pub fn repeated(subject: &mut DeviceSubject<'_>, repeated: &Repeated<'_>) -> Tried {
    let spec = subject.spec().clone();
    let case = case_of(&spec, repeated.dims, repeated.seed);
    let small = with(repeated.dims, repeated.dim, repeated.period);
    if let Err(why) = repeats(&spec, repeated.dim) {
        return Tried::unproven(&case, why);
    }
    let at = Trial { dims: &small, seed: repeated.seed, misalign: 0, alias: false };
    let judged = trial(subject, &at);
    if judged.result.outcome != Outcome::Pass {
        return judged;
    }
    let (period, bounds) = match period(subject, repeated, &small) {
        Ok(period) => period,
        Err(why) => return Tried::unproven(&case, why),
    };
    let outputs = match subject.run(&RunRequest::new(&small, &period)) {
        Ok(result) => result.outputs,
        Err(error) => return failed(&case, error),
    };
    let inputs = encoded(&spec, &period);
    let run = subject.launcher.run_large(&spec, repeated, (&inputs, &outputs));
    match run {
        Ok(mut large) => {
            // The period that all others are compared with is judged too.
            for (output, bytes) in &outputs {
                large.differs(output, 0, bytes);
            }
            verdict(&spec, &case, &bounds, &large, outputs.len() as u64)
        }
        Err(error) => failed(&case, error),
    }
}

fn failed(case: &assay_record::CaseName, error: RunError) -> Tried {
    let mut tally = Tally::new(case.gate);
    tally.count();
    tally.run_error(case, &error);
    Tried { result: tally.finish(), error: Some(error) }
}

fn with(dims: &Dims, dim: &str, size: i64) -> Dims {
    let mut changed = dims.clone();
    changed.insert(dim.to_owned(), size);
    changed
}

/// Whether a dim is the first axis, whole and alone, of every tensor that has it.
fn repeats(spec: &Spec, dim: &str) -> Result<(), String> {
    let mut found = false;
    for argument in spec.arguments.iter().filter(|argument| argument.role.is_buffer()) {
        let name = &argument.name;
        if argument.strides.is_some() {
            return Err(format!("`{name}` has strides of its own"));
        }
        for (axis, extent) in argument.shape.iter().enumerate() {
            let mentions = extent.names().iter().any(|other| **other == *dim);
            if mentions && (axis != 0 || extent.as_dim() != Some(dim)) {
                return Err(format!("`{dim}` is not the first axis of `{name}`"));
            }
            found |= mentions && argument.role != Role::Scratch;
        }
        if argument.format.is_packed() {
            return Err(format!("elements of `{name}` share bytes"));
        }
    }
    if found { Ok(()) } else { Err(format!("no tensor has `{dim}` for an axis")) }
}

fn is_periodic(argument: &ArgumentSpec, dim: &str) -> bool {
    argument.shape.first().is_some_and(|extent| extent.as_dim() == Some(dim))
}

/// One period's inputs with the bounds on its outputs, where the formula's outputs do repeat.
fn period(
    subject: &DeviceSubject<'_>,
    repeated: &Repeated<'_>,
    small: &Dims,
) -> Result<(Inputs, BTreeMap<String, Bounded>), String> {
    let spec = subject.spec();
    let case = case_of(spec, small, repeated.seed);
    let bounds = |dims: &Dims, inputs: &Inputs| {
        let evaluation = Evaluation::new(dims, inputs, &spec.arithmetic);
        let bounded = subject.reference(&evaluation);
        let bounded = bounded.ok_or_else(|| "a rule judges it, element by element".to_owned())?;
        bounded.map_err(|error| error.to_string())
    };
    // Ordinary values: what is asked is where elements lie, not what they hold.
    let inputs = inputs(subject, &case, small, true)?;
    let once = bounds(small, &inputs)?;
    let mut two = inputs.clone();
    for argument in spec.arguments.iter().filter(|argument| is_periodic(argument, repeated.dim)) {
        if let Some(values) = two.tensors.get_mut(&argument.name) {
            values.extend_from_within(..);
        }
    }
    let twice = bounds(&with(small, repeated.dim, 2 * repeated.period), &two)?;
    for (name, once) in &once {
        let twice = twice.get(name).map(|bounded| bounded.value.as_slice()).unwrap_or_default();
        let alike = twice.len() == 2 * once.value.len()
            && twice.chunks(once.value.len().max(1)).all(|half| half == once.value);
        if !alike {
            return Err(format!("`{name}` does not repeat along `{}`", repeated.dim));
        }
    }
    Ok((inputs, once))
}

fn encoded(spec: &Spec, inputs: &Inputs) -> Periods {
    let one = |argument: &ArgumentSpec| {
        let values = inputs.tensors.get(&argument.name)?;
        Some((argument.name.clone(), argument.format.encode_slice(values)))
    };
    spec.arguments.iter().filter_map(one).collect()
}

fn verdict(
    spec: &Spec,
    case: &assay_record::CaseName,
    bounds: &BTreeMap<String, Bounded>,
    large: &Large,
    own: u64,
) -> Tried {
    let mut tally = Tally::new(case.gate);
    tally.count();
    if let Some(description) = &large.damage {
        let description = description.clone();
        return failed(case, RunError::Fault { description, place: None, lost_device: false });
    }
    for part in &large.differing {
        let tensor = spec.signature.outputs.iter().find(|tensor| tensor.name == part.output);
        let Some((tensor, bounded)) = tensor.zip(bounds.get(&part.output)) else { continue };
        let at = (part.period, bounded.value.len() as u64);
        judge_part(&mut tally, case, (tensor, bounded), (at, &part.bytes));
        if tally.failed() {
            break;
        }
    }
    if large.count > large.differing.len() as u64 && !tally.failed() {
        let what =
            format!("{} parts differ in their bytes, of which {KEPT} are right", large.count);
        tally.unproven(case, what);
    }
    tally.note(format!("parts whose bytes differ: {}", large.count - own));
    Tried { result: tally.finish(), error: None }
}

impl Launcher<'_> {
    /// Runs every launch once on inputs that repeat, and compares the outputs, part by part, with
    /// those of a period.
    fn run_large(
        &mut self,
        spec: &Spec,
        repeated: &Repeated<'_>,
        (inputs, outputs): (&Periods, &Periods),
    ) -> Result<Large, RunError> {
        let module = self.module(spec)?;
        let mut memory = Memory::empty();
        let result = self
            .fill_large(spec, repeated, inputs, &mut memory)
            .and_then(|()| self.launch_large(module, spec, repeated, &memory))
            .and_then(|()| self.look_large(spec, repeated, (inputs, outputs), &memory));
        let freed = memory.free(self.device);
        let result = result?;
        freed?;
        Ok(result)
    }

    fn fill_large(
        &mut self,
        spec: &Spec,
        repeated: &Repeated<'_>,
        inputs: &Periods,
        memory: &mut Memory,
    ) -> Result<(), RunError> {
        let buffers = spec.arguments.iter().filter(|argument| argument.role.is_buffer());
        let (outputs, others): (Vec<_>, Vec<_>) = buffers.partition(|a| a.role == Role::Out);
        for argument in others.into_iter().chain(outputs) {
            let layout = Layout::of(argument, repeated.dims)?;
            let inout = spec.in_place_of(&argument.name).and_then(|name| spec.argument(name));
            let inout = inout.filter(|input| input.role == Role::InOut);
            if let Some(input) = inout.filter(|_| argument.role == Role::Out) {
                memory.alias(&argument.name, &input.name);
                continue;
            }
            let bytes = layout.bytes as u64;
            let allocation = Allocation { bytes, misalign: 0, poison: 0x55 };
            let buffer = self.device.allocate(&allocation).map_err(|error| run_error(&error))?;
            memory.hold(&argument.name, buffer, layout);
            if argument.zeroed {
                self.tile(buffer, bytes, &[0; 4096])?;
            } else if let Some(period) = inputs.get(&argument.name) {
                self.tile(buffer, bytes, period)?;
            }
        }
        Ok(())
    }

    /// Writes a period over and over, up to the end of a buffer.
    fn tile(&mut self, buffer: BufferId, bytes: u64, period: &[u8]) -> Result<(), RunError> {
        if period.is_empty() {
            return Ok(());
        }
        let chunk = period.repeat(CHUNK.div_ceil(period.len()));
        let mut written = (chunk.len() as u64).min(bytes);
        let first = &chunk[..written as usize];
        self.device.write(buffer, 0, first).map_err(|error| run_error(&error))?;
        while written < bytes {
            let length = written.min(bytes - written);
            let (from, to) = ((buffer, 0), (buffer, written));
            match self.device.copy(StreamId::DEFAULT, from, to, length) {
                Ok(()) => written += length,
                Err(DeviceError::Unsupported { .. }) => {
                    let length = (chunk.len() as u64).min(bytes - written);
                    let part = &chunk[..length as usize];
                    self.device.write(buffer, written, part).map_err(|error| run_error(&error))?;
                    written += length;
                }
                Err(error) => return Err(run_error(&error)),
            }
        }
        Ok(())
    }

    fn launch_large(
        &mut self,
        module: assay_device::ModuleId,
        spec: &Spec,
        repeated: &Repeated<'_>,
        memory: &Memory,
    ) -> Result<(), RunError> {
        let inputs = Inputs::default();
        let request = RunRequest::new(repeated.dims, &inputs);
        for launch in &spec.launches {
            self.launch(module, spec, (launch, &request), memory)?;
        }
        self.device.synchronize().map_err(|error| run_error(&error))
    }

    fn look_large(
        &mut self,
        spec: &Spec,
        repeated: &Repeated<'_>,
        (inputs, outputs): (&Periods, &Periods),
        memory: &Memory,
    ) -> Result<Large, RunError> {
        let mut large = Large::default();
        for argument in spec.arguments.iter().filter(|argument| argument.role.is_buffer()) {
            let Some(buffer) = memory.buffer(&argument.name) else { continue };
            let bytes = Layout::of(argument, repeated.dims)?.bytes as u64;
            let name = argument.name.as_str();
            if let Some(period) = outputs.get(name) {
                self.compare(&mut large, (name, buffer), (0, bytes), period)?;
            } else if let Some(period) = inputs.get(name).filter(|_| argument.role == Role::In) {
                self.unchanged(&mut large, (name, buffer, bytes), period)?;
            }
            let damage = self.device.guard_damage(buffer).map_err(|error| run_error(&error))?;
            if let Some(damage) = damage {
                large.damage.get_or_insert_with(|| format!("around `{name}`: {damage}"));
            }
        }
        Ok(large)
    }

    /// Looks at both ends of an input, which the kernel must leave alone.
    fn unchanged(
        &mut self,
        large: &mut Large,
        (name, buffer, bytes): (&str, BufferId, u64),
        period: &[u8],
    ) -> Result<(), RunError> {
        let whole = (period.len() as u64).max(1);
        let last = bytes.saturating_sub(LOOKED_AT) / whole * whole;
        let mut seen = Large::default();
        for (from, to) in [(0, LOOKED_AT.min(bytes)), (last, bytes)] {
            self.compare(&mut seen, (name, buffer), (from, to), period)?;
        }
        if seen.count > 0 {
            large.damage.get_or_insert_with(|| format!("it changed its input `{name}`"));
        }
        Ok(())
    }

    /// Compares part of a buffer, from the start of a period on, with that period's bytes.
    fn compare(
        &mut self,
        large: &mut Large,
        (name, buffer): (&str, BufferId),
        (from, to): (u64, u64),
        period: &[u8],
    ) -> Result<(), RunError> {
        if period.is_empty() {
            return Ok(());
        }
        let mut chunk = vec![0; period.len() * CHUNK.div_ceil(period.len())];
        let mut at = from;
        while at < to {
            let length = ((to - at) as usize).min(chunk.len());
            let read = &mut chunk[..length];
            self.device.read(buffer, at, read).map_err(|error| run_error(&error))?;
            for (number, part) in read.chunks(period.len()).enumerate() {
                if *part != period[..part.len()] {
                    let period = at / period.len() as u64 + number as u64;
                    large.differs(name, period, part);
                }
            }
            at += length as u64;
        }
        Ok(())
    }
}

impl Large {
    fn differs(&mut self, output: &str, period: u64, bytes: &[u8]) {
        self.count += 1;
        if self.differing.len() < KEPT {
            let output = output.to_owned();
            self.differing.push(Part { output, period, bytes: bytes.to_vec() });
        }
    }
}
