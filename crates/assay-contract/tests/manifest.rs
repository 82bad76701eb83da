//! Manifests: what loads, and what each mistake is answered with.

use std::fmt::Write as _;
use std::path::Path;

use assay_contract::fault::CATALOGUE;
use assay_contract::manifest::{EmbeddedFiles, Manifest, parse_manifest};
use assay_contract::spec::{NanRule, Role};
use assay_contract::{Kernel, load_manifest};
use assay_num::Format;
use assay_record::Gate;
use assay_reference::dims;

const GOOD: &str = r#"schema = 1
[module.sum]
cuda = "sum.cu"
ptx = "sum.ptx"
[kernel.row_sum]
module = "sum"
family = "rows.sum"
dims.rows = { served = [1, 7] }
dims.cols = { served = [1000, 4096], tile = 1024, step = 4, least = 4 }
args = [
    { name = "x", role = "in", type = "f32", shape = ["rows", "cols"] },
    { name = "y", role = "out", type = "f32", shape = ["rows"] },
    { name = "rows", role = "dim", type = "i32" },
    { name = "cols", role = "dim", type = "i32" },
]
depth = { c = "cols/256 + 8" }
orders = ["vector_strided 256 4"]
launches = [
    { symbol = "row_sum", grid = ["rows"], block = [256], args = ["x", "y", "rows", "cols"] },
]
"#;

const FILES: EmbeddedFiles<'static> = EmbeddedFiles(&[
    ("sum.ptx", b".version 8.0"),
    ("sum.cubin", b"\x7fELF"),
    ("binary.ptx", b"\xff\xfe\xfd"),
]);

fn parse(text: &str) -> Manifest {
    parse_manifest("suite.toml", text, &FILES)
}

/// The good manifest with one text replaced by another.
fn with(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` must occur once");
    GOOD.replace(from, to)
}

#[test]
fn a_good_manifest_becomes_a_spec() {
    let manifest = parse(GOOD);
    assert_eq!(manifest.errors, []);
    let spec = manifest.kernels[0].spec();
    assert_eq!((spec.name.as_str(), spec.source.line), ("row_sum", 5));
    assert_eq!(spec.served().len(), 4);
    assert_eq!(spec.dims["cols"].edges(), [4, 1020, 1024, 1028, 4096]);
    assert_eq!(spec.arguments[0].role, Role::In);
    assert_eq!((spec.accumulator, spec.nan), (Format::F32, NanRule::Propagate));
    let depth = &spec.arithmetic.depth["c"];
    assert_eq!(depth.eval(&dims([("cols", 1024)])), Ok(12));
    let module = spec.module.as_ref().expect("a manifest kernel has a module");
    assert_eq!(module.path, Path::new("sum.ptx"));
    assert_eq!(spec.launches[0].source.to_string(), "suite.toml:19:16");
}

#[test]
fn a_launch_may_have_clusters_and_all_blocks_at_once() {
    let plain = &parse(GOOD).kernels[0].spec().launches[0].clone();
    assert!(!plain.cooperative && plain.cluster.iter().all(|axis| axis.eval(&dims([])) == Ok(1)));
    let text = with("block = [256],", "block = [256], cluster = [\"2\", 4], cooperative = true,");
    let manifest = parse(&text);
    assert_eq!(manifest.errors, []);
    let launch = &manifest.kernels[0].spec().launches[0];
    let cluster = launch.cluster.each_ref().map(|axis| axis.eval(&dims([])));
    assert_eq!((cluster, launch.cooperative), ([Ok(2), Ok(4), Ok(1)], true));
}

#[test]
fn every_key_of_a_kernel_is_read() {
    let text = with(
        "orders = [\"vector_strided 256 4\"]",
        r#"orders = ["strided 32", "chunked 8", "lanes 32", "chain", "halves"]
cases = [{ rows = 3, cols = 8 }]
accumulator = "f64"
arithmetic = { division = "approx", sqrt = "approx", rsqrt = "approx", exp = "ex2", flush = true }
in_place = [["y", "x"]]
replaces = "other"
nan = "stated"
hides_sums = "the output has eight bits"
known = [{ gate = "shapes", what = "wrong at 4", since = "2026-11", link = "issue 1" }]
control = { gate = "repeat", of = "row_max" }
backends = ["cuda"]
budget = "rows*cols"
what = "sums rows""#,
    );
    let manifest = parse(&text);
    assert_eq!(manifest.errors, []);
    let spec = manifest.kernels[0].spec();
    assert_eq!(spec.served(), [dims([("rows", 3), ("cols", 8)])]);
    assert_eq!(spec.orders.len(), 5);
    assert!(spec.arithmetic.flush_subnormals);
    assert_eq!(spec.arithmetic.accumulators["c"], Format::F64);
    assert_eq!(spec.in_place_of("y"), Some("x"));
    assert_eq!(spec.replaces.as_deref(), Some("other"));
    assert_eq!(spec.nan, NanRule::Stated);
    assert_eq!(spec.known_for(Gate::Shapes).map(|known| known.link.as_str()), Some("issue 1"));
    assert_eq!(spec.control_for, Some(Gate::Repeat));
    assert!(spec.runs_on("cuda") && !spec.runs_on("emulator"));
}

#[test]
fn a_sum_on_tensor_cores_says_its_elements_its_instruction_and_its_chain() {
    let cores = "{ elements = \"f32\", depth = 16, chain = \"(cols + 15)/16\" }";
    let arithmetic = format!("arithmetic = {{ tensor_cores = {{ c = {cores} }} }}\ndepth =");
    let dot =
        with("family = \"rows.sum\"", "formula = \"y[r] = sum(c in 0..cols: x[r, c] * x[r, c])\"");
    let text = dot.replace("depth =", &arithmetic.replace("f32", "bf16"));
    let manifest = parse(&text);
    assert_eq!(manifest.errors, []);
    let cores = &manifest.kernels[0].spec().arithmetic.tensor_cores["c"];
    assert_eq!((cores.elements, cores.depth), (Format::Bf16, 16));
    let chain = cores.chain.as_ref().expect("it has a chain");
    assert_eq!(chain.eval(&dims([("cols", 100)])), Ok(7));
    let wrong = dot.replace("depth =", &arithmetic);
    assert!(parse(&wrong).errors[0].to_string().contains("f16, bf16, tf32, e4m3, e5m2"));
}

#[test]
fn good_kernels_load_beside_bad_ones() {
    let second = GOOD.split_once("[kernel.row_sum]").expect("there is a kernel").1;
    let bad = second.replace("rows.sum", "rows.som");
    let manifest = parse(&format!("{GOOD}\n[kernel.bad]{bad}\n[kernel.third]{second}"));
    let names: Vec<_> = manifest.kernels.iter().map(|k| k.spec().name.as_str()).collect();
    assert_eq!(names, ["row_sum", "third"]);
    assert_eq!(manifest.errors.len(), 1);
    assert_eq!(manifest.errors[0].kernel.as_deref(), Some("bad"));
}

#[test]
fn a_scalar_is_what_its_format_holds() {
    let text = with(
        "    { name = \"rows\", role = \"dim\", type = \"i32\" },",
        "    { name = \"rows\", role = \"dim\", type = \"i32\" },\n    \
         { name = \"eps\", role = \"scalar\", type = \"f32\", value = 1e-6 },",
    );
    let manifest = parse(&text);
    assert_eq!(manifest.errors, []);
    let spec = manifest.kernels[0].spec();
    assert_eq!(spec.signature.scalars["eps"], f64::from(1e-6f32));
}

#[test]
fn the_built_in_suite_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda");
    let entries = folder.read_dir().expect("the suite is there").map(|entry| entry.unwrap().path());
    let manifests: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    assert!(manifests.len() > 5, "the suite has a manifest for each source");
    for file in manifests {
        let manifest = load_manifest(&file);
        let errors: Vec<String> = manifest.errors.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n\n"));
        assert!(!manifest.kernels.is_empty());
    }
}

#[test]
fn a_manifest_that_is_not_there_is_one_error() {
    let manifest = load_manifest(Path::new("nowhere/suite.toml"));
    assert_eq!(manifest.errors.len(), 1);
    let text = manifest.errors[0].to_string();
    assert!(text.starts_with("nowhere/suite.toml: cannot read the manifest"), "{text}");
}

type Mistake = (&'static str, String);

/// Each mistake: what it is called, and the manifest with it.
fn mistakes() -> Vec<Mistake> {
    let groups = [in_the_file(), in_modules(), in_formulas(), in_words(), in_dims(), in_args()];
    groups.into_iter().flatten().chain(in_launches()).collect()
}

fn in_the_file() -> Vec<Mistake> {
    vec![
        ("no TOML", with("module = \"sum\"", "module = ")),
        ("a kernel twice", format!("{GOOD}[kernel.row_sum]\nmodule = \"sum\"\n")),
        ("no schema", with("schema = 1\n", "")),
        ("a newer schema", with("schema = 1", "schema = 2")),
        ("no kernel", "schema = 1\n".to_owned()),
        ("an unknown section", format!("{GOOD}[kernels.x]\n")),
        ("an unknown key", with("family =", "famly =")),
        ("an unknown key of an argument", with("role = \"out\"", "roll = \"out\"")),
        ("an unknown key of a dim", with("tile = 1024", "tiles = 1024")),
        ("an unknown key of a launch", with("block = [256]", "blocks = [256]")),
        ("a kernel's name with capitals", with("[kernel.row_sum]", "[kernel.RowSum]")),
        ("a value of the wrong kind", with("module = \"sum\"", "module = 3")),
    ]
}

fn in_modules() -> Vec<Mistake> {
    vec![
        ("a missing module", with("module = \"sum\"", "module = \"sums\"")),
        ("a module file that is not there", with("\"sum.ptx\"", "\"some.ptx\"")),
        ("a module that is source only", with("ptx = \"sum.ptx\"\n", "")),
        ("a module of nothing", with("cuda = \"sum.cu\"\nptx = \"sum.ptx\"\n", "")),
        ("a module kind of later", with("ptx = \"sum.ptx\"", "hsaco = \"sum.hsaco\"")),
        ("PTX that is no text", with("\"sum.ptx\"", "\"binary.ptx\"")),
    ]
}

fn in_formulas() -> Vec<Mistake> {
    let cores = |what: &str| {
        let arithmetic = format!("arithmetic = {{ tensor_cores = {{ c = {what} }} }}\ndepth =");
        with("depth =", &arithmetic)
    };
    let formula = |text: &str| with("family = \"rows.sum\"", &format!("formula = {text}"));
    let later = "m[r] = max(c in 0..cols: x[r,c])\ny[r] = sum(c in 0..cols: z[r,c])";
    let other =
        with("{ name = \"y\"", "{ name = \"z\"").replace("\"y\", \"rows\"", "\"z\", \"rows\"");
    vec![
        ("an unknown family", with("rows.sum", "rows.summ")),
        ("no reference", with("family = \"rows.sum\"\n", "")),
        ("family and formula", with("family =", "formula = \"y[r] = 1\"\nfamily =")),
        ("a formula that does not parse", formula("\"y[r] = sum(c in 0..cols: x[r,c]\"")),
        ("an unbound index", formula("\"y[r] = sum(c in 0..cols: x[r,k])\"")),
        ("a wrong rank", formula("\"y[r] = sum(c in 0..cols: x[c])\"")),
        ("an error in a later line", formula(&format!("\"\"\"\n{later}\n\"\"\""))),
        ("an error behind an escape", formula("\"y[r] =\\u0020sum(c in 0..cols: z[r,c])\"")),
        ("a family of other tensors", other),
        ("an unknown reduction", with("depth = { c =", "depth = { k =")),
        ("a depth below zero", with("cols/256 + 8", "cols/256 - 80")),
        ("tensor cores for a sum of no products", cores("{ elements = \"f16\", depth = 16 }")),
        ("tensor cores of an unknown key", cores("{ elements = \"f16\", k = 16 }")),
        ("tensor cores without elements", cores("{ depth = 16 }")),
        ("an instruction of no products", cores("{ elements = \"f16\", depth = 0 }")),
    ]
}

fn in_words() -> Vec<Mistake> {
    let y = "type = \"f32\", shape = [\"rows\"]";
    let rule = "rule = { name = \"top\", k = 2 }";
    vec![
        ("an unknown rule", with("family = \"rows.sum\"", rule)),
        ("an unknown format", with(y, &y.replace("f32", "fp32"))),
        ("an unknown role", with("role = \"out\"", "role = \"output\"")),
        ("an unknown gate", with("depth =", "control = { gate = \"nonfinite\" }\ndepth =")),
        ("an unknown order", with("vector_strided 256 4", "stride 256")),
        ("an order without its numbers", with("vector_strided 256 4", "vector_strided 256")),
    ]
}

fn in_dims() -> Vec<Mistake> {
    vec![
        ("a served size below the least", with("[1000, 4096]", "[2, 4096]")),
        ("a served size over the most", with("least = 4 }", "least = 4, most = 2048 }")),
        ("a served size off the step", with("[1000, 4096]", "[1000, 4097]")),
        ("a served size of zero", with("[1, 7]", "[0, 7]")),
        ("a negative served size", with("[1, 7]", "[1, -7]")),
        ("no served size", with("[1, 7]", "[]")),
        ("a step of zero", with("step = 4", "step = 0")),
        ("a tile off the step", with("tile = 1024", "tile = 1023")),
        ("a size over 64 bits", with("[1, 7]", "[1, 99999999999999999999]")),
    ]
}

fn in_args() -> Vec<Mistake> {
    let shape = |to: &str| with("shape = [\"rows\", \"cols\"]", to);
    let no_dim = with("{ name = \"cols\", role", "{ name = \"columns\", role")
        .replace("\"rows\", \"cols\"] },\n]", "\"rows\", \"columns\"] },\n]");
    vec![
        ("a shape of an unknown dim", shape("shape = [\"rows\", \"columns\"]")),
        ("a shape that is no expression", shape("shape = [\"rows\", \"cols*\"]")),
        ("a shape that becomes zero", shape("shape = [\"rows/2\", \"cols\"]")),
        ("an alignment that is no power of two", shape("shape = [\"cols\"], align = 12")),
        ("strides of another rank", shape("shape = [\"rows\", \"cols\"], strides = [1]")),
        ("a dim argument without its dim", no_dim),
        ("two arguments of one name", with("{ name = \"y\"", "{ name = \"x\"")),
        ("no output", with("role = \"out\"", "role = \"scratch\"")),
        ("an inout without a pair", with("role = \"in\"", "role = \"inout\"")),
        ("a pair that is none", with("depth =", "in_place = [[\"x\", \"y\"]]\ndepth =")),
    ]
}

fn in_launches() -> Vec<Mistake> {
    let args = "args = [\"x\", \"y\", \"rows\", \"cols\"] }";
    let launch = "{ symbol = \"row_sum\", grid = [\"rows\"], block = [256], ";
    vec![
        ("an unknown argument in a launch", with(args, &args.replace('y', "z"))),
        ("an argument that no launch passes", with(args, &args.replace("\"y\", ", ""))),
        ("no launch", with(&format!("    {launch}{args},\n"), "")),
        ("a launch of zero threads", with("block = [256]", "block = [0]")),
        ("a grid of an unknown dim", with("grid = [\"rows\"]", "grid = [\"row\"]")),
        ("cooperation that is neither", with("block = [256],", "block = [256], cooperative = 1,")),
        ("a grid of four axes", with("grid = [\"rows\"]", "grid = [1, 1, 1, 1]")),
    ]
}

#[test]
fn each_mistake_is_one_error_with_its_place_and_a_hint() {
    let mut shown = String::new();
    for (what, text) in mistakes() {
        let manifest = parse(&text);
        assert!(!manifest.errors.is_empty(), "{what}: no error");
        assert!(manifest.kernels.is_empty(), "{what}: the kernel loaded");
        writeln!(shown, "# {what}").expect("a string takes all text");
        for error in manifest.errors {
            writeln!(shown, "{error}\n").expect("a string takes all text");
        }
    }
    insta::assert_snapshot!("mistakes", shown);
}

#[test]
fn no_truncated_manifest_panics() {
    for end in 0..GOOD.len() {
        if GOOD.is_char_boundary(end) {
            let _ = parse(&GOOD[..end]);
        }
    }
}

const FAULT: &str = r#"[fault.row_sum_short]
of = "row_sum"
kind = "dropped-tail"
gate = "shapes"
what = "the last columns are left out"
dims.rows = { served = [3] }
"#;

/// The good manifest with a fault, one text of which is replaced by another.
fn with_fault(from: &str, to: &str) -> String {
    assert_eq!(FAULT.matches(from).count(), 1, "`{from}` must occur once");
    format!("{GOOD}{}", FAULT.replace(from, to))
}

#[test]
fn a_fault_is_its_kernel_under_another_name_at_its_own_shapes() {
    let manifest = parse(&with_fault("kind", "close = \"why\"\nkind"));
    assert_eq!(manifest.errors, []);
    let (kernel, fault) = (manifest.kernels[0].spec(), &manifest.faults[0]);
    assert_eq!(fault.spec.name, "row_sum_short");
    assert_eq!((fault.of.as_str(), fault.spec.drawn_as.as_deref()), ("row_sum", Some("row_sum")));
    assert_eq!((fault.define.as_str(), fault.gate), ("dropped_tail", Gate::Shapes));
    assert_eq!(fault.close.as_deref(), Some("why"));
    assert_eq!(fault.spec.dims["rows"].served, [3]);
    assert_eq!(fault.spec.dims["cols"], kernel.dims["cols"]);
    assert_eq!(fault.build_path(), Path::new("sum/dropped_tail.ptx"));
    assert_eq!(fault.spec.source.line, 21);
}

#[test]
fn a_fault_of_many_kernels_is_one_of_each() {
    let second = GOOD.split_once("[kernel.row_sum]").expect("the kernel").1;
    let fault = FAULT.replace("\"row_sum\"", "[\"row_sum\", \"other_sum\"]");
    let manifest = parse(&format!("{GOOD}[kernel.other_sum]{second}{fault}"));
    assert_eq!(manifest.errors, []);
    let names: Vec<&str> = manifest.faults.iter().map(|f| f.spec.name.as_str()).collect();
    assert_eq!(names, ["row_sum_short@row_sum", "row_sum_short@other_sum"]);
}

#[test]
fn a_fault_may_stand_before_its_kernel_and_says_nothing_of_one_that_is_wrong() {
    let (head, kernel) = GOOD.split_once("[kernel.row_sum]").expect("the kernel");
    assert_eq!(parse(&format!("{head}{FAULT}[kernel.row_sum]{kernel}")).faults.len(), 1);
    let manifest = parse(&with_fault("what", "what").replace("rows.sum", "rows.som"));
    assert_eq!((manifest.errors.len(), manifest.faults.len()), (1, 0));
}

#[test]
fn each_mistake_in_a_fault_is_one_error_with_its_place_and_the_kernel_loads() {
    let known = "known = [{ gate = \"shapes\", what = \"w\", since = \"s\", link = \"l\" }]\ndepth";
    let mistakes = [
        ("an unknown kernel", with_fault("of = \"row_sum\"", "of = \"row_sun\"")),
        ("an unknown kind", with_fault("dropped-tail", "droped-tail")),
        ("an unknown gate", with_fault("\"shapes\"", "\"shape\"")),
        ("a gate that is not checked", with_fault("\"shapes\"", "\"limits\"")),
        ("a gate that asks nothing", {
            with_fault("\"shapes\"", "\"fp32-sums\"").replace("rows.sum", "rows.max")
        }),
        ("a gate that is known to fail", with_fault("what", "what").replace("depth", known)),
        ("no kernel", with_fault("of = \"row_sum\"\n", "")),
        ("no kind", with_fault("kind = \"dropped-tail\"\n", "")),
        ("no gate", with_fault("gate = \"shapes\"\n", "")),
        ("nothing said", with_fault("what = \"the last columns are left out\"\n", "")),
        ("another kind without a define", with_fault("dropped-tail", "other")),
        ("an unknown key", with_fault("what", "wat = 1\nwhat")),
        ("a name that is a kernel's", with_fault("row_sum_short", "row_sum")),
        ("a name that is none", with_fault("row_sum_short", "Row")),
        ("an unknown dim", with_fault("dims.rows", "dims.row")),
        ("a tile of its own", with_fault("[3]", "[3], tile = 1")),
        ("a size that is not served", with_fault("dims.rows", "dims.cols")),
        ("a planted control", {
            with_fault("what", "what").replace("depth", "control = { gate = \"shapes\" }\ndepth")
        }),
    ];
    let mut shown = String::new();
    for (what, text) in mistakes {
        let manifest = parse(&text);
        assert_eq!(manifest.errors.len(), 1, "{what}: {:?}", manifest.errors);
        assert_eq!((manifest.kernels.len(), manifest.faults.len()), (1, 0), "{what}");
        writeln!(shown, "# {what}\n{}\n", manifest.errors[0]).expect("a string takes all text");
    }
    insta::assert_snapshot!("fault_mistakes", shown);
}

#[test]
fn the_documentation_names_every_kind_of_fault() {
    let page = include_str!("../../../docs/manifest.md");
    for kind in &CATALOGUE {
        let line = format!("| `{}` | {} |", kind.name, kind.what);
        assert!(page.contains(&line), "docs/manifest.md lacks: {line}");
    }
}
