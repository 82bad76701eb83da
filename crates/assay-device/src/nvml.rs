//! What NVIDIA's management library (NVML) tells of a GPU while it works: clocks, power,
//! temperature, and each reason that holds its clocks down.
//!
//! The library is loaded at run time. Its absence, or that of one of its answers, is a value with
//! a reason, since it says nothing about a kernel. Nothing is ever set here. Names and numbers are
//! those of NVIDIA's NVML API reference.

#![expect(unsafe_code, reason = "every call into the library is a foreign one")]

use std::ffi::{CStr, CString, c_char};

use libloading::Library;
use thiserror::Error;

use crate::device::Device;

/// Where the library is looked for, in order.
const LIBRARIES: &[&str] = if cfg!(windows) {
    &["nvml.dll"]
} else {
    &[
        "libnvidia-ml.so.1",
        "libnvidia-ml.so",
        "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
        "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    ]
};

/// `nvmlReturn_t`.
type Code = i32;
/// `nvmlDevice_t`, a pointer that is never followed here.
type Handle = usize;

const SUCCESS: Code = 0;
const INSUFFICIENT_SIZE: Code = 7;
/// `NVML_CLOCK_SM` and `NVML_CLOCK_MEM`.
const SM_CLOCK: i32 = 1;
const MEMORY_CLOCK: i32 = 2;
/// `NVML_TEMPERATURE_GPU`.
const CORE_SENSOR: i32 = 0;

/// Each bit of `nvmlClocksEventReasons` with its word here, and whether it holds clocks down.
const REASONS: [(u64, &str, bool); 9] = [
    (0x1, "idle", false),
    (0x2, "application clocks setting", true),
    (0x4, "software power cap", true),
    (0x8, "hardware slowdown", true),
    (0x10, "sync boost", true),
    (0x20, "software thermal slowdown", true),
    (0x40, "hardware thermal slowdown", true),
    (0x80, "hardware power brake", true),
    (0x100, "display clock setting", true),
];

/// Why there is no telemetry.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no telemetry: {reason}")]
pub struct TelemetryError {
    /// What is missing.
    pub reason: String,
    /// What to do, where something can be done.
    pub hint: Option<String>,
}

impl TelemetryError {
    fn new(reason: impl Into<String>) -> Self {
        TelemetryError { reason: reason.into(), hint: None }
    }
}

/// A GPU's state at one moment. What the library does not tell is `None`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TelemetrySample {
    /// The multiprocessors' clock, in MHz.
    pub sm_clock_mhz: Option<f64>,
    /// The memory's clock, in MHz.
    pub memory_clock_mhz: Option<f64>,
    /// The power drawn, in watts, averaged by the board over its own window.
    pub power_w: Option<f64>,
    /// The power limit in force, in watts.
    pub power_limit_w: Option<f64>,
    /// The power limit that the board ships with, in watts.
    pub power_limit_default_w: Option<f64>,
    /// The temperature, in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Every reason for which clocks are what they are, one word or phrase for each bit.
    pub throttle: Vec<String>,
    /// The reasons' bits as the library gives them.
    pub throttle_bits: Option<u64>,
    /// What could not be told, and why: `power: Not Supported`.
    pub missing: Vec<String>,
}

impl TelemetrySample {
    /// Whether something other than idleness holds the clocks down.
    pub fn is_throttled(&self) -> bool {
        self.throttle_bits.is_some_and(holds_clocks_down)
    }

    /// Whether the power limit is under the board's own, by more than a watt.
    pub fn is_power_limited_below_default(&self) -> bool {
        match (self.power_limit_w, self.power_limit_default_w) {
            (Some(limit), Some(default)) => limit < default - 1.0,
            _ => false,
        }
    }
}

/// How a GPU is set up, which does not change while it works.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TelemetrySettings {
    /// The driver's version: `580.126.20`.
    pub driver: Option<String>,
    /// The library's version.
    pub library: Option<String>,
    /// Whether the driver keeps the GPU initialised between programs.
    pub persistence: Option<bool>,
    /// Whether the GPU is partitioned (MIG). `None` where it cannot be.
    pub mig: Option<bool>,
    /// The multiprocessors' fastest clock, in MHz.
    pub sm_clock_max_mhz: Option<u32>,
    /// The memory's fastest clock, in MHz.
    pub memory_clock_max_mhz: Option<u32>,
    /// The most that its PCI Express link carries one way, in bytes a second, by the link's largest
    /// generation and width and their encoding.
    pub pcie_bytes_per_s_max: Option<u64>,
    /// Programs that compute on it now, this one included, as far as the library sees them.
    pub compute_processes: Option<u32>,
}

/// The words of every bit that is set, in the bits' order; one without a word here is numbered.
pub fn throttle_words(bits: u64) -> Vec<String> {
    let word = |n: u32| {
        let known = REASONS.iter().find(|reason| reason.0 == 1 << n);
        known.map_or_else(|| format!("reason bit {n}"), |reason| reason.1.to_string())
    };
    (0..u64::BITS).filter(|n| bits >> n & 1 == 1).map(word).collect()
}

/// Whether any of the bits holds clocks down: all but idleness do, those without a word too.
pub fn holds_clocks_down(bits: u64) -> bool {
    bits & !idle_bit() != 0
}

/// What one lane carries one way: transfers a second less the encoding (8 bits in 10, then 128 in
/// 130, then flits of 242 bytes in 256).
fn pcie_lane_bytes_per_s(generation: u32) -> Option<u64> {
    Some(match generation {
        1 => 250_000_000,
        2 => 500_000_000,
        3 => 8_000_000_000 / 8 * 128 / 130,
        4 => 16_000_000_000 / 8 * 128 / 130,
        5 => 32_000_000_000 / 8 * 128 / 130,
        6 => 64_000_000_000 / 8 * 242 / 256,
        _ => return None,
    })
}

/// The bits that hold no clock down.
fn idle_bit() -> u64 {
    REASONS.iter().filter(|reason| !reason.2).map(|reason| reason.0).sum()
}

macro_rules! functions {
    ($($field:ident = $symbol:literal ( $($kind:ty),* );)*) => {
        /// The library's functions that it has. It stays loaded as long as the table lives.
        struct Functions {
            $($field: Option<unsafe extern "C" fn($($kind),*) -> Code>,)*
            error_string: Option<unsafe extern "C" fn(Code) -> *const c_char>,
            _library: Library,
        }

        impl Functions {
            fn resolve(library: Library) -> Functions {
                Functions {
                    // SAFETY: each type is the declaration of the symbol in nvml.h, which keeps
                    // it for ever under one name (a changed one gets a suffix such as _v2). The
                    // pointers stay valid because the table owns the library.
                    $($field: unsafe { library.get(concat!($symbol, "\0").as_bytes()) }
                        .ok()
                        .map(|found| *found),)*
                    // SAFETY: as above.
                    error_string: unsafe { library.get(b"nvmlErrorString\0") }
                        .ok()
                        .map(|found| *found),
                    _library: library,
                }
            }
        }
    };
}

functions! {
    init = "nvmlInit_v2"();
    shutdown = "nvmlShutdown"();
    by_pci = "nvmlDeviceGetHandleByPciBusId_v2"(*const c_char, *mut Handle);
    clock = "nvmlDeviceGetClockInfo"(Handle, i32, *mut u32);
    clock_max = "nvmlDeviceGetMaxClockInfo"(Handle, i32, *mut u32);
    power = "nvmlDeviceGetPowerUsage"(Handle, *mut u32);
    power_limit = "nvmlDeviceGetEnforcedPowerLimit"(Handle, *mut u32);
    power_limit_default = "nvmlDeviceGetPowerManagementDefaultLimit"(Handle, *mut u32);
    temperature = "nvmlDeviceGetTemperature"(Handle, i32, *mut u32);
    event_reasons = "nvmlDeviceGetCurrentClocksEventReasons"(Handle, *mut u64);
    throttle_reasons = "nvmlDeviceGetCurrentClocksThrottleReasons"(Handle, *mut u64);
    persistence = "nvmlDeviceGetPersistenceMode"(Handle, *mut u32);
    mig = "nvmlDeviceGetMigMode"(Handle, *mut u32, *mut u32);
    pcie_generation = "nvmlDeviceGetMaxPcieLinkGeneration"(Handle, *mut u32);
    pcie_width = "nvmlDeviceGetMaxPcieLinkWidth"(Handle, *mut u32);
    processes = "nvmlDeviceGetComputeRunningProcesses_v3"(Handle, *mut u32, *mut u8);
    driver_version = "nvmlSystemGetDriverVersion"(*mut c_char, u32);
    library_version = "nvmlSystemGetNVMLVersion"(*mut c_char, u32);
}

/// The library, initialised, and one GPU in it.
pub struct Telemetry {
    functions: Functions,
    device: Handle,
}

impl Telemetry {
    /// Finds a device's GPU in the library.
    ///
    /// # Errors
    /// [`TelemetryError`] for a device that is no GPU, a library that is missing or refuses, or a
    /// GPU that it does not know.
    pub fn open(device: &dyn Device) -> Result<Telemetry, TelemetryError> {
        let place = device.timing_facts().and_then(|facts| facts.pci);
        let place = place.ok_or_else(|| {
            let name = &device.facts().name;
            TelemetryError::new(format!("{name} tells no place on a PCI bus, as a GPU does"))
        })?;
        Self::load(LIBRARIES, place)
    }

    /// As [`Telemetry::open`], by the GPU's PCI domain, bus and device.
    ///
    /// # Errors
    /// As [`Telemetry::open`].
    pub fn open_at(pci: [u32; 3]) -> Result<Telemetry, TelemetryError> {
        Self::load(LIBRARIES, pci)
    }

    /// As [`Telemetry::open_at`], with a library from an unusual place. Loading runs the library's
    /// code: give only a path that you trust.
    ///
    /// # Errors
    /// As [`Telemetry::open`].
    pub fn open_with_library(path: &str, pci: [u32; 3]) -> Result<Telemetry, TelemetryError> {
        Self::load(&[path], pci)
    }

    /// The library's version, or why it cannot be used. Needs no GPU.
    ///
    /// # Errors
    /// As [`Telemetry::open`].
    pub fn library_version() -> Result<String, TelemetryError> {
        // No GPU may be asked anything here: the library follows a null handle.
        let telemetry = Telemetry { functions: initialised(LIBRARIES)?, device: 0 };
        let version = text(telemetry.functions.library_version);
        Ok(version.unwrap_or_else(|| "of unknown version".to_string()))
    }

    fn load(paths: &[&str], [domain, bus, slot]: [u32; 3]) -> Result<Telemetry, TelemetryError> {
        let functions = initialised(paths)?;
        let mut telemetry = Telemetry { functions, device: 0 };
        let place = format!("{domain:08X}:{bus:02X}:{slot:02X}.0");
        let name = CString::new(place.clone()).unwrap_or_default();
        let Some(find) = telemetry.functions.by_pci else {
            return Err(TelemetryError::new("the library cannot find a GPU by its PCI address"));
        };
        let mut handle = 0;
        // SAFETY: the name ends in a NUL and the handle is a live usize; the library is
        // initialised.
        let code = unsafe { find(name.as_ptr(), &raw mut handle) };
        if code != SUCCESS {
            let why = telemetry.words(code);
            return Err(TelemetryError::new(format!("no GPU at PCI address {place}: {why}")));
        }
        telemetry.device = handle;
        Ok(telemetry)
    }

    /// The GPU's state now. Takes a fraction of a millisecond; never fails, since what cannot be
    /// told is listed.
    pub fn sample(&self) -> TelemetrySample {
        let f = &self.functions;
        let mut missing = Vec::new();
        let mut note = |what: &str, found| noted(&mut missing, what, found).map(f64::from);
        let sm_clock_mhz = note("SM clock", self.ask_kind(f.clock, SM_CLOCK));
        let memory_clock_mhz = note("memory clock", self.ask_kind(f.clock, MEMORY_CLOCK));
        let power_w = watts(note("power", self.ask(f.power)));
        let power_limit_w = watts(note("power limit", self.ask(f.power_limit)));
        let power_limit_default_w =
            watts(note("default power limit", self.ask(f.power_limit_default)));
        let temperature_c = note("temperature", self.ask_kind(f.temperature, CORE_SENSOR));
        let throttle_bits = noted(&mut missing, "throttle reasons", self.reasons());
        TelemetrySample {
            sm_clock_mhz,
            memory_clock_mhz,
            power_w,
            power_limit_w,
            power_limit_default_w,
            temperature_c,
            throttle: throttle_bits.map(throttle_words).unwrap_or_default(),
            throttle_bits,
            missing,
        }
    }

    /// Power, temperature and the reasons alone, which is what a measurement watches: a few calls
    /// fewer than [`Telemetry::sample`].
    pub fn vitals(&self) -> TelemetrySample {
        let f = &self.functions;
        let mut missing = Vec::new();
        let mut note = |what: &str, found| noted(&mut missing, what, found).map(f64::from);
        let power_w = watts(note("power", self.ask(f.power)));
        let temperature_c = note("temperature", self.ask_kind(f.temperature, CORE_SENSOR));
        let throttle_bits = noted(&mut missing, "throttle reasons", self.reasons());
        TelemetrySample {
            power_w,
            temperature_c,
            throttle: throttle_bits.map(throttle_words).unwrap_or_default(),
            throttle_bits,
            missing,
            ..TelemetrySample::default()
        }
    }

    /// How the GPU is set up.
    pub fn settings(&self) -> TelemetrySettings {
        let f = &self.functions;
        TelemetrySettings {
            driver: text(f.driver_version),
            library: text(f.library_version),
            persistence: self.ask(f.persistence).ok().map(|mode| mode != 0),
            mig: self.mig(),
            sm_clock_max_mhz: self.ask_kind(f.clock_max, SM_CLOCK).ok(),
            memory_clock_max_mhz: self.ask_kind(f.clock_max, MEMORY_CLOCK).ok(),
            pcie_bytes_per_s_max: self.pcie(),
            compute_processes: self.processes(),
        }
    }

    fn ask(
        &self,
        function: Option<unsafe extern "C" fn(Handle, *mut u32) -> Code>,
    ) -> Result<u32, String> {
        let function = function.ok_or_else(|| NO_FUNCTION.to_string())?;
        let mut value = 0;
        // SAFETY: the library is initialised, the handle is one that it gave, and the pointer is to
        // a live u32.
        match unsafe { function(self.device, &raw mut value) } {
            SUCCESS => Ok(value),
            code => Err(self.words(code)),
        }
    }

    fn ask_kind(
        &self,
        function: Option<unsafe extern "C" fn(Handle, i32, *mut u32) -> Code>,
        kind: i32,
    ) -> Result<u32, String> {
        let function = function.ok_or_else(|| NO_FUNCTION.to_string())?;
        let mut value = 0;
        // SAFETY: as in `ask`; the kind is one of the enumeration's.
        match unsafe { function(self.device, kind, &raw mut value) } {
            SUCCESS => Ok(value),
            code => Err(self.words(code)),
        }
    }

    fn reasons(&self) -> Result<u64, String> {
        let function = self.functions.event_reasons.or(self.functions.throttle_reasons);
        let function = function.ok_or_else(|| NO_FUNCTION.to_string())?;
        let mut bits = 0;
        // SAFETY: as in `ask`, with a u64.
        match unsafe { function(self.device, &raw mut bits) } {
            SUCCESS => Ok(bits),
            code => Err(self.words(code)),
        }
    }

    fn pcie(&self) -> Option<u64> {
        let f = &self.functions;
        let generation = self.ask(f.pcie_generation).ok()?;
        Some(pcie_lane_bytes_per_s(generation)? * u64::from(self.ask(f.pcie_width).ok()?))
    }

    fn mig(&self) -> Option<bool> {
        let (mut current, mut pending) = (0, 0);
        // SAFETY: as in `ask`, with two u32.
        let code = unsafe { self.functions.mig?(self.device, &raw mut current, &raw mut pending) };
        (code == SUCCESS).then_some(current != 0)
    }

    fn processes(&self) -> Option<u32> {
        let mut count = 0;
        let none = std::ptr::null_mut();
        // SAFETY: a count of 0 asks for the number alone; nothing is written to the null pointer.
        let code = unsafe { self.functions.processes?(self.device, &raw mut count, none) };
        matches!(code, SUCCESS | INSUFFICIENT_SIZE).then_some(count)
    }

    fn words(&self, code: Code) -> String {
        words(&self.functions, code)
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(shutdown) = self.functions.shutdown {
            // SAFETY: pairs with the nvmlInit_v2 of `initialised`. An error cannot be acted on.
            let _ = unsafe { shutdown() };
        }
    }
}

/// What was found, or nothing and a word on why.
fn noted<T>(missing: &mut Vec<String>, what: &str, found: Result<T, String>) -> Option<T> {
    found.map_err(|why| missing.push(format!("{what}: {why}"))).ok()
}

fn watts(milliwatts: Option<f64>) -> Option<f64> {
    milliwatts.map(|milliwatts| milliwatts / 1e3)
}

const NO_FUNCTION: &str = "the library has no such function";

/// Loads the first of the libraries that opens, and initialises it.
fn initialised(paths: &[&str]) -> Result<Functions, TelemetryError> {
    let mut reason = None;
    for &path in paths {
        // SAFETY: loading runs the library's initialisers. The names are those of NVIDIA's
        // driver, or a path that the caller chose to trust.
        match unsafe { Library::new(path) } {
            Ok(library) => return start(Functions::resolve(library), path),
            Err(error) => drop(reason.get_or_insert_with(|| error.to_string())),
        }
    }
    let hint = "NVML comes with the NVIDIA driver: in a container, add the driver capability \
                \"utility\" (NVIDIA_DRIVER_CAPABILITIES=compute,utility)";
    Err(TelemetryError {
        reason: format!("NVML does not load: {}", reason.unwrap_or_default()),
        hint: Some(hint.to_string()),
    })
}

fn start(functions: Functions, path: &str) -> Result<Functions, TelemetryError> {
    let Some(init) = functions.init else {
        return Err(TelemetryError::new(format!("{path} has no function nvmlInit_v2")));
    };
    // SAFETY: takes nothing and may be called at any time.
    match unsafe { init() } {
        SUCCESS => Ok(functions),
        code => {
            let why = words(&functions, code);
            Err(TelemetryError::new(format!("NVML does not start: {why}")))
        }
    }
}

fn words(functions: &Functions, code: Code) -> String {
    let unknown = || format!("error {code}");
    let Some(ask) = functions.error_string else { return unknown() };
    // SAFETY: takes any number.
    let text = unsafe { ask(code) };
    if text.is_null() {
        return unknown();
    }
    // SAFETY: the library's own NUL-terminated text, which lives as long as the library.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

fn text(function: Option<unsafe extern "C" fn(*mut c_char, u32) -> Code>) -> Option<String> {
    let mut bytes = [0_u8; 96];
    // SAFETY: the library writes at most the given number of bytes, one fewer than the array has,
    // so that a NUL always ends it.
    let code = unsafe { function?(bytes.as_mut_ptr().cast::<c_char>(), 95) };
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    (code == SUCCESS).then(|| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_has_a_word_of_its_own_and_none_is_lost() {
        assert_eq!(throttle_words(0), Vec::<String>::new());
        assert_eq!(throttle_words(0x4 | 0x40), ["software power cap", "hardware thermal slowdown"]);
        assert_eq!(throttle_words(0x1 | 1 << 40), ["idle", "reason bit 40"]);
        let all = throttle_words(u64::MAX);
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), distinct.len()), (64, 64));
    }

    #[test]
    fn idleness_is_no_throttling_but_comes_beside_it() {
        let with = |bits| TelemetrySample { throttle_bits: Some(bits), ..Default::default() };
        assert!(!with(0).is_throttled() && !with(1).is_throttled());
        assert!(with(0x5).is_throttled() && with(1 << 50).is_throttled());
        assert!(!TelemetrySample::default().is_throttled(), "unknown is not throttled");
    }

    #[test]
    fn sixteen_lanes_carry_what_their_generation_says() {
        let sixteen =
            |generation| pcie_lane_bytes_per_s(generation).map(|lane| 16 * lane / 10_000_000);
        assert_eq!((sixteen(3), sixteen(5)), (Some(1575), Some(6301)));
        assert_eq!((sixteen(0), sixteen(7)), (None, None));
    }

    #[test]
    fn a_lowered_power_limit_is_told_from_the_default() {
        let with = |limit| TelemetrySample {
            power_limit_w: limit,
            power_limit_default_w: Some(700.0),
            ..Default::default()
        };
        assert!(with(Some(650.0)).is_power_limited_below_default());
        assert!(!with(Some(700.0)).is_power_limited_below_default());
        assert!(!with(None).is_power_limited_below_default());
    }
}
