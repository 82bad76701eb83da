//! The compiler and the two readers on sources of the suite.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::Compiler;
use super::toolchain::packaged;

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
