//! Code objects as a compiler makes them: clang 19 for two chips, and a bundle that its bundler
//! compressed. The expected numbers are those that `llvm-readelf --notes` prints.

use assay_image::{Contents, HipImage, HipKernel, read};

const GFX942: &[u8] = include_bytes!("corpus/row_max.gfx942.co");
const GFX1100: &[u8] = include_bytes!("corpus/row_max.gfx1100.co");
const COMPRESSED: &[u8] = include_bytes!("corpus/silu.ccob");

fn images(bytes: &[u8]) -> Vec<(String, HipImage)> {
    let entries = read(bytes).expect("a compiler made it");
    let images = entries.into_iter().map(|entry| match entry.contents {
        Contents::Hip(image) => (entry.place, image),
        other => panic!("{other:?}"),
    });
    images.collect()
}

fn only_kernel(bytes: &[u8]) -> (String, HipKernel) {
    let mut images = images(bytes);
    let (place, image) = images.pop().expect("one image");
    assert!(images.is_empty() && place.is_empty());
    assert_eq!(image.compiler.as_deref(), Some("Debian clang version 19.1.7 (3~deb12u1)"));
    let [kernel] = image.kernels.try_into().expect("one kernel");
    (image.architecture, kernel)
}

#[test]
fn a_code_object_for_waves_of_64_is_read() {
    let (architecture, kernel) = only_kernel(GFX942);
    assert_eq!(architecture, "gfx942");
    assert_eq!(kernel.name, "row_max_f32");
    assert_eq!((kernel.vgprs, kernel.sgprs, kernel.agprs), (11, 26, 0));
    assert_eq!((kernel.static_lds_bytes, kernel.scratch_bytes), (32, 0));
    assert_eq!((kernel.max_workgroup, kernel.wave_size), (256, 64));
    assert!(!kernel.workgroup_processor_mode);
    assert_eq!((kernel.parameter_bytes, kernel.parameters.len()), (24, 4));
}

#[test]
fn a_code_object_for_waves_of_32_is_read() {
    let (architecture, kernel) = only_kernel(GFX1100);
    assert_eq!(architecture, "gfx1100");
    assert_eq!((kernel.max_workgroup, kernel.wave_size), (256, 32));
    assert!(kernel.workgroup_processor_mode);
}

#[test]
fn a_compressed_bundle_is_read() {
    let images = images(COMPRESSED);
    let found: Vec<(&str, &str)> =
        images.iter().map(|(place, image)| (place.as_str(), image.architecture.as_str())).collect();
    assert_eq!(found, [("[0]", "gfx90a"), ("[1]", "gfx1030"), ("[2]", "gfx1100")]);
    assert!(images.iter().all(|(_, image)| image.kernels.len() == 1));
}

#[test]
fn every_cut_of_a_real_file_is_an_error() {
    for bytes in [GFX942, COMPRESSED] {
        for length in 0..bytes.len() {
            let error = read(&bytes[..length]).expect_err("something is missing");
            assert!(!error.field.is_empty(), "{length}: {error}");
        }
    }
}
