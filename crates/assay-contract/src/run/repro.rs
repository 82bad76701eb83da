//! One case again, by its name: with inputs that are given, or down to the smallest that fail.

use std::time::Instant;

use assay_device::Device;
use assay_record::{CaseName, Gate, GateResult};
use assay_reference::{Dims, Inputs};

use super::KernelOutcome;
use super::assemble::assemble;
use super::unit::{UnitResult, find_replaced};
use crate::bind::DeviceSubject;
use crate::gates::given::given;
use crate::kernel::Kernel;
use crate::shrink::{Shrunk, shrink};
use crate::subject::{RunError, Subject};

/// The smallest inputs on which a case still fails; `None` where it does not fail.
///
/// # Errors
/// A name whose kernel is not among `kernels`, or a kernel that cannot be run.
pub fn smallest(
    case: &CaseName,
    kernels: &[&dyn Kernel],
    device: &mut dyn Device,
) -> Result<Option<Shrunk>, RunError> {
    let kernel = find(case, kernels)?;
    if case.gate == Gate::Limits {
        // There are no inputs to make smaller.
        return Ok(None);
    }
    let mut subject = DeviceSubject::bind(kernel, find_replaced(kernel, kernels)?, device)?;
    Ok(shrink(&mut subject, case))
}

/// Judges a kernel on given inputs at one gate, at the shape that the case names.
///
/// # Errors
/// A name whose kernel is not among `kernels`, inputs that are not the kernel's at that shape, or a
/// kernel that cannot be run.
pub fn replay_given(
    case: &CaseName,
    inputs: &Inputs,
    kernels: &[&dyn Kernel],
    device: &mut dyn Device,
) -> Result<KernelOutcome, RunError> {
    let start = Instant::now();
    let kernel = find(case, kernels)?;
    let dims: Dims = case.dims.iter().cloned().collect();
    let mut subject = DeviceSubject::bind(kernel, find_replaced(kernel, kernels)?, device)?;
    refuse_others(&subject, &dims, inputs)?;
    let result: GateResult = given(&mut subject, case, (&dims, inputs));
    let mut unit = UnitResult::new(0, case.gate, Ok(result));
    unit.partial = true;
    unit.seconds = start.elapsed().as_secs_f64();
    Ok(assemble(kernel.spec(), vec![unit]))
}

/// The kernel that a case names.
pub(super) fn find<'k>(
    case: &CaseName,
    kernels: &[&'k dyn Kernel],
) -> Result<&'k dyn Kernel, RunError> {
    let kernel = kernels.iter().find(|kernel| kernel.spec().name == case.kernel).copied();
    kernel.ok_or_else(|| RunError::request(format!("no kernel is called `{}`", case.kernel)))
}

/// Refuses a shape or inputs that are not the kernel's.
fn refuse_others(subject: &dyn Subject, dims: &Dims, inputs: &Inputs) -> Result<(), RunError> {
    let spec = subject.spec();
    for (name, dim) in &spec.dims {
        match dims.get(name) {
            Some(size) if dim.allows(*size) => {}
            Some(size) => {
                let message = format!("`{name}` = {size} is no size of `{}`", spec.name);
                return Err(RunError::request(message));
            }
            None => {
                return Err(RunError::request(format!("the case names no size of `{name}`")));
            }
        }
    }
    for tensor in &spec.signature.inputs {
        let shape = crate::layout::sizes(&tensor.name, &tensor.shape, dims)?;
        let (wanted, name) = (shape.iter().product::<usize>(), &tensor.name);
        match inputs.tensors.get(name).map(Vec::len) {
            Some(count) if count == wanted => {}
            Some(count) => {
                let message =
                    format!("`{name}` has {count} elements; at this shape it has {wanted}");
                return Err(RunError::request(message));
            }
            None => {
                return Err(RunError::request(format!("there is no input `{name}`")));
            }
        }
    }
    Ok(())
}
