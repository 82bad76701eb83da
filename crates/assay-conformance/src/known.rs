//! Why the emulator differs from the GPU where it does.

/// Forms by the start of their names, and why they differ.
const KNOWN: &[(&str, &str)] = &[
    ("cvt.rm.ftz.f16.f32", FLUSH),
    ("cvt.rp.ftz.f16.f32", FLUSH),
    ("cvt.rp.ftz.sat.f16.f32", FLUSH),
    (
        "tanh.approx.bf16",
        "The GPU's result is up to 1.0001 times the stated 2^-8 away from the true value.",
    ),
];

const FLUSH: &str = "The ISA (9.7.9.21) has `.ftz` flush subnormal f32 operands of `cvt`; the GPU \
    rounds them to f16 away from zero as if there were no `.ftz`. The emulator follows the ISA.";

/// Why a form differs, where that is known.
pub fn explanation(form: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(start, _)| form.starts_with(start)).map(|&(_, reason)| reason)
}
