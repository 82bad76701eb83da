//! Where kernels run: one object-safe trait, [`Device`], and the machines behind it.
//!
//! | name for [`open`] | backend | what it is |
//! |---|---|---|
//! | `emulator`, `emulator:sm_90` | [`emulator`] | PTX on this computer's cores, no GPU needed |
//! | `cuda`, `cuda:1` | [`cuda`] | an NVIDIA GPU, its driver loaded when asked for |
//!
//! A missing driver, an old one, a GPU that is not there, a launch that cannot be, a kernel that
//! faults: each is a [`DeviceError`], a value with a hint, never a panic. [`discover`] says what
//! this computer has. [`fault::FaultInjecting`] wraps any device and makes it misbehave on plan,
//! so that every caller's bad day can be tested.
//!
//! Every buffer lies between two guards and starts out poisoned ([`buffer`]); every launch is
//! checked against the kernel's own parameters and the device's limits before it starts
//! ([`check`]).
//!
//! ```
//! use assay_device::{Allocation, Argument, Image, Launch, StreamId};
//!
//! let text = "\
//! .version 7.0
//! .target sm_80
//! .address_size 64
//! .visible .entry store(.param .u64 out, .param .u32 value) {
//!   .reg .u64 %rd<3>;
//!   .reg .u32 %r<2>;
//!   ld.param.u64 %rd1, [out];
//!   ld.param.u32 %r1, [value];
//!   cvta.to.global.u64 %rd2, %rd1;
//!   st.global.u32 [%rd2], %r1;
//!   ret;
//! }";
//! let mut device = assay_device::open("emulator")?;
//! let module = device.load(&Image::ptx("store.ptx", text))?;
//! let buffer = device.allocate(&Allocation::new(4))?;
//! let arguments = vec![Argument::Buffer(buffer), Argument::u32(7)];
//! device.launch(StreamId::DEFAULT, &Launch { arguments, ..Launch::new(module, "store") })?;
//! device.synchronize()?;
//! let mut bytes = [0; 4];
//! device.read(buffer, 0, &mut bytes)?;
//! assert_eq!(u32::from_le_bytes(bytes), 7);
//! # Ok::<(), assay_device::DeviceError>(())
//! ```

mod boxed;
pub mod buffer;
pub mod check;
pub mod cuda;
pub mod cupti;

mod device;
pub mod emulator;
mod error;
mod facts;
pub mod fault;
mod handle;
mod host;
mod launch;
pub mod nvml;
mod select;
mod timing;
mod vectors;

pub use assay_emulator::{PixelBox, Seen, TensorElement, TensorMap, TensorSwizzle, Watch};
pub use buffer::{Allocation, GUARD_BYTES, GuardDamage, Side};
pub use device::{Device, Image};
pub use error::{DeviceError, FaultKind, KernelFault, Rejection};
pub use facts::{DeviceFacts, KernelFacts, MultiprocessorFacts};
pub use handle::{BufferId, EventId, GraphId, HostBufferId, ModuleId, StreamId};
pub use host::HostKind;
pub use launch::{Argument, DEFAULT_INSTRUCTION_BUDGET, Launch, LaunchReport, Schedule};
pub use select::{Discovery, discover, open};
pub use timing::TimingFacts;
pub use vectors::Vectors;
