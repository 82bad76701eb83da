//! What the silicon of one multiprocessor can do in a cycle, per architecture: the roofs that no
//! rate may pass. Dense rates; 2:4 sparsity doubles those of tensor cores.
//!
//! Sources: the table of the throughput of native arithmetic instructions in NVIDIA's CUDA C++
//! programming guide (in its best practices guide since release 13), and the peak rates of the
//! papers and data sheets of A100, A40 and RTX A6000, Jetson AGX Orin, L40S, H100, B200 and B300
//! (HGX), RTX PRO 6000 and GB10, divided by clock and number of multiprocessors. A limit must never
//! be too low: where the maker's editions differ the larger figure stands, and where they are
//! silent there is none.

use assay_num::Format;

use super::matrix::{Density, Element};

/// Where limits come from, in words.
pub(crate) const SOURCE: &str =
    "the maker's operations per clock and multiprocessor, times the clock measured";

/// What one multiprocessor of an architecture does in a cycle, two operations for each fused
/// multiply-add; `None` where it is not known or there is no such thing.
struct Silicon {
    architecture: u32,
    /// Outside tensor cores: f64, f32, f16, bf16.
    fma: [Option<f64>; 4],
    /// Tensor cores, dense: f16 and bf16.
    half: f64,
    /// s8, e4m3, f64.
    others: [Option<f64>; 3],
}

const TABLE: [Silicon; 9] = [
    Silicon {
        architecture: 80,
        fma: [Some(64.0), Some(128.0), Some(512.0), Some(256.0)],
        half: 2048.0,
        others: [Some(4096.0), None, Some(128.0)],
    },
    Silicon {
        architecture: 86,
        fma: [Some(4.0), Some(256.0), Some(256.0), Some(256.0)],
        half: 1024.0,
        others: [Some(2048.0), None, None],
    },
    // The guide has no column of its own for arithmetic in 16 bits on sm_87.
    Silicon {
        architecture: 87,
        fma: [Some(4.0), Some(256.0), None, None],
        half: 2048.0,
        others: [Some(4096.0), None, None],
    },
    Silicon {
        architecture: 89,
        fma: [Some(4.0), Some(256.0), Some(256.0), Some(256.0)],
        half: 1024.0,
        others: [Some(2048.0), Some(2048.0), None],
    },
    Silicon {
        architecture: 90,
        fma: [Some(128.0), Some(256.0), Some(512.0), Some(512.0)],
        half: 4096.0,
        others: [Some(8192.0), Some(8192.0), Some(256.0)],
    },
    // Releases 12.9 and 13 of the guide differ in f16 by two.
    Silicon {
        architecture: 100,
        fma: [Some(128.0), Some(256.0), Some(512.0), Some(512.0)],
        half: 8192.0,
        others: [Some(16384.0), Some(16384.0), Some(128.0)],
    },
    // The data sheet's rates of integers and of f64 are too coarse to divide.
    Silicon {
        architecture: 103,
        fma: [None, Some(256.0), Some(512.0), Some(512.0)],
        half: 8192.0,
        others: [None, Some(16384.0), None],
    },
    Silicon {
        architecture: 120,
        fma: [Some(4.0), Some(256.0), Some(256.0), Some(256.0)],
        half: 1024.0,
        others: [Some(2048.0), Some(2048.0), None],
    },
    Silicon {
        architecture: 121,
        fma: [Some(4.0), Some(256.0), Some(256.0), Some(256.0)],
        half: 1024.0,
        others: [Some(2048.0), Some(2048.0), None],
    },
];

fn silicon(architecture: u32) -> Option<&'static Silicon> {
    TABLE.iter().find(|silicon| silicon.architecture == architecture)
}

/// Operations per cycle of one multiprocessor: two for each fused multiply-add. `None` where it
/// is not known.
pub(crate) fn fma(architecture: u32, format: Format) -> Option<f64> {
    let [f64, f32, f16, bf16] = silicon(architecture)?.fma;
    match format {
        Format::F64 => f64,
        Format::F32 => f32,
        Format::F16 => f16,
        Format::Bf16 => bf16,
        _ => None,
    }
}

/// As [`fma`], for tensor cores.
pub(crate) fn tensor(architecture: u32, element: Element, density: Density) -> Option<f64> {
    let Silicon { half, others: [s8, e4m3, f64], .. } = *silicon(architecture)?;
    let dense = match element {
        Element::F16 | Element::Bf16 => half,
        Element::Tf32 => half / 2.0,
        Element::S8 => s8?,
        Element::E4m3 => e4m3?,
        // There is no sparse product of f64.
        Element::F64 if density == Density::Dense => f64?,
        Element::F64 => return None,
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

    /// Rates of data sheets in 10^12 operations a second beside what the table gives, within 3 %.
    #[test]
    fn the_roofs_of_every_architecture_give_the_rates_on_data_sheets() {
        use Element::{Bf16, E4m3, S8, Tf32};
        let dense = |architecture, element| tensor(architecture, element, Density::Dense);
        let cases = [
            // A100: 108 multiprocessors at 1.410 GHz.
            (dense(80, Bf16), 108.0, 1.410, 312.0),
            (dense(80, S8), 108.0, 1.410, 624.0),
            (dense(80, Element::F64), 108.0, 1.410, 19.5),
            (fma(80, Format::F16), 108.0, 1.410, 78.0),
            (fma(80, Format::F64), 108.0, 1.410, 9.7),
            // A40: 84 at 1.740 GHz.
            (dense(86, Bf16), 84.0, 1.740, 149.7),
            (dense(86, Tf32), 84.0, 1.740, 74.8),
            (dense(86, S8), 84.0, 1.740, 299.3),
            (fma(86, Format::F32), 84.0, 1.740, 37.4),
            // Jetson AGX Orin: 16 at 1.3 GHz, 170 TOPS of sparse s8.
            (tensor(87, S8, Density::Sparse), 16.0, 1.3, 170.0),
            (fma(87, Format::F32), 16.0, 1.3, 5.3),
            // L40S: 142 at 2.520 GHz.
            (dense(89, Bf16), 142.0, 2.520, 362.0),
            (dense(89, E4m3), 142.0, 2.520, 733.0),
            (fma(89, Format::F32), 142.0, 2.520, 91.6),
            // H100: 132 at 1.980 GHz outside tensor cores.
            (fma(90, Format::F32), 132.0, 1.980, 66.9),
            (fma(90, Format::F64), 132.0, 1.980, 33.5),
            (dense(90, Element::F64), 132.0, 1.980, 66.9),
            // B200: 148 at some 1.85 GHz with tensor cores, 1.965 GHz without.
            (dense(100, Bf16), 148.0, 1.850, 2250.0),
            (dense(100, E4m3), 148.0, 1.850, 4500.0),
            (fma(100, Format::F64), 148.0, 1.965, 37.0),
            // B300.
            (dense(103, Bf16), 148.0, 1.850, 2250.0),
            (dense(103, E4m3), 148.0, 1.850, 4500.0),
            // RTX PRO 6000: 188 at 2.617 GHz.
            (dense(120, Bf16), 188.0, 2.617, 503.8),
            (dense(120, Tf32), 188.0, 2.617, 251.9),
            (dense(120, E4m3), 188.0, 2.617, 1007.6),
            (fma(120, Format::F32), 188.0, 2.617, 126.0),
            (fma(120, Format::F64), 188.0, 2.617, 1.968),
            // GB10: 48 at 2.5 GHz; a quarter of 1000 TOPS of sparse e2m1 is dense e4m3.
            (dense(121, E4m3), 48.0, 2.5, 250.0),
        ];
        for (index, (per_clock, multiprocessors, ghz, sheet)) in cases.into_iter().enumerate() {
            let rate = per_clock.expect("it is known") * multiprocessors * ghz * 1e-3;
            assert!((rate / sheet - 1.0).abs() < 0.03, "case {index}: {rate} and not {sheet}");
        }
    }

    #[test]
    fn an_architecture_that_is_not_in_the_table_has_no_limit() {
        for architecture in [0, 70, 75, 88, 101, 110, 130] {
            assert_eq!(fma(architecture, Format::F32), None, "sm_{architecture}");
            assert_eq!(tensor(architecture, Element::F16, Density::Dense), None);
        }
        assert_eq!(tensor(90, Element::F64, Density::Sparse), None);
        assert_eq!(tensor(80, Element::E4m3, Density::Dense), None, "there is no such product");
    }
}
