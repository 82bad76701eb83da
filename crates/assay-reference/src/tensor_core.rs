//! The rule for sums of products that tensor cores make.
//!
//! ISA 9.7.14.5.14 leaves order, rounding and precision open. By every published model (Fasi,
//! Higham, Mikaitis, Pranesh 2021; Khattak and Mikaitis, arXiv 2512.07004; MMA-Sim, arXiv
//! 2511.10909) products are exact; some products and the accumulator are aligned to the largest
//! exponent among them and cut to F fraction bits; they are added exactly, and the sum is cut or
//! rounded to what the accumulator holds.
//!
//! One such step of n products therefore errs by at most (n + 1) 2^-F X + r S: X is the power of
//! two that terms are aligned to, S the magnitude of the sum, r the last rounding. An element's
//! exponent is not normalised, so X is at most the largest max(|a|, m) max(|b|, m), with m the
//! least normal value of the elements; a zero product has none. With M the sum of these over all
//! terms whose product is not zero, each step errs by at most ((n + 1) 2^-F + r) M, and a chain of
//! steps by A / (1 - A) M, with A the sum of the factors along it.

use assay_num::Format;

use crate::arithmetic::TensorCores;
use crate::bound::BoundTile;
use crate::plan::{Binary, Node, NodeId, Stage};
use crate::tile::TILE;

/// The elements that the rule has constants for.
const ELEMENTS: [Format; 5] = [Format::F16, Format::Bf16, Format::Tf32, Format::E4m3, Format::E5m2];

/// How one stage's sum errs on tensor cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorRule {
    /// What A and B hold.
    pub(crate) elements: Format,
    /// The factors of the term.
    pub(crate) factors: [NodeId; 2],
    /// Products an instruction.
    pub(crate) depth: f64,
    /// Instructions on the longest way; the number of terms where none is declared.
    pub(crate) chain: Option<f64>,
}

/// The least exact of the published models.
struct Model {
    /// Products summed at once.
    step: f64,
    /// 2^-F
    cut: f64,
    /// The last rounding.
    result: f64,
}

impl Model {
    /// Volta keeps 23 bits of 4 products of 16 bits, Ampere adds 4 products of tf32 at once; of
    /// bytes Ada and Hopper's `wgmma` keep 13 bits, Ada of 16 products, and cut f32 sums to them.
    fn of(elements: Format, accumulator: Format) -> Model {
        let byte = matches!(elements, Format::E4m3 | Format::E5m2);
        let (step, cut) = if byte { (16.0, 2f64.powi(-13)) } else { (4.0, 2f64.powi(-23)) };
        let result = if accumulator == Format::F16 { Format::F16.unit_roundoff() } else { cut };
        Model { step, cut, result }
    }
}

/// The terms of some lanes, as tensor cores see them.
pub(crate) struct Terms {
    pub(crate) value: [f64; TILE],
    pub(crate) error: [f64; TILE],
    /// max(|a|, m) max(|b|, m)
    pub(crate) reach: [f64; TILE],
}

impl TensorRule {
    /// The rule of a stage; a reason where tensor cores cannot make its sum.
    pub(crate) fn of(
        declared: &TensorCores,
        stage: &Stage,
        chain: Option<f64>,
    ) -> Result<TensorRule, String> {
        if !ELEMENTS.contains(&declared.elements) {
            let known: Vec<&str> = ELEMENTS.iter().map(|format| format.name()).collect();
            let known = known.join(", ");
            return Err(format!("tensor cores have rules for elements of {known}"));
        }
        if declared.depth == 0 {
            return Err("an instruction of a tensor core has at least one product".to_owned());
        }
        let factors = factors(stage, stage.root).ok_or("the term is no product of two factors")?;
        let depth = f64::from(declared.depth);
        Ok(TensorRule { elements: declared.elements, factors, depth, chain })
    }

    /// The sum of the factors of M along the longest chain of `terms` terms.
    pub(crate) fn growth(&self, terms: f64, accumulator: Format) -> f64 {
        let Model { step, cut, result } = Model::of(self.elements, accumulator);
        let chain = self.chain.unwrap_or(terms);
        let products = (chain * self.depth).min(terms);
        let steps = (chain * (self.depth / step).ceil()).min(terms);
        products * cut + steps * (cut + result)
    }

    /// What sums below the least normal value lose, in `terms` terms and as many steps.
    pub(crate) fn underflow(&self, terms: f64, accumulator: Format) -> f64 {
        let cut = Model::of(self.elements, accumulator).cut;
        terms * (accumulator.min_subnormal() + 2.0 * cut * accumulator.min_normal())
    }

    /// The bits of a sum that no step cuts, and the least value that all steps keep.
    pub(crate) fn kept(&self, accumulator: Format) -> (i32, f64) {
        let cut = Model::of(self.elements, accumulator).cut;
        let bits = (1.0 - cut.log2()).min(f64::from(accumulator.significand_bits()));
        (bits as i32, accumulator.min_subnormal().max(cut * accumulator.min_normal()))
    }

    /// The terms of the first `count` lanes: exact products of elements that may have been
    /// converted. `root` tells which terms a condition leaves out.
    pub(crate) fn terms(&self, root: &BoundTile, [a, b]: [&BoundTile; 2], count: usize) -> Terms {
        let mut terms = Terms { value: [0.0; TILE], error: [0.0; TILE], reach: [0.0; TILE] };
        let least = self.elements.min_normal();
        for lane in 0..count {
            if root.value[lane] == 0.0 && root.error[lane] == 0.0 {
                continue;
            }
            let [x, y] = [a, b].map(|tile| tile.value[lane].abs());
            let [ex, ey] = [a, b].map(|tile| self.converted(tile.value[lane], tile.error[lane]));
            let own = x * ey + y * ex + ex * ey;
            // Where a condition is undecided the term may be the product or none.
            let undecided = root.trouble.undecided >> lane & 1 == 1;
            terms.value[lane] = root.value[lane];
            terms.error[lane] = if undecided { own.max(root.error[lane]) } else { own };
            terms.reach[lane] = (x + ex).max(least) * (y + ey).max(least);
        }
        terms
    }

    /// The error of a factor once it is an element: none where the format holds it, else of a
    /// conversion that rounds or cuts.
    fn converted(&self, value: f64, error: f64) -> f64 {
        if error == 0.0 && self.elements.round(value) == value {
            return 0.0;
        }
        let unit = 2.0 * self.elements.unit_roundoff();
        error + unit * (value.abs() + error) + self.elements.min_subnormal()
    }
}

/// The factors of a product, which a condition may guard.
fn factors(stage: &Stage, node: NodeId) -> Option<[NodeId; 2]> {
    match stage.nodes[node] {
        Node::Binary(Binary::Multiply, a, b) => Some([a, b]),
        Node::Select(_, term, none) if stage.nodes[none] == Node::Literal(0) => {
            factors(stage, term)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(elements: Format, depth: f64, chain: Option<f64>) -> TensorRule {
        TensorRule { elements, factors: [0, 0], depth, chain }
    }

    #[test]
    fn a_declared_chain_counts_its_products_and_steps_and_never_more_than_there_are_terms() {
        let unit = 2f64.powi(-23);
        // Two instructions of four steps: 32 products are cut, 8 sums and as many accumulators.
        let growth = rule(Format::F16, 16.0, Some(2.0)).growth(4096.0, Format::F32);
        assert_eq!(growth, (32.0 + 16.0) * unit);
        let whole = rule(Format::F16, 16.0, None).growth(4.0, Format::F32);
        assert_eq!(whole, (4.0 + 8.0) * unit);
        assert_eq!(rule(Format::F16, 16.0, Some(1000.0)).growth(4.0, Format::F32), whole);
    }

    #[test]
    fn sums_of_bytes_are_cut_far_earlier_than_those_of_halves() {
        let [bytes, halves] = [Format::E4m3, Format::F16]
            .map(|elements| rule(elements, 32.0, Some(1.0)).growth(32.0, Format::F32));
        assert!(bytes > 500.0 * halves);
        let kept = |elements, accumulator| rule(elements, 32.0, None).kept(accumulator).0;
        assert_eq!(kept(Format::F16, Format::F32), 24);
        assert_eq!(kept(Format::E4m3, Format::F32), 14);
        assert_eq!(kept(Format::E4m3, Format::F16), 11);
    }
}
