//! A kernel's arguments and launches.

use assay_num::Format;
use assay_reference::{Extent, Limits};

use super::error::ManifestError;
use super::reader::{Entry, Table};
use crate::spec::{ArgumentSpec, LaunchSpec, Role};

const ARGUMENT_KEYS: [&str; 11] = [
    "name", "role", "type", "shape", "strides", "align", "value", "zeroed", "range", "distinct",
    "exact",
];
/// Keys that say something of an input's elements.
const LIMIT_KEYS: [&str; 3] = ["range", "distinct", "exact"];
const ROLES: [(&str, Role); 6] = [
    ("in", Role::In),
    ("out", Role::Out),
    ("inout", Role::InOut),
    ("scratch", Role::Scratch),
    ("scalar", Role::Scalar),
    ("dim", Role::Dim),
];
const LAUNCH_KEYS: [&str; 7] =
    ["symbol", "grid", "block", "cluster", "cooperative", "shared", "args"];

/// What a caller of `cudaMalloc`ed memory or of a framework's tensors may rely on.
const DEFAULT_ALIGN_BYTES: u64 = 16;
/// The alignment every buffer starts from; promises beyond it cannot be kept.
pub(crate) const BASE_ALIGN_BYTES: u64 = 256;

/// Reads `args`, refusing two of one name.
pub(super) fn read_arguments(table: &Table<'_>) -> Result<Vec<ArgumentSpec>, ManifestError> {
    let mut arguments: Vec<ArgumentSpec> = Vec::new();
    for entry in table.need("args")?.list()? {
        let argument = read_argument(&entry)?;
        if arguments.iter().any(|other| other.name == argument.name) {
            return Err(entry.error(format!("two arguments are called `{}`", argument.name)));
        }
        arguments.push(argument);
    }
    Ok(arguments)
}

fn read_argument(entry: &Entry<'_>) -> Result<ArgumentSpec, ManifestError> {
    let table = entry.table(&ARGUMENT_KEYS)?;
    let words = ROLES.map(|(word, _)| word);
    let role = ROLES[table.need("role")?.choice("role", &words)?].1;
    let mut argument = ArgumentSpec {
        name: table.need("name")?.name()?.to_owned(),
        role,
        format: table.need("type")?.format()?,
        shape: Vec::new(),
        strides: None,
        align: DEFAULT_ALIGN_BYTES,
        value: None,
        extent: None,
        zeroed: false,
        limits: Limits::default(),
    };
    if role.is_buffer() {
        read_buffer(&table, &mut argument)?;
    } else {
        read_value(&table, &mut argument)?;
    }
    Ok(argument)
}

fn read_buffer(table: &Table<'_>, argument: &mut ArgumentSpec) -> Result<(), ManifestError> {
    refuse(table, "value", "only scalars and dims have a value")?;
    let shape = table.need("shape")?;
    argument.shape = extents(&shape)?;
    if let Some(strides) = table.get("strides") {
        argument.strides = Some(read_strides(&strides, argument)?);
    }
    if let Some(align) = table.get("align") {
        argument.align = read_align(&align, argument.format)?;
    }
    argument.limits = read_limits(table, argument)?;
    if let Some(zeroed) = table.get("zeroed") {
        argument.zeroed = zeroed.flag()?;
        if argument.zeroed && !matches!(argument.role, Role::Out | Role::Scratch) {
            return Err(zeroed.error("only outputs and scratch can be cleared before a run"));
        }
    }
    Ok(())
}

fn read_limits(table: &Table<'_>, argument: &ArgumentSpec) -> Result<Limits, ManifestError> {
    if !matches!(argument.role, Role::In | Role::InOut) {
        for key in LIMIT_KEYS {
            refuse(table, key, "only inputs have it")?;
        }
    }
    let mut limits = Limits::default();
    if let Some(range) = table.get("range") {
        if argument.format.is_float() {
            let error = range.error("only integers are used as indices, lengths or positions");
            return Err(error.hint("give the input an integer type"));
        }
        let ends = extents(&range)?;
        limits.range = Some(ends.try_into().map_err(|_| range.error("a range is [from, to]"))?);
    }
    if let Some(distinct) = table.get("distinct") {
        limits.distinct = distinct.flag()?;
        if limits.distinct && limits.range.is_none() {
            return Err(distinct.error("distinct values need a `range` to be taken from"));
        }
    }
    if let Some(exact) = table.get("exact") {
        let value = exact.number()?;
        if argument.format.round(value) != value {
            let format = argument.format.name();
            return Err(exact.error(format!("{value} is no value of {format}")));
        }
        limits.exact = Some(value);
    }
    Ok(limits)
}

fn read_strides(entry: &Entry<'_>, argument: &ArgumentSpec) -> Result<Vec<Extent>, ManifestError> {
    let strides = extents(entry)?;
    if strides.len() != argument.shape.len() {
        let (found, wanted) = (strides.len(), argument.shape.len());
        return Err(entry.error(format!("{found} strides for {wanted} axes")));
    }
    if argument.format.bits() < 8 {
        return Err(entry.error("elements below a byte are dense; leave the strides out"));
    }
    Ok(strides)
}

fn read_align(entry: &Entry<'_>, format: Format) -> Result<u64, ManifestError> {
    let least = format.storage_bytes(1) as u64;
    let align = u64::try_from(entry.integer()?).unwrap_or(0);
    if !align.is_power_of_two() || align < least || align > BASE_ALIGN_BYTES {
        let message = format!("`align` must be a power of two from {least} to {BASE_ALIGN_BYTES}");
        return Err(entry.error(message));
    }
    Ok(align)
}

fn read_value(table: &Table<'_>, argument: &mut ArgumentSpec) -> Result<(), ManifestError> {
    for key in ["shape", "strides", "align", "zeroed"].into_iter().chain(LIMIT_KEYS) {
        refuse(table, key, "only buffers have it")?;
    }
    if argument.role == Role::Dim {
        if argument.format.is_float() {
            let entry = table.need("type")?;
            return Err(entry.error("a dim is passed as an integer").hint("use `i32` or `i64`"));
        }
        argument.extent = table.get("value").map(|value| value.extent()).transpose()?;
        return Ok(());
    }
    let value = table.need("value")?;
    let number = value.number()?;
    let passed = argument.format.round(number);
    if passed.is_finite() != number.is_finite() {
        let format = argument.format.name();
        return Err(value.error(format!("{number} does not fit {format}")));
    }
    argument.value = Some(passed);
    Ok(())
}

fn refuse(table: &Table<'_>, key: &str, why: &str) -> Result<(), ManifestError> {
    match table.get(key) {
        Some(entry) => Err(entry.error(format!("`{key}` does not belong here: {why}"))),
        None => Ok(()),
    }
}

fn extents(entry: &Entry<'_>) -> Result<Vec<Extent>, ManifestError> {
    entry.list()?.iter().map(Entry::extent).collect()
}

/// Reads `launches`. Those of a Triton source say only what Triton's metadata does not.
pub(super) fn read_launches(
    table: &Table<'_>,
    by_triton: bool,
) -> Result<Vec<LaunchSpec>, ManifestError> {
    let entry = table.need("launches")?;
    let read = if by_triton { read_triton_launch } else { read_launch };
    let launches: Result<Vec<_>, _> = entry.list()?.iter().map(read).collect();
    let launches = launches?;
    if launches.is_empty() {
        return Err(entry.error("a kernel needs at least one launch"));
    }
    Ok(launches)
}

fn read_launch(entry: &Entry<'_>) -> Result<LaunchSpec, ManifestError> {
    let table = entry.table(&LAUNCH_KEYS)?;
    let shared = table.get("shared").map(|shared| shared.extent()).transpose()?;
    Ok(LaunchSpec {
        symbol: table.need("symbol")?.text()?.to_owned(),
        grid: triple(&table.need("grid")?)?,
        block: triple(&table.need("block")?)?,
        cluster: table.get("cluster").map_or_else(|| Ok(ones()), |cluster| triple(&cluster))?,
        cooperative: cooperative(&table)?,
        shared: shared.unwrap_or_else(|| constant(0)),
        arguments: passed(&table)?,
        source: table.need("symbol")?.place(),
    })
}

/// Whether a launch needs all its blocks at once.
fn cooperative(table: &Table<'_>) -> Result<bool, ManifestError> {
    Ok(table.get("cooperative").map(|flag| flag.flag()).transpose()?.unwrap_or(false))
}

/// The names of the arguments that a launch passes.
fn passed(table: &Table<'_>) -> Result<Vec<String>, ManifestError> {
    let names = table.need("args")?.list()?;
    names.iter().map(|name| name.text().map(str::to_owned)).collect()
}

/// A launch of which Triton's metadata will say the rest.
fn read_triton_launch(entry: &Entry<'_>) -> Result<LaunchSpec, ManifestError> {
    let table = entry.table(&LAUNCH_KEYS)?;
    for key in ["symbol", "block", "cluster", "shared"] {
        let why = "Triton's metadata says it (num_warps, num_ctas and the like are `options`)";
        refuse(&table, key, why)?;
    }
    Ok(LaunchSpec {
        symbol: String::new(),
        grid: triple(&table.need("grid")?)?,
        block: ones(),
        cluster: ones(),
        cooperative: cooperative(&table)?,
        shared: constant(0),
        arguments: passed(&table)?,
        source: table.need("grid")?.place(),
    })
}

/// Up to three extents; those left out are 1.
fn triple(entry: &Entry<'_>) -> Result<[Extent; 3], ManifestError> {
    let given = extents(entry)?;
    if given.is_empty() || given.len() > 3 {
        return Err(entry.error(format!("`{}` takes one to three numbers", entry.path)));
    }
    let mut all = ones();
    for (axis, extent) in given.into_iter().enumerate() {
        all[axis] = extent;
    }
    Ok(all)
}

fn ones() -> [Extent; 3] {
    [constant(1), constant(1), constant(1)]
}

fn constant(value: i64) -> Extent {
    Extent::constant(value)
}
