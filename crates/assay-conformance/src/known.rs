//! Why the emulator differs from the GPU where it does.

/// Forms by the start of their names, and why they differ.
const KNOWN: &[(&str, &str)] = &[];

/// Why a form differs, where that is known.
pub fn explanation(form: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(start, _)| form.starts_with(start)).map(|&(_, reason)| reason)
}
