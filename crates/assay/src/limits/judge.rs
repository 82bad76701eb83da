//! Every kernel against every chip, at the launch that was asked for or that the kernel names.

use std::path::PathBuf;

use assay_limits::{Chip, ChipError, Chips, Fit, Launch, Verdict, fit_cuda, fit_hip};
use serde::Serialize;

use super::kernels::{Facts, Kernel};
use crate::cli::LimitsArguments;
use crate::failure::Failure;

/// Threads of a block where neither the command nor the kernel says.
const DEFAULT_THREADS: u64 = 256;
/// What clang writes for a kernel without a bound.
const HIP_UNBOUNDED: u32 = 1024;

/// The launch that was asked for.
pub(crate) struct Asked {
    block: Option<[u64; 3]>,
    dynamic_shared_bytes: u64,
    /// The chips were named, so that one without code leaves a question open.
    names_chips: bool,
}

impl Asked {
    pub(crate) fn of(arguments: &LimitsArguments) -> Asked {
        Asked {
            block: arguments.block.map(|block| block.0),
            dynamic_shared_bytes: arguments.shared,
            names_chips: !arguments.chip.is_empty(),
        }
    }
}

/// Where the block of a launch comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BlockFrom {
    /// `--block`.
    Asked,
    /// The only block that the kernel runs with.
    Required,
    /// The largest block that the kernel promises to run with.
    Bound,
    /// Nobody says: 256 threads.
    Default,
}

/// One kernel on one chip.
pub(crate) struct Cell<'a> {
    /// The architecture of the image that the chip runs.
    pub(crate) architecture: &'a str,
    pub(crate) facts: Facts<'a>,
    pub(crate) launch: Launch,
    pub(crate) block_from: BlockFrom,
    pub(crate) fit: Fit,
}

/// All kernels on all chips.
pub(crate) struct Judgement<'a> {
    pub(crate) kernels: &'a [Kernel<'a>],
    /// The chips that were named, or those that any kernel has code for.
    pub(crate) chips: Vec<&'a Chip>,
    /// For each kernel one cell a chip; `None` where the kernel has no code for it.
    pub(crate) rows: Vec<Vec<Option<Cell<'a>>>>,
    names_chips: bool,
}

impl<'a> Judgement<'a> {
    pub(crate) fn new(
        kernels: &'a [Kernel<'a>],
        chips: &'a [Chip],
        asked: &Asked,
    ) -> Judgement<'a> {
        let runs = |chip: &&Chip| kernels.iter().any(|one| one.image_for(chip).is_some());
        let chips: Vec<&Chip> =
            chips.iter().filter(|chip| asked.names_chips || runs(chip)).collect();
        let row = |kernel: &'a Kernel<'a>| {
            chips.iter().map(|chip| cell(kernel, chip, asked)).collect::<Vec<_>>()
        };
        let rows = kernels.iter().map(row).collect();
        Judgement { kernels, chips, rows, names_chips: asked.names_chips }
    }

    /// True if every kernel fits every chip; a named chip without code is not known to be fitted.
    pub(crate) fn holds(&self) -> bool {
        let mut cells = self.rows.iter().flatten();
        cells.all(|cell| match cell {
            Some(cell) => cell.fit.verdict() == Verdict::Fits,
            None => !self.names_chips,
        }) && !self.chips.is_empty()
    }
}

/// The chips that come with Assay and those of the files.
fn known(files: &[PathBuf]) -> Result<Chips, Failure> {
    let mut all = Chips::built_in();
    for path in files {
        let name = path.display().to_string();
        let unread = |error| Failure::request(format!("cannot read {name}")).caused_by(&error);
        let text = std::fs::read_to_string(path).map_err(unread)?;
        let wrong = |error: ChipError| Failure::request(error.to_string());
        all.add(Chips::parse(&text, &name).map_err(wrong)?).map_err(wrong)?;
    }
    Ok(all)
}

/// The chips that were asked for, or all.
pub(crate) fn chips(arguments: &LimitsArguments) -> Result<Vec<Chip>, Failure> {
    let all = known(&arguments.chips)?;
    if arguments.chip.is_empty() {
        return Ok(all.all().to_vec());
    }
    let names = || {
        let names: Vec<&str> = all.all().iter().map(Chip::name).collect();
        format!("known chips: {}", names.join(", "))
    };
    let named = |name: &String| {
        let found = all.chip(name).cloned();
        found.ok_or_else(|| Failure::request(format!("unknown chip `{name}`")).hint(names()))
    };
    arguments.chip.iter().map(named).collect()
}

fn cell<'a>(kernel: &Kernel<'a>, chip: &Chip, asked: &Asked) -> Option<Cell<'a>> {
    let (architecture, facts) = kernel.image_for(chip)?;
    let (block, block_from) = block(facts, asked);
    let launch = Launch {
        grid: cluster(facts),
        block,
        cluster: [1; 3],
        dynamic_shared_bytes: asked.dynamic_shared_bytes,
    };
    let fit = match (chip, facts) {
        (Chip::Cuda(chip), Facts::Cuda(kernel)) => fit_cuda(chip, kernel, &launch),
        (Chip::Hip(chip), Facts::Hip(kernel)) => fit_hip(chip, kernel, &launch),
        _ => return None,
    };
    Some(Cell { architecture, facts, launch, block_from, fit })
}

/// The smallest grid that a kernel runs with: one cluster.
fn cluster(facts: Facts<'_>) -> [u64; 3] {
    match facts {
        Facts::Cuda(kernel) => kernel.cluster.map_or([1; 3], |cluster| cluster.map(u64::from)),
        Facts::Hip(_) => [1; 3],
    }
}

fn block(facts: Facts<'_>, asked: &Asked) -> ([u64; 3], BlockFrom) {
    let (required, bound) = match facts {
        Facts::Cuda(kernel) => (kernel.required_threads, kernel.max_threads),
        Facts::Hip(kernel) => {
            let bound = (kernel.max_workgroup < HIP_UNBOUNDED).then_some(kernel.max_workgroup);
            (kernel.required_workgroup, bound.map(|threads| [threads, 1, 1]))
        }
    };
    let wide = |block: [u32; 3]| block.map(u64::from);
    match (asked.block, required, bound) {
        (Some(block), ..) => (block, BlockFrom::Asked),
        (None, Some(block), _) => (wide(block), BlockFrom::Required),
        (None, None, Some(block)) => (wide(block), BlockFrom::Bound),
        (None, None, None) => ([DEFAULT_THREADS, 1, 1], BlockFrom::Default),
    }
}
