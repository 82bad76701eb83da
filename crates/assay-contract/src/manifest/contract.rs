//! The promises beside the formula: arithmetic, orders, aliasing, replacement, known findings,
//! and whether the kernel is a planted control.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_record::Gate;
use assay_reference::{
    Division, Exponential, Extent, HyperbolicTangent, Order, Program, ReduceOperation, Reduction,
    Root, TensorCores,
};

use super::error::{ManifestError, nearest_hint, quoted};
use super::kernel::{gate, read_chips};
use super::reader::{Entry, Table};
use crate::spec::{KnownFinding, NanRule, Role, Spec};
use crate::twins::{self, Twin};

const ARITHMETIC_KEYS: [&str; 8] =
    ["division", "sqrt", "rsqrt", "exp", "tanh", "flush", "accumulators", "tensor_cores"];
const TENSOR_CORE_KEYS: [&str; 3] = ["elements", "depth", "chain"];
const KNOWN_KEYS: [&str; 4] = ["gate", "what", "since", "link"];
const CONTROL_KEYS: [&str; 3] = ["gate", "of", "chips"];

/// Reads everything that needs no formula.
pub(super) fn read_contract(table: &Table<'_>, spec: &mut Spec) -> Result<(), ManifestError> {
    if let Some(orders) = table.get("orders") {
        spec.orders = orders.list()?.iter().map(order).collect::<Result<_, _>>()?;
    }
    if let Some(pairs) = table.get("in_place") {
        spec.in_place = pairs.list()?.iter().map(|p| pair(p, spec)).collect::<Result<_, _>>()?;
    }
    if let Some(nan) = table.get("nan") {
        let rules = [NanRule::Propagate, NanRule::Stated];
        spec.nan = rules[nan.choice("NaN rule", &["propagate", "stated"])?];
    } else if spec.rule.is_some() {
        spec.nan = NanRule::Stated;
    }
    if let Some(known) = table.get("known") {
        spec.known = known.list()?.iter().map(known_finding).collect::<Result<_, _>>()?;
    }
    if let Some(control) = table.get("control") {
        let control = control.table(&CONTROL_KEYS)?;
        spec.control_for = Some(gate(&control.need("gate")?)?);
        spec.control_of = control.get("of").map(|of| of.name().map(str::to_owned)).transpose()?;
        if let Some(chips) = control.get("chips") {
            if spec.control_for != Some(Gate::Limits) {
                return Err(chips.error("only controls of gate `limits` name chips"));
            }
            spec.control_chips = read_chips(&chips)?;
        }
    }
    if let Some(backends) = table.get("backends") {
        let name = |entry: &Entry<'_>| entry.name().map(str::to_owned);
        spec.backends = backends.list()?.iter().map(name).collect::<Result<_, _>>()?;
    }
    spec.replaces = owned_name(table, "replaces")?;
    spec.twin = table.get("twin").map(|twin| read_twin(&twin, spec)).transpose()?;
    spec.hides_sums =
        table.get("hides_sums").map(|why| why.text().map(str::to_owned)).transpose()?;
    spec.budget = table.get("budget").map(|budget| budget.extent()).transpose()?;
    Ok(())
}

fn owned_name(table: &Table<'_>, key: &str) -> Result<Option<String>, ManifestError> {
    table.get(key).map(|entry| entry.name().map(str::to_owned)).transpose()
}

/// A host twin by name, whose tensors the kernel must have.
fn read_twin(entry: &Entry<'_>, spec: &Spec) -> Result<&'static Twin, ManifestError> {
    let known: Vec<&str> = twins::TWINS.iter().map(|twin| twin.name).collect();
    let Some(twin) = twins::named(entry.text()?) else {
        let error = entry.error(format!("unknown twin `{}`", entry.text()?));
        return Err(error.hint(format!("the twins are {}", quoted(&known))));
    };
    match twin.missing(&spec.signature) {
        Some(what) => Err(entry.error(format!("twin `{}` needs {what}", twin.name))),
        None => Ok(twin),
    }
}

fn known_finding(entry: &Entry<'_>) -> Result<KnownFinding, ManifestError> {
    let table = entry.table(&KNOWN_KEYS)?;
    let text = |key: &str| table.need(key)?.text().map(str::to_owned);
    Ok(KnownFinding {
        gate: gate(&table.need("gate")?)?,
        what: text("what")?,
        since: text("since")?,
        link: text("link")?,
    })
}

/// An (output, input) pair that may share a buffer.
fn pair(entry: &Entry<'_>, spec: &Spec) -> Result<(String, String), ManifestError> {
    let names = entry.list()?;
    let [output, input] = names.as_slice() else {
        return Err(entry.error("a pair is [output, input]"));
    };
    let find = |entry: &Entry<'_>, roles: &[Role], what: &str| {
        let name = entry.text()?;
        let argument = spec.argument(name).filter(|argument| roles.contains(&argument.role));
        argument.ok_or_else(|| entry.error(format!("`{name}` is no {what} of this kernel")))
    };
    let out = find(output, &[Role::Out], "output")?;
    let from = find(input, &[Role::In, Role::InOut], "input")?;
    if out.format.bits() > from.format.bits() {
        let message = format!("`{}` has wider elements than `{}`", out.name, from.name);
        return Err(entry.error(message).hint("the input's buffer must hold the output"));
    }
    Ok((out.name.clone(), from.name.clone()))
}

/// `strided 256`, `vector_strided 256 4`, `chunked 256`, `lanes 32`, `chain`, `halves`.
fn order(entry: &Entry<'_>) -> Result<Order, ManifestError> {
    let text = entry.text()?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let names = ["strided", "vector_strided", "chunked", "lanes", "chain", "halves"];
    let numbers: Vec<u32> =
        words.iter().skip(1).filter_map(|word| word.parse().ok()).filter(|n| *n > 0).collect();
    let whole = numbers.len() + 1 == words.len();
    match (words.first().copied().unwrap_or_default(), numbers.as_slice(), whole) {
        ("strided", [threads], true) => Ok(Order::Strided { threads: *threads, vector: 1 }),
        ("vector_strided", [threads, vector], true) => {
            Ok(Order::Strided { threads: *threads, vector: *vector })
        }
        ("chunked", [threads], true) => Ok(Order::Chunked { threads: *threads }),
        ("lanes", [lanes], true) => Ok(Order::Lanes(*lanes)),
        ("chain", [], true) => Ok(Order::Chain),
        ("halves", [], true) => Ok(Order::Halves),
        (name, ..) if names.contains(&name) => {
            let error = entry.error(format!("`{text}` has the wrong numbers"));
            Err(error.hint("write `strided T`, `vector_strided T V`, `chunked T` or `lanes N`"))
        }
        (name, ..) => {
            let error = entry.error(format!("unknown order `{name}`"));
            Err(error.maybe_hint(nearest_hint(name, &names)))
        }
    }
}

/// Reads how the kernel computes: needs the checked formula for the reductions' names.
pub(super) fn read_arithmetic(table: &Table<'_>, spec: &mut Spec) -> Result<(), ManifestError> {
    if let Some(accumulator) = table.get("accumulator") {
        spec.accumulator = accumulator.format()?;
    }
    if let Some(entry) = table.get("arithmetic") {
        read_operations(&entry.table(&ARITHMETIC_KEYS)?, spec)?;
    }
    if let Some(entry) = table.get("depth") {
        for (name, value) in per_reduction(&entry, spec)? {
            if is_scan(&name, spec) {
                let error = value.error(format!("`{name}` is a scan, which has no depth"));
                return Err(error.hint("leave it out: a scan's errors follow step by step"));
            }
            let extent = value.extent()?;
            positive_depth(&value, &extent, spec)?;
            spec.arithmetic.depth.insert(name, extent);
        }
    }
    if spec.accumulator != Format::F32 {
        let names = reductions(spec).iter().map(|reduction| reduction.name.clone());
        let carried: Vec<_> = names.map(|name| (name, spec.accumulator)).collect();
        let stated = std::mem::take(&mut spec.arithmetic.accumulators);
        spec.arithmetic.accumulators = carried.into_iter().chain(stated).collect();
    }
    if let Some(entry) = table.get("arithmetic") {
        check_tensor_cores(&entry, spec)?;
    }
    Ok(())
}

/// Tensor cores have to be able to make the sums that they are said to make.
fn check_tensor_cores(entry: &Entry<'_>, spec: &Spec) -> Result<(), ManifestError> {
    let Some(program) = &spec.program else { return Ok(()) };
    for dims in spec.served() {
        program
            .check_tensor_cores(&dims, &spec.arithmetic)
            .map_err(|error| entry.error(error.to_string()))?;
    }
    Ok(())
}

/// `{ elements = "bf16", depth = 16, chain = "(k + 15)/16" }`
fn tensor_cores(entry: &Entry<'_>, spec: &Spec) -> Result<TensorCores, ManifestError> {
    let table = entry.table(&TENSOR_CORE_KEYS)?;
    let elements = table.need("elements")?.format()?;
    let depth = table.need("depth")?;
    let whole = u32::try_from(depth.integer()?);
    let chain = table.get("chain").map(|chain| {
        let extent = chain.extent()?;
        positive_depth(&chain, &extent, spec).map(|()| extent)
    });
    Ok(TensorCores {
        elements,
        depth: whole.map_err(|_| depth.error("an instruction has a few products"))?,
        chain: chain.transpose()?,
    })
}

fn read_operations(table: &Table<'_>, spec: &mut Spec) -> Result<(), ManifestError> {
    let arithmetic = &mut spec.arithmetic;
    if let Some(entry) = table.get("division") {
        let all = [Division::Ieee, Division::Approx, Division::Full];
        arithmetic.division = all[entry.choice("division", &["ieee", "approx", "full"])?];
    }
    for (key, root) in [("sqrt", &mut arithmetic.sqrt), ("rsqrt", &mut arithmetic.rsqrt)] {
        if let Some(entry) = table.get(key) {
            *root = [Root::Ieee, Root::Approx][entry.choice(key, &["ieee", "approx"])?];
        }
    }
    if let Some(entry) = table.get("exp") {
        let all = [Exponential::Reduced, Exponential::Ex2];
        arithmetic.exp = all[entry.choice("exponential", &["reduced", "ex2"])?];
    }
    if let Some(entry) = table.get("tanh") {
        let all = [HyperbolicTangent::Accurate, HyperbolicTangent::Approx];
        arithmetic.tanh = all[entry.choice("hyperbolic tangent", &["accurate", "approx"])?];
    }
    if let Some(entry) = table.get("flush") {
        arithmetic.flush_subnormals = entry.flag()?;
    }
    if let Some(entry) = table.get("accumulators") {
        for (name, value) in per_reduction(&entry, spec)? {
            spec.arithmetic.accumulators.insert(name, value.format()?);
        }
    }
    if let Some(entry) = table.get("tensor_cores") {
        for (name, value) in each_reduction(&entry, spec, &TENSOR_CORE_KEYS)? {
            let cores = tensor_cores(&value, spec)?;
            spec.arithmetic.tensor_cores.insert(name, cores);
        }
    }
    Ok(())
}

/// The entries of a table whose keys are reductions (`c`, or `mean.k` where `k` is not unique), by
/// the name the formula gives each.
fn per_reduction<'t>(
    entry: &Entry<'t>,
    spec: &Spec,
) -> Result<BTreeMap<String, Entry<'t>>, ManifestError> {
    each_reduction(entry, spec, &[])
}

/// As [`per_reduction`], where what belongs to a reduction may be a table with one of `keys`.
fn each_reduction<'t>(
    entry: &Entry<'t>,
    spec: &Spec,
    keys: &[&str],
) -> Result<BTreeMap<String, Entry<'t>>, ManifestError> {
    let mut found = BTreeMap::new();
    for (name, span, value) in entry.any_table()?.named() {
        let inner = if value.is_table() { value.any_table()?.named() } else { Vec::new() };
        let own = !value.is_table() || inner.iter().any(|(key, ..)| keys.contains(key));
        let nested = if own { Vec::new() } else { inner };
        let nested = nested.into_iter().map(|(n, s, v)| (format!("{name}.{n}"), s, v));
        let flat = own.then(|| (name.to_owned(), span, value));
        for (name, span, value) in flat.into_iter().chain(nested) {
            let named = reductions(spec).iter().find(|reduction| reduction.is_named(&name));
            let Some(reduction) = named else {
                let known: Vec<&str> = reductions(spec).iter().map(|r| r.name.as_str()).collect();
                let error = entry.source.error(&span, format!("unknown reduction `{name}`"));
                return Err(error.maybe_hint(nearest_hint(&name, &known)));
            };
            found.insert(reduction.name.clone(), value);
        }
    }
    Ok(found)
}

fn reductions(spec: &Spec) -> &[Reduction] {
    spec.program.as_deref().map(Program::reductions).unwrap_or_default()
}

fn is_scan(name: &str, spec: &Spec) -> bool {
    let is_scan = |reduction: &Reduction| reduction.operation == ReduceOperation::Scan;
    reductions(spec).iter().any(|reduction| reduction.name == name && is_scan(reduction))
}

fn positive_depth(entry: &Entry<'_>, depth: &Extent, spec: &Spec) -> Result<(), ManifestError> {
    for dims in spec.served() {
        let value = depth.eval(&dims).map_err(|error| entry.error(error.to_string()))?;
        if value < 0 {
            return Err(entry.error(format!("a depth cannot be negative, found {value}")));
        }
    }
    Ok(())
}
