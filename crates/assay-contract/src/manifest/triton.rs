//! `triton = { ... }` of a module: a kernel in a Triton source, compiled for several targets.
//!
//! What a launch has to know besides its grid is Triton's to say: block, shared memory, clusters
//! and the pointers that Triton appends to the parameters. A kernel of such a module becomes one
//! kernel a target, `softmax@sm_90`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use assay_num::Format;
use assay_reference::{Extent, Limits};

use super::error::ManifestError;
use super::files::Files;
use super::reader::{Entry, Table};
use crate::limits::Compiled;
use crate::spec::{ArgumentSpec, LaunchSpec, ModuleKind, ModuleRef, Role, Spec};
use crate::triton::{TritonBuild, TritonFacts, TritonFailure, TritonSource, TritonValue};

const KEYS: [&str; 6] = ["file", "function", "signature", "constexprs", "targets", "options"];
const DEFAULT_TARGETS: [u32; 3] = [80, 90, 120];
/// What Triton takes where an option is left out.
const DEFAULT_WARPS: i64 = 4;

/// A module that is a Triton source.
#[derive(Debug, Clone)]
pub(super) struct TritonModule {
    /// What the manifest says of it.
    source: TritonSource,
    /// Its builds, in the order of the targets.
    builds: Vec<Target>,
    /// What is wrong with the targets that there is no build for.
    pub(super) errors: Vec<ManifestError>,
}

/// One target of a module.
#[derive(Debug, Clone)]
struct Target {
    architecture: u32,
    module: Arc<ModuleRef>,
    facts: TritonFacts,
}

/// Reads the entry and has the source compiled.
pub(super) fn read_triton(
    name: &str,
    entry: &Entry<'_>,
    files: &dyn Files,
) -> Result<TritonModule, ManifestError> {
    let source = read_source(&entry.table(&KEYS)?)?;
    if let Err(error) = files.read(&source.file) {
        let at = entry.any_table()?.need("file")?;
        let shown = files.shown(&source.file);
        let message = format!("module `{name}`: cannot read {}: {error}", shown.display());
        return Err(at.error(message).hint("paths are relative to the manifest"));
    }
    let (mut builds, mut refused) = (Vec::new(), Vec::<Refusal>::new());
    for (architecture, build) in files.triton(&source) {
        let (module, facts) = match build {
            Ok(build) => built(name, &source, build),
            Err(TritonFailure::Missing { what }) => unbuilt(name, &source, architecture, &what),
            Err(TritonFailure::Refused { message, hint }) => {
                let same = |other: &&mut Refusal| other.message == message;
                if let Some(other) = refused.iter_mut().find(same) {
                    other.targets.push(format!("sm_{architecture}"));
                } else {
                    let targets = vec![format!("sm_{architecture}")];
                    refused.push(Refusal { targets, message, hint });
                }
                continue;
            }
        };
        builds.push(Target { architecture, module, facts });
    }
    let error = |refusal: Refusal| {
        let Refusal { targets, message, hint } = refusal;
        let (targets, message) = (targets.join(", "), message.trim().to_owned());
        let message = format!("module `{name}`: Triton, for {targets}: {message}");
        entry.error(message).maybe_hint(hint)
    };
    Ok(TritonModule { source, builds, errors: refused.into_iter().map(error).collect() })
}

/// What Triton said of some targets alike.
struct Refusal {
    targets: Vec<String>,
    message: String,
    hint: Option<String>,
}

fn read_source(table: &Table<'_>) -> Result<TritonSource, ManifestError> {
    let signature = table.need("signature")?;
    let signature: Vec<String> = if signature.is_text() {
        split_types(signature.text()?)
    } else {
        let types: Result<Vec<&str>, _> = signature.list()?.iter().map(Entry::text).collect();
        types?.into_iter().map(str::to_owned).collect()
    };
    Ok(TritonSource {
        file: PathBuf::from(table.need("file")?.text()?),
        function: table.need("function")?.text()?.to_owned(),
        signature,
        constexprs: read_values(table, "constexprs")?,
        options: read_values(table, "options")?,
        targets: read_targets(table)?,
    })
}

/// The types of a signature: commas inside brackets belong to a type.
fn split_types(text: &str) -> Vec<String> {
    let (mut types, mut depth) = (vec![String::new()], 0i32);
    for c in text.chars() {
        depth += match c {
            '[' | '<' | '(' => 1,
            ']' | '>' | ')' => -1,
            _ => 0,
        };
        match types.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => types.push(String::new()),
        }
    }
    let types = types.iter().map(|text| text.trim().to_owned());
    types.filter(|text| !text.is_empty()).collect()
}

fn read_values(
    table: &Table<'_>,
    key: &str,
) -> Result<BTreeMap<String, TritonValue>, ManifestError> {
    let Some(entry) = table.get(key) else { return Ok(BTreeMap::new()) };
    let value = |entry: &Entry<'_>| -> Result<TritonValue, ManifestError> {
        if entry.is_text() {
            return Ok(TritonValue::Text(entry.text()?.to_owned()));
        }
        if let Ok(flag) = entry.flag() {
            return Ok(TritonValue::Flag(flag));
        }
        let whole = entry.integer().map(TritonValue::Integer);
        whole.or_else(|_| entry.number().map(TritonValue::Number))
    };
    let named = entry.any_table()?.named();
    named.iter().map(|(name, _, entry)| Ok(((*name).to_owned(), value(entry)?))).collect()
}

fn read_targets(table: &Table<'_>) -> Result<Vec<u32>, ManifestError> {
    let Some(entry) = table.get("targets") else { return Ok(DEFAULT_TARGETS.to_vec()) };
    let mut targets = Vec::new();
    for target in entry.list()? {
        let text = target.text()?;
        let number = text.strip_prefix("sm_").and_then(|digits| digits.parse().ok());
        let number = number.ok_or_else(|| {
            let error = target.error(format!("`{text}` is no target of Triton"));
            error.hint("write `sm_80`, `sm_90` or `sm_120`; Triton adds the `a` of sm_90a itself")
        })?;
        if targets.contains(&number) {
            return Err(target.error(format!("`{text}` stands there twice")));
        }
        targets.push(number);
    }
    if targets.is_empty() {
        let error = entry.error("`targets` is empty");
        return Err(error.hint("leave it out for sm_80, sm_90 and sm_120"));
    }
    Ok(targets)
}

fn built(name: &str, source: &TritonSource, build: TritonBuild) -> (Arc<ModuleRef>, TritonFacts) {
    let module = ModuleRef {
        name: name.to_owned(),
        kind: ModuleKind::Ptx,
        target: ptx_target(&build.ptx),
        path: build.path,
        bytes: Arc::new(build.ptx.into_bytes()),
        source: Some(source.file.clone()),
        compiled: build.compiled,
        chips: Vec::new(),
    };
    (Arc::new(module), build.facts)
}

/// `sm_90a` of `.target sm_90a, debug`.
fn ptx_target(ptx: &str) -> Option<String> {
    let line = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    line.split(',').next().map(|target| target.trim().to_owned())
}

/// What stands for a target that was not compiled: launches with nothing known of them.
fn unbuilt(
    name: &str,
    source: &TritonSource,
    architecture: u32,
    what: &str,
) -> (Arc<ModuleRef>, TritonFacts) {
    let warps = match source.options.get("num_warps") {
        Some(TritonValue::Integer(warps)) => *warps,
        _ => DEFAULT_WARPS,
    };
    let module = ModuleRef {
        name: name.to_owned(),
        kind: ModuleKind::Unbuilt(format!("module `{name}` is a Triton source: {what}")),
        target: Some(format!("sm_{architecture}")),
        path: source.file.clone(),
        bytes: Arc::new(Vec::new()),
        source: Some(source.file.clone()),
        compiled: Compiled::Unknown,
        chips: Vec::new(),
    };
    let facts = TritonFacts {
        symbol: source.function.clone(),
        warps: u32::try_from(warps).unwrap_or(1),
        blocks_per_cluster: 1,
        ..TritonFacts::default()
    };
    (Arc::new(module), facts)
}

impl TritonModule {
    /// The kernel of `spec` for each target that there is a build for.
    pub(super) fn kernels(
        &self,
        spec: &Spec,
        chips: &[String],
        table: &Table<'_>,
    ) -> Result<Vec<Spec>, ManifestError> {
        check_arguments(&self.source.signature, table, spec)?;
        let mut kernels = Vec::new();
        for Target { architecture, module, facts } in &self.builds {
            if facts.cooperative {
                let error = table.entry.error("cooperative launches are not supported yet");
                return Err(error.hint("leave out the option `launch_cooperative_grid`"));
            }
            let mut kernel = spec.clone();
            kernel.name = format!("{}@sm_{architecture}", spec.name);
            kernel.chips = chips.to_vec();
            kernel.module = Some(Arc::clone(module));
            complete(&mut kernel, facts).map_err(|why| table.entry.error(why))?;
            kernels.push(kernel);
        }
        Ok(kernels)
    }
}

/// Whether the arguments of each launch are what the signature takes.
fn check_arguments(
    signature: &[String],
    table: &Table<'_>,
    spec: &Spec,
) -> Result<(), ManifestError> {
    for (launch, entry) in spec.launches.iter().zip(table.need("launches")?.list()?) {
        let args = entry.any_table()?.need("args")?;
        if launch.arguments.len() != signature.len() {
            let (passed, taken) = (launch.arguments.len(), signature.len());
            let message =
                format!("the launch passes {passed} arguments, the signature has {taken}");
            let hint = "constexprs and the scratch pointers at the end are not passed";
            return Err(args.error(message).hint(hint));
        }
        for ((name, taken), at) in launch.arguments.iter().zip(signature).zip(args.list()?) {
            let Some(argument) = spec.argument(name) else { continue };
            check_type(argument, taken, spec).map_err(|(message, hint)| {
                at.error(format!("argument `{name}`: {message}")).maybe_hint(hint)
            })?;
        }
    }
    Ok(())
}

type Complaint = (String, Option<String>);

fn check_type(argument: &ArgumentSpec, taken: &str, spec: &Spec) -> Result<(), Complaint> {
    let (kind, hint) = taken.split_once(':').unwrap_or((taken, ""));
    if kind.starts_with("tensordesc") {
        let hint = "make the descriptor in the kernel, with tl.make_tensor_descriptor";
        let message = "tensor descriptors as arguments are not supported yet".to_owned();
        return Err((message, Some(hint.to_owned())));
    }
    let format = argument.format;
    let fits = match kind.strip_prefix('*') {
        Some(element) => {
            argument.role.is_buffer() && holds(element.trim_start_matches('k'), format)
        }
        None => !argument.role.is_buffer() && scalar(kind, format),
    };
    if !fits {
        let what = if argument.role.is_buffer() { "a buffer of" } else { "a number of type" };
        let message = format!("it is {what} {}, the signature says `{kind}`", format.name());
        return Err((message, None));
    }
    if hint == "16" { check_divisible(argument, spec) } else { Ok(()) }
}

/// Whether a pointer to a type of Triton can be to elements of a format.
fn holds(element: &str, format: Format) -> bool {
    let bytes = matches!(element, "i8" | "u8") && (format.bits() <= 8);
    bytes || scalar(element, format) || (element == "fp32" && format == Format::Tf32)
}

fn scalar(kind: &str, format: Format) -> bool {
    let name = match kind {
        "fp64" => "f64",
        "fp32" | "f32" => "f32",
        "fp16" => "f16",
        "bf16" => "bf16",
        "fp8e4nv" => "e4m3",
        "fp8e5" => "e5m2",
        "i1" | "u1" => return matches!(format.name(), "i8" | "u8"),
        other => other,
    };
    // Triton's integers have a sign only in what the source does with them.
    let unsigned = name.strip_prefix('i').map(|bits| format!("u{bits}"));
    format.name() == name || unsigned.as_deref() == Some(format.name())
}

/// Whether the promise of `:16` is kept by what the manifest promises.
fn check_divisible(argument: &ArgumentSpec, spec: &Spec) -> Result<(), Complaint> {
    if argument.role.is_buffer() {
        return match argument.align {
            align if align >= 16 => Ok(()),
            align => Err((format!("the signature promises `:16`, `align` is {align}"), None)),
        };
    }
    let broken = |value: &str| {
        let hint = "leave `:16` out, or give the dim a `step` that 16 divides".to_owned();
        Err((format!("the signature promises `:16`, but it may be {value}"), Some(hint)))
    };
    let extent = argument.extent.clone().unwrap_or_else(|| Extent::dim(&argument.name));
    if let Some(dim) = extent.as_dim().and_then(|dim| spec.dims.get(dim)) {
        return if dim.step % 16 == 0 { Ok(()) } else { broken(&dim.least.to_string()) };
    }
    let values = spec.served().into_iter().filter_map(|dims| extent.eval(&dims).ok());
    match values.into_iter().find(|value| value % 16 != 0) {
        Some(value) if argument.role == Role::Dim => broken(&value.to_string()),
        _ => Ok(()),
    }
}

/// Puts into a kernel's launches what Triton's metadata says of them.
fn complete(kernel: &mut Spec, facts: &TritonFacts) -> Result<(), String> {
    let constant = |value: u32| Extent::constant(i64::from(value));
    let mut hidden: Vec<ArgumentSpec> = Vec::new();
    for launch in &mut kernel.launches {
        let blocks = facts.blocks_per_cluster.max(1);
        launch.symbol.clone_from(&facts.symbol);
        launch.block[0] = constant(facts.warps.saturating_mul(32));
        launch.shared = constant(facts.shared_bytes);
        if blocks > 1 {
            launch.cluster[0] = constant(blocks);
            launch.grid[0] = product(&[&launch.grid[0]], u64::from(blocks))?;
        }
        let scratch = [("global", facts.global_scratch), ("profile", facts.profile_scratch)];
        for (kind, (bytes, align)) in scratch {
            let argument =
                scratch_argument(&format!("triton_{kind}_scratch"), launch, bytes, align)?;
            if !hidden.iter().any(|other| other.name == argument.name) {
                hidden.push(argument.clone());
            }
            launch.arguments.push(argument.name);
        }
    }
    kernel.arguments.extend(hidden);
    Ok(())
}

/// The buffer behind one of the hidden pointers; a null pointer where the kernel needs none.
fn scratch_argument(
    name: &str,
    launch: &LaunchSpec,
    bytes: u64,
    align: u64,
) -> Result<ArgumentSpec, String> {
    let mut argument = ArgumentSpec {
        name: name.to_owned(),
        role: Role::Scalar,
        format: Format::U64,
        shape: Vec::new(),
        strides: None,
        align: align.max(1),
        value: Some(0.0),
        extent: None,
        zeroed: false,
        limits: Limits::default(),
    };
    if bytes > 0 {
        // Launches of one kernel may differ in their grids: each has a scratch of its own.
        argument.name = format!("{name}_{}_{}", launch.source.line, launch.source.column);
        argument.role = Role::Scratch;
        argument.format = Format::U8;
        argument.value = None;
        let [x, y, z] = &launch.grid;
        argument.shape = vec![product(&[x, y, z], bytes)?];
    }
    Ok(argument)
}

fn product(extents: &[&Extent], by: u64) -> Result<Extent, String> {
    let factors: Vec<String> = extents.iter().map(|extent| format!("({extent})")).collect();
    let text = format!("{} * {by}", factors.join(" * "));
    Extent::parse(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_brackets_do_not_end_a_type() {
        let types = split_types("*fp32:16, tensordesc<bf16[64, 32]>, i32,");
        assert_eq!(types, ["*fp32:16", "tensordesc<bf16[64, 32]>", "i32"]);
        assert_eq!(split_types(""), Vec::<String>::new());
    }

    #[test]
    fn a_type_of_triton_holds_the_format_that_has_its_bits() {
        for (element, name) in [("fp32", "f32"), ("i32", "u32"), ("u8", "e2m1"), ("i1", "u8")] {
            let format = Format::ALL.iter().find(|format| format.name() == name);
            assert!(holds(element, *format.expect("a format")), "{element} {name}");
        }
        assert!(!holds("fp32", Format::Bf16));
        assert!(!holds("i32", Format::F32));
        assert!(!scalar("i8", Format::E2m1));
    }

    #[test]
    fn the_target_is_read_without_what_follows_it() {
        assert_eq!(ptx_target(".version 8.7\n.target sm_90a, debug\n").as_deref(), Some("sm_90a"));
        assert_eq!(ptx_target("// nothing"), None);
    }
}
