//! Loaded modules and their kernels.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Arc;

use super::api::{
    LAUNCH_CLUSTER_DIMENSION, LAUNCH_COOPERATIVE, LaunchAttribute, LaunchConfig, Opaque,
    function_attribute, jit_option,
};
use super::context::{Context, Stream};
use super::image::{Prepared, rejected};
use super::status;
use crate::device::Image;
use crate::error::{DeviceError, Rejection};
use crate::facts::KernelFacts;
use crate::launch::Launch;

const LOG_BYTES: usize = 16 * 1024;
/// No kernel has more parameters: they share 32,764 bytes.
const MOST_PARAMETERS: usize = 32_764;
/// Blocks of a cluster that every chip with clusters runs.
const PORTABLE_CLUSTER: u32 = 8;

/// A loaded module.
pub(super) struct Module {
    context: Arc<Context>,
    handle: Opaque,
    /// The parsed text, for what an older driver cannot tell.
    parsed: Option<assay_ptx::Module>,
}

impl Module {
    pub(super) fn load(context: &Arc<Context>, image: &Image) -> Result<Module, DeviceError> {
        let prepared = Prepared::new(image)?;
        let mut log = vec![0_u8; LOG_BYTES];
        let options = [jit_option::ERROR_LOG_BUFFER, jit_option::ERROR_LOG_BUFFER_BYTES];
        let values: [*mut c_void; 2] =
            [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(LOG_BYTES - 1)];
        let mut handle = 0;
        let code = context.raw(|f| {
            let (options, values) = (options.as_ptr(), values.as_ptr());
            // SAFETY: the image is NUL-terminated text, or a binary whose tables were checked to
            // stay inside it. The two options take the log and its size, one less than it has, so
            // that a NUL ends it. The driver has read and written all of it when it returns.
            unsafe { (f.module_load)(&raw mut handle, prepared.address(), 2, options, values) }
        });
        if code != status::SUCCESS {
            let log = log.split(|&byte| byte == 0).next().unwrap_or_default();
            return Err(refusal(context, image, code, &String::from_utf8_lossy(log)));
        }
        let parsed = match image {
            Image::Ptx { text, .. } => assay_ptx::parse(text).ok(),
            _ => None,
        };
        Ok(Module { context: Arc::clone(context), handle, parsed })
    }

    /// The kernels' names, as far as the driver or the text tells.
    fn kernels(&self) -> Vec<String> {
        let names = self.listed().or_else(|| {
            let functions = self.parsed.as_ref()?.functions.iter();
            Some(functions.filter(|f| f.is_kernel()).map(|f| f.name.clone()).collect())
        });
        names.unwrap_or_default()
    }

    /// The kernels' names from a driver that lists them (12.4 and later).
    fn listed(&self) -> Option<Vec<String>> {
        let functions = self.context.functions();
        let (count, list) = (functions.function_count?, functions.function_list?);
        let name = functions.function_name?;
        let mut length = 0;
        // SAFETY: the module lives and the pointer is to a live u32.
        let code = self.context.raw(|_| unsafe { count(&raw mut length, self.handle) });
        let mut handles: Vec<Opaque> = vec![0; length as usize];
        if code != status::SUCCESS {
            return None;
        }
        // SAFETY: the module lives and the vector has `length` places.
        let code = self.context.raw(|_| unsafe { list(handles.as_mut_ptr(), length, self.handle) });
        if code != status::SUCCESS {
            return None;
        }
        let names = handles.into_iter().filter_map(|handle| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: the handle is a function of this live module; the pointer is to a live one.
            let code = self.context.raw(|_| unsafe { name(&raw mut text, handle) });
            if code != status::SUCCESS || text.is_null() {
                return None;
            }
            // SAFETY: on success a NUL-terminated string that lives as long as the module.
            Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        Some(names.collect())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the handle came from cuModuleLoadDataEx; kernels and graphs hold the module, so
        // none of them is used after this. An error cannot be acted on.
        let _ = self.context.raw(|f| unsafe { (f.module_unload)(self.handle) });
    }
}

fn refusal(context: &Context, image: &Image, code: i32, log: &str) -> DeviceError {
    let decoded = status::decode(context.functions(), "cuModuleLoadDataEx", code);
    let text = match decoded {
        DeviceError::Api { text, name, .. } => format!("{text} ({name})"),
        other => return other,
    };
    if code == status::OUT_OF_MEMORY {
        return DeviceError::OutOfMemory { requested: 0, available: None };
    }
    let line = first_line_number(log);
    let hint = match code {
        status::UNSUPPORTED_PTX_VERSION => {
            Some("compile it with an older toolkit, or update the driver".to_string())
        }
        status::NO_BINARY_FOR_GPU => {
            Some("compile it for this device's architecture, or ship its PTX".to_string())
        }
        _ => None,
    };
    let reason = first_complaint(log).unwrap_or(text);
    let source_line = match (image, line) {
        (Image::Ptx { text, .. }, Some(line)) => {
            text.lines().nth(line.saturating_sub(1) as usize).map(str::to_string)
        }
        _ => None,
    };
    let (image, log) = (image.name().to_string(), log.to_string());
    let rejection = Rejection { image, reason, log, line, source_line, hint };
    DeviceError::ModuleRejected(Box::new(rejection))
}

/// The number in the log's first `line N`.
fn first_line_number(log: &str) -> Option<u32> {
    let behind = log.split("line ").nth(1)?;
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The log's first complaint, without the compiler's own name and place in front of it.
fn first_complaint(log: &str) -> Option<String> {
    let line = log.lines().find(|line| !line.trim().is_empty())?;
    let complaint = line.split_once("; ").map_or(line, |(_place, complaint)| complaint);
    let (sort, words) = complaint.split_once(": ").unwrap_or(("", complaint));
    let words = if matches!(sort.trim(), "error" | "fatal") { words } else { complaint };
    Some(words.trim().to_string())
}

/// A kernel of a loaded module.
pub(super) struct Kernel {
    module: Arc<Module>,
    handle: Opaque,
    facts: KernelFacts,
}

impl Kernel {
    pub(super) fn find(module: &Arc<Module>, symbol: &str) -> Result<Kernel, DeviceError> {
        let missing = || DeviceError::KernelNotFound {
            symbol: symbol.to_string(),
            available: module.kernels(),
        };
        if symbol.is_empty() {
            return Err(missing());
        }
        let name = CString::new(symbol).map_err(|_| missing())?;
        let mut handle = 0;
        let code = module.context.raw(|f| {
            // SAFETY: the module lives, the name ends in NUL and the pointer is to a live handle.
            unsafe { (f.module_function)(&raw mut handle, module.handle, name.as_ptr()) }
        });
        if code == status::NOT_FOUND {
            return Err(missing());
        }
        status::check(module.context.functions(), "cuModuleGetFunction", code)?;
        let mut kernel =
            Kernel { module: Arc::clone(module), handle, facts: KernelFacts::default() };
        kernel.facts = kernel.ask_facts(symbol)?;
        Ok(kernel)
    }

    pub(super) fn facts(&self) -> &KernelFacts {
        &self.facts
    }

    pub(super) fn module(&self) -> &Arc<Module> {
        &self.module
    }

    fn ask_facts(&self, symbol: &str) -> Result<KernelFacts, DeviceError> {
        Ok(KernelFacts {
            registers: self.attribute(function_attribute::REGISTERS)?,
            static_shared: self.attribute(function_attribute::SHARED_BYTES)?,
            max_threads: self.attribute(function_attribute::MAX_THREADS_PER_BLOCK)?,
            local_bytes: self.attribute(function_attribute::LOCAL_BYTES)?,
            parameter_sizes: self.told_sizes().or_else(|| self.parsed_sizes(symbol)),
        })
    }

    fn attribute(&self, number: i32) -> Result<u32, DeviceError> {
        let mut value = 0;
        self.module.context.call("cuFuncGetAttribute", |f| {
            // SAFETY: the kernel's module lives and the pointer is to a live i32.
            unsafe { (f.function_get)(&raw mut value, number, self.handle) }
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// How many blocks of that many threads and bytes one multiprocessor can hold.
    pub(super) fn occupancy(
        &self,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<u32, DeviceError> {
        self.opt_in_to_shared(dynamic_shared_bytes)?;
        let (threads, bytes) = (block_threads as i32, dynamic_shared_bytes as usize);
        let mut blocks = 0;
        self.module.context.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", |f| {
            // SAFETY: the kernel's module lives and the pointer is to a live i32.
            unsafe { (f.occupancy)(&raw mut blocks, self.handle, threads, bytes) }
        })?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    fn set_attribute(&self, number: i32, value: u32) -> Result<(), DeviceError> {
        // SAFETY: the kernel's module lives; the driver checks number and value.
        self.module.context.call("cuFuncSetAttribute", |f| unsafe {
            (f.function_set)(self.handle, number, value as i32)
        })
    }

    /// Parameter sizes from a driver that tells them (12.4 and later).
    fn told_sizes(&self) -> Option<Vec<usize>> {
        let ask = self.module.context.functions().parameter_info?;
        let mut sizes = Vec::new();
        for index in 0..MOST_PARAMETERS {
            let (mut offset, mut size) = (0, 0);
            let code = self.module.context.raw(|_| {
                // SAFETY: the kernel's module lives and both pointers are to live usizes.
                unsafe { ask(self.handle, index, &raw mut offset, &raw mut size) }
            });
            match code {
                status::SUCCESS => sizes.push(size),
                status::INVALID_VALUE => return Some(sizes),
                _ => return None,
            }
        }
        None
    }

    fn parsed_sizes(&self, symbol: &str) -> Option<Vec<usize>> {
        let functions = &self.module.parsed.as_ref()?.functions;
        let kernel = functions.iter().find(|f| f.is_kernel() && f.name == symbol)?;
        Some(kernel.params.iter().map(|parameter| parameter.size_bytes() as usize).collect())
    }

    /// Starts the kernel. `values` are the arguments' bytes, in order; the launch itself has
    /// passed [`crate::check::check_launch`].
    pub(super) fn launch(
        &self,
        stream: &Stream,
        launch: &Launch<'_>,
        values: &[Vec<u8>],
    ) -> Result<(), DeviceError> {
        self.check_values(values)?;
        self.prepare(launch)?;
        let pointers: Vec<*const c_void> =
            values.iter().map(|value| value.as_ptr().cast()).collect();
        let attributes = attributes(launch);
        let code = if attributes.is_empty() {
            self.start(stream, launch, &pointers)
        } else {
            self.start_extended(stream, launch, &pointers, &attributes)?
        };
        let result = status::check(self.module.context.functions(), "cuLaunchKernel", code);
        result.map_err(|error| refused_launch(launch, code, error))
    }

    /// The driver reads as many bytes as each parameter has from where the pointers say.
    fn check_values(&self, values: &[Vec<u8>]) -> Result<(), DeviceError> {
        let Some(sizes) = &self.facts.parameter_sizes else {
            return Err(DeviceError::Unsupported {
                what: "launching from a binary image with a driver that cannot tell the kernel's \
                       parameters (CUDA 12.4 and later can)"
                    .to_string(),
            });
        };
        if values.iter().map(Vec::len).eq(sizes.iter().copied()) {
            return Ok(());
        }
        Err(DeviceError::InvalidRequest {
            reason: format!("the arguments do not have the parameters' sizes {sizes:?}"),
            hint: "list one argument for every parameter, in the kernel's order".to_string(),
        })
    }

    /// Opts in to shared memory beyond what a block may have unasked.
    fn opt_in_to_shared(&self, dynamic_bytes: u32) -> Result<(), DeviceError> {
        const PORTABLE_SHARED: u32 = 48 * 1024;
        if self.facts.static_shared.saturating_add(dynamic_bytes) > PORTABLE_SHARED {
            self.set_attribute(function_attribute::MAX_DYNAMIC_SHARED, dynamic_bytes)?;
        }
        Ok(())
    }

    /// Opts in to what goes beyond the portable limits.
    fn prepare(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        self.opt_in_to_shared(launch.shared_bytes)?;
        if launch.cluster.iter().product::<u32>() > PORTABLE_CLUSTER {
            self.set_attribute(function_attribute::NON_PORTABLE_CLUSTER, 1)?;
        }
        Ok(())
    }

    fn start(&self, stream: &Stream, launch: &Launch<'_>, pointers: &[*const c_void]) -> i32 {
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let (shared, stream) = (launch.shared_bytes, stream.handle());
        let (arguments, extra) = (pointers.as_ptr(), std::ptr::null());
        self.module.context.raw(|f| {
            // SAFETY: kernel and stream live. There is one pointer for each parameter, each to as
            // many bytes as it has (`check_values`); the driver copies them before it returns.
            unsafe {
                (f.launch)(self.handle, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra)
            }
        })
    }

    fn start_extended(
        &self,
        stream: &Stream,
        launch: &Launch<'_>,
        pointers: &[*const c_void],
        attributes: &[LaunchAttribute],
    ) -> Result<i32, DeviceError> {
        let what =
            || "clusters and cooperative launches: the driver has no cuLaunchKernelEx".to_string();
        let start = self.module.context.functions().launch_extended;
        let start = start.ok_or_else(|| DeviceError::Unsupported { what: what() })?;
        let config = LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            stream: stream.handle(),
            attributes: attributes.as_ptr(),
            attribute_count: attributes.len() as u32,
        };
        Ok(self.module.context.raw(|_| {
            let (arguments, extra) = (pointers.as_ptr(), std::ptr::null());
            // SAFETY: as in `start`; configuration and attributes live until the call returns.
            unsafe { start(&raw const config, self.handle, arguments, extra) }
        }))
    }
}

/// What a launch asks for beyond sizes.
fn attributes(launch: &Launch<'_>) -> Vec<LaunchAttribute> {
    let mut attributes = Vec::new();
    if launch.cluster != [1; 3] {
        let [x, y, z] = launch.cluster.map(u64::from);
        let value = [x | y << 32, z, 0, 0, 0, 0, 0, 0];
        attributes.push(LaunchAttribute { id: LAUNCH_CLUSTER_DIMENSION, padding: 0, value });
    }
    if launch.cooperative {
        let value = [1, 0, 0, 0, 0, 0, 0, 0];
        attributes.push(LaunchAttribute { id: LAUNCH_COOPERATIVE, padding: 0, value });
    }
    attributes
}

/// Names the launch where the driver refused it for its shape.
fn refused_launch(launch: &Launch<'_>, code: i32, error: DeviceError) -> DeviceError {
    let hint = match code {
        status::LAUNCH_OUT_OF_RESOURCES => "use smaller blocks or less shared memory",
        status::INVALID_CLUSTER_SIZE => "use a smaller cluster, or a device with clusters",
        status::INVALID_VALUE => "check grid, block, cluster and shared memory against the device",
        _ => return error,
    };
    let (symbol, hint) = (launch.symbol.to_string(), hint.to_string());
    DeviceError::InvalidLaunch { symbol, reason: error.to_string(), hint }
}

/// A rejection for kinds of image that hold no code for this backend.
pub(super) fn check_kind(image: &Image) -> Result<(), DeviceError> {
    match image {
        Image::Ptx { text, .. } if text.trim().is_empty() => {
            Err(rejected(image, "the PTX text is empty"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "ptxas application ptx input, line 7; fatal   : Parsing error near '??': \
                       syntax error\nptxas fatal   : Ptx assembly aborted due to errors\n";

    #[test]
    fn the_compilers_log_yields_the_line_and_the_complaint() {
        assert_eq!(first_line_number(LOG), Some(7));
        assert_eq!(first_complaint(LOG).as_deref(), Some("Parsing error near '??': syntax error"));
    }

    #[test]
    fn a_log_without_a_line_yields_none() {
        assert_eq!(first_line_number("out of everything"), None);
        assert_eq!(first_line_number("line x"), None);
        assert_eq!(first_complaint("\n  \n"), None);
    }
}
