//! The kernels, what they keep on the device, and the launches of one comparison.

use std::borrow::Cow;

use assay_device::{
    Argument, BufferId, Device, DeviceError, HostBufferId, HostKind, Image, Launch, ModuleId,
    StreamId,
};
use assay_num::Format;
use assay_record::Tolerance;

use super::bounds::Bounds;
use super::report::{self, RESULT_BYTES, largest_of};

use crate::array::storage;
use crate::counts::BLOCK;
use crate::error::CompareError;
use crate::judge::Seen;
use crate::scan::{Largest, Rules};
use crate::table::table;

/// The sources, by what they compare: floats, integers, formats with tables and tensor floats.
const SOURCES: [(&str, &str); 3] = [
    ("compare.ptx", include_str!("../../../../kernels/compare/compare.ptx")),
    ("integers.ptx", include_str!("../../../../kernels/compare/integers.ptx")),
    ("small.ptx", include_str!("../../../../kernels/compare/small.ptx")),
];

/// Threads of a group of each kernel.
const GROUP: u32 = 128;
const FINISHERS: u32 = 512;
const LOOKERS: u32 = 1024;

/// Bytes of a group's part of the sums, and of an entry of its lists.
const PART_BYTES: u64 = 32;
const ENTRY_BYTES: u64 = 16;

/// How many of the worst elements the device finds by itself. It takes time that grows with their
/// square; more of them are looked for on the host, in the blocks that hold them.
const MOST_WORST: usize = 32;

/// Where the numbers of the chosen blocks lie behind the totals, and the bytes of both.
const CHOSEN: u64 = report::HEAD as u64 * 8;
const TOTALS_BYTES: u64 = CHOSEN + 2 * MOST_WORST as u64 * 8;

/// Where both arrays lie on the device.
pub(super) struct Pair {
    pub(super) reference: (BufferId, u64),
    pub(super) candidate: (BufferId, u64),
    pub(super) elements: u64,
}

impl Pair {
    fn blocks(&self) -> u64 {
        self.elements.div_ceil(BLOCK as u64)
    }
}

/// Loaded kernels, and buffers that stay for the next comparison.
#[derive(Debug)]
pub(super) struct Kernels {
    modules: [Option<ModuleId>; 3],
    /// How many groups of a kernel the device holds at a time.
    resident: Vec<(&'static str, u64)>,
    /// Counts while they are added up, then the blocks that hold the worst elements.
    totals: Kept,
    /// Whether the totals are zeros: the kernel that ends a comparison leaves them so.
    is_clean: bool,
    /// Results of blocks, then parts of the sums, then lists of the worst blocks.
    scratch: Kept,
    answer: Answer,
    /// The table that the device has, and its format.
    table: (Kept, Option<Format>),
}

/// A buffer that grows with what is asked of it.
#[derive(Debug, Default)]
pub(super) struct Kept(Option<(BufferId, u64)>);

impl Kept {
    pub(super) fn of(
        &mut self,
        device: &mut dyn Device,
        bytes: u64,
    ) -> Result<BufferId, DeviceError> {
        if let Some((buffer, room)) = self.0 {
            if room >= bytes {
                return Ok(buffer);
            }
            self.0 = None;
            device.free(buffer)?;
        }
        let buffer = device.allocate_bare(bytes)?;
        self.0 = Some((buffer, bytes));
        Ok(buffer)
    }
}

/// A format's kernels.
struct Names {
    source: usize,
    scan: &'static str,
    look: &'static str,
    widen: &'static str,
}

fn names(format: Format) -> Names {
    macro_rules! of {
        ($source:literal, $name:literal) => {
            Names {
                source: $source,
                scan: concat!("compare_", $name),
                look: concat!("look_", $name),
                widen: concat!("widen_", $name),
            }
        };
    }
    match format {
        Format::F32 => of!(0, "f32"),
        Format::F16 => of!(0, "f16"),
        Format::Bf16 => of!(0, "bf16"),
        Format::F64 => of!(0, "f64"),
        Format::I16 | Format::U16 => of!(1, "int16"),
        Format::I32 | Format::U32 => of!(1, "int32"),
        Format::I64 | Format::U64 => of!(1, "int64"),
        Format::Tf32 => of!(2, "tf32"),
        _ if format.bits() == 8 => of!(2, "table"),
        _ => of!(2, "packed"),
    }
}

impl Kernels {
    pub(super) fn new(device: &mut dyn Device) -> Result<Kernels, CompareError> {
        let mut kernels = Kernels {
            modules: [None; 3],
            resident: Vec::new(),
            totals: Kept::default(),
            is_clean: false,
            scratch: Kept::default(),
            answer: Answer::default(),
            table: (Kept::default(), None),
        };
        kernels.module(device, 0)?;
        Ok(kernels)
    }

    fn module(&mut self, device: &mut dyn Device, at: usize) -> Result<ModuleId, DeviceError> {
        if let Some(module) = self.modules[at] {
            return Ok(module);
        }
        let (name, text) = SOURCES[at];
        let module = device.load(&Image::ptx(name, text))?;
        self.modules[at] = Some(module);
        Ok(module)
    }

    /// Starts a comparison with all that it finds; returns at once where the device does.
    pub(super) fn compare(
        &mut self,
        device: &mut dyn Device,
        rules: &Rules,
        pair: &Pair,
        worst: usize,
    ) -> Result<(), CompareError> {
        let worst = found_there(worst);
        let Names { source, scan, look, .. } = names(rules.format);
        let module = self.module(device, source)?;
        let totals = self.totals.of(device, TOTALS_BYTES)?;
        let scratch = Scratch::new(pair.blocks(), worst as u64);
        let buffer = self.scratch.of(device, scratch.bytes)?;
        let (answer, found) = self.answer.places(device, report::words(worst) as u64 * 8)?;
        if !self.is_clean {
            device.fill(StreamId::DEFAULT, totals, 0, CHOSEN, 0)?;
        }
        self.is_clean = false;
        let arrays = self.arrays(device, rules, pair)?;
        let groups = self.groups(device, (module, scan), pair.blocks())?;
        let mut arguments = arrays.clone();
        arguments.extend(rule_arguments(rules));
        arguments.extend([Argument::Buffer(totals), Argument::Buffer(buffer)]);
        launch(device, (module, scan), (groups, GROUP), arguments)?;
        let arguments = vec![
            Argument::Buffer(buffer),
            Argument::u64(pair.blocks()),
            Argument::u32(worst as u32),
            Argument::BufferOffset(buffer, scratch.parts),
            Argument::BufferOffset(buffer, scratch.lists),
            Argument::Buffer(totals),
            Argument::BufferOffset(totals, CHOSEN),
            answer,
        ];
        let finish = (self.module(device, 0)?, "compare_finish");
        launch(device, finish, (scratch.groups, FINISHERS), arguments)?;
        if worst > 0 {
            let mut arguments = arrays;
            arguments.extend([
                Argument::u32(u32::from(rules.equal_nan)),
                Argument::u32(worst as u32),
                Argument::BufferOffset(totals, CHOSEN),
                found,
            ]);
            launch(device, (module, look), (2 * worst as u64, LOOKERS), arguments)?;
        }
        Ok(())
    }

    /// The arguments that say where the arrays are and how to read them.
    fn arrays(
        &mut self,
        device: &mut dyn Device,
        rules: &Rules,
        pair: &Pair,
    ) -> Result<Vec<Argument>, CompareError> {
        let mut careful = !Bounds::hold(rules);
        for (buffer, offset) in [pair.reference, pair.candidate] {
            careful |= !(device.address(buffer)? + offset).is_multiple_of(16);
        }
        let [table, layout] = self.layout(device, rules.format)?;
        Ok(vec![
            Argument::BufferOffset(pair.reference.0, pair.reference.1),
            Argument::BufferOffset(pair.candidate.0, pair.candidate.1),
            Argument::u64(pair.elements),
            Argument::u32(u32::from(careful)),
            table,
            layout,
        ])
    }

    /// The arguments that say how to read a format.
    pub(super) fn layout(
        &mut self,
        device: &mut dyn Device,
        format: Format,
    ) -> Result<[Argument; 2], CompareError> {
        let signed = matches!(format, Format::I16 | Format::I32 | Format::I64);
        Ok(match self.table(device, format)? {
            Some(table) => [Argument::Buffer(table), Argument::u32(format.bits())],
            None => [Argument::u64(0), Argument::u32(u32::from(signed))],
        })
    }

    /// The kernel that puts a format's values into `f64`.
    pub(super) fn widener(
        &mut self,
        device: &mut dyn Device,
        format: Format,
    ) -> Result<(ModuleId, &'static str), CompareError> {
        let names = names(format);
        Ok((self.module(device, names.source)?, names.widen))
    }

    /// The table of a format, if it has one.
    fn table(
        &mut self,
        device: &mut dyn Device,
        format: Format,
    ) -> Result<Option<BufferId>, CompareError> {
        let Some(table) = table(format) else { return Ok(None) };
        let bytes = table.as_flattened();
        let buffer = self.table.0.of(device, bytes.len() as u64)?;
        if self.table.1 != Some(format) {
            self.table.1 = None;
            device.write(buffer, 0, bytes)?;
            self.table.1 = Some(format);
        }
        Ok(Some(buffer))
    }

    /// As many groups as the device holds at a time, and never more than blocks.
    fn groups(
        &mut self,
        device: &mut dyn Device,
        (module, symbol): (ModuleId, &'static str),
        blocks: u64,
    ) -> Result<u64, CompareError> {
        let known = self.resident.iter().find(|(name, _)| *name == symbol);
        let resident = if let Some((_, resident)) = known {
            *resident
        } else {
            let each = device.occupancy(module, symbol, GROUP, 0)?.unwrap_or(4).max(1);
            let resident = u64::from(device.facts().multiprocessors.max(1)) * u64::from(each);
            self.resident.push((symbol, resident));
            resident
        };
        Ok(blocks.min(resident))
    }

    /// Waits for the report and adds what it says of a piece that starts at `first`.
    pub(super) fn collect(
        &mut self,
        device: &mut dyn Device,
        rules: &Rules,
        (pair, first): (&Pair, u64),
        worst: usize,
        seen: &mut Seen,
    ) -> Result<(), CompareError> {
        let there = found_there(worst);
        let bytes = self.answer.bytes(device, report::words(there) * 8)?;
        let report = report::decode(&bytes, (first, pair.elements), (there, is_exact(rules)));
        self.is_clean = true;
        seen.counts.merge(&report.counts);
        seen.sums.push(report.sums);
        seen.max_error = seen.max_error.max(report.max_error);
        let found = report.worst.iter().map(|one| (one.index + first, one.words));
        seen.worst.look_at(rules, found);
        if worst > MOST_WORST { self.look_here(device, rules, (pair, first), seen) } else { Ok(()) }
    }

    /// Fetches the blocks that hold the worst elements and looks through them.
    fn look_here(
        &mut self,
        device: &mut dyn Device,
        rules: &Rules,
        (pair, first): (&Pair, u64),
        seen: &mut Seen,
    ) -> Result<(), CompareError> {
        let mut bytes = vec![0; (pair.blocks() * RESULT_BYTES) as usize];
        let scratch = self.scratch.of(device, bytes.len() as u64)?;
        device.read(scratch, 0, &mut bytes)?;
        let largest: Vec<Largest> = bytes.as_chunks().0.iter().map(largest_of).collect();
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for block in seen.worst.choose(&largest) {
            let from = (block * BLOCK) as u64;
            let count = (pair.elements - from).min(BLOCK as u64);
            for ((buffer, offset), out) in
                [(pair.reference, &mut one), (pair.candidate, &mut other)]
            {
                out.resize(storage(rules.format, count) as usize, 0);
                device.read(buffer, offset + storage(rules.format, from), out)?;
            }
            seen.worst.look(rules, (&one, &other), (first + from, count as usize));
        }
        Ok(())
    }
}

/// Where the report arrives: in the host's memory, into which the kernels write it, or on a device
/// without such memory in a buffer.
#[derive(Debug, Default)]
struct Answer {
    mapped: Option<(HostBufferId, u64)>,
    buffer: Kept,
}

impl Answer {
    /// The places of the counts and of the worst elements, for a kernel.
    fn places(
        &mut self,
        device: &mut dyn Device,
        bytes: u64,
    ) -> Result<(Argument, Argument), CompareError> {
        const HEAD: u64 = report::HEAD as u64 * 8;
        if let Some((buffer, room)) = self.mapped
            && room < bytes
        {
            self.mapped = None;
            device.free_host(buffer)?;
        }
        if self.mapped.is_none() {
            match device.allocate_host(bytes, HostKind::Mapped) {
                Ok(buffer) => self.mapped = Some((buffer, bytes)),
                Err(DeviceError::Unsupported { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some((buffer, _)) = self.mapped {
            let address = device.host_address(buffer)?;
            return Ok((Argument::u64(address), Argument::u64(address + HEAD)));
        }
        let buffer = self.buffer.of(device, bytes)?;
        Ok((Argument::Buffer(buffer), Argument::BufferOffset(buffer, HEAD)))
    }

    /// Waits for the report.
    fn bytes<'a>(
        &mut self,
        device: &'a mut dyn Device,
        size: usize,
    ) -> Result<Cow<'a, [u8]>, CompareError> {
        if let Some((buffer, _)) = self.mapped {
            let bytes: &[u8] = device.host_bytes(buffer)?;
            return Ok(Cow::Borrowed(bytes.get(..size).unwrap_or(bytes)));
        }
        let mut bytes = vec![0; size];
        let buffer = self.buffer.of(device, size as u64)?;
        device.read(buffer, 0, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }
}

/// Whether only equal values are allowed.
fn is_exact(rules: &Rules) -> bool {
    rules.tolerance == Tolerance::EXACT
}

/// How many of the worst the device looks for.
fn found_there(worst: usize) -> usize {
    if worst > MOST_WORST { 0 } else { worst }
}

/// Where the scratch buffer has what.
struct Scratch {
    groups: u64,
    parts: u64,
    lists: u64,
    bytes: u64,
}

impl Scratch {
    fn new(blocks: u64, worst: u64) -> Scratch {
        let groups = blocks.div_ceil(u64::from(FINISHERS));
        let parts = (blocks * RESULT_BYTES).next_multiple_of(ENTRY_BYTES);
        let lists = parts + groups * PART_BYTES;
        Scratch { groups, parts, lists, bytes: lists + groups * 2 * worst * ENTRY_BYTES }
    }
}

fn rule_arguments(rules: &Rules) -> [Argument; 11] {
    let (tolerance, bounds) = (&rules.tolerance, Bounds::new(rules));
    [
        Argument::f64(tolerance.atol),
        Argument::f64(tolerance.rtol),
        Argument::f64(tolerance.zero_atol),
        Argument::u64(tolerance.max_ulp),
        Argument::u32(u32::from(rules.equal_nan)),
        Argument::f32(bounds.low_atol),
        Argument::f32(bounds.low_rtol),
        Argument::f32(bounds.high_atol),
        Argument::f32(bounds.high_rtol),
        Argument::f32(bounds.no_zero),
        Argument::u32(u32::from(is_exact(rules))),
    ]
}

fn launch(
    device: &mut dyn Device,
    (module, symbol): (ModuleId, &str),
    (groups, threads): (u64, u32),
    arguments: Vec<Argument>,
) -> Result<(), DeviceError> {
    let grid = [groups as u32, 1, 1];
    let launch = Launch { grid, block: [threads, 1, 1], arguments, ..Launch::new(module, symbol) };
    device.launch(StreamId::DEFAULT, &launch).map(drop)
}
