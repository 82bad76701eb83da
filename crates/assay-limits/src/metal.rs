//! The rules of Metal: a threadgroup against what is recorded of its pipeline on a chip.

use crate::{Fit, Launch, MaxThreads, MetalChip, MetalRecord, Rule};

/// Checks a launch of a pipeline, as recorded for this chip, against the chip. No occupancy: Apple
/// does not say how threadgroups share a core.
pub fn fit_metal(chip: &MetalChip, record: &MetalRecord, launch: &Launch) -> Fit {
    let mut fit = Fit::default();
    if launch.grid.contains(&0) {
        fit.problem(Rule::Empty, 0, 1, false);
    }
    fit.axes([Rule::BlockX, Rule::BlockY, Rule::BlockZ], launch.block, &chip.block);
    fit.at_most(Rule::BlockThreads, launch.threads(), &chip.threads_per_threadgroup);
    if record.threadgroup_bytes.is_none() {
        fit.unknown.push(format!(
            "the threadgroup memory that `{}` declares is not recorded: write threadgroup_bytes",
            record.pipeline
        ));
    }
    let fixed = record.threadgroup_bytes.unwrap_or(0);
    let bytes = fixed.saturating_add(launch.dynamic_shared_bytes);
    fit.at_most(Rule::ThreadgroupBytes, bytes, &chip.threadgroup_bytes);
    let alignment = &chip.threadgroup_alignment;
    if !launch.dynamic_shared_bytes.is_multiple_of(alignment.value) {
        let asked = launch.dynamic_shared_bytes;
        fit.problem(Rule::ThreadgroupAlignment, asked, alignment.value, alignment.unconfirmed);
    }
    if let Some(width) = record.execution_width
        && u64::from(width) != chip.execution_width.value
    {
        fit.problem(Rule::ExecutionWidth, width.into(), chip.execution_width.value, false);
    }
    threads(&mut fit, chip, record, launch);
    fit
}

/// A pipeline's limit falls as its registers rise, and only a compile says how far.
fn threads(fit: &mut Fit, chip: &MetalChip, record: &MetalRecord, launch: &Launch) {
    let threads = launch.threads();
    let mut at_most = |rule, most: u32| {
        if threads > u64::from(most) {
            fit.problem(rule, threads, most.into(), false);
        }
    };
    match (record.max_threads, &chip.tensor_threads) {
        (MaxThreads::SizedToPipeline, _) => {}
        (MaxThreads::Compiled(most), _) => at_most(Rule::PipelineThreads, most),
        (MaxThreads::Reserved(most), _) => at_most(Rule::ReservedThreads, most),
        (MaxThreads::Unknown, Some(most)) if record.tensor_operations => {
            fit.at_most(Rule::TensorThreads, threads, most);
        }
        (MaxThreads::Unknown, _) => fit.unknown.push(format!(
            "no compile of `{}` for {} is recorded, and nothing else says how many threads its \
             pipeline runs",
            record.pipeline, chip.name
        )),
    }
}
