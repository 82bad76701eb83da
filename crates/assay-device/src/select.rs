//! Finds a device by its name, and says which there are.

use crate::cuda::{self, CudaDevice};
use crate::device::Device;
use crate::error::DeviceError;
use crate::facts::DeviceFacts;

/// Opens a device by name: `emulator`, `emulator:sm_90`, `cuda` (the first GPU) or `cuda:1`.
/// Emulated devices are cheap: open one for every thread.
///
/// # Errors
/// [`DeviceError::NoSuchDevice`] for a name or number that there is not, and for `cuda`
/// [`DeviceError::DriverMissing`], [`DeviceError::DriverTooOld`] or
/// [`DeviceError::SymbolMissing`].
pub fn open(name: &str) -> Result<Box<dyn Device>, DeviceError> {
    match name.split_once(':') {
        None if name == "cuda" => Ok(Box::new(CudaDevice::open(0)?)),
        Some(("cuda", ordinal)) => {
            let ordinal = ordinal.parse().map_err(|_| unknown(name))?;
            Ok(Box::new(CudaDevice::open(ordinal)?))
        }
        _ => Err(unknown(name)),
    }
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
    match cuda::describe() {
        Ok(devices) => devices
            .into_iter()
            .enumerate()
            .map(|(n, facts)| Discovery { name: format!("cuda:{n}"), status: Ok(facts) })
            .collect(),
        Err(error) => vec![Discovery { name: "cuda".to_string(), status: Err(error) }],
    }
}

fn unknown(name: &str) -> DeviceError {
    DeviceError::NoSuchDevice {
        wanted: format!("named \"{name}\""),
        available: vec!["emulator".into(), "cuda:0".into()],
        hint: Some("use emulator, or cuda:N for the GPU of number N".to_string()),
    }
}
