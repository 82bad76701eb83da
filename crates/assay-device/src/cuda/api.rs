//! The driver's functions as Rust sees them: one table of types and names, resolved at run time.

use std::ffi::{c_char, c_void};

use libloading::Library;

use crate::error::DeviceError;

/// `CUresult`.
pub(super) type Code = i32;
/// An opaque pointer of the driver (`CUcontext`, `CUmodule`, `CUfunction`, `CUstream`, ...). It
/// is never dereferenced here, so it is kept as a number, which may move between threads.
pub(super) type Opaque = usize;

/// `CUlaunchConfig`.
#[repr(C)]
pub(super) struct LaunchConfig {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
    pub(super) stream: Opaque,
    pub(super) attributes: *const LaunchAttribute,
    pub(super) attribute_count: u32,
}

/// `CUlaunchAttribute`: a number, padded to 8 bytes, and a union of 64 bytes.
#[repr(C)]
pub(super) struct LaunchAttribute {
    pub(super) id: u32,
    pub(super) padding: u32,
    pub(super) value: [u64; 8],
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
pub(super) const LAUNCH_COOPERATIVE: u32 = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
pub(super) const LAUNCH_CLUSTER_DIMENSION: u32 = 4;

/// `CUdevice_attribute` numbers.
pub(super) mod device_attribute {
    pub(crate) const MAX_THREADS_PER_BLOCK: i32 = 1;
    pub(crate) const MAX_BLOCK_X: i32 = 2;
    pub(crate) const MAX_GRID_X: i32 = 5;
    pub(crate) const MAX_SHARED_PER_BLOCK: i32 = 8;
    pub(crate) const WARP_SIZE: i32 = 10;
    pub(crate) const MAX_REGISTERS_PER_BLOCK: i32 = 12;
    pub(crate) const CLOCK_RATE_KHZ: i32 = 13;
    pub(crate) const MULTIPROCESSORS: i32 = 16;
    pub(crate) const ECC_ENABLED: i32 = 32;
    pub(crate) const PCI_BUS: i32 = 33;
    pub(crate) const PCI_DEVICE: i32 = 34;
    pub(crate) const MEMORY_CLOCK_RATE_KHZ: i32 = 36;
    pub(crate) const MEMORY_BUS_BITS: i32 = 37;
    pub(crate) const L2_BYTES: i32 = 38;
    pub(crate) const THREADS_PER_MULTIPROCESSOR: i32 = 39;
    pub(crate) const COPY_ENGINES: i32 = 40;
    pub(crate) const PCI_DOMAIN: i32 = 50;
    pub(crate) const COMPUTE_MAJOR: i32 = 75;
    pub(crate) const COMPUTE_MINOR: i32 = 76;
    pub(crate) const SHARED_PER_MULTIPROCESSOR: i32 = 81;
    pub(crate) const REGISTERS_PER_MULTIPROCESSOR: i32 = 82;
    pub(crate) const MAX_SHARED_OPT_IN: i32 = 97;
    pub(crate) const BLOCKS_PER_MULTIPROCESSOR: i32 = 106;
    pub(crate) const PERSISTING_L2_BYTES_MAX: i32 = 108;
    pub(crate) const RESERVED_SHARED_PER_BLOCK: i32 = 111;
}

/// `CUfunction_attribute` numbers.
pub(super) mod function_attribute {
    pub(crate) const MAX_THREADS_PER_BLOCK: i32 = 0;
    pub(crate) const SHARED_BYTES: i32 = 1;
    pub(crate) const LOCAL_BYTES: i32 = 3;
    pub(crate) const REGISTERS: i32 = 4;
    pub(crate) const MAX_DYNAMIC_SHARED: i32 = 8;
    pub(crate) const NON_PORTABLE_CLUSTER: i32 = 14;
}

/// `CUjit_option` numbers.
pub(super) mod jit_option {
    pub(crate) const ERROR_LOG_BUFFER: i32 = 5;
    pub(crate) const ERROR_LOG_BUFFER_BYTES: i32 = 6;
}

/// `CU_STREAM_NON_BLOCKING`: no hidden ordering with the legacy default stream.
pub(super) const STREAM_NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DEFAULT`.
pub(super) const EVENT_DEFAULT: u32 = 0;
/// `CU_EVENT_RECORD_EXTERNAL`: a record in a capture becomes a node of the graph, whose event has
/// the time of the latest replay.
pub(super) const EVENT_RECORD_EXTERNAL: u32 = 1;
/// `CU_MEMHOSTALLOC_DEVICEMAP`: kernels can read and write it.
pub(super) const HOST_DEVICE_MAP: u32 = 2;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`: other threads' calls do not end a capture.
pub(super) const CAPTURE_RELAXED: i32 = 2;

macro_rules! functions {
    (
        required { $($field:ident = $symbol:literal ( $($kind:ty),* );)* }
        optional { $($may:ident = $may_symbol:literal ( $($may_kind:ty),* );)* }
    ) => {
        /// The driver's functions. The library stays loaded as long as the table lives.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "system" fn($($kind),*) -> Code,)*
            $(pub(super) $may: Option<unsafe extern "system" fn($($may_kind),*) -> Code>,)*
            _library: Library,
        }

        /// The functions that a driver's library must export for [`CudaDevice`] to use it.
        ///
        /// [`CudaDevice`]: super::CudaDevice
        pub const REQUIRED_FUNCTIONS: &[&str] = &[$($symbol),*];

        impl Functions {
            /// Looks every function up.
            ///
            /// # Errors
            /// [`DeviceError::SymbolMissing`] for the first required one that is not there.
            pub(super) fn resolve(library: Library, path: &str) -> Result<Self, DeviceError> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: the type is the declaration of this symbol in cuda.h, whose
                        // functions keep their signature for ever under one exported name (a
                        // changed one gets a suffix such as _v2). The pointer stays valid
                        // because the table owns the library.
                        let found = unsafe {
                            library.get::<unsafe extern "system" fn($($kind),*) -> Code>(
                                concat!($symbol, "\0").as_bytes(),
                            )
                        };
                        *found.map_err(|_| DeviceError::SymbolMissing {
                            symbol: $symbol.to_string(),
                            library: path.to_string(),
                        })?
                    },)*
                    $($may: {
                        // SAFETY: as for the required functions.
                        let found = unsafe {
                            library.get::<unsafe extern "system" fn($($may_kind),*) -> Code>(
                                concat!($may_symbol, "\0").as_bytes(),
                            )
                        };
                        found.ok().map(|symbol| *symbol)
                    },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    required {
        init = "cuInit"(u32);
        error_name = "cuGetErrorName"(Code, *mut *const c_char);
        error_string = "cuGetErrorString"(Code, *mut *const c_char);
        device_count = "cuDeviceGetCount"(*mut i32);
        device_get = "cuDeviceGet"(*mut i32, i32);
        device_name = "cuDeviceGetName"(*mut c_char, i32, i32);
        device_attribute = "cuDeviceGetAttribute"(*mut i32, i32, i32);
        device_memory = "cuDeviceTotalMem_v2"(*mut usize, i32);
        context_create = "cuCtxCreate_v2"(*mut Opaque, u32, i32);
        context_destroy = "cuCtxDestroy_v2"(Opaque);
        context_set = "cuCtxSetCurrent"(Opaque);
        context_synchronize = "cuCtxSynchronize"();
        module_load = "cuModuleLoadDataEx"(
            *mut Opaque, *const c_void, u32, *const i32, *const *mut c_void
        );
        module_unload = "cuModuleUnload"(Opaque);
        module_function = "cuModuleGetFunction"(*mut Opaque, Opaque, *const c_char);
        function_get = "cuFuncGetAttribute"(*mut i32, i32, Opaque);
        function_set = "cuFuncSetAttribute"(Opaque, i32, i32);
        occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"(*mut i32, Opaque, i32, usize);
        memory_allocate = "cuMemAlloc_v2"(*mut u64, usize);
        memory_free = "cuMemFree_v2"(u64);
        memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
        memory_to_device = "cuMemcpyHtoD_v2"(u64, *const c_void, usize);
        memory_to_host = "cuMemcpyDtoH_v2"(*mut c_void, u64, usize);
        memory_fill = "cuMemsetD8_v2"(u64, u8, usize);
        launch = "cuLaunchKernel"(
            Opaque, u32, u32, u32, u32, u32, u32, u32, Opaque,
            *const *const c_void, *const *const c_void
        );
        stream_create = "cuStreamCreate"(*mut Opaque, u32);
        stream_destroy = "cuStreamDestroy_v2"(Opaque);
        stream_synchronize = "cuStreamSynchronize"(Opaque);
        event_create = "cuEventCreate"(*mut Opaque, u32);
        event_destroy = "cuEventDestroy_v2"(Opaque);
        event_record = "cuEventRecord"(Opaque, Opaque);
        event_synchronize = "cuEventSynchronize"(Opaque);
        event_elapsed = "cuEventElapsedTime"(*mut f32, Opaque, Opaque);
        capture_begin = "cuStreamBeginCapture_v2"(Opaque, i32);
        capture_end = "cuStreamEndCapture"(Opaque, *mut Opaque);
        graph_instantiate = "cuGraphInstantiateWithFlags"(*mut Opaque, Opaque, u64);
        graph_launch = "cuGraphLaunch"(Opaque, Opaque);
        graph_destroy = "cuGraphDestroy"(Opaque);
        graph_executable_destroy = "cuGraphExecDestroy"(Opaque);
    }
    optional {
        memory_fill_async = "cuMemsetD8Async"(u64, u8, usize, Opaque);
        memory_copy_async = "cuMemcpyDtoDAsync_v2"(u64, u64, usize, Opaque);
        memory_to_device_async = "cuMemcpyHtoDAsync_v2"(u64, *const c_void, usize, Opaque);
        memory_to_host_async = "cuMemcpyDtoHAsync_v2"(*mut c_void, u64, usize, Opaque);
        host_allocate = "cuMemHostAlloc"(*mut *mut c_void, usize, u32);
        host_free = "cuMemFreeHost"(*mut c_void);
        host_address = "cuMemHostGetDevicePointer_v2"(*mut u64, *mut c_void, u32);
        event_query = "cuEventQuery"(Opaque);
        event_record_flags = "cuEventRecordWithFlags"(Opaque, Opaque, u32);
        persisting_reset = "cuCtxResetPersistingL2Cache"();
        launch_extended = "cuLaunchKernelEx"(
            *const LaunchConfig, Opaque, *const *const c_void, *const *const c_void
        );
        parameter_info = "cuFuncGetParamInfo"(Opaque, usize, *mut usize, *mut usize);
        function_name = "cuFuncGetName"(*mut *const c_char, Opaque);
        function_count = "cuModuleGetFunctionCount"(*mut u32, Opaque);
        function_list = "cuModuleEnumerateFunctions"(*mut Opaque, u32, Opaque);
        tensor_map_tiled = "cuTensorMapEncodeTiled"(
            *mut c_void, i32, u32, *mut c_void, *const u64, *const u64, *const u32, *const u32,
            i32, i32, i32, i32
        );
        tensor_map_im2col = "cuTensorMapEncodeIm2col"(
            *mut c_void, i32, u32, *mut c_void, *const u64, *const u64, *const i32, *const i32,
            u32, u32, *const u32, i32, i32, i32, i32
        );
    }
}
