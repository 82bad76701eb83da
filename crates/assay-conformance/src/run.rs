//! Runs programs on any device: modules of many kernels, one launch for each.

use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, Image, Launch, Rejection, StreamId,
};

use crate::program::Program;
use crate::values::operands;
use crate::writer::{NAME, ROW, TABLE, THREADS};

/// The head of every module. The architecture is the H200's, with what only it has.
pub(crate) const HEAD: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";

/// Kernels of a module: loading one module costs more than one kernel.
pub const KERNELS: usize = 24;

/// What a device made of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ran {
    /// The results, case by case.
    Results(Vec<u64>),
    /// The device's compiler rejects it, with its first line.
    Rejected(String),
    /// The device does not run it.
    Unsupported,
}

/// Runs programs in order, some [`KERNELS`] of them in one module, and gives each result to `each`.
///
/// # Errors
/// What the device answers, other than that it rejects or does not support a program.
pub fn run(
    device: &mut dyn Device,
    programs: &[Program],
    seed: u64,
    each: impl FnMut(&Program, &[u64], Ran),
) -> Result<(), DeviceError> {
    run_grouped(device, programs, KERNELS, seed, each)
}

/// Runs one program on operands that are given, case by case.
///
/// # Errors
/// What the device answers, other than that it rejects or does not support the program.
pub(crate) fn run_words(
    device: &mut dyn Device,
    program: &Program,
    inputs: &[u64],
) -> Result<Ran, DeviceError> {
    let text = module(std::slice::from_ref(program));
    let module = match device.load(&Image::ptx("conformance.ptx", text)) {
        Ok(module) => module,
        Err(DeviceError::ModuleRejected(rejection)) => {
            return Ok(Ran::Rejected(first_line(&rejection.log, &rejection.reason)));
        }
        Err(error) => return Err(error),
    };
    let ran = launch(device, module, 0, program, inputs)?;
    device.unload(module)?;
    Ok(ran)
}

pub(crate) fn run_grouped(
    device: &mut dyn Device,
    programs: &[Program],
    kernels: usize,
    seed: u64,
    mut each: impl FnMut(&Program, &[u64], Ran),
) -> Result<(), DeviceError> {
    for group in programs.chunks(kernels.max(1)) {
        run_group(device, group, seed, &mut each)?;
    }
    Ok(())
}

fn run_group(
    device: &mut dyn Device,
    group: &[Program],
    seed: u64,
    each: &mut impl FnMut(&Program, &[u64], Ran),
) -> Result<(), DeviceError> {
    let module = match device.load(&Image::ptx("conformance.ptx", module(group))) {
        Ok(module) => module,
        Err(DeviceError::ModuleRejected(rejection)) => {
            return run_apart(device, group, seed, &rejection, each);
        }
        Err(error) => return Err(error),
    };
    for (index, program) in group.iter().enumerate() {
        let inputs = operands(&program.inputs, program.cases, seed);
        let ran = launch(device, module, index, program, &inputs)?;
        each(program, &inputs, ran);
    }
    device.unload(module)
}

/// Runs the programs of a rejected module in order: a guilty one alone, the others together.
fn run_apart(
    device: &mut dyn Device,
    group: &[Program],
    seed: u64,
    rejection: &Rejection,
    each: &mut impl FnMut(&Program, &[u64], Ran),
) -> Result<(), DeviceError> {
    if let [program] = group {
        let inputs = operands(&program.inputs, program.cases, seed);
        let reason = first_line(&rejection.log, &rejection.reason);
        each(program, &inputs, Ran::Rejected(reason));
        return Ok(());
    }
    let guilty = guilty(group, rejection);
    if guilty.is_empty() {
        let (front, back) = group.split_at(group.len() / 2);
        run_group(device, front, seed, each)?;
        return run_group(device, back, seed, each);
    }
    let mut start = 0;
    for index in guilty.into_iter().chain([group.len()]) {
        if start < index {
            run_group(device, &group[start..index], seed, each)?;
        }
        if let Some(alone) = group.get(index..=index) {
            run_group(device, alone, seed, each)?;
        }
        start = index + 1;
    }
    Ok(())
}

/// The programs of a module on whose lines a compiler finds errors.
fn guilty(group: &[Program], rejection: &Rejection) -> Vec<usize> {
    let mut lines: Vec<u32> = rejection
        .log
        .split("line ")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .collect();
    lines.extend(rejection.line);
    let mut end = module(&[]).lines().count();
    let mut guilty = Vec::new();
    for (index, program) in group.iter().enumerate() {
        let start = end;
        end += program.text.lines().count();
        if lines.iter().any(|&line| (start + 1..=end).contains(&(line as usize))) {
            guilty.push(index);
        }
    }
    guilty
}

/// The line of a compiler's log that says what is wrong.
fn first_line(log: &str, reason: &str) -> String {
    let line = log.lines().find(|line| line.contains("error")).unwrap_or(reason);
    line.trim().to_string()
}

/// The text of a module with these kernels, named by their places.
pub fn module(group: &[Program]) -> String {
    let mut text = format!("{HEAD}{}", table());
    for (index, program) in group.iter().enumerate() {
        text.push_str(&program.text.replace(NAME, &kernel_name(index)));
    }
    text
}

fn kernel_name(index: usize) -> String {
    format!("form{index}")
}

/// The constant bank: 64 rows with a different word everywhere, NaNs and negative bytes among them.
fn table() -> String {
    let words: Vec<String> = (0..64 * ROW / 8)
        .map(|index| format!("{:#x}", index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (index << 56)))
        .collect();
    format!(".const .align 32 .b64 {TABLE}[{}] = {{{}}};\n", words.len(), words.join(", "))
}

fn launch(
    device: &mut dyn Device,
    module: assay_device::ModuleId,
    index: usize,
    program: &Program,
    inputs: &[u64],
) -> Result<Ran, DeviceError> {
    let bytes: Vec<u8> = inputs.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut out = vec![0; 8 * program.outputs.len() * program.cases];
    let sizes = [bytes.len() as u64, out.len() as u64, ROW * program.cases as u64];
    let mut buffers: Vec<BufferId> = Vec::new();
    for size in sizes {
        buffers.push(device.allocate(&Allocation::new(size))?);
    }
    device.write(buffers[0], 0, &bytes)?;
    let name = kernel_name(index);
    let launch = Launch {
        grid: [program.cases as u32 / THREADS, 1, 1],
        block: [THREADS, 1, 1],
        cluster: [program.cluster, 1, 1],
        arguments: buffers.iter().map(|&buffer| Argument::Buffer(buffer)).collect(),
        ..Launch::new(module, &name)
    };
    let launched = device.launch(StreamId::DEFAULT, &launch).and_then(|_| device.synchronize());
    let ran = match launched {
        Ok(()) => {
            device.read(buffers[1], 0, &mut out)?;
            let words = out.as_chunks::<8>().0;
            Ran::Results(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
        }
        Err(error) if error.is_unsupported() => Ran::Unsupported,
        Err(error) => return Err(error),
    };
    for buffer in buffers {
        device.free(buffer)?;
    }
    Ok(ran)
}
