//! `stamps = { ... }` of a kernel: its stamped build, and what its phases are called.

use super::Modules;
use super::error::{ManifestError, nearest_hint};
use super::module::Module;
use super::reader::Entry;
use crate::spec::{Spec, StampLanes, StampsSpec};

const KEYS: [&str; 5] = ["module", "symbol", "phases", "lanes", "most"];
/// The most phases that a name can be given to.
const MOST_PHASES: usize = 64;
/// The most stamps of a lane.
const MOST_STAMPS: i64 = 1 << 20;

/// Reads the stamps of a kernel whose launches are known.
pub(super) fn read_stamps(
    entry: &Entry<'_>,
    spec: &Spec,
    modules: &Modules,
) -> Result<StampsSpec, ManifestError> {
    let table = entry.table(&KEYS)?;
    let [launch] = &spec.launches[..] else {
        let count = spec.launches.len();
        return Err(entry.error(format!("stamps are of kernels of one launch, this has {count}")));
    };
    let at = table.need("module")?;
    let name = at.text()?;
    let module = match modules.get(name) {
        Some(Ok(Module::Code(module))) => module.clone(),
        Some(Err(error) | Ok(Module::Broken(error))) => return Err(error.clone()),
        Some(Ok(Module::Triton(..))) => {
            return Err(at.error("a Triton source has no stamped build"));
        }
        None => {
            let known: Vec<&str> = modules.keys().map(String::as_str).collect();
            let error = at.error(format!("there is no [module.{name}]"));
            return Err(error.maybe_hint(nearest_hint(name, &known)));
        }
    };
    let phases = table.need("phases")?;
    let names: Vec<String> = phases
        .list()?
        .iter()
        .map(|phase| phase.text().map(str::to_owned))
        .collect::<Result<_, _>>()?;
    if names.is_empty() || names.len() > MOST_PHASES {
        return Err(phases.error(format!("name from 1 to {MOST_PHASES} phases, in their order")));
    }
    let kinds = [StampLanes::Warps, StampLanes::Blocks];
    let lanes = table.get("lanes").map(|lanes| lanes.choice("lane", &["warp", "block"]));
    let symbol = table.get("symbol").map(|symbol| symbol.text().map(str::to_owned)).transpose()?;
    let most = table.get("most").map(|most| (most.integer(), most)).map(|(count, at)| {
        let count = count?;
        let fits = (2..=MOST_STAMPS).contains(&count);
        let wrong = || at.error(format!("a lane makes from 2 to {MOST_STAMPS} stamps"));
        if fits { Ok(count as u32) } else { Err(wrong()) }
    });
    Ok(StampsSpec {
        module,
        symbol: symbol.unwrap_or_else(|| launch.symbol.clone()),
        most: most.transpose()?.unwrap_or(names.len() as u32 + 1),
        phases: names,
        lanes: kinds[lanes.transpose()?.unwrap_or(0)],
    })
}
