//! What gate 5 knows beside its verdicts: whose compiles it used, and how many blocks are resident.

use std::collections::BTreeSet;

use assay_record::{ChipFit, ChipOccupancy, Gate, KernelResult, Report};

use super::tables::{table, text};

fn own(report: &Report) -> impl Iterator<Item = (&KernelResult, &[ChipFit])> {
    let own = report.kernels.iter().filter(|kernel| kernel.control_for.is_none());
    let chips =
        own.filter_map(|kernel| Some((kernel, kernel.gate(Gate::Limits)?.chips.as_slice())));
    chips.filter(|(_, chips)| !chips.is_empty())
}

/// One line: how many kernels were checked against how many chips, by whose compiles.
pub(super) fn used(report: &Report) -> String {
    let kernels = own(report).count();
    if kernels == 0 {
        return String::new();
    }
    let chips: BTreeSet<&str> =
        own(report).flat_map(|(_, chips)| chips).map(|fit| fit.chip.as_str()).collect();
    let mut by: Vec<&str> = Vec::new();
    for name in own(report).flat_map(|(_, chips)| chips).flat_map(|fit| &fit.compiled_by) {
        if !by.contains(&name.as_str()) {
            by.push(name);
        }
    }
    let by = if by.is_empty() { "nobody".to_owned() } else { by.join(", ") };
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let (kernels, chips) = (counted(kernels, "kernel"), counted(chips.len(), "chip"));
    format!("Limits: {kernels} on {chips}, as compiled by {by}.")
}

/// One line per kernel and resident count: the chips that have it, and what binds it there.
pub(super) fn occupancies(report: &Report) -> String {
    let header = ["kernel", "resident", "bound by", "chips"].map(str::to_owned);
    let mut table = table(&header);
    let mut rows = 0;
    for (kernel, chips) in own(report) {
        for (at, (resident, binding, chips)) in grouped(chips).into_iter().enumerate() {
            let name = if at == 0 { kernel.kernel.clone() } else { String::new() };
            table.add_row([name, resident, binding, chips.join(" ")]);
            rows += 1;
        }
    }
    if rows == 0 { String::new() } else { text(&table) }
}

/// The chips of equal occupancy together.
fn grouped(chips: &[ChipFit]) -> Vec<(String, String, Vec<&str>)> {
    let mut groups: Vec<(String, String, Vec<&str>)> = Vec::new();
    for fit in chips {
        let Some(occupancy) = &fit.occupancy else { continue };
        let (resident, binding) = (resident(occupancy), occupancy.binding.join(", "));
        match groups.iter_mut().find(|(r, b, _)| *r == resident && *b == binding) {
            Some((_, _, chips)) => chips.push(&fit.chip),
            None => groups.push((resident, binding, vec![&fit.chip])),
        }
    }
    groups
}

fn resident(occupancy: &ChipOccupancy) -> String {
    let ChipOccupancy { blocks, warps, warps_max, block_threads, place, .. } = occupancy;
    format!("{blocks} x {block_threads} a {place}, {warps} of {warps_max} warps")
}
