//! Formats too large to enumerate, against the language's own conversions.

use assay_num::{Format, Overflow, Rounding};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Any bits are a value: normals, subnormals, infinities and NaNs alike; half of them near `f32`.
fn any_f64() -> impl Strategy<Value = f64> {
    let wide = any::<u64>().prop_map(f64::from_bits);
    let near = (any::<u32>(), -3i64..=3).prop_map(|(bits, ulps)| {
        let value = f64::from(f32::from_bits(bits)).to_bits();
        f64::from_bits(value.wrapping_add_signed(ulps))
    });
    let middle = (any::<u32>(), -1i64..=1).prop_map(|(bits, ulps)| {
        let value = f64::from(f32::from_bits(bits)).to_bits() | 1 << 28;
        f64::from_bits(value.wrapping_add_signed(ulps))
    });
    prop_oneof![wide, near, middle]
}

fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// The same cases on every run.
fn seeded() -> ProptestConfig {
    ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn f32_rounds_to_nearest_as_the_processor_does(value in any_f64()) {
        let ours = Format::F32.encode(value, Rounding::NearestEven, Overflow::Infinity) as u32;
        prop_assert!(same(f64::from(f32::from_bits(ours)), f64::from(value as f32)));
        prop_assert!(value.is_nan() || ours == (value as f32).to_bits());
        prop_assert!(same(Format::F32.round(value), f64::from(value as f32)));
    }

    #[test]
    fn f32_directed_roundings_enclose_the_value_with_neighbours(value in any_f64()) {
        prop_assume!(value.is_finite());
        let round = |rounding| {
            let bits = Format::F32.encode(value, rounding, Overflow::Infinity);
            f32::from_bits(bits as u32)
        };
        let (down, up) = (round(Rounding::Down), round(Rounding::Up));
        prop_assert!(f64::from(down) <= value && value <= f64::from(up));
        prop_assert!(down == up || down.next_up() == up);
        let inner = if value < 0.0 { up } else { down };
        prop_assert_eq!(round(Rounding::TowardZero), inner);
    }

    #[test]
    fn f32_preimages_hold_exactly_what_rounds_to_the_value(bits in any::<u32>()) {
        let value = f64::from(f32::from_bits(bits));
        prop_assume!(!value.is_nan());
        let preimage = Format::F32.preimage(u64::from(bits));
        for end in [preimage.low, preimage.high, value] {
            for real in [end.next_down(), end, end.next_up()] {
                prop_assert_eq!(preimage.contains(real), Format::F32.round(real) == value);
            }
        }
    }

    #[test]
    fn f32_excess_is_zero_exactly_when_some_rounding_of_the_value_is_right(value in any_f64()) {
        prop_assume!(!value.is_nan());
        let bits = Format::F32.encode(value, Rounding::NearestEven, Overflow::Infinity);
        prop_assert_eq!(Format::F32.excess(value, bits), 0.0);
        if !(value as f32).is_finite() {
            return Ok(());
        }
        let next = u64::from((value as f32).next_up().to_bits());
        let middle = Format::F32.preimage(bits).high;
        prop_assert_eq!(Format::F32.excess(value, next), middle - value);
    }

    #[test]
    fn tf32_ignores_padding_and_rounds_to_eleven_bits(value in any_f64(), padding in 0u64..8192) {
        let format = Format::Tf32;
        let bits = format.encode(value, Rounding::NearestEven, Overflow::Infinity);
        prop_assert_eq!(bits & 8191, 0);
        prop_assert!(same(format.decode(bits | padding), format.decode(bits)));
        prop_assert!(same(f64::from(f32::from_bits(bits as u32)), format.decode(bits)));
        let error = (format.decode(bits) - value).abs();
        let normal = (format.min_normal()..format.max_finite()).contains(&value.abs());
        prop_assert!(!normal || error <= value.abs() * format.unit_roundoff());
    }

    #[test]
    fn slices_hold_what_single_conversions_give(values in prop::collection::vec(any_f64(), 0..40)) {
        for format in Format::ALL {
            let bytes = format.encode_slice(&values);
            prop_assert_eq!(bytes.len(), format.storage_bytes(values.len()));
            let decoded = format.decode_slice(&bytes);
            for (&value, &got) in values.iter().zip(&decoded) {
                let bits = format.encode(value, Rounding::NearestEven, Overflow::Infinity);
                prop_assert!(same(got, format.decode(bits)), "{} {:e}", format, value);
            }
        }
    }

    #[test]
    fn bytes_survive_decoding_and_encoding(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for format in Format::ALL {
            let values = format.decode_slice(&bytes);
            let again = format.decode_slice(&format.encode_slice(&values));
            prop_assert_eq!(values.len(), again.len());
            for (a, b) in values.iter().zip(&again) {
                prop_assert!(same(*a, *b), "{} {:e} {:e}", format, a, b);
            }
        }
    }

    #[test]
    fn integers_saturate_and_round_in_every_direction(value in any_f64()) {
        let whole = |rounding| Format::I32.decode(
            Format::I32.encode(value, rounding, Overflow::Infinity));
        prop_assert_eq!(whole(Rounding::NearestEven), f64::from(value.round_ties_even() as i32));
        prop_assert_eq!(whole(Rounding::TowardZero), f64::from(value as i32));
        prop_assert_eq!(whole(Rounding::Up), f64::from(value.ceil() as i32));
        prop_assert_eq!(whole(Rounding::Down), f64::from(value.floor() as i32));
    }
}

#[test]
fn sixteen_bit_slices_hold_every_value_and_every_middle_in_order() {
    for format in [Format::F16, Format::Bf16] {
        let values: Vec<f64> = (0..=u16::MAX).map(|bits| format.decode(u64::from(bits))).collect();
        let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        for (a, b) in format.decode_slice(&all).iter().zip(&values) {
            assert!(same(*a, *b) && a.is_sign_negative() == b.is_sign_negative());
        }
        let middles: Vec<f64> =
            values.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        let words = format.encode_slice(&middles);
        for (word, &middle) in words.chunks(2).zip(&middles) {
            let bits = format.encode(middle, Rounding::NearestEven, Overflow::Infinity);
            assert_eq!(u64::from(u16::from_le_bytes([word[0], word[1]])), bits, "{middle:e}");
        }
    }
}

#[test]
fn four_bit_values_lie_low_half_first() {
    assert_eq!(Format::E2m1.encode_slice(&[1.0, -6.0, 0.5]), [0xf2, 0x01]);
    assert_eq!(Format::E2m1.decode_slice(&[0xf2]), [1.0, -6.0]);
}

/// The packed formats with the bits of each.
const PACKED: [(Format, usize); 6] = [
    (Format::U2, 2),
    (Format::U3, 3),
    (Format::U4, 4),
    (Format::U5, 5),
    (Format::U6, 6),
    (Format::E2m1, 4),
];

#[test]
fn packed_elements_take_their_bits_of_one_stream_at_every_length() {
    for (format, bits) in PACKED {
        for count in 0..40 {
            let codes: Vec<u64> = (0..count as u64).map(|at| (at * 7 + 3) % (1 << bits)).collect();
            let values: Vec<f64> = codes.iter().map(|code| format.decode(*code)).collect();
            let mut stream = vec![0u8; (count * bits).div_ceil(8)];
            for bit in 0..count * bits {
                let set = codes[bit / bits] >> (bit % bits) & 1;
                stream[bit / 8] |= (set as u8) << (bit % 8);
            }
            assert_eq!(format.encode_slice(&values), stream, "{format} {count}");
            assert_eq!(format.decode_slice(&stream)[..count], values, "{format} {count}");
        }
    }
}

#[test]
fn a_packed_code_past_the_largest_saturates_and_nothing_spills_into_its_neighbour() {
    assert_eq!(Format::U3.encode_slice(&[9.0, -1.0, f64::NAN, 1.0]), [0x07, 0x02]);
    assert_eq!(Format::U6.decode_slice(&[0xff]), [63.0]);
}
