//! Finds a device by its name, and says which there are.

use crate::cuda::{self, CudaDevice};
use crate::device::Device;
use crate::emulator::{EmulatorDevice, EmulatorOptions, TensorModel};
use crate::error::DeviceError;
use crate::facts::DeviceFacts;

/// Opens a device by name: `emulator`, `emulator:sm_90`, `emulator:sm_90:exact` (with the tensor
/// cores of a [`TensorModel`]'s name), `cuda` (the first GPU) or `cuda:1`.
/// Emulated devices are cheap: open one for every thread.
///
/// # Errors
/// [`DeviceError::NoSuchDevice`] for a name or number that there is not, and for `cuda`
/// [`DeviceError::DriverMissing`], [`DeviceError::DriverTooOld`] or
/// [`DeviceError::SymbolMissing`].
pub fn open(name: &str) -> Result<Box<dyn Device>, DeviceError> {
    match name.split_once(':') {
        None if name == "emulator" => Ok(Box::new(EmulatorDevice::new(EmulatorOptions::default()))),
        Some(("emulator", architecture)) => {
            let options = emulated(architecture).ok_or_else(|| unknown(name))?;
            Ok(Box::new(EmulatorDevice::new(options)))
        }
        None if name == "cuda" => Ok(Box::new(CudaDevice::open(0)?)),
        Some(("cuda", ordinal)) => {
            let ordinal = ordinal.parse().map_err(|_| unknown(name))?;
            Ok(Box::new(CudaDevice::open(ordinal)?))
        }
        _ => Err(unknown(name)),
    }
}

/// `sm_90`, or `sm_90:exact` with a model of tensor cores.
fn emulated(text: &str) -> Option<EmulatorOptions> {
    let (architecture, model) = match text.split_once(':') {
        Some((architecture, model)) => (architecture, Some(TensorModel::named(model)?)),
        None => (text, None),
    };
    let architecture = architecture.strip_prefix("sm_")?.parse().ok()?;
    Some(EmulatorOptions { architecture, tensor_model: model, ..EmulatorOptions::default() })
}

/// A device, or a backend without any, as [`discover`] found it.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// The name for [`open`].
    pub name: String,
    /// What the device says of itself, or why it cannot be used.
    pub status: Result<DeviceFacts, DeviceError>,
}

/// Looks at every backend. Starts nothing on any device.
pub fn discover() -> Vec<Discovery> {
    let emulator = EmulatorDevice::new(EmulatorOptions::default());
    let emulator = Discovery { name: "emulator".to_string(), status: Ok(emulator.facts().clone()) };
    let gpus = match cuda::describe() {
        Ok(devices) => devices
            .into_iter()
            .enumerate()
            .map(|(n, facts)| Discovery { name: format!("cuda:{n}"), status: Ok(facts) })
            .collect(),
        Err(error) => vec![Discovery { name: "cuda".to_string(), status: Err(error) }],
    };
    std::iter::once(emulator).chain(gpus).collect()
}

fn unknown(name: &str) -> DeviceError {
    DeviceError::NoSuchDevice {
        wanted: format!("named \"{name}\""),
        available: vec!["emulator".into(), "cuda:0".into()],
        hint: Some("use emulator, or cuda:N for the GPU of number N".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_opens_by_name_and_architecture() {
        let architecture = |name| open(name).map(|device| device.facts().architecture.clone());
        assert_eq!(architecture("emulator"), Ok("sm_80".to_string()));
        assert_eq!(architecture("emulator:sm_90"), Ok("sm_90".to_string()));
        assert_eq!(architecture("emulator:sm_90:exact"), Ok("sm_90".to_string()));
        assert!(architecture("emulator:sm_90:exactly").is_err());
    }

    #[test]
    fn a_wrong_name_says_what_names_there_are() {
        for name in ["", "gpu", "emulator:", "emulator:90", "cuda:", "cuda:x", "cuda:-1", "cuda0"] {
            let error = open(name).err();
            let hint = error.as_ref().and_then(DeviceError::hint).unwrap_or_default();
            assert!(matches!(error, Some(DeviceError::NoSuchDevice { .. })), "{name}: {error:?}");
            assert!(hint.contains("cuda:N"), "{name}: {hint}");
        }
    }

    #[test]
    fn discovery_names_every_backend_and_what_it_finds_opens() {
        let found = discover();
        assert_eq!(found.first().map(|found| found.name.as_str()), Some("emulator"));
        assert!(found.iter().any(|found| found.name.starts_with("cuda")));
        for found in found.iter().filter(|found| found.status.is_err()) {
            let hint = found.status.as_ref().err().and_then(DeviceError::hint);
            assert!(hint.is_some(), "{found:?}");
        }
    }
}
