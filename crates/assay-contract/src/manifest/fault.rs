//! `[fault.*]` tables: kernels of the same manifest, broken on purpose.

use std::ops::Range;

use assay_record::{Gate, Outcome};

use super::ManifestKernel;
use super::check::check_spec;
use super::error::{ManifestError, nearest_hint, quoted};
use super::kernel::{gate, read_cases, read_served};
use super::reader::{Entry, Table, check_name};
use crate::fault::{CATALOGUE, Fault, FaultKind, OTHER};
use crate::kernel::Kernel;
use crate::run::gate_without_cases;
use crate::spec::{SourcePlace, Spec};

const KEYS: [&str; 8] = ["of", "kind", "define", "gate", "what", "close", "dims", "cases"];
const DIM_KEYS: [&str; 1] = ["served"];

/// What a fault is read against.
pub(super) struct Around<'a, 't> {
    /// The manifest's own table.
    pub(super) root: &'a Table<'t>,
    /// The kernels that could be read.
    pub(super) kernels: &'a [ManifestKernel],
}

/// Reads the fault called `name`, one for each kernel that it is `of`. An entry of a kernel that
/// has an error of its own says nothing more.
pub(super) fn read_fault(
    (name, span): (&str, &Range<usize>),
    entry: &Entry<'_>,
    around: &Around<'_, '_>,
) -> Result<Vec<Fault>, ManifestError> {
    check_name(name).map_err(|why| entry.source.error(span, why))?;
    let registered = around.root.get("kernel").map(|kernels| kernels.any_table()).transpose()?;
    if registered.is_some_and(|kernels| kernels.get(name).is_some()) {
        let error = entry.source.error(span, format!("a kernel is called `{name}` already"));
        return Err(error.hint("a fault needs a name of its own"));
    }
    let table = entry.table(&KEYS)?;
    let of = table.need("of")?;
    let kernels = if of.is_text() { vec![of] } else { of.list()? };
    let one_of_many = kernels.len() > 1 || !table.need("of")?.is_text();
    let mut faults = Vec::new();
    for of in kernels {
        let Some((kernel, kernel_table)) = find_kernel(&of, around)? else { continue };
        let full = if one_of_many { format!("{name}@{}", kernel.name) } else { name.to_owned() };
        let place = entry.source.place(span.start);
        faults.push(read_one((&full, place), &table, (kernel, &kernel_table))?);
    }
    Ok(faults)
}

/// The kernel that `of` names; nothing if it is registered and wrong.
fn find_kernel<'a, 't>(
    of: &Entry<'t>,
    around: &Around<'a, 't>,
) -> Result<Option<(&'a Spec, Table<'t>)>, ManifestError> {
    let name = of.text()?;
    let registered = around.root.need("kernel")?.any_table()?;
    let Some(entry) = registered.get(name) else {
        let known: Vec<&str> = registered.named().into_iter().map(|(name, ..)| name).collect();
        let error = of.error(format!("there is no [kernel.{name}] in this manifest"));
        return Err(error.maybe_hint(nearest_hint(name, &known)));
    };
    let table = entry.any_table()?;
    let mut specs = around.kernels.iter().map(Kernel::spec);
    let spec = specs.clone().find(|spec| spec.name == name);
    if specs.any(|spec| spec.name.split_once('@').is_some_and(|(kernel, _)| kernel == name)) {
        let error = of.error(format!("`{name}` is compiled by Triton, which builds no faults yet"));
        return Err(error.hint("register the broken kernel as a `control` of the manifest"));
    }
    if spec.is_some_and(Spec::is_control) {
        return Err(of.error(format!("`{name}` is a planted control, broken already")));
    }
    Ok(spec.map(|spec| (spec, table)))
}

fn read_one(
    (name, place): (&str, SourcePlace),
    table: &Table<'_>,
    (kernel, kernel_table): (&Spec, &Table<'_>),
) -> Result<Fault, ManifestError> {
    let kind = read_kind(table)?;
    let close = table.get("close").map(|close| close.text().map(str::to_owned)).transpose()?;
    Ok(Fault {
        of: kernel.name.clone(),
        kind,
        define: read_define(table, kind)?,
        gate: read_gate(table, kernel)?,
        what: table.need("what")?.text()?.to_owned(),
        close,
        spec: read_spec((name, place), table, (kernel, kernel_table))?,
    })
}

fn read_kind(table: &Table<'_>) -> Result<&'static FaultKind, ManifestError> {
    let names = CATALOGUE.map(|kind| kind.name);
    Ok(&CATALOGUE[table.need("kind")?.choice("kind of fault", &names)?])
}

fn read_define(table: &Table<'_>, kind: &FaultKind) -> Result<String, ManifestError> {
    match table.get("define") {
        Some(define) => define.name().map(str::to_owned),
        None if kind.name == OTHER => {
            Err(table.need("define").err().unwrap_or_else(|| table.entry.error("no define")))
        }
        None => Ok(kind.name.replace('-', "_")),
    }
}

/// The gate that must catch the fault: one that judges the kernel and that the kernel passes.
fn read_gate(table: &Table<'_>, kernel: &Spec) -> Result<Gate, ManifestError> {
    let entry = table.need("gate")?;
    let gate = gate(&entry)?;
    let of = &kernel.name;
    if let Some(known) = kernel.known_for(gate) {
        let message = format!("`{of}` itself is known to fail gate {gate}: {}", known.what);
        return Err(entry.error(message).hint("name a gate that the correct kernel passes"));
    }
    if gate == Gate::Limits {
        let message = "gate limits judges a kernel by its records, and a broken build has none";
        return Err(entry.error(message).hint("name one of gates 1 to 4"));
    }
    // The other gates ask something of every kernel, and finding that out takes their fixtures.
    if gate == Gate::Fp32Sums {
        let result = gate_without_cases(gate, kernel);
        if result.outcome == Outcome::NotApplicable {
            let message = format!("gate {gate} asks nothing of `{of}`: {}", result.reason);
            return Err(entry.error(message).hint("name a gate that judges the kernel"));
        }
    }
    Ok(gate)
}

/// The kernel's contract under the fault's name, at the fault's own shapes where it states some.
fn read_spec(
    (name, place): (&str, SourcePlace),
    table: &Table<'_>,
    (kernel, kernel_table): (&Spec, &Table<'_>),
) -> Result<Spec, ManifestError> {
    let mut spec = kernel.clone();
    name.clone_into(&mut spec.name);
    spec.source = place;
    spec.drawn_as = Some(kernel.name.clone());
    let entries = [table.get("dims"), table.get("cases")].into_iter().flatten();
    if let Some(dims) = table.get("dims") {
        read_dims(&dims, &mut spec)?;
    }
    if let Some(cases) = table.get("cases") {
        spec.cases = Some(read_cases(&cases, &spec)?);
    }
    for entry in entries {
        check_spec(kernel_table, &spec).map_err(|error| entry.error(error.message))?;
    }
    Ok(spec)
}

fn read_dims(entry: &Entry<'_>, spec: &mut Spec) -> Result<(), ManifestError> {
    if spec.cases.is_some() {
        let error = entry.error("the kernel lists its shapes as `cases`");
        return Err(error.hint("give the fault `cases` too"));
    }
    for (name, span, entry) in entry.any_table()?.named() {
        let names: Vec<String> = spec.dims.keys().cloned().collect();
        let Some(dim) = spec.dims.get_mut(name) else {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let error = entry.source.error(&span, format!("the kernel has no dim `{name}`"));
            return Err(error.hint(format!("its dims are {}", quoted(&names))));
        };
        let table = entry.table(&DIM_KEYS).map_err(|error| {
            error.hint(
                "only `served` can be replaced; tile, step, least and most are the kernel's own",
            )
        })?;
        dim.served = read_served(&table.need("served")?, dim)?;
    }
    Ok(())
}
