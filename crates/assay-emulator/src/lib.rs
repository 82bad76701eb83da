//! Runs decoded PTX on the CPU.
//!
//! A [`Program`] is a lowered module; a [`Machine`] has memory and launches kernels of programs. A
//! launch is a function of its inputs, whatever the threads: the same memory, parameters and seeds
//! give the same bytes and the same faults.
//!
//! ```
//! use assay_emulator::{LaunchConfig, Machine, MachineConfig, Program};
//!
//! let source = "
//!     .version 8.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry triple(.param .u64 out) {
//!         .reg .b32 %r<3>;
//!         .reg .b64 %rd<3>;
//!         ld.param.u64 %rd1, [out];
//!         mov.u32 %r1, %tid.x;
//!         mul.lo.u32 %r2, %r1, 3;
//!         mad.wide.u32 %rd2, %r1, 4, %rd1;
//!         st.global.u32 [%rd2], %r2;
//!         ret;
//!     }";
//! let program = Program::compile(&assay_ptx::parse(source)?)?;
//! let mut machine = Machine::new(MachineConfig::default());
//! let out = machine.allocate(128, 256)?;
//! let parameters = out.to_le_bytes().to_vec();
//! machine.launch(&program, "triple", &LaunchConfig { parameters, ..LaunchConfig::default() })?;
//! let mut bytes = [0; 128];
//! machine.read(out, &mut bytes)?;
//! assert_eq!(bytes[4 * 7], 21);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![allow(unsafe_code, reason = "registers by pointer, and functions compiled for AVX2")]
#![allow(
    clippy::inline_always,
    reason = "what is not inlined into a function compiled for AVX2 runs without it"
)]
#![allow(clippy::unnecessary_wraps, reason = "all effects, and all lowerings, have one signature")]
#![allow(clippy::unnecessary_box_returns, reason = "troubles are rare, results are everywhere")]
#![allow(clippy::result_large_err, reason = "a launch fails at most once")]
#![allow(
    clippy::struct_excessive_bools,
    reason = "modifiers of opcodes are independent of another"
)]
#![allow(clippy::needless_range_loop, reason = "loops over lanes read and write several arrays")]

mod arithmetic;
mod convert;
mod execute;
mod fault;
mod launch;
mod lower;
mod machine;
mod memory;
mod observer;
mod overlay;
mod program;
mod schedule;
mod tensor_map;
mod watch;

pub use arithmetic::tensor::TensorModel;
pub use fault::{Fault, FaultKind, Nearest, Space, Waiter};
pub use machine::{
    Approximation, LaunchConfig, LaunchStatistics, MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK,
    Machine, MachineConfig, Timers,
};
pub use memory::{AllocationError, BASE_ADDRESS, RED_ZONE_BYTES};
pub use observer::{MemoryAccess, NoObserver, Observer};
pub use program::{CompileError, CompileOptions, ParameterLayout, Program, Resources};
pub use schedule::Schedule;
pub use tensor_map::{
    MAX_TENSOR_RANK, PixelBox, TENSOR_MAP_BYTES, TensorElement, TensorMap, TensorSwizzle,
};
pub use watch::{Seen, Watch};
