//! Which build of a kernel a result is of: digests of its code and of its contract.

use std::fmt::Write as _;
use std::path::Path;

use assay_limits::{Digest, SourceText};
use assay_record::Build;

use crate::spec::{DimSpec, Spec};

/// The build that a spec names; `None` for a kernel without compiled code.
pub fn build(spec: &Spec) -> Option<Build> {
    let module = spec.module.as_deref()?;
    Some(Build {
        code: digest(&module.bytes),
        contract: digest(contract(spec).as_bytes()),
        shapes: shapes(spec),
    })
}

/// FNV-1a of 128 bits: it tells builds apart, and is no guard against an adversary.
fn digest(bytes: &[u8]) -> String {
    let text = SourceText { path: String::new(), text: bytes.to_vec() };
    Digest::of(&[text], &[]).to_string()
}

/// All that decides what a kernel is given and what it is held to, as text.
fn contract(spec: &Spec) -> String {
    let mut text = String::new();
    let mut add = |what: &str, value: &dyn std::fmt::Debug| {
        let _ = writeln!(text, "{what} {value:?}");
    };
    for argument in &spec.arguments {
        let strides = &argument.strides;
        let (name, role, format) = (&argument.name, argument.role, argument.format.name());
        add("argument", &(name, role, format, &argument.shape, strides, argument.align));
        add("its value", &(argument.value, &argument.extent, argument.zeroed, &argument.limits));
    }
    for launch in &spec.launches {
        add("launch", &(&launch.symbol, &launch.grid, &launch.block, &launch.cluster));
        add("its arguments", &(launch.cooperative, &launch.shared, &launch.arguments));
    }
    add("formula", &spec.formula.as_ref().map(assay_reference::Formula::canonical));
    add("computed as", &spec.program.as_ref().map(|program| program.text()));
    add("rule", &spec.rule);
    add("arithmetic", &(&spec.arithmetic, spec.accumulator.name(), &spec.orders));
    add("promises", &(&spec.in_place, &spec.replaces, spec.nan, &spec.hides_sums));
    text
}

/// The served shapes and the valid ones: `cols 1000, 4096 of those from 1 on in steps of 1`.
fn shapes(spec: &Spec) -> String {
    let dim = |(name, dim): (&String, &DimSpec)| {
        let served: Vec<String> = dim.served.iter().map(ToString::to_string).collect();
        format!("{name} {} of those {}", served.join(", "), dim.valid_sizes())
    };
    let mut all: Vec<String> = spec.dims.iter().map(dim).collect();
    if let Some(cases) = &spec.cases {
        let cases: Vec<String> = cases.iter().map(crate::spec::shown).collect();
        all.push(format!("only {}", cases.join(" | ")));
    }
    all.join("; ")
}

/// Where a report's build is not the one at hand: what differs, in words.
pub fn difference(judged: &Build, spec: &Spec) -> Option<String> {
    let Some(own) = build(spec) else { return Some("there is no compiled code".to_owned()) };
    let path = spec.module.as_ref().map_or(Path::new(""), |module| module.path.as_path());
    if judged.code != own.code {
        let (theirs, ours, path) = (&judged.code, &own.code, path.display());
        return Some(format!("its code has the digest {theirs}, that of {path} is {ours}"));
    }
    if judged.shapes != own.shapes {
        return Some(format!("it was judged at {}, and serves {}", judged.shapes, own.shapes));
    }
    (judged.contract != own.contract).then(|| {
        "its arguments, launches, formula or promises are others than the manifest's".to_owned()
    })
}
