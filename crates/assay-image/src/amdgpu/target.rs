//! Which architecture a code object is for: in its metadata from code object version 4 on, and in
//! `e_flags` in all versions.
//!
//! Numbers: LLVM's `ELF.h` (`EF_AMDGPU_MACH_*`, `EF_AMDGPU_FEATURE_*`) and its "User Guide for
//! AMDGPU Backend", section ELF Header.

use crate::elf::Header;
use crate::error::ImageError;

/// Where `e_flags` lies in a file.
const FLAGS_AT: u64 = 48;

/// `EF_AMDGPU_MACH` and the processor that it stands for.
const MACHINES: [(u32, &str); 54] = [
    (0x20, "gfx600"),
    (0x21, "gfx601"),
    (0x22, "gfx700"),
    (0x23, "gfx701"),
    (0x24, "gfx702"),
    (0x25, "gfx703"),
    (0x26, "gfx704"),
    (0x28, "gfx801"),
    (0x29, "gfx802"),
    (0x2a, "gfx803"),
    (0x2b, "gfx810"),
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3a, "gfx602"),
    (0x3b, "gfx705"),
    (0x3c, "gfx805"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x40, "gfx940"),
    (0x41, "gfx1100"),
    (0x42, "gfx1013"),
    (0x43, "gfx1150"),
    (0x44, "gfx1103"),
    (0x45, "gfx1036"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x49, "gfx1250"),
    (0x4a, "gfx1151"),
    (0x4b, "gfx941"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
    (0x51, "gfx9-generic"),
    (0x52, "gfx10-1-generic"),
    (0x53, "gfx10-3-generic"),
    (0x54, "gfx11-generic"),
    (0x55, "gfx1152"),
    (0x58, "gfx1153"),
    (0x59, "gfx12-generic"),
    (0x5f, "gfx9-4-generic"),
];

/// What a target in the metadata starts with.
const TRIPLE: &str = "amdgcn-amd-amdhsa--";

/// `EI_ABIVERSION` of code object version 4, the first whose flags say "any" and "off" apart.
const VERSION_4: u8 = 2;

/// The beginning of a text that a file holds, for a message.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The processor that `e_flags` names, where it is a known one.
fn processor(flags: u32) -> Option<&'static str> {
    MACHINES.iter().find(|(number, _)| *number == flags & 0xff).map(|(_, name)| *name)
}

/// The architecture as `e_flags` gives it, with the features that they fix: `gfx90a:xnack+`.
pub(super) fn from_flags(header: Header) -> Option<String> {
    let mut name = processor(header.flags)?.to_owned();
    let flags = header.flags;
    let (sramecc, xnack) = if header.abi_version >= VERSION_4 {
        (state(flags >> 10), state(flags >> 8))
    } else {
        (if flags & 0x200 == 0 { "" } else { "+" }, if flags & 0x100 == 0 { "" } else { "+" })
    };
    for (feature, state) in [("sramecc", sramecc), ("xnack", xnack)] {
        if !state.is_empty() {
            name.extend([":", feature, state]);
        }
    }
    Some(name)
}

/// Two bits: not there, either way, off, on.
fn state(bits: u32) -> &'static str {
    match bits & 3 {
        2 => "-",
        3 => "+",
        _ => "",
    }
}

/// The architecture: the metadata's target, which must be the one of `e_flags`, or the latter where
/// the metadata names none.
pub(super) fn architecture(
    header: Header,
    target: Option<(&str, u64)>,
) -> Result<String, ImageError> {
    let by_flags = from_flags(header);
    let Some((target, place)) = target else {
        return by_flags.ok_or_else(|| {
            let detail = format!("names processor {:#x}, which is not known", header.flags & 0xff);
            ImageError::unsupported(FLAGS_AT, "e_flags", detail)
        });
    };
    let Some(named) = target.strip_prefix(TRIPLE).filter(|name| name.starts_with("gfx")) else {
        let detail = format!("is `{}`, not {TRIPLE}gfx...", shown(target));
        return Err(ImageError::unsupported(place, "amdhsa.target", detail));
    };
    match by_flags {
        Some(other) if other != named => {
            let detail = format!("is `{}`, and `e_flags` says {other}", shown(named));
            Err(ImageError::malformed(place, "amdhsa.target", detail))
        }
        _ => Ok(named.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{MACHINES, architecture, from_flags};
    use crate::elf::Header;
    use crate::error::ErrorKind;

    fn header(flags: u32, abi_version: u8) -> Header {
        Header { os_abi: 64, abi_version, kind: 3, machine: 224, version: 1, flags }
    }

    #[test]
    fn no_processor_is_listed_twice() {
        for (index, (number, name)) in MACHINES.iter().enumerate() {
            let rest = &MACHINES[index + 1..];
            assert!(rest.iter().all(|(other, text)| other > number && text != name), "{name}");
        }
    }

    #[test]
    fn features_are_named_where_the_flags_fix_them() {
        for (flags, abi_version, name) in [
            (0x4e, 3, "gfx1201"),
            (0x54c, 3, "gfx942"),
            (0xf3f, 3, "gfx90a:sramecc+:xnack+"),
            (0x83f, 2, "gfx90a:sramecc-"),
            (0x23f, 2, "gfx90a:xnack-"),
            (0x130, 1, "gfx908:xnack+"),
            (0x230, 1, "gfx908:sramecc+"),
        ] {
            assert_eq!(from_flags(header(flags, abi_version)).as_deref(), Some(name));
        }
        assert_eq!(from_flags(header(0xfe, 3)), None);
    }

    #[test]
    fn a_target_that_the_flags_deny_is_an_error() {
        let target = |name| Some((name, 700));
        let read = |flags, name| architecture(header(flags, 3), target(name));
        assert_eq!(read(0x41, "amdgcn-amd-amdhsa--gfx1100").expect("agrees"), "gfx1100");
        // A processor later than this table.
        assert_eq!(read(0xfe, "amdgcn-amd-amdhsa--gfx9999").expect("only named"), "gfx9999");
        let error = read(0x41, "amdgcn-amd-amdhsa--gfx1101").expect_err("they differ");
        assert_eq!((error.kind, error.offset), (ErrorKind::Malformed, 700));
        let error = read(0x41, "x86_64-unknown-linux-gnu").expect_err("no GPU");
        assert_eq!(error.kind, ErrorKind::Unsupported);
        let error = architecture(header(0xfe, 3), None).expect_err("nothing names it");
        assert_eq!((error.kind, error.offset), (ErrorKind::Unsupported, 48));
    }
}
