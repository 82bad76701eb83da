//! The compiler and the two readers on sources of the suite.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use assay_image::Contents;

use super::toolchain::packaged;
use super::{Compiler, readelf};
use crate::toolchain::rocm_library;

/// The compiler, or a line that says why a test is skipped.
fn compiler(test: &str) -> Option<Compiler> {
    match packaged() {
        Ok(compiler) => Some(compiler),
        Err(unavailable) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {unavailable}");
            None
        }
    }
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("assay-hip-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the temporary folder can be written");
    folder.join(name)
}

#[test]
fn a_source_with_shuffles_barriers_and_half_types_has_real_limits_on_every_chip() {
    let Some(compiler) = compiler("hip sources") else { return };
    let file = scratch("softmax.co");
    for chip in compiler.chips() {
        compiler.compile(Path::new("softmax.cu"), chip, &file).expect("it is of the suite");
        let image = compiler.read(&file, chip).expect("two readers agree");
        let kernel = image.kernels.iter().find(|kernel| kernel.name == "softmax_bf16");
        let kernel = kernel.expect("the source has this kernel");
        assert!(image.compiler.is_some_and(|compiler| compiler.contains("clang version")));
        // A bound of CUDA's spelling would be 1,024, silently.
        assert_eq!(kernel.max_workgroup, 256, "{chip}");
        let is_wide = chip.starts_with("gfx9");
        assert_eq!(kernel.wave_size, if is_wide { 64 } else { 32 }, "{chip}");
        assert_eq!(kernel.workgroup_processor_mode, !is_wide, "{chip}");
        // A partial maximum and a partial sum of each of eight warps.
        assert_eq!(kernel.static_lds_bytes, 64, "{chip}");
        assert!((8..64).contains(&kernel.vgprs), "{chip}: {} registers", kernel.vgprs);
    }
}

#[test]
fn a_chip_that_the_compiler_does_not_know_is_an_error_that_says_so() {
    let Some(compiler) = compiler("hip chips") else { return };
    let error = compiler.compile(Path::new("silu.cu"), "gfx950", &scratch("silu.co"));
    let error = error.expect_err("clang 19 does not know this chip");
    assert!(error.contains("gfx950"), "{error}");
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> usize {
    let bytes = bytes[at..at + N].iter().rev();
    bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The code objects of a library whose bundles are compressed, taken out without the reader.
fn code_objects(library: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for start in (0..library.len().saturating_sub(64)).step_by(4096) {
        let bytes = &library[start..];
        if !bytes.starts_with(b"CCOB") {
            continue;
        }
        let (size, header) = match number::<2>(bytes, 4) {
            2 => (number::<4>(bytes, 8), 24),
            _ => (number::<8>(bytes, 8), 32),
        };
        let packed = &bytes[header..size];
        let mut bundle = Vec::new();
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed).expect("zstd");
        decoder.read_to_end(&mut bundle).expect("zstd");
        let mut at = 32;
        for _ in 0..number::<8>(&bundle, 24) {
            let [offset, size, name] = [0, 8, 16].map(|field| number::<8>(&bundle, at + field));
            if !bundle[at + 24..].starts_with(b"host") {
                found.push(bundle[offset..offset + size].to_vec());
            }
            at += 24 + name;
        }
    }
    found
}

#[test]
fn every_kernel_of_another_projects_libraries_reads_as_llvm_readelf_reads_it() {
    let test = "libraries for ROCm";
    let Some(compiler) = compiler(test) else { return };
    let (Some(tool), Some(_)) = (&compiler.readelf, rocm_library("64")) else {
        let reason = "no llvm-readelf-19 or no wheel: cargo xtask toolchain --hip";
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
        return;
    };
    let mut kernels = 0;
    // Compressed bundles of versions 2 and 3, by AMD's clang 19 and 22.
    for (release, chips) in [("64", 14), ("72", 15)] {
        let path = rocm_library(release).expect("the wheel is complete");
        let library = fs::read(path).expect("the wheel is complete");
        let images = assay_image::read(&library).expect("hipcc made it");
        let objects = code_objects(&library);
        // Two sources, each for every chip.
        assert_eq!((images.len(), objects.len()), (2 * chips, 2 * chips));
        for (entry, object) in images.into_iter().zip(objects) {
            let Contents::Hip(image) = entry.contents else { panic!("{}", entry.place) };
            let file = scratch(&format!("rocm-{release}.co"));
            fs::write(&file, object).expect("the temporary folder can be written");
            readelf::check(tool, &file, &image).expect("two readers agree");
            kernels += image.kernels.len();
        }
    }
    assert!(kernels > 29 * 151, "{kernels} kernels");
}
