//! Kernel descriptors: the 64 bytes that the command processor reads at a launch. What they say
//! must agree with the metadata, which only tools read.
//!
//! Layout: LLVM's "User Guide for AMDGPU Backend", section Kernel Descriptor.

use super::metadata::Described;
use crate::bytes::Bytes;
use crate::error::ImageError;

/// Bytes of a descriptor.
pub(super) const BYTES: u64 = 64;

const LDS_AT: u64 = 0;
const SCRATCH_AT: u64 = 4;
const ARGUMENTS_AT: u64 = 8;
/// `COMPUTE_PGM_RSRC1`.
const RESOURCES_AT: u64 = 48;
/// `KERNEL_CODE_PROPERTIES`.
const PROPERTIES_AT: u64 = 56;

/// Checks what the metadata says of one kernel against its descriptor.
pub(super) fn check(
    kernel: &Described<'_>,
    descriptor: Bytes<'_>,
    generation: Generation,
) -> Result<(), ImageError> {
    let facts = &kernel.facts;
    let same = |at, key, noted: u32| {
        let held = descriptor.u32(at, key)?;
        if held == noted { Ok(()) } else { Err(differs(descriptor, at, key, noted, held)) }
    };
    same(LDS_AT, ".group_segment_fixed_size", facts.static_lds_bytes)?;
    same(SCRATCH_AT, ".private_segment_fixed_size", facts.scratch_bytes)?;
    same(ARGUMENTS_AT, ".kernarg_segment_size", facts.parameter_bytes)?;

    let resources = descriptor.u32(RESOURCES_AT, "COMPUTE_PGM_RSRC1")?;
    let properties = descriptor.u16(PROPERTIES_AT, "KERNEL_CODE_PROPERTIES")?;
    let wave_size = generation.wave_size(properties);
    if wave_size != facts.wave_size {
        let key = ".wavefront_size";
        return Err(differs(descriptor, PROPERTIES_AT, key, facts.wave_size, wave_size));
    }
    let vgprs = (resources & 0x3f).saturating_add(1) * generation.vgpr_granule(wave_size);
    if facts.vgprs > vgprs {
        return Err(differs(descriptor, RESOURCES_AT, ".vgpr_count", facts.vgprs, vgprs));
    }
    if let Some(noted) = kernel.workgroup_processor_mode {
        let held = resources >> 29 & 1;
        if held != u32::from(noted) {
            let key = ".workgroup_processor_mode";
            return Err(differs(descriptor, RESOURCES_AT, key, noted.into(), held));
        }
    }
    Ok(())
}

fn differs(bytes: Bytes<'_>, at: u64, key: &'static str, noted: u32, held: u32) -> ImageError {
    let detail = format!("is {noted} in the metadata, and {held} in the kernel's descriptor");
    ImageError::malformed(bytes.place(at), key, detail)
}

/// What the encoding of a descriptor depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Generation {
    /// gfx6 to gfx9, before the accumulation registers joined the vector registers.
    Gfx9,
    /// gfx90a, gfx94x, gfx950: one file for both.
    Unified,
    /// gfx10, gfx11, gfx12.0: waves of 32 or 64 lanes.
    Gfx10,
    /// Later than what is known here: nothing is said of registers.
    Later,
}

impl Generation {
    /// The generation of an architecture, as `gfx90a:xnack+` names it.
    pub(super) fn of(architecture: &str) -> Generation {
        let name = architecture.split(':').next().unwrap_or_default();
        let number = name.strip_prefix("gfx").unwrap_or(name);
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| number.starts_with(prefix));
        if starts(&["90a", "94", "95", "9-4-"]) {
            Generation::Unified
        } else if starts(&["6", "7", "8", "9"]) {
            Generation::Gfx9
        } else if starts(&["10", "11", "120", "12-"]) {
            Generation::Gfx10
        } else {
            Generation::Later
        }
    }

    /// Lanes of a wave: bit 10 of the properties, where there is a choice.
    fn wave_size(self, properties: u16) -> u32 {
        match self {
            Generation::Gfx9 | Generation::Unified => 64,
            Generation::Gfx10 | Generation::Later => {
                if properties >> 10 & 1 == 1 {
                    32
                } else {
                    64
                }
            }
        }
    }

    /// Vector registers that one step of the descriptor's count stands for.
    fn vgpr_granule(self, wave_size: u32) -> u32 {
        match (self, wave_size) {
            (Generation::Gfx9, _) | (Generation::Gfx10, 64) => 4,
            (Generation::Unified | Generation::Gfx10, _) => 8,
            // More than any step so far, so that nothing true is refused.
            (Generation::Later, _) => 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Generation;

    #[test]
    fn every_architecture_has_its_generation() {
        for (name, generation) in [
            ("gfx803", Generation::Gfx9),
            ("gfx906:sramecc-:xnack-", Generation::Gfx9),
            ("gfx908", Generation::Gfx9),
            ("gfx90c", Generation::Gfx9),
            ("gfx9-generic", Generation::Gfx9),
            ("gfx90a:xnack+", Generation::Unified),
            ("gfx942", Generation::Unified),
            ("gfx950", Generation::Unified),
            ("gfx9-4-generic", Generation::Unified),
            ("gfx1030", Generation::Gfx10),
            ("gfx1151", Generation::Gfx10),
            ("gfx11-generic", Generation::Gfx10),
            ("gfx1201", Generation::Gfx10),
            ("gfx12-generic", Generation::Gfx10),
            ("gfx1250", Generation::Later),
            ("gfx1310", Generation::Later),
        ] {
            assert_eq!(Generation::of(name), generation, "{name}");
        }
    }
}
