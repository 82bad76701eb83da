//! Which elements of an input a formula reads, where gathers decide that.

use std::sync::atomic::{AtomicU32, Ordering};

use assay_num::Format;

use crate::ast::Operator;
use crate::error::EvaluationError;
use crate::evaluate::Evaluation;
use crate::frame::Frame;
use crate::plan::{Access, Binary, Int, IntId, Program, Source, Stage, Unary};
use crate::real::{Carry, Real, RealSum, RealTile};
use crate::run::run;
use crate::tile::{Domain, Out, Place, Plane};

impl Program {
    /// True if an index of a read of the input called `tensor` comes from an input.
    pub fn gathers(&self, tensor: &str) -> bool {
        self.gathered(tensor).is_some()
    }

    /// The number of the input called `tensor`, if what is read of it depends on an input.
    fn gathered(&self, tensor: &str) -> Option<usize> {
        let input = self.signature.inputs.iter().position(|input| input.name == tensor)?;
        let gathers =
            |stage: &Stage| stage.accesses().any(|access| is_gather(stage, access, input));
        self.stages.iter().any(gathers).then_some(input)
    }

    /// How often each element of the input called `tensor` is read; what stays the same along a
    /// row of an output may be read once for the whole row. None if no index of a read of it comes
    /// from an input: then the shapes alone say what is read.
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn reads(
        &self,
        evaluation: &Evaluation<'_>,
        tensor: &str,
    ) -> Result<Option<Vec<u32>>, EvaluationError> {
        let Some(input) = self.gathered(tensor) else { return Ok(None) };
        let inputs = self.completed(evaluation)?;
        let evaluation = &Evaluation { inputs: &inputs, ..evaluation.clone() };
        let frame = Frame::new(self, evaluation)?;
        let elements = frame.inputs[input].elements;
        let counts = elements.iter().map(|_| AtomicU32::new(0)).collect();
        let recorder = Recorder {
            real: self.real(evaluation, Carry::Exact, None),
            first: elements.as_ptr() as usize,
            counts,
        };
        run(&frame, &recorder)?;
        Ok(Some(recorder.counts.into_iter().map(AtomicU32::into_inner).collect()))
    }
}

/// Whether the access reads input number `input` at an index that is read itself.
fn is_gather(stage: &Stage, access: &Access, input: usize) -> bool {
    access.source == Source::Input(input)
        && access.indices.iter().any(|index| has_gather(stage, *index))
}

fn has_gather(stage: &Stage, int: IntId) -> bool {
    match &stage.ints[int] {
        Int::Gather(_) => true,
        Int::Operation(_, a, b) | Int::Least(a, b) | Int::Largest(a, b) => {
            has_gather(stage, *a) || has_gather(stage, *b)
        }
        Int::Literal(_) | Int::Dim(_) | Int::Index(_) => false,
    }
}

/// The value domain, counting the reads of one input.
struct Recorder<'a> {
    real: Real<'a>,
    /// The address of the input's first element, which tells its plane from others.
    first: usize,
    counts: Vec<AtomicU32>,
}

impl Recorder<'_> {
    fn note(&self, plane: Plane<'_>, place: Place<'_>, count: usize) {
        let bytes = (plane.value.as_ptr() as usize).wrapping_sub(self.first);
        let base = bytes / size_of::<f64>();
        if plane.format.is_none() || base >= self.counts.len() {
            return;
        }
        for lane in 0..count {
            let at = match place {
                Place::Strided { start, stride } => {
                    start.wrapping_add_signed(stride * lane as isize)
                }
                Place::Each(offsets) => offsets[lane],
            };
            if let Some(seen) = at.checked_add(base).and_then(|at| self.counts.get(at)) {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Domain for Recorder<'_> {
    type Tile = RealTile;
    type Sum = RealSum;
    const BOUNDED: bool = false;

    fn literal(&self, value: f64, out: &mut RealTile) {
        self.real.literal(value, out);
    }
    fn whole(&self, value: &[i64], out: &mut RealTile, count: usize) {
        self.real.whole(value, out, count);
    }
    fn load(&self, plane: Plane<'_>, place: Place<'_>, out: &mut RealTile, count: usize) {
        self.note(plane, place, count);
        self.real.load(plane, place, out, count);
    }
    fn unary(&self, operation: Unary, a: &RealTile, out: &mut RealTile, count: usize) {
        self.real.unary(operation, a, out, count);
    }
    fn binary(&self, op: Binary, ab: [&RealTile; 2], out: &mut RealTile, count: usize) {
        self.real.binary(op, ab, out, count);
    }
    fn round(&self, format: Format, a: &RealTile, out: &mut RealTile, count: usize) {
        self.real.round(format, a, out, count);
    }
    fn near(&self, format: Format, a: &RealTile, out: &mut RealTile, count: usize) {
        self.real.near(format, a, out, count);
    }
    fn field(&self, word: &RealTile, fields: [&[i64]; 2], out: &mut RealTile, count: usize) {
        self.real.field(word, fields, out, count);
    }
    fn compare(&self, how: Operator, ab: [&RealTile; 2], out: &mut RealTile, count: usize) {
        self.real.compare(how, ab, out, count);
    }
    fn compare_whole(&self, how: Operator, ab: [&[i64]; 2], out: &mut RealTile, count: usize) {
        self.real.compare_whole(how, ab, out, count);
    }
    fn and(&self, ab: [&RealTile; 2], out: &mut RealTile, count: usize) {
        self.real.and(ab, out, count);
    }
    fn or(&self, ab: [&RealTile; 2], out: &mut RealTile, count: usize) {
        self.real.or(ab, out, count);
    }
    fn not(&self, a: &RealTile, out: &mut RealTile, count: usize) {
        self.real.not(a, out, count);
    }
    fn select(&self, cab: [&RealTile; 3], out: &mut RealTile, count: usize) {
        self.real.select(cab, out, count);
    }
    fn start(&self, position: usize, terms: i64) -> RealSum {
        self.real.start(position, terms)
    }
    fn add(&self, sum: &mut RealSum, position: usize, tiles: &[RealTile], count: usize) {
        self.real.add(sum, position, tiles, count);
    }
    fn finish(&self, sum: RealSum, position: usize, out: &mut RealTile) {
        self.real.finish(sum, position, out);
    }
    fn carry(&self, position: usize, tile: &mut RealTile, count: usize) {
        self.real.carry(position, tile, count);
    }
    fn store(&self, tile: &RealTile, count: usize, at: usize, out: &mut Out<'_>) {
        self.real.store(tile, count, at, out);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assay_num::Format;

    use crate::{Arithmetic, Evaluation, Formula, Inputs, Signature, Tensor, dims};

    fn reads(text: &str, tensor: &str) -> Option<Vec<u32>> {
        let of = |name: &str, format, shape: &[&str]| Tensor::new(name, format, shape).unwrap();
        let signature = Signature {
            dims: vec!["n".to_owned(), "v".to_owned()],
            inputs: vec![
                of("id", Format::I32, &["n"]),
                of("w", Format::F32, &["v", "4"]),
                of("s", Format::F32, &["v", "2"]),
            ],
            outputs: vec![of("y", Format::F32, &["n", "4"])],
            scalars: BTreeMap::new(),
        };
        let program = Formula::parse(text).and_then(|f| f.check(&signature)).unwrap();
        let inputs =
            Inputs::new([("id", vec![2.0, 0.0, 2.0]), ("w", vec![1.0; 20]), ("s", vec![1.0; 10])]);
        let (dims, how) = (dims([("n", 3), ("v", 5)]), Arithmetic::default());
        program.reads(&Evaluation::new(&dims, &inputs, &how), tensor).unwrap()
    }

    #[test]
    fn gathered_elements_are_counted_as_often_as_they_are_read() {
        let text = "y[t, d] = w[id[t], d] * s[id[t], d / 2]";
        let mut of_w = vec![0; 20];
        of_w[0..4].fill(1);
        of_w[8..12].fill(2);
        assert_eq!(reads(text, "w"), Some(of_w));
        assert_eq!(reads(text, "s"), Some(vec![2, 2, 0, 0, 4, 4, 0, 0, 0, 0]));
        let summed = "y[t, d] = sum(k in 0..2: w[id[t], k] * s[id[t], k]) + d";
        let counts = reads(summed, "s").unwrap();
        assert!(counts[0] > 0 && counts[4] == 2 * counts[0] && counts[2] == 0, "{counts:?}");
    }

    #[test]
    fn inputs_at_indices_of_shapes_alone_are_not_counted() {
        assert_eq!(reads("y[t, d] = w[t, d] + s[id[t], 0]", "w"), None);
        assert_eq!(reads("y[t, d] = w[t, d] + s[id[t], 0]", "id"), None);
    }
}
