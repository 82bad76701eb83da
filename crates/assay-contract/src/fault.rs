//! Kernels broken on purpose: the catalogue of what can be wrong with them, and one fault of one
//! kernel with the build that carries it.
//!
//! A fault is a second build of a kernel's own source. It inherits the kernel's whole contract and
//! has to fail the gate that it names; what that shows is that the gate would have caught the
//! kernel, had it been written that way.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use assay_record::Gate;

use crate::kernel::Kernel;
use crate::limits::Compiled;
use crate::manifest::ManifestKernel;
use crate::spec::{ModuleKind, ModuleRef, Spec};

/// A way for a kernel to be wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct FaultKind {
    /// Its name in manifests and reports.
    pub name: &'static str,
    /// What a kernel of this kind gets wrong, in one line.
    pub what: &'static str,
}

/// The kind for what the catalogue has no name for; the entry itself says what is wrong.
pub const OTHER: &str = "other";

/// Every kind of fault that a manifest may name.
pub const CATALOGUE: [FaultKind; 21] = [
    kind("dropped-tail", "elements past the last whole tile or vector are left out"),
    kind("fmax-for-max", "`fmaxf`, which drops NaN, where the formula's maximum keeps it"),
    kind("half-accumulation", "sums carried in a 16-bit format"),
    kind("half-partials", "fp32 sums whose partial results pass through a 16-bit format"),
    kind("missing-barrier", "shared memory is read with no barrier after it was written"),
    kind("stale-shared", "shared memory is read that an earlier round left behind"),
    kind("off-by-one-row", "a row's data is taken from its neighbour"),
    kind("unwritten-element", "some elements of an output are never written"),
    kind("input-written", "an input is changed"),
    kind("unordered-atomics", "partial sums meet in whatever order the hardware chooses"),
    kind("past-the-end", "an access reaches past the end of its buffer"),
    kind("stride-in-one-pass", "a row's stride is honoured in one of two passes only"),
    kind("offset-overflow", "an offset is computed in too few bits"),
    kind("wrong-group", "a scale or offset of the neighbouring group is used"),
    kind("rounding-dropped", "a rounding point of the formula is left out"),
    kind("rounding-added", "a value is rounded where the formula does not round"),
    kind("eps-outside", "epsilon is added outside the root that it guards"),
    kind("max-from-zero", "a running maximum starts at 0"),
    kind("last-tile-dropped", "a reduction stops before its last tile"),
    kind("mask-by-multiplication", "masked terms are multiplied by 0, which keeps NaN and Inf"),
    kind(OTHER, "as the entry says"),
];

const fn kind(name: &'static str, what: &'static str) -> FaultKind {
    FaultKind { name, what }
}

/// One fault of one kernel, as a manifest states it.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The kernel's contract under the fault's own name and at the fault's shapes. Its module is
    /// the correct one until [`Fault::built`] replaces it.
    pub spec: Spec,
    /// The kernel that it is a broken build of.
    pub of: String,
    /// What is wrong, out of [`CATALOGUE`].
    pub kind: &'static FaultKind,
    /// The name that the source tests for.
    pub define: String,
    /// The gate that should catch it.
    pub gate: Gate,
    /// What is wrong with this kernel, in one line.
    pub what: String,
    /// Why its margin may lie within ten times the correct kernel's.
    pub close: Option<String>,
}

impl Fault {
    /// The fault's build below the folder of all builds: the module's source, without its
    /// extension, as a folder, and in it the define as a PTX file.
    pub fn build_path(&self) -> PathBuf {
        let module = self.spec.module.as_deref();
        let source = module.map_or(Path::new(""), |module| {
            module.source.as_deref().unwrap_or(module.path.as_path())
        });
        // Nothing above or outside the folder of builds is read, wherever a source lies.
        let inside = |part: &Component<'_>| matches!(part, Component::Normal(_));
        let folder: PathBuf = source.components().filter(inside).collect();
        folder.with_extension("").join(format!("{}.ptx", self.define))
    }

    /// The fault with the PTX of its build.
    ///
    /// # Errors
    /// A build that is the correct kernel's own code, or no text: nothing would be broken.
    pub fn built(&self, ptx: Vec<u8>) -> Result<BuiltFault, String> {
        let Ok(text) = std::str::from_utf8(&ptx) else {
            return Err("the build is no PTX text".to_owned());
        };
        let correct = self.spec.module.as_deref().map(|module| module.bytes.as_slice());
        let correct = correct.map(String::from_utf8_lossy).unwrap_or_default();
        if without_banner(text) == without_banner(&correct) {
            return Err("the build is the correct kernel's own code".to_owned());
        }
        let mut spec = self.spec.clone();
        spec.module = Some(Arc::new(ModuleRef {
            name: self.spec.name.clone(),
            kind: ModuleKind::Ptx,
            path: self.build_path(),
            bytes: Arc::new(ptx),
            source: spec.module.as_ref().and_then(|module| module.source.clone()),
            compiled: Compiled::Unknown,
            chips: Vec::new(),
            target: None,
        }));
        Ok(BuiltFault { fault: self.clone(), kernel: ManifestKernel::new(spec) })
    }
}

/// The PTX from its first line that is no comment: the banner names the compiler's build.
fn without_banner(ptx: &str) -> &str {
    let banner: usize =
        ptx.split_inclusive('\n').take_while(|line| line.starts_with("//")).map(str::len).sum();
    &ptx[banner..]
}

/// A fault that can be run.
#[derive(Debug)]
pub struct BuiltFault {
    /// What the manifest says about it.
    pub fault: Fault,
    /// The broken kernel.
    pub kernel: ManifestKernel,
}

impl BuiltFault {
    /// The fault's name.
    pub fn name(&self) -> &str {
        &self.kernel.spec().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_reference::Signature;

    fn fault(source: &str, ptx: &str) -> Fault {
        let mut spec = Spec::new("k_max_from_zero", Signature::default());
        spec.module = Some(Arc::new(ModuleRef {
            name: "k".to_owned(),
            kind: ModuleKind::Ptx,
            path: "k.ptx".into(),
            bytes: Arc::new(ptx.as_bytes().to_vec()),
            source: Some(source.into()),
            compiled: Compiled::Unknown,
            chips: Vec::new(),
            target: None,
        }));
        let kind = CATALOGUE.iter().find(|kind| kind.name == "max-from-zero").expect("a kind");
        Fault {
            spec,
            of: "k".to_owned(),
            kind,
            define: "max_from_zero".to_owned(),
            gate: Gate::Shapes,
            what: String::new(),
            close: None,
        }
    }

    #[test]
    fn a_build_lies_in_a_folder_of_its_source_and_never_outside() {
        let path = |source: &str| fault(source, "").build_path();
        assert_eq!(path("norms/k.cu"), Path::new("norms/k/max_from_zero.ptx"));
        assert_eq!(path("../../etc/k.cu"), Path::new("etc/k/max_from_zero.ptx"));
        assert_eq!(path("/etc/k.cu"), Path::new("etc/k/max_from_zero.ptx"));
    }

    #[test]
    fn a_build_that_is_the_correct_kernel_is_refused_whatever_its_banner_says() {
        let fault = fault("k.cu", "// Build 1\n.version 9.0\n");
        let error = fault.built(b"// Build 2\n.version 9.0\n".to_vec()).expect_err("the same code");
        assert!(error.contains("the correct kernel's own code"), "{error}");
        let built = fault.built(b".version 8.0\n".to_vec()).expect("other code");
        let module = built.kernel.spec().module.as_ref().expect("the build");
        assert_eq!(module.path, Path::new("k/max_from_zero.ptx"));
        assert!(fault.built(vec![0xff]).is_err());
    }

    #[test]
    fn the_catalogue_names_every_kind_once() {
        for (at, kind) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..at].iter().all(|other| other.name != kind.name), "{}", kind.name);
        }
    }
}
