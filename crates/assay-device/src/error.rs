//! What can go wrong with a device, and what to do about it.

use thiserror::Error;

/// Why a device could not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver's library cannot be loaded.
    #[error("no NVIDIA driver found: {reason}")]
    DriverMissing {
        /// What the loader said.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// The driver serves an older CUDA than Assay calls.
    #[error("the NVIDIA driver is too old: it serves CUDA {found}, Assay needs {needed}")]
    DriverTooOld {
        /// The driver's CUDA version, `11.8`.
        found: String,
        /// The oldest that does, `12.0`.
        needed: String,
    },
    /// The driver's library lacks a function.
    #[error("the driver library {library} has no function {symbol}")]
    SymbolMissing {
        /// The function's name.
        symbol: String,
        /// The library that was loaded.
        library: String,
    },
    /// No device has that name or number.
    #[error("there is no device {wanted}")]
    NoSuchDevice {
        /// What was asked for.
        wanted: String,
        /// What there is.
        available: Vec<String>,
        /// What to do, where the list does not say it.
        hint: Option<String>,
    },
    /// The image does not parse, or does not suit the device.
    #[error("{0}")]
    ModuleRejected(Box<Rejection>),
    /// The module has no kernel of that name.
    #[error("the module has no kernel {symbol}")]
    KernelNotFound {
        /// What was asked for.
        symbol: String,
        /// The module's kernels, where they are known.
        available: Vec<String>,
    },
    /// The memory does not suffice.
    #[error("out of device memory: {}", memory(*requested, *available))]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes free, where they are known.
        available: Option<u64>,
    },
    /// The launch cannot be, whatever the kernel does. Nothing ran.
    #[error("the launch of {symbol} is invalid: {reason}")]
    InvalidLaunch {
        /// The kernel.
        symbol: String,
        /// What is wrong.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// Any other request that cannot be. Nothing happened.
    #[error("{reason}")]
    InvalidRequest {
        /// What is wrong.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// A read or write past a buffer's end. Nothing was copied.
    #[error("{length} bytes from byte {offset} on do not lie in a buffer of {bytes} bytes")]
    OutOfRange {
        /// Bytes from the buffer's start.
        offset: u64,
        /// Bytes asked for.
        length: u64,
        /// The buffer's size, in bytes.
        bytes: u64,
    },
    /// The kernel did something wrong while it ran.
    #[error("{0}")]
    Fault(KernelFault),
    /// The device cannot do this at all. Says nothing about the kernel's worth.
    #[error("not supported on this device: {what}")]
    Unsupported {
        /// What is not supported.
        what: String,
    },
    /// The device is gone: an earlier fault, or the hardware itself.
    #[error("the device is lost: {cause}")]
    Lost {
        /// What it died of.
        cause: String,
    },
    /// The driver refused a call for a reason that has no variant of its own.
    #[error("{call} failed with {name} ({code}): {text}")]
    Api {
        /// The driver function.
        call: String,
        /// The driver's error number.
        code: i32,
        /// Its name: `CUDA_ERROR_INVALID_VALUE`.
        name: String,
        /// The driver's own words.
        text: String,
    },
    /// The handle was never given out by this device, or what it named is gone.
    #[error("{kind} {number} is unknown to this device")]
    UnknownHandle {
        /// `buffer`, `module`, `stream`, `event` or `graph`.
        kind: &'static str,
        /// Its number.
        number: u64,
    },
}

impl DeviceError {
    /// What to do next, where there is something to say beyond the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            DeviceError::DriverMissing { hint, .. }
            | DeviceError::InvalidLaunch { hint, .. }
            | DeviceError::InvalidRequest { hint, .. }
            | DeviceError::Fault(KernelFault { hint: Some(hint), .. }) => Some(hint.clone()),
            DeviceError::ModuleRejected(rejection) => rejection.hint(),
            DeviceError::NoSuchDevice { available, hint, .. } => {
                hint.clone().or_else(|| Some(format!("available: {}", listing(available))))
            }
            DeviceError::KernelNotFound { available, .. } if !available.is_empty() => {
                Some(format!("the module's kernels: {}", listing(available)))
            }
            other => other.fixed_hint().map(str::to_string),
        }
    }

    fn fixed_hint(&self) -> Option<&'static str> {
        Some(match self {
            DeviceError::DriverTooOld { .. } => {
                "update the NVIDIA driver (525 or later), or use --device emulator"
            }
            DeviceError::SymbolMissing { .. } => {
                "the driver's files may be of mixed versions: reinstall the NVIDIA driver"
            }
            DeviceError::OutOfMemory { .. } => "use smaller dims, or end what else uses the device",
            DeviceError::Fault(fault) if fault.lost_context => {
                "the device must be opened again, in a new process, before anything else can run"
            }
            DeviceError::Lost { .. } => {
                "open the device again in a new process; if that fails, see nvidia-smi"
            }
            _ => return None,
        })
    }

    /// Whether the device is dead after this: it must not be used again.
    pub fn poisons_device(&self) -> bool {
        match self {
            DeviceError::Fault(fault) => fault.lost_context,
            DeviceError::Lost { .. } => true,
            _ => false,
        }
    }

    /// Whether the device lacks an ability, so that nothing is learnt about the kernel.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, DeviceError::Unsupported { .. })
    }
}

/// Why an image was rejected.
#[derive(Clone, PartialEq, Eq, Debug, Default, Error)]
#[error("{}", self.message())]
pub struct Rejection {
    /// The image's name: `row_sum.ptx`.
    pub image: String,
    /// What is wrong, in one line.
    pub reason: String,
    /// The compiler's whole log, or nothing.
    pub log: String,
    /// The line of the PTX that is wrong, from 1.
    pub line: Option<u32>,
    /// That line's text.
    pub source_line: Option<String>,
    /// What to do, where that is known.
    pub hint: Option<String>,
}

impl Rejection {
    fn message(&self) -> String {
        let Rejection { image, reason, line, source_line, .. } = self;
        let place = line.map_or_else(|| image.clone(), |line| format!("{image}:{line}"));
        match source_line {
            Some(text) => format!("{place}: {reason}\n  | {}", text.trim_end()),
            None => format!("{place}: {reason}"),
        }
    }

    fn hint(&self) -> Option<String> {
        let said = || format!("the compiler said: {}", self.log.trim());
        self.hint.clone().or_else(|| (!self.log.trim().is_empty()).then(said))
    }
}

/// What a kernel did wrong while it ran.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{}{description}", place.as_deref().map(|place| format!("{place}: ")).unwrap_or_default())]
pub struct KernelFault {
    /// The sort of fault.
    pub kind: FaultKind,
    /// What happened, in which kernel, block and thread as far as known.
    pub description: String,
    /// Where: `row_sum.ptx:41`. A GPU does not tell.
    pub place: Option<String>,
    /// What to look at next, where the device knows.
    pub hint: Option<String>,
    /// Whether the device is dead after it.
    pub lost_context: bool,
}

/// Sorts of faults.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FaultKind {
    /// Memory that is not the kernel's.
    OutOfBounds,
    /// An address that its access's width does not divide.
    Misaligned,
    /// It ran out of its budget or time.
    Hang,
    /// Threads wait for each other forever.
    Deadlock,
    /// A barrier or warp-wide operation without the threads it needs.
    Synchronization,
    /// It stopped itself: a trap or a failed assertion.
    Trap,
    /// Anything else.
    Other,
}

fn memory(requested: u64, available: Option<u64>) -> String {
    match available {
        Some(free) => format!("{requested} bytes asked for, {free} bytes free"),
        None => format!("{requested} bytes asked for"),
    }
}

fn listing(names: &[String]) -> String {
    const SHOWN: usize = 12;
    if names.is_empty() {
        return "none".to_string();
    }
    let text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
