//! Every value of every small format, against independent libraries and tables.

use assay_num::{Class, Format, Overflow, Rounding};

const SMALL: [Format; 12] = [
    Format::F16,
    Format::Bf16,
    Format::E4m3,
    Format::E5m2,
    Format::E2m1,
    Format::E8m0,
    Format::I8,
    Format::U2,
    Format::U3,
    Format::U4,
    Format::U5,
    Format::U6,
];

const ROUNDINGS: [Rounding; 4] =
    [Rounding::NearestEven, Rounding::TowardZero, Rounding::Up, Rounding::Down];

/// The value of a pattern according to another library, or to a table written by hand.
fn independent_value(format: Format, bits: u64) -> f64 {
    match format {
        Format::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Format::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        Format::E4m3 => float8::F8E4M3::from_bits(bits as u8).to_f64(),
        Format::E5m2 => float8::F8E5M2::from_bits(bits as u8).to_f64(),
        Format::E2m1 => float4::F4E2M1::from_bits(bits as u8).to_f64(),
        Format::E8m0 if bits == 255 => f64::NAN,
        Format::E8m0 => 2f64.powi(bits as i32 - 127),
        Format::I8 => f64::from(bits as u8 as i8),
        Format::U2 | Format::U3 | Format::U4 | Format::U5 | Format::U6 => bits as f64,
        _ => unreachable!("{format} is not a small format"),
    }
}

fn patterns(format: Format) -> std::ops::Range<u64> {
    0..1 << format.bits()
}

/// Every finite value of a format in ascending order with its pattern, one zero only.
fn finite_values(format: Format) -> Vec<(f64, u64)> {
    let mut values: Vec<_> = patterns(format)
        .map(|bits| (independent_value(format, bits), bits))
        .filter(|(value, _)| value.is_finite() && !(*value == 0.0 && value.is_sign_negative()))
        .collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    values
}

/// Reals worth rounding between two neighbours: quarters, the middle, and a hair around all.
fn reals_between(low: f64, high: f64) -> Vec<f64> {
    let middle = low + (high - low) / 2.0;
    let anchors = [low, low + (high - low) / 4.0, middle, high - (high - low) / 4.0, high];
    anchors
        .into_iter()
        .flat_map(|real| [real.next_down(), real, real.next_up()])
        .filter(|real| (low..=high).contains(real))
        .collect()
}

/// Which of two neighbours a real between them rounds to, by the definition of each direction.
fn round_by_definition(real: f64, low: (f64, u64), high: (f64, u64), rounding: Rounding) -> u64 {
    if real == low.0 || real == high.0 {
        return if real == low.0 { low.1 } else { high.1 };
    }
    let smaller = if low.0.abs() < high.0.abs() { low.1 } else { high.1 };
    match rounding {
        Rounding::Up => high.1,
        Rounding::Down => low.1,
        Rounding::TowardZero => smaller,
        Rounding::NearestEven => match (real - low.0).total_cmp(&(high.0 - real)) {
            std::cmp::Ordering::Less => low.1,
            std::cmp::Ordering::Equal if low.1 & 1 == 0 => low.1,
            _ => high.1,
        },
    }
}

#[test]
fn every_pattern_decodes_as_in_the_independent_library() {
    for format in SMALL {
        for bits in patterns(format) {
            let (ours, theirs) = (format.decode(bits), independent_value(format, bits));
            let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
            assert!(same, "{format} {bits:#x}: {ours} against {theirs}");
        }
    }
}

#[test]
fn every_value_encodes_back_to_its_pattern_in_every_direction() {
    for format in SMALL {
        for bits in patterns(format) {
            let value = independent_value(format, bits);
            for rounding in ROUNDINGS {
                let back = format.encode(value, rounding, Overflow::Infinity);
                let same = back == bits || (value.is_nan() && format.decode(back).is_nan());
                assert!(same, "{format} {bits:#x} {value} {rounding:?}: {back:#x}");
            }
        }
    }
}

#[test]
fn reals_between_neighbours_round_by_the_definition_of_each_direction() {
    for format in SMALL {
        if format == Format::E8m0 {
            continue;
        }
        for pair in finite_values(format).windows(2) {
            for real in reals_between(pair[0].0, pair[1].0) {
                for rounding in ROUNDINGS {
                    let ours = format.encode(real, rounding, Overflow::Infinity);
                    let want = round_by_definition(real, pair[0], pair[1], rounding);
                    let (ours, want) = (format.decode(ours), format.decode(want));
                    assert_eq!(ours, want, "{format} {real:e} {rounding:?}");
                }
            }
        }
    }
}

#[test]
fn rounding_a_value_gives_what_its_nearest_bits_stand_for() {
    let past = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e-310];
    for format in SMALL {
        let ends = [format.max_finite(), -format.max_finite(), format.min_normal()];
        let around = ends.map(|end| reals_between(end - end.abs() / 8.0, end + end.abs() / 8.0));
        let pairs = finite_values(format);
        let between = pairs.windows(2).flat_map(|pair| reals_between(pair[0].0, pair[1].0));
        for real in between.chain(around.into_iter().flatten()).chain(past) {
            let bits = format.encode(real, Rounding::NearestEven, Overflow::Infinity);
            let (ours, want) = (format.round(real), format.decode(bits));
            let same = ours.to_bits() == want.to_bits() || (ours.is_nan() && want.is_nan());
            assert!(same, "{format} {real:e}: {ours:e} against {want:e}");
        }
    }
}

#[test]
fn a_scale_rounds_to_the_nearest_power_of_two_and_ties_upward() {
    let format = Format::E8m0;
    for pair in finite_values(format).windows(2) {
        let tie = pair[0].0 * 1.5;
        let nearest = |real| format.encode(real, Rounding::NearestEven, Overflow::Infinity);
        assert_eq!(nearest(tie.next_down()), pair[0].1);
        assert_eq!(nearest(tie), pair[1].1);
        assert_eq!(format.encode(tie, Rounding::Up, Overflow::Infinity), pair[1].1);
        assert_eq!(format.encode(tie, Rounding::TowardZero, Overflow::Infinity), pair[0].1);
        assert_eq!(format.encode(tie, Rounding::Down, Overflow::Infinity), pair[0].1);
    }
    assert_eq!(format.encode(-1.0, Rounding::NearestEven, Overflow::Infinity), 255);
    assert_eq!(format.encode(0.0, Rounding::NearestEven, Overflow::Infinity), 0);
    assert_eq!(format.encode(1e300, Rounding::NearestEven, Overflow::Infinity), 255);
    assert_eq!(format.encode(1e300, Rounding::Up, Overflow::Saturate), 254);
}

#[test]
fn halves_round_as_the_half_library_rounds_every_middle_and_its_neighbours() {
    for (format, to_bits) in [
        (Format::F16, (|x| half::f16::from_f32(x).to_bits()) as fn(f32) -> u16),
        (Format::Bf16, |x| half::bf16::from_f32(x).to_bits()),
    ] {
        for pair in finite_values(format).windows(2) {
            let middle = (pair[0].0 + (pair[1].0 - pair[0].0) / 2.0) as f32;
            for real in [middle.next_down(), middle, middle.next_up()] {
                let ours =
                    format.encode(f64::from(real), Rounding::NearestEven, Overflow::Infinity);
                assert_eq!(ours, u64::from(to_bits(real)), "{format} {real:e}");
            }
        }
    }
}

#[test]
fn eight_bit_floats_saturate_as_the_float8_library_does() {
    let mut compared = 0;
    for format in [Format::E4m3, Format::E5m2] {
        for half in 0..=u16::MAX {
            let real = half::bf16::from_bits(half).to_f32();
            if real.is_nan() {
                continue;
            }
            let theirs = match format {
                Format::E4m3 => float8::F8E4M3::from_f32(real).to_bits(),
                _ => float8::F8E5M2::from_f32(real).to_bits(),
            };
            let ours = format.encode(f64::from(real), Rounding::NearestEven, Overflow::Saturate);
            assert_eq!(ours, u64::from(theirs), "{format} {real:e}");
            compared += 1;
        }
    }
    assert!(compared > 130_000);
}

#[test]
fn a_value_past_the_largest_becomes_infinity_or_nan_or_the_largest() {
    for format in SMALL {
        let largest = format.max_finite();
        let pattern = format.encode(largest, Rounding::TowardZero, Overflow::Saturate);
        let past = format.encode(largest * 4.0, Rounding::NearestEven, Overflow::Infinity);
        let saturated = format.encode(largest * 4.0, Rounding::NearestEven, Overflow::Saturate);
        let stopped = format.encode(largest * 4.0, Rounding::TowardZero, Overflow::Infinity);
        assert_eq!((saturated, stopped), (pattern, pattern), "{format}");
        assert_eq!(format.encode(f64::INFINITY, Rounding::Up, Overflow::Saturate), pattern);
        let class = match (format.has_infinity(), format.has_nan()) {
            (true, _) => Class::PositiveInfinity,
            (false, true) => Class::NaN,
            (false, false) => Class::Finite,
        };
        assert_eq!(format.class(past), class, "{format}");
    }
}

#[test]
fn the_largest_value_rounds_down_up_to_half_a_step_past_it() {
    for (format, threshold, tie_overflows) in [
        (Format::F16, 65_520.0, true),
        (Format::Bf16, 2f64.powi(128) - 2f64.powi(119), true),
        (Format::E5m2, 61_440.0, true),
        (Format::E4m3, 464.0, false),
    ] {
        let nearest = |real| format.round(real);
        assert_eq!(nearest(f64::next_down(threshold)), format.max_finite(), "{format}");
        assert_eq!(nearest(threshold) == format.max_finite(), !tie_overflows, "{format}");
        assert!(!nearest(f64::next_up(threshold)).is_finite(), "{format}");
    }
}

#[test]
fn a_preimage_is_what_rounds_to_the_value_and_nothing_else() {
    for format in SMALL {
        for bits in patterns(format) {
            let value = format.decode(bits);
            let preimage = format.preimage(bits);
            if value.is_nan() {
                assert!(preimage.low > preimage.high);
                continue;
            }
            for real in [preimage.low, preimage.high, value] {
                for real in [real.next_down(), real, real.next_up()] {
                    let rounded = format.round(real);
                    let same = rounded == value && !(format == Format::E8m0 && real < 0.0);
                    let inside = preimage.contains(real);
                    assert_eq!(inside, same, "{format} {bits:#x} {value}: {real:e} {preimage:?}");
                }
            }
        }
    }
}

#[test]
fn a_saturating_preimage_of_the_largest_value_has_no_end() {
    for format in [Format::F32, Format::F16, Format::E4m3, Format::E5m2, Format::E8m0] {
        let bits = format.encode(f64::INFINITY, Rounding::NearestEven, Overflow::Saturate);
        let preimage = format.preimage_with(bits, Overflow::Saturate);
        assert!(preimage.contains(f64::INFINITY) && preimage.contains(f64::MAX), "{format}");
        assert!(!format.preimage(bits).contains(f64::MAX), "{format}");
        assert_eq!(format.excess_with(f64::MAX, bits, Overflow::Saturate), 0.0);
    }
}

#[test]
fn the_excess_is_zero_inside_and_the_distance_outside() {
    for format in [Format::F16, Format::Bf16, Format::E4m3, Format::E5m2, Format::E2m1] {
        for pair in finite_values(format).windows(2) {
            let (low, high) = (pair[0].0, pair[1].0);
            let quarter = (high - low) / 4.0;
            assert_eq!(format.excess(low + quarter, pair[0].1), 0.0, "{format} {low}");
            assert_eq!(format.excess(low + 3.0 * quarter, pair[0].1), quarter, "{format} {low}");
            assert_eq!(format.excess(high - 3.0 * quarter, pair[1].1), quarter, "{format} {high}");
        }
    }
}

#[test]
fn the_excess_of_a_wrong_class_is_infinite() {
    let format = Format::F16;
    let infinity = format.encode(f64::INFINITY, Rounding::NearestEven, Overflow::Infinity);
    let nan = format.encode(f64::NAN, Rounding::NearestEven, Overflow::Infinity);
    let one = format.encode(1.0, Rounding::NearestEven, Overflow::Infinity);
    assert_eq!(format.excess(f64::NAN, nan), 0.0);
    assert_eq!(format.excess(f64::INFINITY, infinity), 0.0);
    for (value, got) in [
        (1.0, nan),
        (f64::NAN, one),
        (f64::NAN, infinity),
        (f64::INFINITY, one),
        (f64::NEG_INFINITY, infinity),
        (f64::INFINITY, nan),
    ] {
        assert_eq!(format.excess(value, got), f64::INFINITY, "{value} {got:#x}");
    }
    assert_eq!(format.excess(1.0, infinity), 65_519.0);
}

#[test]
fn the_ulp_is_the_distance_to_the_next_value_up() {
    for format in SMALL {
        for pair in finite_values(format).windows(2).filter(|pair| pair[0].0 >= 0.0) {
            assert_eq!(format.ulp(pair[0].0), pair[1].0 - pair[0].0, "{format} {}", pair[0].0);
            assert_eq!(format.ulp(-pair[0].0), format.ulp(pair[0].0));
        }
        assert_eq!(format.ulp(f64::INFINITY), format.ulp(format.max_finite()));
        assert!(format.ulp(f64::NAN).is_nan());
    }
}

#[test]
fn facts_about_each_small_format_match_its_values() {
    for format in SMALL {
        let values = finite_values(format);
        assert_eq!(format.max_finite(), values[values.len() - 1].0, "{format}");
        assert_eq!(format.min_finite(), values[0].0, "{format}");
        let smallest = values.iter().find(|(value, _)| *value > 0.0).map(|(value, _)| *value);
        assert_eq!(Some(format.min_subnormal()), smallest, "{format}");
        let above_one = values.iter().find(|(value, _)| *value > 1.0);
        let step = above_one.map_or(0.0, |(value, _)| value - 1.0);
        if format.is_float() {
            assert_eq!(format.unit_roundoff(), step / 2.0, "{format}");
        }
        let any = |test: fn(f64) -> bool| {
            patterns(format).any(|bits| test(independent_value(format, bits)))
        };
        assert_eq!(format.has_infinity(), any(f64::is_infinite), "{format}");
        assert_eq!(format.has_nan(), any(f64::is_nan), "{format}");
    }
    assert_eq!(Format::F16.min_normal(), half::f16::MIN_POSITIVE.to_f64());
    assert_eq!(Format::Bf16.min_normal(), half::bf16::MIN_POSITIVE.to_f64());
}

#[test]
fn names_are_read_back_and_storage_is_counted_in_bytes() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
    }
    assert_eq!(Format::from_name("float"), None);
    assert_eq!(Format::E2m1.storage_bytes(5), 3);
    assert_eq!(Format::U3.storage_bytes(5), 2);
    assert_eq!(Format::U6.storage_bytes(9), 7);
    assert_eq!(Format::U2.storage_bytes(usize::MAX), usize::MAX / 4 + 1);
    assert_eq!(Format::Tf32.storage_bytes(5), 20);
    assert_eq!(Format::Bf16.storage_bytes(5), 10);
    assert_eq!(Format::F64.storage_bytes(5), 40);
    assert_eq!(Format::U8.storage_bytes(5), 5);
}

#[test]
fn the_fp4_values_are_those_of_the_ocp_table() {
    let magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    for (bits, magnitude) in magnitudes.into_iter().enumerate() {
        let bits = bits as u64;
        assert_eq!(Format::E2m1.decode(bits), magnitude);
        assert_eq!(Format::E2m1.decode(bits | 8), -magnitude);
    }
}
