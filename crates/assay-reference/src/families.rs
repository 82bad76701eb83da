//! The formulas of the named families, as text.
//!
//! The tensors are `x` (inputs; `a` and `b` in `rows.dot`), `w` and `b` (weights) and `y` (output);
//! rows and columns are the dims `rows` and `cols`. In `dense` the weights are `rows` by `cols` and
//! a dot is over `cols`.

/// Each family's name and text.
pub(crate) const FAMILIES: [(&str, &str); 9] = [
    ("rows.sum", "y[r] = sum(c in 0..cols: x[r, c])\n"),
    ("rows.max", "y[r] = max(c in 0..cols: x[r, c])\n"),
    ("rows.dot", "y[r] = sum(c in 0..cols: a[r, c] * b[r, c])\n"),
    ("rows.softmax", SOFTMAX),
    ("rows.rms_norm", RMS_NORM),
    ("rows.layer_norm", LAYER_NORM),
    ("dense.gemv", "y[m] = sum(c in 0..cols: w[m, c] * x[c])\n"),
    ("dense.gemv_batch", "y[r, m] = sum(c in 0..cols: w[m, c] * x[r, c])\n"),
    ("dense.gemv_slices", GEMV_SLICES),
];

/// The largest logit `m` makes every exponent 0 or less.
const SOFTMAX: &str = "\
m[r] = max(j in 0..cols: x[r, j])
s[r] = sum(c in 0..cols: exp(x[r, c] - m[r]))
y[r, c] = exp(x[r, c] - m[r]) / s[r]
";

const RMS_NORM: &str = "\
mean[r] = sum(c in 0..cols: x[r, c] * x[r, c]) / cols
y[r, c] = x[r, c] * rsqrt(mean[r] + eps) * w[c]
";

/// Two passes: the variance is the mean of squared differences from the mean.
const LAYER_NORM: &str = "\
mean[r] = sum(j in 0..cols: x[r, j]) / cols
variance[r] = sum(c in 0..cols: (x[r, c] - mean[r]) * (x[r, c] - mean[r])) / cols
y[r, c] = (x[r, c] - mean[r]) * rsqrt(variance[r] + eps) * w[c] + b[c]
";

/// Slice `s` holds the terms `s*slice` up to the next slice; the kernel adds the slices elsewhere.
const GEMV_SLICES: &str = "\
y[s, m] = sum(c in s*slice..min(cols, s*slice + slice): w[m, c] * x[c])
";

/// The text of the family called `name`.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FAMILIES.iter().find(|(family, _)| *family == name).map(|(_, text)| *text)
}
