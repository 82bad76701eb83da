//! The parts of a run that spreads over machines: which pair of kernel and gate belongs to which.
//!
//! The split depends on nothing but what is asked for, so that every machine makes the same one.

use std::cmp::Reverse;

use assay_record::{Gate, Part, Shard};

use super::CheckOptions;
use super::faults::selects_fault;
use super::select::select;
use crate::fault::Fault;
use crate::kernel::Kernel;
use crate::spec::Spec;

/// Roughly how much work a kernel is at one gate.
pub(super) fn weight_at(spec: &Spec, gate: Gate) -> u64 {
    if gate == Gate::Limits { 1 } else { weight(spec) }
}

/// Roughly how much work it is to run a kernel: the elements of its buffers at all served shapes.
fn weight(spec: &Spec) -> u64 {
    // A launch costs something, whatever its size.
    const LAUNCH: u64 = 4096;
    let elements = |dims: &assay_reference::Dims| -> u64 {
        let sizes = spec.arguments.iter().map(|argument| {
            let axes = argument.shape.iter().map(|size| size.eval(dims).unwrap_or(1).max(1) as u64);
            axes.fold(1, u64::saturating_mul)
        });
        sizes.fold(LAUNCH, u64::saturating_add)
    };
    spec.served().iter().map(elements).fold(0, u64::saturating_add)
}

/// Which of the units belong to a part: the heaviest first, each to the part with least so far.
pub(super) fn share(weights: &[u64], part: Part) -> Vec<bool> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|at| Reverse(weights[*at]));
    let mut loads = vec![0u64; part.of as usize];
    let mut mine = vec![false; weights.len()];
    for at in order {
        let Some(lightest) = (0..loads.len()).min_by_key(|index| loads[*index]) else { break };
        loads[lightest] = loads[lightest].saturating_add(weights[at]);
        mine[at] = lightest + 1 == part.index as usize;
    }
    mine
}

/// The faults that `options` select, of the part that they ask for. The faults of one kernel stay
/// together, since they share its references.
pub fn select_faults<'f>(faults: &'f [Fault], options: &CheckOptions) -> Vec<&'f Fault> {
    let selected: Vec<&Fault> = faults.iter().filter(|f| selects_fault(f, options)).collect();
    let Some(part) = options.part else { return selected };
    let mut kernels: Vec<(&str, u64)> = Vec::new();
    for fault in &selected {
        let more = weight(&fault.spec);
        match kernels.iter_mut().find(|(name, _)| *name == fault.of) {
            Some((_, weight)) => *weight = weight.saturating_add(more),
            None => kernels.push((&fault.of, more)),
        }
    }
    let weights: Vec<u64> = kernels.iter().map(|(_, weight)| *weight).collect();
    let mine: Vec<bool> = share(&weights, part);
    let is_mine = |fault: &&Fault| {
        kernels.iter().zip(&mine).any(|((name, _), mine)| *mine && *name == fault.of)
    };
    selected.into_iter().filter(is_mine).collect()
}

/// What a report of one part says of the whole run; nothing for the report of a whole one.
pub fn shard(kernels: &[&dyn Kernel], faults: &[Fault], options: &CheckOptions) -> Option<Shard> {
    let part = options.part?;
    let whole = CheckOptions { part: None, ..options.clone() };
    let names: Vec<String> =
        select(kernels, &whole).names().into_iter().map(str::to_owned).collect();
    let faults = select_faults(faults, &whole);
    let mut print = Fingerprint::new();
    print.add(&format!("{:?} {:?}", options.gates, options.only));
    for kernel in kernels.iter().filter(|kernel| names.contains(&kernel.spec().name)) {
        print.add_spec(kernel.spec());
    }
    for fault in &faults {
        print.add(&format!("{} {} {} {}", fault.define, fault.of, fault.gate, fault.spec.name));
        print.add(&format!("{:?} {:?}", fault.spec.dims, fault.spec.cases));
    }
    Some(Shard {
        part,
        suite: format!("{:016x}", print.0),
        gates: options.gates.clone(),
        kernels: names,
        faults: faults.iter().map(|fault| fault.spec.name.clone()).collect(),
        manifests: Vec::new(),
        builds: None,
    })
}

/// A hash that every build of this version gives alike (FNV-1a).
struct Fingerprint(u64);

impl Fingerprint {
    fn new() -> Fingerprint {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, text: &str) {
        self.add_bytes(text.as_bytes());
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        // The length first, so that no two lists of texts run together into the same bytes.
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Everything that decides how a kernel is judged.
    fn add_spec(&mut self, spec: &Spec) {
        let Spec { name, dims, cases, arguments, formula, rule, arithmetic, .. } = spec;
        self.add(name);
        self.add(&format!("{dims:?} {cases:?} {arguments:?} {rule:?} {arithmetic:?}"));
        self.add(&format!("{formula:?} {:?} {:?}", spec.accumulator, spec.orders));
        self.add(&format!("{:?} {:?} {:?}", spec.in_place, spec.replaces, spec.known));
        self.add(&format!("{:?} {:?}", spec.chips, spec.control_chips));
        for launch in &spec.launches {
            let sizes = (&launch.grid, &launch.block, &launch.cluster, &launch.shared);
            self.add(&format!("{} {sizes:?} {:?}", launch.symbol, launch.arguments));
            if launch.cooperative {
                self.add("cooperative");
            }
        }
        if let Some(module) = &spec.module {
            self.add_bytes(&module.bytes);
            self.add(&module.compiled.fingerprint());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_belongs_to_exactly_one_part_and_the_parts_are_even() {
        let weights: Vec<u64> = (0..100).map(|at| (at * 37) % 101 + 1).collect();
        let total: u64 = weights.iter().sum();
        for of in 1..=7 {
            let parts: Vec<Vec<bool>> =
                (1..=of).map(|index| share(&weights, Part { index, of })).collect();
            for at in 0..weights.len() {
                assert_eq!(parts.iter().filter(|part| part[at]).count(), 1);
            }
            for part in parts {
                let load: u64 =
                    weights.iter().zip(&part).map(|(w, mine)| w * u64::from(*mine)).sum();
                assert!(load.abs_diff(total / u64::from(of)) <= 101, "{load} of {total}");
            }
        }
    }

    #[test]
    fn more_parts_than_units_leave_some_empty() {
        let part = |index| share(&[5], Part { index, of: 3 });
        assert_eq!([part(1), part(2), part(3)], [vec![true], vec![false], vec![false]]);
    }

    #[test]
    fn texts_that_run_together_have_different_fingerprints() {
        let print = |texts: &[&str]| {
            let mut print = Fingerprint::new();
            for text in texts {
                print.add(text);
            }
            print.0
        };
        assert_ne!(print(&["ab", "c"]), print(&["a", "bc"]));
        assert_eq!(print(&["ab", "c"]), print(&["ab", "c"]));
    }
}
