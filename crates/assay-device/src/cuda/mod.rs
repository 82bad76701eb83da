//! NVIDIA GPUs through the driver's own interface, loaded at run time.
//!
//! Nothing of CUDA is needed to build, and its absence is a value: [`CudaDevice::open`] and
//! [`describe`] answer [`DeviceError::DriverMissing`], [`DeviceError::DriverTooOld`],
//! [`DeviceError::SymbolMissing`] or [`DeviceError::NoSuchDevice`]. Only the driver is called
//! (`libcuda.so.1`, `nvcuda.dll`); PTX is compiled by the driver's own compiler, whose log becomes
//! part of [`DeviceError::ModuleRejected`].
//!
//! Each [`CudaDevice`] has a context of its own. A kernel that faults ends every context that its
//! process has on that GPU, so only a process of its own contains one.
//! After a fault that kills the context every call answers [`DeviceError::Lost`]. A kernel that
//! never ends blocks the call that waits for it: run it in a process that can be ended.
//!
//! The names and numbers in here are those of NVIDIA's CUDA Driver API reference.

#![expect(
    unsafe_code,
    reason = "every call into the driver is a foreign one; the rest of the crate has none"
)]

mod api;
mod context;
mod device;
mod driver;
mod graph;
mod host;
mod image;
mod memory;
mod module;
mod perturb;
mod status;
mod tensor;
mod transfer;

pub use api::REQUIRED_FUNCTIONS;
pub use device::CudaDevice;
pub use driver::OLDEST_VERSION;

use crate::error::DeviceError;
use crate::facts::DeviceFacts;
use crate::timing::TimingFacts;
use driver::Driver;

/// What there is to know about every NVIDIA GPU without starting any, in the driver's order.
///
/// # Errors
/// As [`CudaDevice::open`], when there is no usable driver.
pub fn describe() -> Result<Vec<DeviceFacts>, DeviceError> {
    let driver = Driver::shared()?;
    (0..driver.device_count()?).map(|ordinal| driver.facts(ordinal)).collect()
}

/// What the driver says of a GPU's clocks and caches, without starting it.
///
/// # Errors
/// As [`CudaDevice::open`], and [`DeviceError::Api`] where it does not tell one of them.
pub fn timing_facts(ordinal: u32) -> Result<TimingFacts, DeviceError> {
    Driver::shared()?.timing_facts(ordinal)
}
