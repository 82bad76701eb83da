//! Axes: from values to coordinates, round ticks, and numbers with their units.

/// A linear or logarithmic axis from `low..high` in values to `from..to` in coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    /// A linear axis. An empty or unusable range becomes one that is not.
    pub(crate) fn linear(low: f64, high: f64, from: f64, to: f64) -> Axis {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + low.abs().max(1.0) };
        Axis { low, high, from, to, log: false }
    }

    /// A logarithmic axis, for values over 0.
    pub(crate) fn log(low: f64, high: f64, from: f64, to: f64) -> Axis {
        let low = if low.is_finite() && low > 0.0 { low } else { 1e-3 };
        let high = if high.is_finite() && high > low { high } else { low * 10.0 };
        Axis { low, high, from, to, log: true }
    }

    /// Where a value lies, kept between the axis's ends.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let part = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// Round values to mark, at most about `most`.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        if self.log { self.log_ticks(most) } else { self.linear_ticks(most) }
    }

    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let raw = (self.high - self.low) / most.max(1) as f64;
        let decade = 10f64.powf(raw.log10().floor());
        let nice = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = nice.into_iter().find(|step| *step >= raw * 0.999).unwrap_or(decade * 10.0);
        let first = (self.low / step - 1e-9).ceil();
        let ticks = (0..=2 * most).map(|n| (first + n as f64) * step);
        ticks.take_while(|tick| *tick <= self.high + step * 1e-9).collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (last - first).max(1) as usize;
        let per_decade: &[f64] = if decades * 3 <= most { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = decades.div_ceil(most.max(1)).max(1);
        let inside =
            |tick: &f64| *tick >= self.low * (1.0 - 1e-9) && *tick <= self.high * (1.0 + 1e-9);
        (first..=last)
            .step_by(every)
            .flat_map(|power| per_decade.iter().map(move |mantissa| mantissa * power_of_ten(power)))
            .filter(inside)
            .collect()
    }
}

fn power_of_ten(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(1.0)
}

/// A number of about three digits without a unit: `0.25`, `1500`, `2.1e9`.
pub(crate) fn short(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        return format!("{value:.1e}").replace(".0e", "e");
    }
    let decimals = match size {
        s if s >= 100.0 || s == 0.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number with an SI prefix and its unit: `4.03 TB/s`.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 6] =
        [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let size = value.abs();
    match PREFIXES.iter().find(|(step, _)| size >= *step) {
        Some((step, prefix)) => format!("{} {prefix}{unit}", short(value / step)),
        None => format!("{} {unit}", short(value)),
    }
}

/// A time in nanoseconds in the unit that suits it, with four digits or five: enough to tell the
/// ends of a narrow interval apart.
pub(crate) fn fine_time(nanoseconds: f64) -> String {
    let (unit, size) = time_unit(nanoseconds.abs());
    let value = nanoseconds / size;
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    let decimals = match value.abs() {
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$} {unit}")
}

/// The unit for times about as long as this many nanoseconds, and its length in nanoseconds.
pub(crate) fn time_unit(nanoseconds: f64) -> (&'static str, f64) {
    match nanoseconds {
        ns if ns >= 1e9 => ("s", 1e9),
        ns if ns >= 1e6 => ("ms", 1e6),
        ns if ns >= 1e3 => ("us", 1e3),
        _ => ("ns", 1.0),
    }
}

/// Where ticks of an axis of nanoseconds lie and what stands at them, and in which unit.
pub(crate) fn time_ticks(axis: &Axis, high: f64) -> (&'static str, Vec<(f64, String)>) {
    let (unit, size) = time_unit(high.abs());
    let ticks = axis.ticks(7);
    let step = ticks.windows(2).map(|pair| (pair[1] - pair[0]) / size).next().unwrap_or(1.0);
    let decimals = (-step.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let worded = |tick: f64| (axis.at(tick), format!("{:.decimals$}", tick / size));
    (unit, ticks.into_iter().map(worded).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Axis::linear(0.0, 10.0, 0.0, 1.0).ticks(5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(Axis::log(0.5, 200.0, 0.0, 1.0).ticks(5), [1.0, 10.0, 100.0]);
        let many = Axis::log(1e-9, 1e15, 0.0, 1.0).ticks(8);
        assert!(many.len() <= 9, "{many:?}");
    }

    #[test]
    fn an_axis_keeps_any_value_between_its_ends() {
        let axis = Axis::log(1.0, 100.0, 10.0, 30.0);
        let at = [f64::NAN, -1.0, 0.0, 10.0, 1e9, f64::INFINITY].map(|value| axis.at(value));
        assert_eq!(at, [10.0, 10.0, 10.0, 20.0, 30.0, 30.0]);
        assert!(Axis::linear(3.0, 3.0, 0.0, 1.0).at(3.0).is_finite());
        assert!(Axis::linear(f64::NAN, f64::INFINITY, 0.0, 1.0).at(3.0).is_finite());
    }

    #[test]
    fn numbers_carry_their_units_at_three_digits() {
        assert_eq!(with_unit(4.034e12, "B/s"), "4.03 TB/s");
        assert_eq!(with_unit(62.0, "FLOP/s"), "62 FLOP/s");
        assert_eq!(fine_time(1_234_567.0), "1.235 ms");
        assert_eq!(fine_time(0.5), "0.500 ns");
        assert_eq!(fine_time(f64::NAN), "unknown");
        assert_eq!(short(f64::NAN), "unknown");
        assert_eq!(short(1500.0), "1500");
    }
}
