//! How far an approximate instruction may lie from the true value: the bounds that the PTX ISA 9.1
//! states in sections 9.7.3 (f32, f64) and 9.7.4 (f16, bf16).

use assay_ptx::{Base, Modifier, Opcode, Type};

use crate::values::{format, layout, parts};

/// A stated bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Bound {
    /// Units in the last place of the true value.
    Ulps(f64),
    /// A fraction of the true value, as a power of two.
    Relative(f64),
    /// A distance, as a power of two.
    Absolute(f64),
}

/// The error of one case as a part of its bound: at most 1 within it, infinite where the class or
/// the sign is wrong, `None` where the ISA states no bound.
pub(crate) fn error(opcode: &Opcode, inputs: &[u64], got: u64) -> Option<f64> {
    let ty = opcode.ty()?;
    let Some((part, count)) = parts(ty) else { return part_error(opcode, ty, inputs, got) };
    let cut =
        |word: u64, index: u32| word >> (index * part.bits()) & (u64::MAX >> (64 - part.bits()));
    let errors = (0..count).filter_map(|index| {
        let inputs: Vec<u64> = inputs.iter().map(|&word| cut(word, index)).collect();
        part_error(opcode, part, &inputs, cut(got, index))
    });
    errors.reduce(f64::max)
}

fn part_error(opcode: &Opcode, ty: Type, inputs: &[u64], got: u64) -> Option<f64> {
    let format = format(ty)?;
    let flushes = opcode.has(Modifier::Ftz);
    // 9.7.3.14, 9.7.3.18: of an f64 operand with `.ftz` the lower half is ignored.
    let ignored = if flushes && ty == Type::F64 { u64::from(u32::MAX) } else { 0 };
    let value = |index: usize| {
        let value = format.decode(inputs.get(index).copied().unwrap_or(0) & !ignored);
        let subnormal = value != 0.0 && value.abs() < format.min_normal();
        if flushes && subnormal { 0.0_f64.copysign(value) } else { value }
    };
    let (a, b) = (value(0), value(1));
    let (truth, bound) = truth(opcode, ty, a, b)?;
    let got = format.decode(got);
    if truth.is_nan() || got.is_nan() {
        return Some(if truth.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY });
    }
    if truth.is_infinite() || truth == 0.0 {
        let same = got == truth && got.is_sign_negative() == truth.is_sign_negative();
        return Some(if same { 0.0 } else { f64::INFINITY });
    }
    let spacing = spacing(ty, truth)?;
    let allowed = match bound {
        Bound::Ulps(ulps) => ulps * spacing,
        // Below the normal numbers no fraction is finer than the spacing.
        Bound::Relative(power) => (power.exp2() * truth.abs()).max(subnormal_step(ty, truth)?),
        Bound::Absolute(power) => power.exp2(),
    };
    if flushes && got == 0.0 && truth.abs() - allowed < format.min_normal() {
        return Some(0.0);
    }
    let overflows = truth.abs() + allowed > format.max_finite();
    if overflows && got.is_infinite() && got.signum() == truth.signum() {
        return Some(0.0);
    }
    Some((got - truth).abs() / allowed)
}

/// The true value and its bound, where the ISA states one.
fn truth(opcode: &Opcode, ty: Type, a: f64, b: f64) -> Option<(f64, Bound)> {
    let half = ty.bits() == 16;
    Some(match opcode.base {
        Base::Div => {
            let edge = 126.0_f64.exp2();
            let inside = (1.0 / edge..=edge).contains(&b.abs());
            let stated = opcode.has(Modifier::Full) || inside || b.is_nan() || a.is_nan();
            if !stated {
                return None;
            }
            (a / b, Bound::Ulps(2.0))
        }
        Base::Rcp if ty == Type::F64 => (1.0 / a, stated_bound(opcode, ty)?),
        Base::Rcp => (1.0 / a, stated_bound(opcode, ty)?),
        Base::Sqrt => (a.sqrt(), stated_bound(opcode, ty)?),
        Base::Rsqrt => (1.0 / a.sqrt(), stated_bound(opcode, ty)?),
        Base::Ex2 => (a.exp2(), stated_bound(opcode, ty)?),
        Base::Lg2 if a > 0.5 && a < 2.0 => (a.log2(), Bound::Absolute(-22.0)),
        Base::Lg2 => (a.log2(), stated_bound(opcode, ty)?),
        Base::Sin | Base::Cos => {
            let true_value = if opcode.base == Base::Sin { a.sin() } else { a.cos() };
            let turns = a.abs() / std::f64::consts::TAU;
            match turns {
                _ if turns <= 1.0 => (true_value, Bound::Absolute(-20.5)),
                _ if turns <= 50.0 => (true_value, Bound::Absolute(-14.7)),
                _ if a.is_finite() => return None,
                _ => (f64::NAN, Bound::Absolute(-14.7)),
            }
        }
        Base::Tanh if half => (a.tanh(), stated_bound(opcode, ty)?),
        Base::Tanh => (a.tanh(), stated_bound(opcode, ty)?),
        _ => return None,
    })
}

/// The bound of an opcode over the whole range, or over the better half of it.
pub(crate) fn stated_bound(opcode: &Opcode, ty: Type) -> Option<Bound> {
    Some(match (opcode.base, ty) {
        (Base::Div, _) | (Base::Ex2, Type::F32) => Bound::Ulps(2.0),
        // The ISA states no number: the result has 20 bits of mantissa, so one of its units.
        (Base::Rcp | Base::Rsqrt, Type::F64) => Bound::Relative(-20.0),
        (Base::Rcp, _) => Bound::Ulps(1.0),
        (Base::Sqrt, _) => Bound::Relative(-23.0),
        (Base::Rsqrt, _) => Bound::Relative(-22.9),
        (Base::Ex2, Type::F16) => Bound::Relative(-9.9),
        (Base::Ex2, _) => Bound::Relative(-7.0),
        (Base::Lg2, _) => Bound::Relative(-22.0),
        (Base::Sin | Base::Cos, _) => Bound::Absolute(-20.5),
        (Base::Tanh, Type::F16) => Bound::Absolute(-10.987),
        (Base::Tanh, Type::Bf16) => Bound::Absolute(-8.0),
        (Base::Tanh, _) => Bound::Relative(-11.0),
        _ => return None,
    })
}

/// A bound in words, for the page.
pub(crate) fn in_words(opcode: &Opcode) -> String {
    let Some(ty) = opcode.ty() else { return String::new() };
    let part = parts(ty).map_or(ty, |(part, _)| part);
    match (opcode.base, stated_bound(opcode, part)) {
        (Base::Sin | Base::Cos, _) => "2^-20.5 to 2 pi, 2^-14.7 to 100 pi, none beyond".to_string(),
        (Base::Lg2, _) => "2^-22 from 0.5 to 2, else 2^-22 of the value".to_string(),
        (Base::Div, _) if opcode.has(Modifier::Approx) => {
            "2 ulp for a divisor from 2^-126 to 2^126".to_string()
        }
        (_, Some(Bound::Ulps(ulps))) => format!("{ulps} ulp"),
        (_, Some(Bound::Relative(power))) => format!("2^{power} of the value"),
        (_, Some(Bound::Absolute(power))) => format!("2^{power}"),
        (_, None) => "none".to_string(),
    }
}

/// The spacing of the numbers of a type at a value.
fn spacing(ty: Type, value: f64) -> Option<f64> {
    let (exponent, mantissa) = layout(ty)?;
    let least = 2 - (1 << (exponent - 1));
    let at = (value.abs().log2().floor() as i32).max(least);
    Some(f64::from(at - mantissa as i32).exp2())
}

/// The spacing below the normal numbers, and nothing above them.
fn subnormal_step(ty: Type, value: f64) -> Option<f64> {
    let (exponent, mantissa) = layout(ty)?;
    let least = f64::from(2 - (1 << (exponent - 1)));
    let subnormal = value.abs() < least.exp2();
    Some(if subnormal { (least - f64::from(mantissa)).exp2() } else { 0.0 })
}
