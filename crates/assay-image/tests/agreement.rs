//! What is read here of images that nvcc makes, and of a library that NVIDIA ships, against what
//! `cuobjdump -res-usage` prints of them.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use assay_image::{Contents, Entry, Why, read};
use common::tools::{cuobjdump, facts, find, run, scratch, skip, usages};

const SOURCE: &str = include_str!("kernels.cu");

/// nvcc, cuobjdump and a folder with the source; `None` where a tool is missing.
fn tools(test: &str) -> Option<(PathBuf, PathBuf, PathBuf)> {
    let nvcc = find(test, "cuda-13.0.88", "nvidia/cu13/bin/nvcc")?;
    let folder = scratch(test);
    fs::write(folder.join("kernels.cu"), SOURCE).expect("written");
    Some((nvcc, cuobjdump(test)?, folder))
}

/// Runs nvcc on the source; false, said past the test harness, where there is no host compiler.
fn compile(test: &str, nvcc: &Path, folder: &Path, options: &str) -> bool {
    let options: Vec<&str> = options.split_ascii_whitespace().chain(["kernels.cu"]).collect();
    let ran = run(nvcc, &options, folder).is_some();
    if !ran {
        skip(test, "nvcc finds no host C++ compiler (install g++)");
    }
    ran
}

fn entries(file: &Path) -> Vec<Entry> {
    let bytes = fs::read(file).expect("the file can be read");
    read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Asserts that both agree on every kernel of every image; how many kernels there are.
fn assert_agreement(cuobjdump: &Path, file: &Path) -> usize {
    let shown = usages(cuobjdump, file);
    let found = facts(&entries(file), &shown);
    assert_eq!(found.len(), shown.len(), "{}: images", file.display());
    for (found, shown) in found.iter().zip(&shown) {
        assert_eq!(found, shown, "{}", file.display());
    }
    found.iter().map(Vec::len).sum()
}

#[test]
fn images_of_every_header_and_reservation_agree_with_cuobjdump() {
    let test = "images_agree";
    let Some((nvcc, cuobjdump, folder)) = tools(test) else { return };
    for architecture in ["80", "90", "120"] {
        let options = format!("-arch=sm_{architecture} -cubin -o {architecture}.cubin");
        if !compile(test, &nvcc, &folder, &options) {
            return;
        }
        let kernels = assert_agreement(&cuobjdump, &folder.join(format!("{architecture}.cubin")));
        assert_eq!(kernels, 8, "sm_{architecture}");
    }
}

#[test]
fn what_the_source_declares_is_read_from_its_image() {
    let test = "declarations";
    let Some((nvcc, _, folder)) = tools(test) else { return };
    if !compile(test, &nvcc, &folder, "-arch=sm_90a -cubin -o k.cubin") {
        return;
    }
    let entries = entries(&folder.join("k.cubin"));
    let [Entry { contents: Contents::Cuda(image), .. }] = &entries[..] else {
        panic!("{entries:?}");
    };
    let kernel = |name: &str| {
        let found = image.kernels.iter().find(|kernel| kernel.name == name);
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!(image.architecture, "sm_90a");
    assert_eq!(image.release.map(|release| release.to_string()).as_deref(), Some("13.0.88"));
    assert_eq!(kernel("row_sum").static_shared_bytes, 1024);
    assert_eq!(kernel("row_sum").barriers, 1);
    let sizes: Vec<u32> = kernel("row_sum").parameters.iter().map(|one| one.size).collect();
    assert_eq!((sizes, kernel("row_sum").parameter_bytes), (vec![8, 8, 4], 20));
    assert_eq!(kernel("bounded").max_threads, Some([256, 1, 1]));
    assert_eq!(kernel("bounded").register_cap, Some(128));
    assert_eq!(kernel("required").required_threads, Some([64, 2, 1]));
    assert_eq!(kernel("cluster").cluster, Some([2, 1, 1]));
    assert_eq!(kernel("cluster").static_shared_bytes, 64);
    assert_eq!(kernel("dynamic").static_shared_bytes, 0);
    assert_eq!(kernel("stack").stack_bytes, 160);
    assert_eq!(kernel("plain").register_cap, None);
    assert_eq!(kernel("large_parameters").parameter_bytes, 8008);
}

#[test]
fn fatbins_of_every_packing_agree_with_cuobjdump() {
    let test = "fatbins_agree";
    let Some((nvcc, cuobjdump, folder)) = tools(test) else { return };
    for mode in ["none", "speed", "size"] {
        let options = format!(
            "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a \
             -gencode arch=compute_90,code=compute_90 -compress-mode={mode} -fatbin \
             -o {mode}.fatbin"
        );
        if !compile(test, &nvcc, &folder, &options) {
            return;
        }
        let file = folder.join(format!("{mode}.fatbin"));
        assert_eq!(assert_agreement(&cuobjdump, &file), 16, "{mode}");
        let entries = entries(&file);
        let places: Vec<&str> = entries.iter().map(|entry| entry.place.as_str()).collect();
        assert_eq!(places, ["[0]", "[1]", "[2]"]);
        let Contents::Ptx(ptx) = &entries[2].contents else { panic!("{:?}", entries[2]) };
        assert_eq!(ptx.architecture, "sm_90");
        assert!(ptx.text.contains(".target sm_90") && ptx.text.trim_end().ends_with('}'));
        let Contents::Cuda(image) = &entries[1].contents else { panic!("{:?}", entries[1]) };
        assert_eq!(image.architecture, "sm_90a");
    }
}

#[test]
fn a_shared_library_of_the_host_agrees_with_cuobjdump() {
    let test = "library_agrees";
    let Some((nvcc, cuobjdump, folder)) = tools(test) else { return };
    let options = "-arch=sm_90 -shared -Xcompiler -fPIC -cudart=none -o libkernels.so";
    if !compile(test, &nvcc, &folder, options) {
        return;
    }
    let file = folder.join("libkernels.so");
    assert_eq!(assert_agreement(&cuobjdump, &file), 8);
    assert!(entries(&file).iter().all(|entry| entry.place.starts_with(".nv_fatbin[")));
}

#[test]
fn relocatable_code_is_said_so_and_not_read_as_what_it_will_be() {
    let test = "relocatable";
    let Some((nvcc, _, folder)) = tools(test) else { return };
    for options in ["-dc -cubin -o k.cubin", "-dc -fatbin -o k.fatbin", "-dc -o k.o"] {
        if !compile(test, &nvcc, &folder, &format!("-arch=sm_80 {options}")) {
            return;
        }
        let file = options.rsplit(' ').next().expect("an output");
        let entries = entries(&folder.join(file));
        let relocatable = entries.iter().filter(|entry| match &entry.contents {
            Contents::Skipped(skipped) => skipped.why == Why::Relocatable,
            _ => false,
        });
        assert_eq!(relocatable.count(), 1, "{file}: {entries:?}");
        let images = entries.iter().filter(|entry| matches!(entry.contents, Contents::Cuda(_)));
        assert_eq!(images.count(), 0, "{file}");
    }
}

#[test]
fn libraries_that_nvidia_ships_agree_with_cuobjdump() {
    let test = "third_party";
    let wheels = "nvjpeg-13.3.2.43";
    for (library, images, kernels) in [
        // LZ4, both generations of headers, sm_50 to sm_121.
        ("nvidia/nvjpeg/lib/libnvjpeg.so.12", 165, 3720),
        // zstd, sm_75 to sm_121.
        ("nvidia/cu13/lib/libnvjpeg.so.13", 100, 2490),
    ] {
        let Some(library) = find(test, wheels, library) else { return };
        let Some(cuobjdump) = cuobjdump(test) else { return };
        assert_eq!(assert_agreement(&cuobjdump, &library), kernels, "{}", library.display());
        let entries = entries(&library);
        let found = entries.iter().filter(|entry| matches!(entry.contents, Contents::Cuda(_)));
        assert_eq!(found.count(), images, "{}", library.display());
    }
}
