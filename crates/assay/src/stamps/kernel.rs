//! The stamps of a kernel that a manifest registers: its stamped build is run on the inputs that a
//! benchmark would time, and believed only where its outputs are the shipped build's, bit for bit.

use std::collections::BTreeMap;

use assay_contract::subject::RunError;
use assay_contract::{Kernel, ManifestKernel, Prepared, stamp_lanes};
use assay_device::{Device, StreamId};
use assay_measure::stamps::{StampBuffer, overhead, sm_clock_mhz, statistics, warnings};
use assay_record::{ExitCode, STAMPS_SCHEMA, StampRecord};
use assay_reference::Dims;

use super::{StampsArguments, stopped};
use crate::bench::{shape_of, shown};
use crate::failure::Failure;
use crate::suite::Suite;

/// Stamps a kernel by name.
pub(super) fn record(
    device: &mut dyn Device,
    name: &str,
    arguments: &StampsArguments,
) -> Result<StampRecord, Failure> {
    let mut suite = Suite::load(&arguments.manifest);
    let kernel = suite.kernel(name)?;
    let dims = shape_of(&kernel, &arguments.dims)?;
    let lanes = stamp_lanes(kernel.spec(), &dims).map_err(|error| refused(&error))?;
    let Some(stamps) = kernel.spec().stamps.clone() else {
        return Err(Failure::request(format!("`{name}` has no stamped build")));
    };
    let cost = overhead(device).map_err(|error| stopped(&error))?;
    let plain = plain(device, &kernel, &dims, arguments.seed).map_err(|error| refused(&error))?;
    let buffer =
        StampBuffer::allocate(device, lanes, stamps.most).map_err(|error| stopped(&error))?;
    let seed = (arguments.seed, &buffer.argument());
    let stamped =
        Prepared::stamped(device, &kernel, &dims, seed).map_err(|error| refused(&error))?;
    let found = once(device, &stamped).map_err(|error| refused(&error))?;
    let equal = same(&plain, &found, &kernel)?;
    // Once more: code and data are then where they will be.
    launch(device, &stamped).map_err(|error| refused(&error))?;
    let (lanes, dropped) = buffer.read(device).map_err(|error| stopped(&error))?;
    stamped.free(device).map_err(|error| refused(&error))?;
    buffer.free(device).map_err(|error| stopped(&error))?;
    let facts = device.facts();
    Ok(StampRecord {
        schema: STAMPS_SCHEMA,
        kernel: shown(name, &dims),
        device: facts.name.clone(),
        driver: facts.driver.clone(),
        date: crate::date::now(),
        command: crate::command_line(),
        seed: Some(arguments.seed),
        equal_output_bytes: Some(equal),
        statistics: statistics(&stamps.phases, &lanes),
        phases: stamps.phases,
        dropped,
        sm_clock_mhz: sm_clock_mhz(&lanes),
        overhead: cost,
        warnings: warnings(&lanes, dropped),
        lanes,
    })
}

type Outputs = BTreeMap<String, Vec<u8>>;

/// What the build that ships computes.
fn plain(
    device: &mut dyn Device,
    kernel: &ManifestKernel,
    dims: &Dims,
    seed: u64,
) -> Result<Outputs, RunError> {
    let prepared = Prepared::new(device, kernel, dims, seed)?;
    let outputs = once(device, &prepared);
    let freed = prepared.free(device);
    let outputs = outputs?;
    freed?;
    Ok(outputs)
}

fn once(device: &mut dyn Device, prepared: &Prepared) -> Result<Outputs, RunError> {
    launch(device, prepared)?;
    prepared.outputs(device)
}

fn launch(device: &mut dyn Device, prepared: &Prepared) -> Result<(), RunError> {
    let launched = prepared.launch(device, StreamId::DEFAULT);
    let ended = launched.and_then(|()| device.synchronize());
    ended.map_err(|error| RunError::Device { message: error.to_string() })
}

/// Bytes of outputs, all of which are the same.
fn same(plain: &Outputs, stamped: &Outputs, kernel: &ManifestKernel) -> Result<u64, Failure> {
    let mut bytes = 0;
    for (name, ours) in plain {
        let theirs = stamped.get(name).map_or(&[][..], Vec::as_slice);
        let different = ours.iter().zip(theirs).filter(|(a, b)| a != b).count();
        let first = ours.iter().zip(theirs).position(|(a, b)| a != b);
        if let Some(first) = first.or((ours.len() != theirs.len()).then_some(0)) {
            let argument = kernel.spec().argument(name);
            let bits = argument.map_or(8, |argument| argument.format.bits() as usize);
            let (element, all) = (first * 8 / bits, ours.len());
            let message = format!(
                "the stamped build computes something else: {different} of {all} bytes of \
                 `{name}` differ, the first in element {element}"
            );
            return Err(Failure::new(ExitCode::Problems, message).hint(
                "what it takes says nothing of the kernel that ships: compile both from one \
                 source, and see that no stamp stands between lanes that disagree"
                    .to_owned(),
            ));
        }
        bytes += ours.len() as u64;
    }
    Ok(bytes)
}

fn refused(error: &RunError) -> Failure {
    let exit = match error {
        RunError::Request { .. } => ExitCode::Request,
        RunError::Device { .. } => ExitCode::NoDevice,
        RunError::Internal { .. } => ExitCode::Internal,
        _ => ExitCode::Problems,
    };
    let hint = match error {
        RunError::Request { hint, .. } => hint.clone(),
        _ => None,
    };
    Failure::new(exit, "there are no stamps").caused_by(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(bytes: &[u8]) -> Outputs {
        BTreeMap::from([("y".to_owned(), bytes.to_vec())])
    }

    #[test]
    fn one_bit_of_difference_is_refused_and_says_where() {
        let mut suite = Suite::load(&[]);
        let kernel = suite.take("row_sum_f32").expect("a kernel");
        let plain = outputs(&[0; 16]);
        assert_eq!(same(&plain, &outputs(&[0; 16]), &kernel).ok(), Some(16));
        let mut wrong = [0; 16];
        wrong[9] = 1;
        let refused = same(&plain, &outputs(&wrong), &kernel).expect_err("refused");
        assert_eq!(refused.exit, ExitCode::Problems);
        assert!(
            refused.to_string().contains("1 of 16 bytes of `y` differ, the first in element 2")
        );
        assert!(same(&plain, &outputs(&[0; 12]), &kernel).is_err());
    }
}
