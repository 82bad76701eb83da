//! A loaded kernel against the same rules: the device's own limits against its chip's table, and
//! what the driver made of the kernel against its launches, its records and its own occupancy.
//!
//! A driver compiles PTX with its own assembler, so registers and local memory may differ from
//! what a release of the compiler made; a difference is a note with both numbers. What must hold
//! is that the launches fit the kernel as it was loaded, and that both sides count alike.

use assay_device::{DeviceFacts, KernelFacts};
use assay_image::CudaKernel;
use assay_limits::{Chip, CudaChip, Launch, fit_cuda};
use assay_record::{CaseName, ChipFit, LoadedKernel, LoadedOccupancy, Outcome};
use assay_reference::Dims;

use super::chip::Place;
use super::found::Found;
use super::{GateContext, case, evidence};
use crate::limits::{Build, Facts, chips, served_launches};
use crate::spec::{LaunchSpec, Spec};
use crate::subject::{Loaded, Subject};

/// The case of what the device says itself.
const LOADED: &str = "loaded";

/// A launch without its borrow of the spec.
struct Asked {
    index: usize,
    launch: Launch,
    dims: Dims,
}

/// Compares, where the subject is loaded on a device that allots anything. A control of this gate
/// is wrong on purpose.
pub(super) fn check(subject: &mut dyn Subject, context: &GateContext<'_>, found: &mut Found) {
    let Some(device) = subject.device().cloned() else { return };
    if subject.spec().is_control() {
        return;
    }
    let case = case(subject.spec(), context, LOADED);
    if !context.wants(&case) {
        return;
    }
    found.cases += 1;
    let Some(Chip::Cuda(chip)) = chips().chip(&device.architecture) else {
        let name = &device.architecture;
        found
            .notes
            .push(format!("{name} is no chip with a table, so its kernels are not compared"));
        return;
    };
    let differences = device_differences(&device, chip);
    found.findings.extend(differences.into_iter().map(|d| evidence(&case, Outcome::Fail, d)));
    let launches: Vec<Asked> = served_launches(subject.spec())
        .into_iter()
        .map(|served| Asked { index: served.index, launch: served.launch, dims: served.dims })
        .collect();
    let mut kernels = Vec::new();
    for index in 0..subject.spec().launches.len() {
        let own: Vec<&Asked> = launches.iter().filter(|asked| asked.index == index).collect();
        kernels.extend(compare(subject, (chip, index, &own, &case), found));
    }
    let kernels = each_symbol_once(kernels);
    match found.chips.iter_mut().find(|fit| fit.chip == chip.name) {
        Some(fit) => fit.loaded = kernels,
        None => found.chips.push(ChipFit {
            chip: chip.name.clone(),
            compiled_by: Vec::new(),
            launches: launches.len() as u64,
            problems: 0,
            occupancy: None,
            loaded: kernels,
        }),
    }
}

/// One of the kernel's launches, at all its sizes.
type OfLaunch<'a> = (&'a CudaChip, usize, &'a [&'a Asked], &'a CaseName);

fn compare(
    subject: &mut dyn Subject,
    (chip, index, launches, case): OfLaunch<'_>,
    found: &mut Found,
) -> Option<LoadedKernel> {
    let of: LaunchSpec = subject.spec().launches.get(index)?.clone();
    let recorded = recorded(subject.spec(), chip, &of.symbol);
    let mut told: Option<LoadedKernel> = None;
    for asked in launches {
        let block = block(&asked.launch);
        let loaded = match subject.loaded(&of.symbol, block) {
            Ok(loaded) => loaded,
            Err(error) => {
                let why = format!("the device does not tell of `{}`: {error}", of.symbol);
                found.findings.push(evidence(case, Outcome::Unproven, why));
                return told;
            }
        };
        let place = Place { spec: subject.spec(), index, launch: &of, dims: &asked.dims };
        let place = place.to_string();
        let kernel = as_loaded(&of.symbol, &loaded.kernel, recorded.first());
        let wrong = disagreements(chip, &kernel, (&asked.launch, &loaded));
        let sentences = wrong.into_iter().map(|wrong| format!("{place}: {wrong}"));
        found.findings.extend(sentences.map(|why| evidence(case, Outcome::Fail, why)));
        if let Some(told) = &mut told {
            add(told, block, &loaded);
        } else {
            found.notes.extend(notes(&of.symbol, &loaded.kernel, &recorded, &chip.name));
            told = Some(first(&of.symbol, block, &loaded));
        }
    }
    told
}

/// What was recorded of the kernel for this chip, with who compiled it.
fn recorded(spec: &Spec, chip: &CudaChip, symbol: &str) -> Vec<(String, CudaKernel)> {
    let (Some(module), Some(of)) = (&spec.module, chips().chip(&chip.name)) else {
        return Vec::new();
    };
    let kernel = |build: Build<'_>| match build.facts {
        Facts::Cuda(kernel) => Some((build.to_string(), kernel.clone())),
        _ => None,
    };
    module.compiled.builds(symbol, of).into_iter().filter_map(kernel).collect()
}

/// Threads of a block, and its dynamic shared bytes, as a driver takes them.
fn block(launch: &Launch) -> (u32, u32) {
    let number = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
    (number(launch.threads()), number(launch.dynamic_shared_bytes))
}

/// The facts that the rules ask for, from what the driver tells and, where it does not, a record.
fn as_loaded(
    symbol: &str,
    facts: &KernelFacts,
    recorded: Option<&(String, CudaKernel)>,
) -> CudaKernel {
    let known = recorded.map(|(_, kernel)| kernel.clone()).unwrap_or_default();
    CudaKernel {
        name: symbol.to_owned(),
        registers: facts.registers,
        static_shared_bytes: facts.static_shared,
        stack_bytes: facts.local_bytes,
        max_threads: Some([facts.max_threads, 1, 1]),
        ..known
    }
}

/// What the launch breaks as the kernel was loaded, and where driver and table count apart.
fn disagreements(
    chip: &CudaChip,
    kernel: &CudaKernel,
    (launch, loaded): (&Launch, &Loaded),
) -> Vec<String> {
    let fit = fit_cuda(chip, kernel, launch);
    let mut wrong: Vec<String> = fit
        .problems
        .iter()
        .map(|problem| format!("as loaded it breaks {}: {problem}", problem.rule.name()))
        .collect();
    let ours = fit.occupancy.map_or(0, |occupancy| occupancy.blocks);
    if let Some(theirs) = loaded.blocks
        && wrong.is_empty()
        && theirs != ours
    {
        let (threads, bytes) = block(launch);
        let KernelFacts { registers, static_shared, .. } = loaded.kernel;
        wrong.push(format!(
            "a multiprocessor holds {theirs} blocks by the driver and {ours} by the table of {}, \
             at {threads} threads of {registers} registers with {static_shared} + {bytes} bytes of \
             shared memory",
            chip.name
        ));
    }
    wrong
}

/// Where the driver made something else of a kernel than every compiler that is recorded.
fn notes(
    symbol: &str,
    facts: &KernelFacts,
    recorded: &[(String, CudaKernel)],
    chip: &str,
) -> Vec<String> {
    let numbers = |kernel: &CudaKernel| {
        [
            ("registers", facts.registers, kernel.registers),
            ("bytes of static shared memory", facts.static_shared, kernel.static_shared_bytes),
            ("bytes of local memory", facts.local_bytes, kernel.stack_bytes),
        ]
    };
    let same = |(_, kernel): &(String, CudaKernel)| {
        numbers(kernel).iter().all(|(_, loaded, recorded)| loaded == recorded)
    };
    if recorded.iter().any(same) {
        return Vec::new();
    }
    let mut notes = Vec::new();
    for (by, kernel) in recorded {
        for (what, loaded, recorded) in numbers(kernel) {
            if loaded != recorded {
                notes.push(format!(
                    "`{symbol}` has {loaded} {what} as the driver compiles it for {chip}, \
                     {recorded} by {by}"
                ));
            }
        }
    }
    notes
}

fn first(symbol: &str, block: (u32, u32), loaded: &Loaded) -> LoadedKernel {
    let facts = &loaded.kernel;
    let mut told = LoadedKernel {
        symbol: symbol.to_owned(),
        registers: facts.registers,
        static_shared_bytes: facts.static_shared,
        local_bytes: facts.local_bytes,
        max_threads: facts.max_threads,
        occupancies: Vec::new(),
    };
    add(&mut told, block, loaded);
    told
}

fn add(told: &mut LoadedKernel, (threads, bytes): (u32, u32), loaded: &Loaded) {
    let Some(blocks) = loaded.blocks else { return };
    let one = LoadedOccupancy { block_threads: threads, dynamic_shared_bytes: bytes, blocks };
    if !told.occupancies.contains(&one) {
        told.occupancies.push(one);
    }
}

fn each_symbol_once(kernels: Vec<LoadedKernel>) -> Vec<LoadedKernel> {
    let mut all: Vec<LoadedKernel> = Vec::new();
    for kernel in kernels {
        match all.iter_mut().find(|known| known.symbol == kernel.symbol) {
            None => all.push(kernel),
            Some(known) => {
                let more = kernel.occupancies.into_iter();
                let more: Vec<_> = more.filter(|one| !known.occupancies.contains(one)).collect();
                known.occupancies.extend(more);
            }
        }
    }
    all
}

/// Where the device says another number than its chip's table.
fn device_differences(device: &DeviceFacts, chip: &CudaChip) -> Vec<String> {
    let triple = |[x, y, z]: [u64; 3]| format!("{x}, {y}, {z}");
    let one = |number: u64| number.to_string();
    let mut pairs = vec![
        ("blocks of a grid", triple(device.max_grid), triple(chip.grid.value)),
        (
            "threads along a block",
            triple(device.max_block.map(u64::from)),
            triple(chip.block.value),
        ),
        (
            "threads of a block",
            one(device.max_threads_per_block.into()),
            one(chip.threads_per_block.value),
        ),
        ("threads of a warp", one(device.warp_size.into()), one(chip.warp_threads.value)),
        (
            "bytes of shared memory of a block",
            one(device.shared_per_block.into()),
            one(chip.shared_per_block.value),
        ),
        (
            "bytes of shared memory that a block may opt in to",
            one(device.shared_per_block_opt_in.into()),
            one(chip.shared_per_block_opt_in.value),
        ),
        (
            "registers of a block",
            one(device.registers_per_block.into()),
            one(chip.registers_per_block.value),
        ),
    ];
    pairs.extend(multiprocessor_pairs(device, chip));
    let differs = pairs.into_iter().filter(|(_, told, table)| told != table);
    let said = |(what, told, table): (&str, String, String)| {
        format!("{what}: the device says {told}, the table of {} {table}", chip.name)
    };
    differs.map(said).collect()
}

fn multiprocessor_pairs(
    device: &DeviceFacts,
    chip: &CudaChip,
) -> Vec<(&'static str, String, String)> {
    let Some(shared) = device.multiprocessor else { return Vec::new() };
    let threads = chip.warps_per_multiprocessor.value * chip.warp_threads.value;
    let reserved = chip.shared_reserved_per_block.as_ref().map_or(0, |bytes| bytes.value);
    let pairs = [
        ("threads of a multiprocessor", shared.threads, threads),
        ("blocks of a multiprocessor", shared.blocks, chip.blocks_per_multiprocessor.value),
        (
            "registers of a multiprocessor",
            shared.registers,
            chip.registers_per_multiprocessor.value,
        ),
        (
            "bytes of shared memory of a multiprocessor",
            shared.shared_bytes,
            chip.shared_per_multiprocessor.value,
        ),
        ("bytes of shared memory that the driver keeps", shared.reserved_shared_bytes, reserved),
    ];
    pairs.map(|(what, told, table)| (what, told.to_string(), table.to_string())).to_vec()
}
