//! Finds the driver, checks that it is new enough, and asks it for its devices.

use std::ffi::c_char;
use std::sync::{Arc, OnceLock};

use libloading::Library;

use super::api::{Code, Functions, device_attribute as attribute};
use super::status;
use crate::error::DeviceError;
use crate::facts::{DeviceFacts, MultiprocessorFacts};
use crate::timing::TimingFacts;

/// The oldest CUDA version a driver may serve, as `cuDriverGetVersion` counts: 12.0.
pub const OLDEST_VERSION: i32 = 12_000;

/// The resolution of `cuEventElapsedTime` that its description promises ("around 0.5
/// microseconds"). `cuEventElapsedTime_v2` promises no better one and loses errors, so it is not
/// called.
const EVENT_RESOLUTION_NS: f64 = 500.0;

/// Where the driver's library is looked for, in order.
const LIBRARIES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"]
};

/// A loaded, initialised driver.
pub(super) struct Driver {
    pub(super) functions: Functions,
    version: i32,
}

impl Driver {
    /// This computer's driver, loaded once for the whole process.
    pub(super) fn shared() -> Result<Arc<Driver>, DeviceError> {
        static SHARED: OnceLock<Result<Arc<Driver>, DeviceError>> = OnceLock::new();
        SHARED.get_or_init(|| Driver::load(LIBRARIES).map(Arc::new)).clone()
    }

    /// Loads the first of the libraries that opens.
    pub(super) fn load(paths: &[&str]) -> Result<Driver, DeviceError> {
        let (library, path) = open_library(paths)?;
        let version = version(&library, path)?;
        if version < OLDEST_VERSION {
            return Err(DeviceError::DriverTooOld {
                found: spell(version),
                needed: spell(OLDEST_VERSION),
            });
        }
        let driver = Driver { functions: Functions::resolve(library, path)?, version };
        driver.initialise(path)?;
        Ok(driver)
    }

    fn initialise(&self, path: &str) -> Result<(), DeviceError> {
        // SAFETY: cuInit takes flags that must be 0 and may be called at any time.
        let code = unsafe { (self.functions.init)(0) };
        let (name, text) = match code {
            status::SUCCESS => return Ok(()),
            other => status::words(&self.functions, other),
        };
        match code {
            status::STUB_LIBRARY => Err(DeviceError::DriverMissing {
                reason: format!("{path} is a toolkit's stub ({name})"),
                hint: "take the toolkit's stubs folder out of LD_LIBRARY_PATH".to_string(),
            }),
            status::NO_DEVICE => Err(no_device("cuda", Vec::new())),
            _ => Err(DeviceError::Api { call: "cuInit".to_string(), code, name, text }),
        }
    }

    /// A call that needs no context.
    fn call(&self, name: &str, call: impl FnOnce(&Functions) -> Code) -> Result<(), DeviceError> {
        status::check(&self.functions, name, call(&self.functions))
    }

    /// How many devices there are.
    pub(super) fn device_count(&self) -> Result<u32, DeviceError> {
        let mut count = 0;
        // SAFETY: the pointer is to a live i32.
        self.call("cuDeviceGetCount", |f| unsafe { (f.device_count)(&raw mut count) })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// The driver's own number for the n-th device.
    pub(super) fn device(&self, ordinal: u32) -> Result<i32, DeviceError> {
        let count = self.device_count()?;
        if ordinal >= count {
            let available = (0..count).map(|n| format!("cuda:{n}")).collect();
            return Err(no_device(&format!("cuda:{ordinal}"), available));
        }
        let mut device = 0;
        self.call("cuDeviceGet", |f| {
            // SAFETY: the pointer is to a live i32, and the ordinal was checked above.
            unsafe { (f.device_get)(&raw mut device, ordinal as i32) }
        })?;
        Ok(device)
    }

    /// What the driver says about the n-th device.
    pub(super) fn facts(&self, ordinal: u32) -> Result<DeviceFacts, DeviceError> {
        let device = self.device(ordinal)?;
        let ask = |number: i32| self.attribute(device, number);
        let major = ask(attribute::COMPUTE_MAJOR)?;
        let minor = ask(attribute::COMPUTE_MINOR)?;
        let (mut block, mut grid) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            block[axis] = ask(attribute::MAX_BLOCK_X + axis as i32)?;
            grid[axis] = u64::from(ask(attribute::MAX_GRID_X + axis as i32)?);
        }
        Ok(DeviceFacts {
            name: self.name(device)?,
            backend: "cuda".to_string(),
            architecture: format!("sm_{major}{minor}"),
            driver: Some(self.release()),
            multiprocessors: ask(attribute::MULTIPROCESSORS)?,
            warp_size: ask(attribute::WARP_SIZE)?,
            max_threads_per_block: ask(attribute::MAX_THREADS_PER_BLOCK)?,
            max_block: block,
            max_grid: grid,
            shared_per_block: ask(attribute::MAX_SHARED_PER_BLOCK)?,
            shared_per_block_opt_in: ask(attribute::MAX_SHARED_OPT_IN)?,
            registers_per_block: ask(attribute::MAX_REGISTERS_PER_BLOCK)?,
            multiprocessor: Some(MultiprocessorFacts {
                threads: ask(attribute::THREADS_PER_MULTIPROCESSOR)?,
                blocks: ask(attribute::BLOCKS_PER_MULTIPROCESSOR)?,
                registers: ask(attribute::REGISTERS_PER_MULTIPROCESSOR)?,
                shared_bytes: ask(attribute::SHARED_PER_MULTIPROCESSOR)?,
                reserved_shared_bytes: ask(attribute::RESERVED_SHARED_PER_BLOCK)?,
            }),
            memory_bytes: self.memory(device)?,
        })
    }

    /// What the driver says about the n-th device's clocks and caches.
    pub(super) fn timing_facts(&self, ordinal: u32) -> Result<TimingFacts, DeviceError> {
        let device = self.device(ordinal)?;
        let ask = |number: i32| self.attribute(device, number);
        Ok(TimingFacts {
            asynchronous: true,
            l2_bytes: ask(attribute::L2_BYTES)?.into(),
            l2_persisting_bytes_max: ask(attribute::PERSISTING_L2_BYTES_MAX)?.into(),
            sm_clock_max_mhz: f64::from(ask(attribute::CLOCK_RATE_KHZ)?) / 1e3,
            memory_clock_max_mhz: f64::from(ask(attribute::MEMORY_CLOCK_RATE_KHZ)?) / 1e3,
            memory_bus_bits: ask(attribute::MEMORY_BUS_BITS)?,
            event_resolution_ns: EVENT_RESOLUTION_NS,
            copy_engines: ask(attribute::COPY_ENGINES)?,
            ecc: ask(attribute::ECC_ENABLED)? != 0,
            pci: Some([
                ask(attribute::PCI_DOMAIN)?,
                ask(attribute::PCI_BUS)?,
                ask(attribute::PCI_DEVICE)?,
            ]),
        })
    }

    /// The interface's version and, where the kernel module tells it, the driver's own.
    fn release(&self) -> String {
        let interface = format!("CUDA {}", spell(self.version));
        let told = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        match module_version(&told) {
            Some(module) => format!("{module}, {interface}"),
            None => interface,
        }
    }

    fn attribute(&self, device: i32, number: i32) -> Result<u32, DeviceError> {
        let mut value = 0;
        self.call("cuDeviceGetAttribute", |f| {
            // SAFETY: the pointer is to a live i32; the driver refuses numbers it does not know.
            unsafe { (f.device_attribute)(&raw mut value, number, device) }
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    fn name(&self, device: i32) -> Result<String, DeviceError> {
        let mut bytes = [0_u8; 256];
        self.call("cuDeviceGetName", |f| {
            // SAFETY: the driver writes at most the given number of bytes, one fewer than the
            // array has, so that a NUL always ends it.
            unsafe { (f.device_name)(bytes.as_mut_ptr().cast::<c_char>(), 255, device) }
        })?;
        let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn memory(&self, device: i32) -> Result<u64, DeviceError> {
        let mut bytes = 0;
        // SAFETY: the pointer is to a live usize.
        self.call("cuDeviceTotalMem", |f| unsafe { (f.device_memory)(&raw mut bytes, device) })?;
        Ok(bytes as u64)
    }
}

fn open_library<'a>(paths: &[&'a str]) -> Result<(Library, &'a str), DeviceError> {
    let mut reasons = Vec::new();
    for &path in paths {
        // SAFETY: loading runs the library's initialisers. The names are those of NVIDIA's
        // driver, or a path that the caller chose to trust.
        match unsafe { Library::new(path) } {
            Ok(library) => return Ok((library, path)),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(DeviceError::DriverMissing {
        reason: reasons.into_iter().next().unwrap_or_else(|| "no library to try".to_string()),
        hint: "install the NVIDIA driver (525 or later), or use --device emulator, which needs \
               no GPU"
            .to_string(),
    })
}

/// Asked before the table is resolved, since an old driver lacks functions of it.
fn version(library: &Library, path: &str) -> Result<i32, DeviceError> {
    const SYMBOL: &str = "cuDriverGetVersion";
    // SAFETY: the type is the function's declaration in cuda.h, and the library outlives the
    // call below.
    let ask =
        unsafe { library.get::<unsafe extern "system" fn(*mut i32) -> Code>(SYMBOL.as_bytes()) };
    let ask = ask.map_err(|_| DeviceError::SymbolMissing {
        symbol: SYMBOL.to_string(),
        library: path.to_string(),
    })?;
    let mut version = 0;
    // SAFETY: the pointer is to a live i32; the function needs no initialisation.
    let code = unsafe { ask(&raw mut version) };
    if code != status::SUCCESS {
        let text = "it does not tell its version".to_string();
        let (call, name) = (SYMBOL.to_string(), "an error".to_string());
        return Err(DeviceError::Api { call, code, name, text });
    }
    Ok(version)
}

fn spell(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn no_device(wanted: &str, available: Vec<String>) -> DeviceError {
    let hint = available.is_empty().then(|| {
        "the driver is there but sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES, or use \
         --device emulator"
            .to_string()
    });
    DeviceError::NoSuchDevice { wanted: wanted.to_string(), available, hint }
}

/// The first word that looks like `580.159.04` in what the kernel module says of itself.
fn module_version(told: &str) -> Option<&str> {
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    told.lines().next()?.split_whitespace().find(is_version)
}

#[cfg(test)]
mod tests {
    use super::module_version;

    #[test]
    fn the_kernel_modules_version_is_found_in_either_spelling() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\n";
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.60.13  Wed Nov 30\n";
        assert_eq!(module_version(open), Some("580.159.04"));
        assert_eq!(module_version(closed), Some("525.60.13"));
        assert_eq!(module_version("no version here\n1.2.3"), None);
        assert_eq!(module_version(""), None);
    }
}
