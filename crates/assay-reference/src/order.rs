//! Sums carried in a narrow format in a given order, rounding after every addition.

use assay_num::Format;

use crate::evaluate::{Order, Replay};

/// The terms of one sum, added in order once all are there.
pub(crate) struct OrderedSum {
    replay: Replay,
    terms: Vec<f64>,
}

impl OrderedSum {
    pub(crate) fn new(replay: Replay, terms: i64) -> Self {
        Self { replay, terms: Vec::with_capacity(terms.clamp(0, 1 << 20) as usize) }
    }

    pub(crate) fn extend(&mut self, terms: &[f64]) {
        self.terms.extend_from_slice(terms);
    }

    /// The sum.
    pub(crate) fn total(&self) -> f64 {
        let add = adder(self.replay.accumulator);
        let mut partials = self.partials(add);
        let join = if self.replay.partials_fp32 { adder(Format::F32) } else { add };
        // Halves are folded onto each other, as a tree of shuffles does.
        while partials.len() > 1 {
            let half = partials.len().div_ceil(2);
            for at in half..partials.len() {
                partials[at - half] = join(partials[at - half], partials[at]);
            }
            partials.truncate(half);
        }
        partials.first().copied().unwrap_or(0.0)
    }

    /// The sum of each thread.
    fn partials(&self, add: fn(f64, f64) -> f64) -> Vec<f64> {
        let terms = &self.terms;
        match self.replay.order {
            Order::Chain => chunked(terms, terms.len(), add),
            Order::Halves => chunked(terms, terms.len().div_ceil(2), add),
            Order::Lanes(lanes) => strided(terms, lanes, 1, add),
            Order::Strided { threads, vector } => strided(terms, threads, vector, add),
            Order::Chunked { threads } => {
                chunked(terms, terms.len().div_ceil(threads.max(1) as usize), add)
            }
        }
    }
}

fn chunked(terms: &[f64], size: usize, add: fn(f64, f64) -> f64) -> Vec<f64> {
    let chain = |chunk: &[f64]| chunk.iter().fold(0.0, |sum, term| add(sum, *term));
    terms.chunks(size.max(1)).map(chain).collect()
}

fn strided(terms: &[f64], threads: u32, vector: u32, add: fn(f64, f64) -> f64) -> Vec<f64> {
    let (threads, vector) = (threads.max(1) as usize, vector.max(1) as usize);
    let mut partials = vec![0.0; threads];
    for (position, term) in terms.iter().enumerate() {
        let sum = &mut partials[position / vector % threads];
        *sum = add(*sum, *term);
    }
    partials
}

/// Addition in a format.
fn adder(format: Format) -> fn(f64, f64) -> f64 {
    match format {
        Format::F64 => |a, b| a + b,
        Format::F32 => |a, b| f64::from((a + b) as f32),
        Format::F16 => |a, b| Format::F16.round(a + b),
        _ => |a, b| Format::Bf16.round(a + b),
    }
}

#[cfg(test)]
mod tests {
    use assay_num::Format;

    use super::OrderedSum;
    use crate::evaluate::{Order, Replay};

    fn total(terms: &[f64], accumulator: Format, order: Order, partials_fp32: bool) -> f64 {
        let mut sum = OrderedSum::new(Replay { accumulator, order, partials_fp32 }, 0);
        sum.extend(terms);
        sum.total()
    }

    #[test]
    fn a_bf16_chain_stops_growing_where_one_is_half_a_unit() {
        let ones = [1.0; 1000];
        assert_eq!(total(&ones, Format::Bf16, Order::Chain, false), 256.0);
        assert_eq!(total(&ones, Format::F32, Order::Chain, false), 1000.0);
    }

    #[test]
    fn halves_and_lanes_grow_further_than_a_chain() {
        let ones = [1.0; 1024];
        assert_eq!(total(&ones, Format::Bf16, Order::Halves, false), 512.0);
        assert_eq!(total(&ones, Format::Bf16, Order::Lanes(32), false), 1024.0);
        assert_eq!(total(&ones, Format::Bf16, Order::Chunked { threads: 2 }, false), 512.0);
    }

    #[test]
    fn partials_in_fp32_keep_what_the_tree_would_lose() {
        let mut terms = [0.0; 64];
        (terms[0], terms[33]) = (256.0, 1.0);
        let order = Order::Strided { threads: 32, vector: 1 };
        assert_eq!(total(&terms, Format::Bf16, order, false), 256.0);
        assert_eq!(total(&terms, Format::Bf16, order, true), 257.0);
    }

    #[test]
    fn a_vector_strided_thread_takes_neighbours() {
        // Thread 0 holds the terms 0, 1, 4 and 5: 256 swallows the ones there.
        let terms = [256.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        let order = Order::Strided { threads: 2, vector: 2 };
        assert_eq!(total(&terms, Format::Bf16, order, true), 256.0);
        let order = Order::Strided { threads: 2, vector: 1 };
        assert_eq!(total(&terms, Format::Bf16, order, true), 258.0);
    }

    #[test]
    fn the_sum_of_no_terms_is_zero_in_every_order() {
        for order in [Order::Chain, Order::Halves, Order::Lanes(32), Order::Chunked { threads: 7 }]
        {
            assert_eq!(total(&[], Format::F16, order, true), 0.0);
        }
    }

    #[test]
    fn f16_sums_overflow() {
        assert_eq!(total(&[60000.0; 4], Format::F16, Order::Chain, false), f64::INFINITY);
    }
}
