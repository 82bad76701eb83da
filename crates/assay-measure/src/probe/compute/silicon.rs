//! What the silicon of one multiprocessor can do in a cycle, per architecture: the roofs that no
//! rate may pass. Dense rates; 2:4 sparsity doubles those of tensor cores.
//!
//! Sources: NVIDIA's CUDA C++ programming guide (throughput of arithmetic instructions) and the
//! architecture papers of A100, Ada and H100, whose peak rates divided by clock and number of
//! multiprocessors give the same figures.

use assay_num::Format;

use super::matrix::{Density, Element};

/// Where limits come from, in words.
pub(crate) const SOURCE: &str =
    "the maker's operations per clock and multiprocessor, times the clock measured";

/// Operations per cycle of one multiprocessor: two for each fused multiply-add. `None` where it
/// is not known.
pub(crate) fn fma(architecture: u32, format: Format) -> Option<f64> {
    let [f64, f32, f16, bf16] = match architecture {
        80 => [64.0, 128.0, 512.0, 256.0],
        89 => [4.0, 256.0, 256.0, 256.0],
        90 => [128.0, 256.0, 512.0, 512.0],
        _ => return None,
    };
    match format {
        Format::F64 => Some(f64),
        Format::F32 => Some(f32),
        Format::F16 => Some(f16),
        Format::Bf16 => Some(bf16),
        _ => None,
    }
}

/// As [`fma`], for tensor cores.
pub(crate) fn tensor(architecture: u32, element: Element, density: Density) -> Option<f64> {
    if element == Element::F64 {
        return (architecture == 90 && density == Density::Dense).then_some(256.0);
    }
    let (half, bytes) = match architecture {
        80 => (2048.0, element == Element::S8),
        89 => (1024.0, true),
        90 => (4096.0, true),
        _ => return None,
    };
    let dense = match element {
        Element::F16 | Element::Bf16 => half,
        Element::Tf32 => half / 2.0,
        Element::S8 | Element::E4m3 if bytes => 2.0 * half,
        _ => return None,
    };
    Some(dense * density.times() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_h200s_roofs_give_the_rates_on_its_data_sheet() {
        let of = |per_clock: f64| per_clock * 132.0 * 1.830e9 / 1e12;
        let dense = |element| of(tensor(90, element, Density::Dense).unwrap()).round();
        assert_eq!(dense(Element::Bf16), 989.0);
        assert_eq!(dense(Element::E4m3), 1979.0);
        assert_eq!(of(tensor(90, Element::S8, Density::Sparse).unwrap()).round(), 3958.0);
    }
}
