//! Kernels that are plain Rust functions of fp32 numbers, a row at a time, with their contracts.

use std::collections::BTreeMap;

use assay_contract::spec::{DimSpec, RuleSpec, Spec};
use assay_contract::subject::{RunError, RunRequest, RunResult, Subject};
use assay_num::Format;
use assay_reference::{Arithmetic, Extent, Formula, Limits, Order, Root, Signature, Tensor};

/// One row of a kernel's inputs; what the kernel has not is empty.
pub(crate) struct Row<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) w: &'a [f32],
    pub(crate) b: &'a [f32],
}

/// A kernel: one row in, one row of outputs out.
pub(crate) type Compute = fn(&Row<'_>) -> Vec<f32>;

/// The eps of every norm here.
pub(crate) const EPS: f32 = 1e-6;
/// The threads a row is spread over.
pub(crate) const THREADS: usize = 32;
/// The tile of the columns.
pub(crate) const TILE: i64 = 64;

/// A kernel with its contract.
pub(crate) struct RowKernel {
    spec: Spec,
    compute: Compute,
}

impl RowKernel {
    /// A kernel of a family, from fp32 to `output`, `"strided"` (its depth) over [`THREADS`].
    pub(crate) fn new(family: &str, output: Format, compute: Compute) -> RowKernel {
        RowKernel { spec: spec(family, None, output), compute }
    }

    /// A kernel of a formula in `x` and `y`, elementwise.
    pub(crate) fn elementwise(formula: &str, compute: Compute) -> RowKernel {
        RowKernel { spec: spec("elementwise", Some(formula), Format::F32), compute }
    }

    /// A kernel of a formula in steps: inputs by name, format and shape, of which the kernel sees
    /// the first as `x`, the second as `w` and the third as `b`.
    pub(crate) fn in_steps(
        formula: &str,
        inputs: &[(&str, Format, &[&str])],
        output: Format,
        compute: Compute,
    ) -> RowKernel {
        let mut spec = Spec::new(
            "rust_steps",
            Signature {
                inputs: inputs.iter().map(|(name, of, shape)| tensor(name, *of, shape)).collect(),
                ..signature("elementwise", output)
            },
        );
        planned(&mut spec, Formula::parse(formula).expect("a formula"));
        spec.dims = dims(&[1, 64], &[100, 512]);
        RowKernel { spec, compute }
    }

    /// The same kernel with inputs of another format.
    pub(crate) fn with_inputs(mut self, format: Format) -> RowKernel {
        for input in &mut self.spec.signature.inputs {
            input.format = format;
        }
        let formula = self.spec.formula.as_ref().expect("a formula");
        let program = formula.check(&self.spec.signature).expect("a program");
        self.spec.program = Some(program.into());
        self
    }

    /// The same kernel with its contract changed.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Spec)) -> RowKernel {
        change(&mut self.spec);
        self
    }
}

fn tensor(name: &str, format: Format, shape: &[&str]) -> Tensor {
    Tensor::new(name, format, shape).expect("extents parse")
}

fn signature(family: &str, output: Format) -> Signature {
    let matrix = |name: &str| tensor(name, Format::F32, &["rows", "cols"]);
    let vector = |name: &str| tensor(name, Format::F32, &["cols"]);
    let (inputs, per_row) = match family {
        "rows.dot" => (vec![matrix("a"), matrix("b")], true),
        "dense.gemv" => (vec![matrix("w"), vector("x")], true),
        "rows.rms_norm" => (vec![matrix("x"), vector("w")], false),
        "rows.layer_norm" => (vec![matrix("x"), vector("w"), vector("b")], false),
        "rows.softmax" | "elementwise" => (vec![matrix("x")], false),
        _ => (vec![matrix("x")], true),
    };
    let shape: &[&str] = if per_row { &["rows"] } else { &["rows", "cols"] };
    Signature {
        dims: vec!["rows".to_owned(), "cols".to_owned()],
        inputs,
        outputs: vec![tensor("y", output, shape)],
        scalars: BTreeMap::from([("eps".to_owned(), f64::from(EPS))]),
    }
}

fn spec(family: &str, formula: Option<&str>, output: Format) -> Spec {
    let mut spec = Spec::new("rust_kernel", signature(family, output));
    let formula = formula.map_or_else(
        || Formula::family(family).expect("a family"),
        |text| Formula::parse(text).expect("a formula"),
    );
    planned(&mut spec, formula);
    spec.dims = dims(&[1, 6], &[100, 300]);
    spec
}

/// Gives a spec its formula and how the kernels here compute.
fn planned(spec: &mut Spec, formula: Formula) {
    let program = formula.check(&spec.signature).unwrap_or_else(|error| panic!("{error}"));
    let depth = Extent::parse("(cols + 31)/32 + 12").expect("an extent");
    let depths = program.reductions().iter().map(|r| (r.name.clone(), depth.clone()));
    spec.arithmetic =
        Arithmetic { rsqrt: Root::Approx, depth: depths.collect(), ..Arithmetic::default() };
    spec.program = Some(program.into());
    spec.formula = Some(formula);
    spec.orders = vec![Order::Strided { threads: THREADS as u32, vector: 1 }];
}

fn dims(rows: &[i64], cols: &[i64]) -> BTreeMap<String, DimSpec> {
    let rows = DimSpec { served: rows.to_vec(), tile: None, step: 1, least: 1, most: None };
    let cols = DimSpec { served: cols.to_vec(), tile: Some(TILE), step: 1, least: 1, most: None };
    BTreeMap::from([("rows".to_owned(), rows), ("cols".to_owned(), cols)])
}

impl Subject for RowKernel {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        let tensors: BTreeMap<&str, Vec<f32>> = request
            .inputs
            .tensors
            .iter()
            .map(|(name, values)| {
                (name.as_str(), values.iter().map(|value| *value as f32).collect())
            })
            .collect();
        let rows = request.dims["rows"] as usize;
        let cols = request.dims["cols"] as usize;
        let shaped = self.spec.signature.inputs[0].name.as_str();
        let part = |name: &str, row: usize| -> &[f32] {
            let values = tensors.get(name).map(Vec::as_slice).unwrap_or_default();
            if values.len() == rows * cols && values.len() > cols {
                &values[row * cols..(row + 1) * cols]
            } else {
                values
            }
        };
        // The kernels' names for the first input and its companions.
        let companions: Vec<&str> =
            self.spec.signature.inputs[1..].iter().map(|tensor| tensor.name.as_str()).collect();
        let companion = |number: usize| companions.get(number).copied().unwrap_or_default();
        let mut y = Vec::new();
        for row in 0..rows {
            let values = Row {
                x: part(shaped, row),
                w: part(companion(0), row),
                b: part(companion(1), row),
            };
            y.extend((self.compute)(&values).into_iter().map(f64::from));
        }
        let bytes = self.spec.signature.outputs[0].format.encode_slice(&y);
        let outputs = BTreeMap::from([("y".to_owned(), bytes)]);
        Ok(RunResult { outputs, ..RunResult::default() })
    }
}

/// A kernel with the one it replaces.
pub(crate) struct Replacement {
    pub(crate) kernel: RowKernel,
    pub(crate) replaced: RowKernel,
}

impl Subject for Replacement {
    fn spec(&self) -> &Spec {
        &self.kernel.spec
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        self.kernel.run(request)
    }

    fn run_replaced(&mut self, request: &RunRequest<'_>) -> Option<Result<RunResult, RunError>> {
        Some(self.replaced.run(request))
    }
}

/// A top-k kernel: bf16 scores in, values and indices out.
pub(crate) struct TopK {
    spec: Spec,
    choose: fn(&[f32], usize) -> Vec<usize>,
}

impl TopK {
    /// A kernel with NaN largest, zeros equal and ties to the lower index in its contract.
    pub(crate) fn new(choose: fn(&[f32], usize) -> Vec<usize>) -> TopK {
        let signature = Signature {
            dims: vec!["rows".to_owned(), "cols".to_owned(), "k".to_owned()],
            inputs: vec![tensor("x", Format::Bf16, &["rows", "cols"])],
            outputs: vec![
                tensor("values", Format::Bf16, &["rows", "k"]),
                tensor("indices", Format::I32, &["rows", "k"]),
            ],
            scalars: BTreeMap::new(),
        };
        let mut spec = Spec::new("rust_top_k", signature);
        let parameters = [("k", "k"), ("nan", "largest"), ("zeros", "equal")];
        let parameters =
            parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        spec.rule = Some(RuleSpec { name: "top_k".to_owned(), parameters: parameters.collect() });
        spec.dims = dims(&[1, 7], &[64, 200]);
        let k = DimSpec { served: vec![1, 5], tile: None, step: 1, least: 1, most: None };
        spec.dims.insert("k".to_owned(), k);
        TopK { spec, choose }
    }
}

impl Subject for TopK {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        let cols = request.dims["cols"] as usize;
        let k = request.dims["k"] as usize;
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        for row in request.inputs.tensors["x"].chunks_exact(cols) {
            let row: Vec<f32> = row.iter().map(|value| *value as f32).collect();
            let mut chosen = (self.choose)(&row, k);
            chosen.truncate(k);
            for place in 0..k {
                values.push(chosen.get(place).map_or(f64::NEG_INFINITY, |at| f64::from(row[*at])));
                indices.push(chosen.get(place).map_or(-1.0, |at| *at as f64));
            }
        }
        let outputs = BTreeMap::from([
            ("values".to_owned(), Format::Bf16.encode_slice(&values)),
            ("indices".to_owned(), Format::I32.encode_slice(&indices)),
        ]);
        Ok(RunResult { outputs, ..RunResult::default() })
    }
}

/// Sums the pages of `x` that `at` names, of sixteen times as many.
pub(crate) struct Gather {
    spec: Spec,
    term: fn(f32) -> f32,
}

impl Gather {
    pub(crate) fn new(term: fn(f32) -> f32) -> Gather {
        let signature = Signature {
            dims: vec!["rows".to_owned(), "cols".to_owned()],
            inputs: vec![
                tensor("x", Format::F32, &["rows*16", "cols"]),
                tensor("at", Format::I32, &["rows"]),
            ],
            outputs: vec![tensor("y", Format::F32, &["rows"])],
            scalars: BTreeMap::new(),
        };
        let mut spec = Spec::new("rust_gather", signature);
        let formula = Formula::parse("y[r] = sum(c in 0..cols: x[at[r], c])");
        planned(&mut spec, formula.expect("a formula"));
        let extent = |text| Extent::parse(text).expect("an extent");
        let range = Some([extent("0"), extent("rows*16")]);
        let limits = BTreeMap::from([("at".to_owned(), Limits { range, ..Limits::default() })]);
        let program = spec.formula.as_ref().expect("a formula").check(&spec.signature);
        spec.program = Some(program.expect("a program").with_limits(limits).into());
        spec.dims = dims(&[1, 3], &[64, 100]);
        Gather { spec, term }
    }
}

impl Subject for Gather {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        let cols = request.dims["cols"] as usize;
        let (x, at) = (&request.inputs.tensors["x"], &request.inputs.tensors["at"]);
        let pages = at.iter().map(|page| &x[*page as usize * cols..][..cols]);
        let sum = |page: &[f64]| page.iter().map(|value| (self.term)(*value as f32)).sum::<f32>();
        let y: Vec<f64> = pages.map(|page| f64::from(sum(page))).collect();
        let outputs = BTreeMap::from([("y".to_owned(), Format::F32.encode_slice(&y))]);
        Ok(RunResult { outputs, ..RunResult::default() })
    }
}
