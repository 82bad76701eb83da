//! How much a sample says of its neighbour, and so how many samples there really are.

/// The correlation of each value's rank with that of the next: from -1 to 1, deaf to outliers.
/// 0 where there is nothing to correlate.
pub fn rank_correlation(values: &[f64]) -> f64 {
    if values.len() < 3 {
        return 0.0;
    }
    let ranks = ranks(values);
    let mean = (values.len() - 1) as f64 / 2.0;
    let (mut together, mut alone) = (0.0, 0.0);
    for (place, rank) in ranks.iter().enumerate() {
        alone += (rank - mean) * (rank - mean);
        if let Some(next) = ranks.get(place + 1) {
            together += (rank - mean) * (next - mean);
        }
    }
    if alone > 0.0 { together / alone } else { 0.0 }
}

/// Each value's place in the order from 0; equal values share the middle of their places.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let same = |place: &&usize| values[**place] == values[order[start]];
        let end = start + order[start..].iter().take_while(same).count().max(1);
        for place in &order[start..end] {
            ranks[*place] = (start + end - 1) as f64 / 2.0;
        }
        start = end;
    }
    ranks
}

/// The values' worth in independent ones, were they drawn one from the other with the correlation
/// that they show.
pub fn effective_samples(values: &[f64]) -> f64 {
    let correlation = rank_correlation(values).clamp(0.0, 0.99);
    (values.len() as f64 * (1.0 - correlation) / (1.0 + correlation)).max(1.0)
}

/// The length of the blocks in which values are drawn again: the one that loses least for a first
/// order process of the correlation shown (Politis and White, "Automatic block-length selection
/// for the dependent bootstrap", 2004), at most a quarter of all.
pub fn block_length(values: &[f64]) -> usize {
    let correlation = rank_correlation(values).clamp(0.0, 0.99);
    let strength = 6f64.sqrt() * correlation / (1.0 - correlation * correlation);
    let length = strength.powf(2.0 / 3.0) * (values.len() as f64).cbrt();
    (length.ceil() as usize).clamp(1, (values.len() / 4).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_one_sample_and_a_sawtooth_is_as_many_as_it_has() {
        let ramp: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(rank_correlation(&ramp) > 0.95 && effective_samples(&ramp) < 3.0);
        assert_eq!(block_length(&ramp), 25);
        let saw: Vec<f64> = (0..100).map(|n| f64::from(n % 2)).collect();
        assert!(rank_correlation(&saw) < -0.9);
        assert_eq!((effective_samples(&saw), block_length(&saw)), (100.0, 1));
        assert_eq!((rank_correlation(&[5.0; 9]), block_length(&[])), (0.0, 1));
    }
}
