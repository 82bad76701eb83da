//! Images that lie: each is an error that names the byte or the field, and none is a panic.

mod common;

use assay_image::{Contents, ErrorKind, ImageError, read};
use common::build::{
    Generation, Header, Kernel, Packing, corpus, cubin, cuda_header, cuda_sections, elf, entry,
    fatbin, half, host, section, sized,
};
use proptest::prelude::*;

fn error(bytes: &[u8]) -> ImageError {
    match read(bytes) {
        Ok(entries) => panic!("this is read: {entries:?}"),
        Err(error) => error,
    }
}

fn image(bytes: &[u8]) -> assay_image::CudaImage {
    match read(bytes).expect("an image").pop().map(|entry| entry.contents) {
        Some(Contents::Cuda(image)) => image,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_built_here_is_read_as_it_was_built() {
    for generation in [Generation::First, Generation::Second] {
        let mut kernel = Kernel::new("k");
        kernel.shared = Some(1088);
        kernel.stack = 16;
        kernel.records = [sized(0x05, &[128, 1, 1]), half(0x1b, 64), half(0x19, 8)].concat();
        let image = image(&cubin(generation, 90, &[kernel]));
        let suffix = if generation == Generation::Second { "a" } else { "" };
        assert_eq!(image.architecture, format!("sm_90{suffix}"));
        let kernel = &image.kernels[0];
        assert_eq!((kernel.registers, kernel.stack_bytes), (40, 16));
        assert_eq!((kernel.static_shared_bytes, kernel.parameter_bytes), (64, 8));
        assert_eq!((kernel.max_threads, kernel.register_cap), (Some([128, 1, 1]), Some(64)));
    }
}

#[test]
fn the_reserved_kibibyte_is_taken_off_from_sm_90_on_and_only_there() {
    let shared = |architecture| {
        let mut kernel = Kernel::new("k");
        kernel.shared = Some(2048);
        image(&cubin(Generation::Second, architecture, &[kernel])).kernels[0].static_shared_bytes
    };
    assert_eq!([80, 86, 89, 90, 100, 121].map(shared), [2048, 2048, 2048, 1024, 1024, 1024]);
}

#[test]
fn unknown_attributes_are_skipped() {
    let mut kernel = Kernel::new("k");
    kernel.records = [
        sized(0xfe, &[1, 2, 3, 4, 5]),
        half(0xfd, 7),
        vec![1, 0xfc, 0, 0, 2, 0xfb, 9, 9],
        sized(0x10, &[32, 1, 1]),
    ]
    .concat();
    let image = image(&cubin(Generation::Second, 100, &[kernel]));
    assert_eq!(image.kernels[0].required_threads, Some([32, 1, 1]));
}

#[test]
fn files_of_other_kinds_are_named() {
    let mut bytes = cubin(Generation::First, 80, &[Kernel::new("k")]);
    bytes[4] = 1;
    let found = error(&bytes);
    assert_eq!((found.kind, found.offset), (ErrorKind::Unsupported, 4));
    assert_eq!(
        found.to_string(),
        "at byte 0x4, `EI_CLASS` says 32 bits; images are read of 64 bits"
    );
    bytes[4] = 2;
    bytes[5] = 2;
    let found = error(&bytes);
    assert_eq!((found.kind, found.field.as_ref()), (ErrorKind::Unsupported, "EI_DATA"));
    bytes[5] = 1;
    bytes[8] = 9;
    assert_eq!(error(&bytes).field, "EI_ABIVERSION");
    for other in [&b"\x7fELF"[..], b"", b"!<arch>\n", b"MZ", b"// PTX", &[0; 4096]] {
        let found = error(other);
        assert!(!found.field.is_empty() && !found.detail.is_empty());
    }
    assert_eq!(error(b"#!/bin/sh").kind, ErrorKind::Unrecognised);
    let found = error(&host(vec![section(".text", 1, vec![0; 8])]));
    assert!(found.to_string().contains("no section that holds GPU code"), "{found}");
}

#[test]
fn lying_sizes_name_their_field() {
    let mut section_past_the_end = cuda_sections(Generation::First, &[Kernel::new("k")]);
    section_past_the_end[2].size = Some(1 << 40);
    let found = error(&elf(&cuda_header(Generation::First, 80), section_past_the_end));
    assert_eq!((found.kind, found.field.as_ref()), (ErrorKind::Truncated, ".nv.info"));

    let mut kernel = Kernel::new("k");
    kernel.records = vec![4, 0x05, 12, 0, 1, 0];
    let found = error(&cubin(Generation::First, 80, &[kernel]));
    assert_eq!((found.kind, found.field.as_ref()), (ErrorKind::Truncated, "attribute payload"));

    let mut kernel = Kernel::new("k");
    kernel.shared = Some(u64::MAX);
    let found = error(&cubin(Generation::First, 80, &[kernel]));
    assert_eq!((found.kind, found.field.as_ref()), (ErrorKind::Malformed, "sh_size"));

    let stored = fatbin(&[entry(1, 90, b".version 9.0", Packing::Stored)]);
    for (at, field) in [(8, "fatbin size"), (20, "entry header size"), (24, "entry payload size")] {
        let mut lying = stored.clone();
        lying[at + 3] = 0x7f;
        assert_eq!(error(&lying).field, field, "byte {at}");
    }
    let mut packed = fatbin(&[entry(1, 90, &[b' '; 999], Packing::Zstd)]);
    packed[16 + 56 + 4] = 1;
    let found = error(&packed);
    let shown = "[0]: at byte 0x48, `entry uncompressed size` promises 4294968295 bytes; at most \
        536870912 are read";
    assert_eq!(found.to_string(), shown);
}

#[test]
fn a_bomb_in_a_fatbin_is_stopped() {
    for packing in [Packing::Zstd, Packing::Lz4] {
        let mut bomb = fatbin(&[entry(1, 90, &vec![b' '; 1 << 24], packing)]);
        assert!(bomb.len() < 1 << 17, "{packing:?}: {} bytes", bomb.len());
        bomb[16 + 56..16 + 60].copy_from_slice(&1000_u32.to_le_bytes());
        let found = error(&bomb);
        assert_eq!((found.kind, found.place.as_str()), (ErrorKind::Malformed, "[0]"), "{found}");
    }
}

#[test]
fn kernels_of_one_name_are_refused() {
    let found = error(&cubin(Generation::First, 80, &[Kernel::new("k"), Kernel::new("k")]));
    assert!(found.to_string().contains("names a second kernel `k`"), "{found}");
}

#[test]
fn sections_that_overlap_are_refused() {
    let mut sections = cuda_sections(Generation::First, &[Kernel::new("a"), Kernel::new("b")]);
    for section in &mut sections {
        if section.name.starts_with(".nv.info.") {
            section.data = [1, 0xfe, 0, 0].repeat(500);
            section.size = Some(2000);
        }
    }
    let mut bytes = elf(&cuda_header(Generation::First, 80), sections);
    // Both kernels' sections claim nearly the whole file.
    let size = (bytes.len() as u64 * 3 / 4).to_le_bytes();
    let table = u64::from_le_bytes(bytes[40..48].try_into().expect("eight bytes")) as usize;
    for header in (table..bytes.len()).step_by(64) {
        if bytes[header + 32..header + 40] == 2000_u64.to_le_bytes() {
            bytes[header + 32..header + 40].copy_from_slice(&size);
        }
    }
    let found = error(&bytes);
    assert!(found.detail.contains("overlap"), "{found}");
}

#[test]
fn a_kernel_without_a_register_count_is_not_made_up() {
    let mut sections = cuda_sections(Generation::Second, &[Kernel::new("k")]);
    let info = sections.iter_mut().find(|section| section.name == ".nv.info").expect("built");
    info.data.clear();
    let found = error(&elf(&cuda_header(Generation::Second, 90), sections));
    assert_eq!(found.field, "REGCOUNT");
    assert!(found.detail.contains("`k`"), "{found}");
}

#[test]
fn every_truncation_of_every_image_is_an_error_or_still_whole() {
    for image in corpus() {
        for length in 0..image.len() {
            if let Err(found) = read(&image[..length]) {
                assert!(!found.field.is_empty());
            }
        }
        read(&image).expect("the whole image is read");
    }
}

#[test]
fn a_type_of_elf_that_is_neither_linked_nor_relocatable_is_an_error() {
    let header = Header { kind: 4, ..cuda_header(Generation::First, 80) };
    let found = error(&elf(&header, cuda_sections(Generation::First, &[])));
    assert_eq!((found.field.as_ref(), found.offset), ("e_type", 16));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        for magic in [&b"\x7fELF\x02\x01\x01"[..], &[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0], b""] {
            let _ = read(&[magic, &bytes].concat());
        }
    }

    #[test]
    fn whatever_a_kernel_declares_is_read(
        registers in 1_u32..256,
        stack in 0_u32..1 << 20,
        shared in 0_u64..1 << 18,
        block in proptest::array::uniform3(1_u32..1025),
    ) {
        let mut kernel = Kernel::new("k");
        (kernel.registers, kernel.stack, kernel.shared) = (registers, stack, Some(shared));
        kernel.records = sized(0x10, &block);
        let image = image(&cubin(Generation::First, 80, &[kernel]));
        let found = &image.kernels[0];
        prop_assert_eq!((found.registers, found.stack_bytes), (registers, stack));
        prop_assert_eq!(u64::from(found.static_shared_bytes), shared);
        prop_assert_eq!(found.required_threads, Some(block));
    }
}
