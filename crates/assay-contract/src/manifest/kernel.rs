//! `[kernel.*]` tables: one contract each.

use std::collections::BTreeMap;

use assay_limits::Chip;
use assay_record::Gate;
use assay_reference::rule::Rule;
use assay_reference::{Dims, Signature, Tensor};

use super::Modules;
use super::arguments::{read_arguments, read_launches};
use super::check::check_spec;
use super::contract::{read_arithmetic, read_contract};
use super::error::{ManifestError, nearest_hint};
use super::formula::read_formula;
use super::module::Module;
use super::reader::{Entry, Table, check_name};
use super::stamps::read_stamps;
use crate::limits::{self, chips_named};
use crate::spec::{ArgumentSpec, DimSpec, Role, RuleSpec, SourcePlace, Spec};

const KEYS: [&str; 26] = [
    "module",
    "family",
    "formula",
    "computed_as",
    "rule",
    "choice",
    "dims",
    "cases",
    "args",
    "launches",
    "depth",
    "accumulator",
    "orders",
    "arithmetic",
    "in_place",
    "replaces",
    "twin",
    "nan",
    "hides_sums",
    "known",
    "control",
    "backends",
    "budget",
    "chips",
    "stamps",
    "what",
];
const DIM_KEYS: [&str; 5] = ["served", "tile", "step", "least", "most"];

/// What one entry registers.
#[derive(Default)]
pub(super) struct Kernels {
    /// One kernel, or of a Triton source one a target.
    pub(super) specs: Vec<Spec>,
    /// What is wrong with the targets that are missing.
    pub(super) errors: Vec<ManifestError>,
}

/// Reads the kernel called `name`.
pub(super) fn read_kernel(
    name: &str,
    place: &SourcePlace,
    entry: &Entry<'_>,
    modules: &Modules,
) -> Result<Kernels, ManifestError> {
    check_name(name).map_err(|why| entry.error(why))?;
    let table = entry.table(&KEYS)?;
    let mut spec = Spec::new(name, Signature::default());
    spec.source = place.clone();
    spec.dims = read_dims(&table)?;
    spec.cases = table.get("cases").map(|cases| read_cases(&cases, &spec)).transpose()?;
    spec.arguments = read_arguments(&table)?;
    let module = find_module(&table, modules)?;
    let by_triton = matches!(module, Ok(Module::Triton(..) | Module::Broken(_)));
    spec.launches = read_launches(&table, by_triton)?;
    spec.rule = table.get("rule").map(|rule| read_rule(&rule)).transpose()?;
    spec.signature = signature(&spec);
    read_contract(&table, &mut spec)?;
    check_spec(&table, &spec)?;
    check_rule(&table, &spec)?;
    read_formula(&table, &mut spec)?;
    read_arithmetic(&table, &mut spec)?;
    spec.stamps =
        table.get("stamps").map(|entry| read_stamps(&entry, &spec, modules)).transpose()?;
    let chips = table.get("chips").map(|chips| read_chips(&chips)).transpose()?;
    match module.clone()? {
        Module::Broken(error) => Err(error),
        Module::Code(module) => {
            spec.chips = chips.unwrap_or_else(|| module.chips.clone());
            spec.module = Some(module);
            Ok(Kernels { specs: vec![spec], errors: Vec::new() })
        }
        Module::Triton(module, served) => {
            let specs = module.kernels(&spec, &chips.unwrap_or(served), &table)?;
            Ok(Kernels { specs, errors: module.errors.clone() })
        }
    }
}

/// The module that the entry names.
fn find_module<'m>(
    table: &Table<'_>,
    modules: &'m Modules,
) -> Result<&'m Result<Module, ManifestError>, ManifestError> {
    let entry = table.need("module")?;
    let name = entry.text()?;
    modules.get(name).ok_or_else(|| {
        let known: Vec<&str> = modules.keys().map(String::as_str).collect();
        let error = entry.error(format!("there is no [module.{name}]"));
        error.maybe_hint(nearest_hint(name, &known))
    })
}

fn read_dims(table: &Table<'_>) -> Result<BTreeMap<String, DimSpec>, ManifestError> {
    let mut dims = BTreeMap::new();
    for (name, span, entry) in table.need("dims")?.any_table()?.named() {
        check_name(name).map_err(|why| entry.source.error(&span, why))?;
        dims.insert(name.to_owned(), read_dim(&entry)?);
    }
    Ok(dims)
}

fn read_dim(entry: &Entry<'_>) -> Result<DimSpec, ManifestError> {
    let table = entry.table(&DIM_KEYS)?;
    let positive = |key: &str| table.get(key).map(|entry| positive(&entry)).transpose();
    let step = positive("step")?.unwrap_or(1);
    let mut dim = DimSpec {
        served: Vec::new(),
        tile: positive("tile")?,
        step,
        least: positive("least")?.unwrap_or(step),
        most: positive("most")?,
    };
    dim.served = read_served(&table.need("served")?, &dim)?;
    for (key, size) in [("tile", dim.tile), ("least", Some(dim.least)), ("most", dim.most)] {
        if let (Some(at), Some(size)) = (table.get(key), size)
            && size % dim.step != 0
        {
            return Err(at.error(format!("{key} {size} is no multiple of step {}", dim.step)));
        }
    }
    Ok(dim)
}

/// The sizes that a dim is served at.
pub(super) fn read_served(entry: &Entry<'_>, dim: &DimSpec) -> Result<Vec<i64>, ManifestError> {
    let entries = entry.list()?;
    if entries.is_empty() {
        return Err(entry.error(format!("`{}` is empty", entry.path)));
    }
    let sizes: Vec<i64> = entries.iter().map(Entry::integer).collect::<Result<_, _>>()?;
    for (size, at) in sizes.iter().zip(&entries) {
        check_size(dim, *size, at)?;
    }
    Ok(sizes)
}

fn positive(entry: &Entry<'_>) -> Result<i64, ManifestError> {
    let value = entry.integer()?;
    if value < 1 {
        return Err(entry.error(format!("`{}` must be at least 1, found {value}", entry.path)));
    }
    Ok(value)
}

fn check_size(dim: &DimSpec, size: i64, at: &Entry<'_>) -> Result<(), ManifestError> {
    let DimSpec { least, most, step, .. } = dim;
    if size < 1 {
        return Err(at.error(format!("a size must be at least 1, found {size}")));
    }
    if size < *least {
        return Err(at.error(format!("served size {size} is below the least valid size {least}")));
    }
    if let Some(most) = most.filter(|most| size > *most) {
        return Err(at.error(format!("served size {size} is over the largest valid size {most}")));
    }
    if !dim.allows(size) {
        return Err(at.error(format!("served size {size} is no multiple of step {step}")));
    }
    Ok(())
}

/// The shapes that a kernel is called at, where only some combinations are.
pub(super) fn read_cases(entry: &Entry<'_>, spec: &Spec) -> Result<Vec<Dims>, ManifestError> {
    let names: Vec<&str> = spec.dims.keys().map(String::as_str).collect();
    let mut cases = Vec::new();
    for entry in entry.list()? {
        let table = entry.table(&names)?;
        let mut dims = Dims::new();
        for (name, dim) in &spec.dims {
            let size = table.need(name)?;
            check_size(dim, size.integer()?, &size)?;
            dims.insert(name.clone(), size.integer()?);
        }
        cases.push(dims);
    }
    if cases.is_empty() {
        return Err(entry.error("`cases` is empty").hint("leave it out to serve all sizes"));
    }
    Ok(cases)
}

fn read_rule(entry: &Entry<'_>) -> Result<RuleSpec, ManifestError> {
    named_rule(entry, "name", &assay_reference::rule::NAMES)
}

/// A rule of one of the names `rules`, given under `key`, with its parameters.
pub(super) fn named_rule(
    entry: &Entry<'_>,
    name_key: &str,
    rules: &[&str],
) -> Result<RuleSpec, ManifestError> {
    let table = entry.any_table()?;
    let at = table.need(name_key)?.choice("rule", rules)?;
    let mut parameters = BTreeMap::new();
    for (key, _, value) in table.named() {
        if key != name_key {
            let text = value.text().map(str::to_owned);
            let text = text.or_else(|_| value.number().map(|number| number.to_string()))?;
            parameters.insert(key.to_owned(), text);
        }
    }
    Ok(RuleSpec { name: rules[at].to_owned(), parameters })
}

fn check_rule(table: &Table<'_>, spec: &Spec) -> Result<(), ManifestError> {
    let (Some(rule), Some(entry)) = (&spec.rule, table.get("rule")) else { return Ok(()) };
    match Rule::named(&rule.name, &rule.parameters, &spec.signature) {
        Ok(_) => Ok(()),
        Err(error) => Err(entry.error(error.to_string())),
    }
}

/// The tensors and scalars as the formula sees them.
fn signature(spec: &Spec) -> Signature {
    let tensors = |roles: &[Role]| -> Vec<Tensor> {
        let chosen = spec.arguments.iter().filter(|argument| roles.contains(&argument.role));
        chosen.map(tensor).collect()
    };
    let scalars = spec.arguments.iter().filter(|argument| argument.role == Role::Scalar);
    Signature {
        dims: spec.dims.keys().cloned().collect(),
        inputs: tensors(&[Role::In, Role::InOut]),
        outputs: tensors(&[Role::Out]),
        scalars: scalars.filter_map(|s| Some((s.name.clone(), s.value?))).collect(),
    }
}

fn tensor(argument: &ArgumentSpec) -> Tensor {
    let ArgumentSpec { name, format, shape, .. } = argument;
    Tensor { name: name.clone(), format: *format, shape: shape.clone() }
}

/// Chips by their names, or all of a maker by its word.
pub(super) fn read_chips(entry: &Entry<'_>) -> Result<Vec<String>, ManifestError> {
    let mut chips: Vec<String> = Vec::new();
    let words = entry.list()?;
    if words.is_empty() {
        let error = entry.error(format!("`{}` is empty", entry.path));
        return Err(error.hint("leave it out to serve every chip that the kernel is compiled for"));
    }
    for word in words {
        let Some(named) = chips_named(word.text()?) else {
            let known: Vec<&str> = limits::chips().all().iter().map(Chip::name).collect();
            let makers = ["cuda", "hip", "metal"];
            let error = word.error(format!("there is no chip `{}`", word.text()?));
            return Err(
                error.maybe_hint(nearest_hint(word.text()?, &[&known[..], &makers].concat()))
            );
        };
        let new = named.into_iter().filter(|name| !chips.iter().any(|chip| chip == name));
        let new: Vec<String> = new.map(str::to_owned).collect();
        chips.extend(new);
    }
    Ok(chips)
}

/// The gate that a word names.
pub(super) fn gate(entry: &Entry<'_>) -> Result<Gate, ManifestError> {
    let gates = [Gate::NonFinite, Gate::Repeat, Gate::Shapes, Gate::Fp32Sums, Gate::Limits];
    let words = gates.map(|gate| gate.to_string());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(gates[entry.choice("gate", &words)?])
}
