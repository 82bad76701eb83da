//! Names of summation orders, and where their accumulators start.

use crate::Order;

/// The order as case names and reports spell it: `chain`, `halves`, `lanes-32`, `strided-256`,
/// `strided-256x4`, `chunked-64`.
pub fn order_name(order: &Order) -> String {
    match order {
        Order::Chain => "chain".to_owned(),
        Order::Halves => "halves".to_owned(),
        Order::Lanes(lanes) => format!("lanes-{lanes}"),
        Order::Strided { threads, vector: 1 } => format!("strided-{threads}"),
        Order::Strided { threads, vector } => format!("strided-{threads}x{vector}"),
        Order::Chunked { threads } => format!("chunked-{threads}"),
    }
}

/// The first term each accumulator takes, of `terms`; accumulators without a term are left out.
pub fn first_places(order: &Order, terms: usize) -> Vec<usize> {
    let every = |count: usize, step: usize| {
        (0..count).map(|number| number * step).filter(|place| *place < terms).collect()
    };
    match order {
        Order::Chain => every(1, 1),
        Order::Halves => every(2, terms.div_ceil(2).max(1)),
        Order::Lanes(lanes) => every(*lanes as usize, 1),
        Order::Strided { threads, vector } => every(*threads as usize, *vector as usize),
        Order::Chunked { threads } => {
            every(*threads as usize, terms.div_ceil((*threads as usize).max(1)).max(1))
        }
    }
}

/// The most terms one accumulator takes, of `terms`.
pub fn terms_per_accumulator(order: &Order, terms: usize) -> usize {
    match order {
        Order::Chain => terms,
        Order::Halves => terms.div_ceil(2),
        Order::Lanes(lanes) => terms.div_ceil((*lanes as usize).max(1)),
        Order::Strided { threads, vector } => {
            let vector = *vector as usize;
            let rounds = terms.div_ceil((*threads as usize * vector).max(1));
            (rounds * vector).min(terms)
        }
        Order::Chunked { threads } => terms.div_ceil((*threads as usize).max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accumulators_start_where_their_threads_do() {
        assert_eq!(first_places(&Order::Chain, 9), [0]);
        assert_eq!(first_places(&Order::Halves, 9), [0, 5]);
        assert_eq!(first_places(&Order::Lanes(4), 3), [0, 1, 2]);
        assert_eq!(first_places(&Order::Strided { threads: 3, vector: 4 }, 9), [0, 4, 8]);
        assert_eq!(first_places(&Order::Chunked { threads: 3 }, 8), [0, 3, 6]);
    }

    #[test]
    fn the_fullest_accumulator_is_counted() {
        assert_eq!(terms_per_accumulator(&Order::Halves, 9), 5);
        assert_eq!(terms_per_accumulator(&Order::Lanes(32), 33), 2);
        assert_eq!(terms_per_accumulator(&Order::Strided { threads: 2, vector: 4 }, 9), 8);
        assert_eq!(terms_per_accumulator(&Order::Strided { threads: 2, vector: 4 }, 3), 3);
    }
}
