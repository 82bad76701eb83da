//! Which builds the manifests ask for. `assay check` judges the manifests; what is read here is no
//! more than what a compiler needs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// The manifest of kernels that are sources of their own and need no define.
const CONTROLS: &str = "controls.toml";

/// One faulty build of one source.
#[derive(Debug, PartialEq)]
pub(super) struct Build {
    /// The source, relative to the suite's folder.
    pub(super) source: PathBuf,
    /// What `ASSAY_FAULT` is defined as.
    pub(super) define: String,
    /// Each fault that uses the build, with the symbols that its kernel launches.
    pub(super) faults: Vec<(String, Vec<String>)>,
}

impl Build {
    /// The file, below the folder of all builds.
    pub(super) fn path(&self) -> PathBuf {
        self.source.with_extension("").join(format!("{}.ptx", self.define))
    }
}

/// The builds of every fault in a folder's manifests whose name, or whose kernel's, holds `only`.
pub(super) fn plan(suite: &Path, only: &str) -> Result<Vec<Build>, String> {
    let entries = fs::read_dir(suite).map_err(|error| format!("{}: {error}", suite.display()))?;
    let mut manifests: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    manifests.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    manifests.retain(|path| !path.ends_with(CONTROLS));
    manifests.sort();
    let mut builds: BTreeMap<(PathBuf, String), Vec<_>> = BTreeMap::new();
    for path in manifests {
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        for (key, fault) in faults(&text).map_err(|why| format!("{}: {why}", path.display()))? {
            if fault.0.contains(only) {
                builds.entry(key).or_default().push(fault);
            }
        }
    }
    let build = |((source, define), faults)| Build { source, define, faults };
    Ok(builds.into_iter().map(build).collect())
}

/// (source, define), and what a fault is called with the symbols of its kernel.
type Fault = ((PathBuf, String), (String, Vec<String>));

fn faults(manifest: &str) -> Result<Vec<Fault>, String> {
    let manifest: Table = manifest.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut all = Vec::new();
    for (name, fault) in manifest.get("fault").and_then(Value::as_table).into_iter().flatten() {
        let wrong = |what: &str| format!("[fault.{name}]: {what}");
        let text = |key: &str| fault.get(key).and_then(Value::as_str);
        let kind = text("kind").map(|kind| kind.replace('-', "_"));
        let define = text("define").map(str::to_owned).or(kind);
        let define = define.ok_or_else(|| wrong("neither `kind` nor `define`"))?;
        for kernel in kernels_of(fault).ok_or_else(|| wrong("`of` names no kernel"))? {
            let entry = manifest.get("kernel").and_then(|kernels| kernels.get(kernel));
            let entry = entry.ok_or_else(|| wrong(&format!("there is no [kernel.{kernel}]")))?;
            let module = entry.get("module").and_then(Value::as_str).unwrap_or_default();
            let source =
                manifest.get("module").and_then(|modules| modules.get(module)?.get("cuda"));
            let source = source.and_then(Value::as_str);
            let source = source.ok_or_else(|| wrong(&format!("no `cuda` source of {kernel}")))?;
            let fault = (format!("{name} ({kernel})"), symbols(entry));
            all.push(((PathBuf::from(source), define.clone()), fault));
        }
    }
    Ok(all)
}

fn kernels_of(fault: &Value) -> Option<Vec<&str>> {
    match fault.get("of")? {
        Value::String(kernel) => Some(vec![kernel]),
        Value::Array(kernels) => kernels.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// The symbols that a kernel launches.
fn symbols(kernel: &Value) -> Vec<String> {
    let launches = kernel.get("launches").and_then(Value::as_array).into_iter().flatten();
    launches.filter_map(|launch| launch.get("symbol")?.as_str()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
        [module.m]
        cuda = "m.cu"
        [kernel.a]
        module = "m"
        launches = [{ symbol = "a_f32" }, { symbol = "merge" }]
        [kernel.b]
        module = "m"
        launches = [{ symbol = "b_f32" }]
        [fault.both]
        of = ["a", "b"]
        kind = "max-from-zero"
        [fault.one]
        of = "a"
        kind = "other"
        define = "odd"
    "#;

    #[test]
    fn kernels_that_share_a_define_share_a_build() {
        let found = faults(MANIFEST).expect("it reads");
        let shared = (PathBuf::from("m.cu"), "max_from_zero".to_owned());
        let symbols = vec!["a_f32".to_owned(), "merge".to_owned()];
        assert_eq!(found[0], (shared.clone(), ("both (a)".to_owned(), symbols)));
        assert_eq!(found[1].0, shared);
        assert_eq!(found[2].0.1, "odd");
    }

    #[test]
    fn an_entry_that_cannot_be_built_says_why() {
        let without = |line: &str| faults(&MANIFEST.replace(line, "")).expect_err("it is wrong");
        assert!(without("of = \"a\"").contains("[fault.one]: `of` names no kernel"));
        assert!(without("cuda = \"m.cu\"").contains("no `cuda` source of a"));
        let unknown = MANIFEST.replace("of = \"a\"", "of = \"c\"");
        assert!(faults(&unknown).expect_err("no c").contains("there is no [kernel.c]"));
    }
}
