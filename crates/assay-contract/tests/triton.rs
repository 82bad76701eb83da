//! Triton sources in manifests: what a launch takes from Triton's metadata, and what each mistake
//! is answered with. No Triton runs here: the builds are given.

use std::io;
use std::path::Path;

use assay_contract::Kernel;
use assay_contract::limits::Compiled;
use assay_contract::manifest::{Files, Manifest, parse_manifest};
use assay_contract::spec::{ModuleKind, Role, Spec};
use assay_contract::triton::{
    TritonBuild, TritonBuilds, TritonFacts, TritonFailure, TritonSource, TritonValue,
};
use assay_reference::dims;

const GOOD: &str = r#"schema = 1
[module.sum]
[module.sum.triton]
file = "sum.py"
function = "row_sum"
signature = "*fp32:16, *fp32, i32"
constexprs = { BLOCK = 256, TYPE = "tl.float16", EPS = 0.5, MASK = true }
targets = ["sm_80", "sm_90"]
options = { num_warps = 8 }
[kernel.row_sum]
module = "sum"
family = "rows.sum"
dims.rows = { served = [1, 7] }
dims.cols = { served = [1000, 4096], tile = 1024 }
args = [
    { name = "x", role = "in", type = "f32", shape = ["rows", "cols"] },
    { name = "y", role = "out", type = "f32", shape = ["rows"] },
    { name = "cols", role = "dim", type = "i32" },
]
launches = [{ grid = ["rows", "2"], args = ["x", "y", "cols"] }]
"#;

/// Builds of 8 warps in clusters of 2, with 64 bytes of scratch a block; none for `sm_120`.
struct Canned;

impl Files for Canned {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new("sum.py") {
            return Ok(b"# a source".to_vec());
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "there is no such file"))
    }

    fn triton(&self, source: &TritonSource) -> TritonBuilds {
        let build = |target: &u32| match target {
            120 => Err(TritonFailure::Refused {
                message: "LLVM ERROR: no such thing".to_owned(),
                hint: Some("try another".to_owned()),
            }),
            70 => Err(TritonFailure::Missing { what: "Triton is not installed".to_owned() }),
            target => Ok(TritonBuild {
                ptx: format!(".version 8.7\n.target sm_{target}a\n"),
                path: format!("{}.sm_{target}.ptx", source.function).into(),
                compiled: Compiled::Unknown,
                facts: TritonFacts {
                    symbol: "row_sum_kernel".to_owned(),
                    warps: 8,
                    blocks_per_cluster: 2,
                    shared_bytes: 512,
                    global_scratch: (64, 128),
                    profile_scratch: (0, 1),
                    cooperative: false,
                },
            }),
        };
        source.targets.iter().map(|target| (*target, build(target))).collect()
    }
}

fn parse(text: &str) -> Manifest {
    parse_manifest("suite.toml", text, &Canned)
}

/// The good manifest with one text replaced by another.
fn with(from: &str, to: &str) -> Manifest {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` must occur once");
    parse(&GOOD.replace(from, to))
}

fn specs(manifest: &Manifest) -> Vec<&Spec> {
    manifest.kernels.iter().map(Kernel::spec).collect()
}

#[test]
fn each_target_is_a_kernel_of_its_own() {
    let manifest = parse(GOOD);
    assert_eq!(manifest.errors, []);
    let names: Vec<&str> = specs(&manifest).iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["row_sum@sm_80", "row_sum@sm_90"]);
    let architectures: Vec<_> =
        specs(&manifest).iter().map(|spec| spec.architecture().expect("one")).collect();
    assert_eq!(architectures, ["sm_80", "sm_90"]);
    let module = manifest.kernels[1].spec().module.clone().expect("it has one");
    assert_eq!(module.target.as_deref(), Some("sm_90a"));
    let runs = ["sm_80", "sm_90", "sm_100"].map(|chip| module.runs_on(chip));
    assert_eq!(runs, [false, true, false], "features of one chip run there alone");
}

#[test]
fn a_launch_takes_from_metadata_what_the_manifest_leaves_out() {
    let manifest = parse(GOOD);
    let spec = manifest.kernels[0].spec();
    let (launch, at) = (&spec.launches[0], dims([("rows", 7), ("cols", 1000)]));
    let sizes = |extents: &[assay_reference::Extent; 3]| {
        extents.each_ref().map(|extent| extent.eval(&at).expect("a size"))
    };
    assert_eq!(launch.symbol, "row_sum_kernel");
    assert_eq!(sizes(&launch.grid), [14, 2, 1], "two blocks of a cluster for each program");
    assert_eq!(sizes(&launch.block), [256, 1, 1]);
    assert_eq!(sizes(&launch.cluster), [2, 1, 1]);
    assert_eq!(launch.shared.eval(&at), Ok(512));
    assert_eq!(launch.arguments.len(), 5, "two pointers to scratch memory follow");
    let scratch = spec.argument(&launch.arguments[3]).expect("it is an argument");
    assert_eq!((scratch.role, scratch.align), (Role::Scratch, 128));
    assert_eq!(scratch.shape[0].eval(&at), Ok(64 * 14 * 2));
    let profile = spec.argument(&launch.arguments[4]).expect("it is an argument");
    assert_eq!((profile.role, profile.value), (Role::Scalar, Some(0.0)));
}

#[test]
fn what_the_manifest_says_of_the_source_is_what_is_compiled() {
    struct Asked(std::cell::RefCell<Option<TritonSource>>);
    impl Files for Asked {
        fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
            Canned.read(path)
        }
        fn triton(&self, source: &TritonSource) -> TritonBuilds {
            *self.0.borrow_mut() = Some(source.clone());
            Canned.triton(source)
        }
    }
    let asked = Asked(std::cell::RefCell::new(None));
    parse_manifest("suite.toml", GOOD, &asked);
    let source = asked.0.into_inner().expect("it was asked for");
    assert_eq!(source.signature, ["*fp32:16", "*fp32", "i32"]);
    assert_eq!(source.targets, [80, 90]);
    assert_eq!(source.options["num_warps"], TritonValue::Integer(8));
    assert_eq!(source.constexprs["EPS"], TritonValue::Number(0.5));
    assert_eq!(source.constexprs["MASK"], TritonValue::Flag(true));
    assert_eq!(source.constexprs["TYPE"], TritonValue::Text("tl.float16".to_owned()));
}

#[test]
fn a_target_that_triton_refuses_is_an_error_and_the_others_are_kernels() {
    let manifest = with("\"sm_90\"]", "\"sm_120\"]");
    assert_eq!(specs(&manifest).len(), 1);
    let error = &manifest.errors[0];
    assert_eq!(error.kernel.as_deref(), Some("row_sum"));
    assert_eq!(error.message, "module `sum`: Triton, for sm_120: LLVM ERROR: no such thing");
    assert_eq!(error.hint.as_deref(), Some("try another"));
    assert_eq!(manifest.errors.len(), 1);
}

#[test]
fn without_triton_the_kernel_is_there_and_says_why_it_cannot_run() {
    let manifest = with("\"sm_90\"]", "\"sm_70\"]");
    assert_eq!(manifest.errors, []);
    let module = manifest.kernels[1].spec().module.clone().expect("it has one");
    let why = "module `sum` is a Triton source: Triton is not installed";
    assert_eq!(module.kind, ModuleKind::Unbuilt(why.to_owned()));
}

#[test]
fn a_control_is_one_a_target() {
    let manifest = with("family =", "control = { gate = \"shapes\" }\nfamily =");
    assert!(specs(&manifest).iter().all(|spec| spec.is_control()));
    assert_eq!(manifest.kernels.len(), 2);
}

#[test]
fn a_fault_of_a_triton_kernel_is_refused() {
    let fault =
        "[fault.f]\nof = \"row_sum\"\nkind = \"dropped-tail\"\ngate = \"shapes\"\nwhat = \"x\"\n";
    let manifest = parse(&format!("{GOOD}{fault}"));
    assert!(manifest.errors[0].message.contains("which builds no faults yet"));
}

#[test]
fn each_mistake_is_answered_with_its_place_and_what_to_do() {
    let grid = "grid = [\"rows\", \"2\"]";
    let mistakes = [
        (grid, "grid = [\"rows\"], block = [256]", "`block` does not belong here"),
        (grid, "grid = [\"rows\"], symbol = \"s\"", "`symbol` does not belong here"),
        ("[\"x\", \"y\", \"cols\"]", "[\"x\", \"y\"]", "passes 2 arguments, the signature has 3"),
        ("*fp32, i32\"", "*bf16, i32\"", "argument `y`: it is a buffer of f32, the signature"),
        ("*fp32, i32\"", "*fp32, i64\"", "argument `cols`: it is a number of type i32"),
        ("*fp32, i32\"", "*fp32, i32:16\"", "argument `cols`: the signature promises `:16`"),
        ("*fp32, i32\"", "tensordesc<fp32[1, 2]>, i32\"", "tensor descriptors as arguments"),
        ("sm_90", "sm_90a", "`sm_90a` is no target of Triton"),
        ("\"sm_80\", \"sm_90\"", "", "`targets` is empty"),
        ("\"sm_80\", \"sm_90\"", "\"sm_80\", \"sm_80\"", "`sm_80` stands there twice"),
        ("file = \"sum.py\"", "file = \"other.py\"", "cannot read other.py"),
        ("file = \"sum.py\"", "", "`triton.file` is missing"),
        ("function =", "functions =", "unknown key `functions`"),
        ("[module.sum]\n", "[module.sum]\nptx = \"s\"\n", "with `triton` has no `ptx`"),
    ];
    for (from, to, message) in mistakes {
        let manifest = with(from, to);
        assert_eq!(manifest.kernels.len(), 0, "{to}");
        let error = &manifest.errors[0];
        assert!(error.message.contains(message), "{to}: {error}");
        assert_eq!(manifest.errors.len(), 1, "{to}: once, not for module and kernel");
        assert!(error.place.line > 0);
    }
}
