//! What only a GPU can show. Every test skips itself, and says so, where there is none.

mod common;
mod hardware;

use std::path::Path;
use std::process::Command;

use assay_device::{Argument, Device, DeviceError, Image, Launch, StreamId, discover, open};
use common::{KERNELS, buffer, fill, load, run, words, write_at};
use hardware::{alone, gpu, skip};

const CLUSTERS: &str = "\
.version 7.8
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, %cluster_nctarank;
    mad.lo.u32 %r2, %r3, 100, %r2;
    cvta.to.global.u64 %rd2, %rd1;
    mad.wide.u32 %rd3, %r1, 4, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}
";

#[test]
fn discovery_agrees_with_the_opened_device_gpu() {
    let Some(device) = gpu("discovery_agrees_with_the_opened_device_gpu") else { return };
    let found = discover().into_iter().find(|found| found.name == "cuda:0").expect("listed");
    assert_eq!(found.status.as_ref(), Ok(device.facts()));
    let error = open("cuda:4096").err().expect("there are not that many");
    assert!(matches!(error, DeviceError::NoSuchDevice { .. }), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("cuda:0")), "{error:?}");
}

#[test]
fn a_process_whose_device_dies_takes_no_other_process_with_it_gpu() {
    let test = "a_process_whose_device_dies_takes_no_other_process_with_it_gpu";
    let Some(mut device) = gpu(test) else { return };
    let is_parent = alone(test, || {
        let mut dying = gpu(test).expect("the GPU opens in a second process");
        let (module, target) = (load(&mut *dying), buffer(&mut *dying, 64));
        let error = run(&mut *dying, &write_at(module, target, -(1 << 40))).expect_err("faults");
        assert!(error.poisons_device(), "{error:?}");
    });
    if !is_parent {
        return;
    }
    let (module, target) = (load(&mut *device), buffer(&mut *device, 64));
    run(&mut *device, &fill(module, target, 16, 3)).expect("this process goes on");
    assert_eq!(words(&mut *device, target, 16)[15], 18);
}

#[test]
fn blocks_of_a_cluster_know_their_ranks_gpu() {
    let test = "blocks_of_a_cluster_know_their_ranks_gpu";
    let Some(mut device) = gpu(test) else { return };
    if device.facts().architecture_number() < Some(90) {
        return skip(test, "clusters need sm_90");
    }
    let module = device.load(&Image::ptx("clusters.ptx", CLUSTERS)).expect("loads");
    let out = buffer(&mut *device, 32 * 4);
    for (cluster, blocks) in [(1, 4), (2, 4), (8, 8), (16, 32)] {
        let launch = Launch {
            grid: [blocks, 1, 1],
            cluster: [cluster, 1, 1],
            arguments: vec![Argument::Buffer(out)],
            ..Launch::new(module, "ranks")
        };
        run(&mut *device, &launch).unwrap_or_else(|error| panic!("{cluster}: {error}"));
        let words = words(&mut *device, out, blocks as usize);
        let expected: Vec<_> = (0..blocks).map(|i| 100 * cluster + i % cluster).collect();
        assert_eq!(words, expected, "clusters of {cluster}");
    }
}

/// Assembles the kernels for the device, or says that there is no `ptxas`.
fn cubin(test: &str, architecture: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = if folder.is_dir() { folder.to_path_buf() } else { std::env::temp_dir() };
    let (ptx, out) = (folder.join("kernels.ptx"), folder.join("kernels.cubin"));
    std::fs::write(&ptx, KERNELS).expect("the folder can be written");
    let candidates = ["ptxas", "/usr/local/cuda/bin/ptxas"];
    let assembled = candidates.iter().any(|ptxas| {
        let mut command = Command::new(ptxas);
        command.arg("-arch").arg(architecture).arg(&ptx).arg("-o").arg(&out);
        command.status().is_ok_and(|status| status.success())
    });
    if !assembled {
        skip(test, "no ptxas");
        return None;
    }
    Some(std::fs::read(out).expect("ptxas wrote it"))
}

#[test]
fn a_cubin_runs_and_a_broken_one_is_refused_gpu() {
    let test = "a_cubin_runs_and_a_broken_one_is_refused_gpu";
    let Some(mut device) = gpu(test) else { return };
    let architecture = device.facts().architecture.clone();
    let Some(image) = cubin(test, &architecture) else { return };
    let module = device.load(&Image::Cubin(image.clone())).expect("loads");
    let out = buffer(&mut *device, 64);
    run(&mut *device, &fill(module, out, 16, 9)).expect("runs");
    assert_eq!(words(&mut *device, out, 16)[15], 24);
    for length in [0, 10, 64, image.len() / 2, image.len() - 1] {
        let error = device.load(&Image::Cubin(image[..length].to_vec())).expect_err("refused");
        assert!(matches!(error, DeviceError::ModuleRejected { .. }), "{length}: {error:?}");
    }
    let other = if architecture == "sm_80" { "sm_90" } else { "sm_80" };
    let Some(foreign) = cubin(test, other) else { return };
    let error = device.load(&Image::Cubin(foreign)).expect_err("another chip's");
    assert!(matches!(error, DeviceError::ModuleRejected { .. }), "{error:?}");
    run(&mut *device, &fill(module, out, 16, 9)).expect("the device is as it was");
}

#[test]
fn buffers_and_modules_are_given_back_gpu() {
    let Some(mut device) = gpu("buffers_and_modules_are_given_back_gpu") else { return };
    let most = device.facts().memory_bytes;
    let half = most / 2 + (most >> 4);
    for round in 0..4 {
        let out = device.allocate(&assay_device::Allocation::new(half));
        let out = match out {
            Ok(out) => out,
            Err(DeviceError::OutOfMemory { .. }) if round == 0 => {
                return skip(
                    "buffers_and_modules_are_given_back_gpu",
                    "the GPU's memory is in use",
                );
            }
            Err(error) => panic!("round {round}: {error}"),
        };
        let module = load(&mut *device);
        run(&mut *device, &fill(module, out, 16, round)).expect("runs");
        device.unload(module).expect("unloads");
        device.free(out).expect("frees");
    }
}

#[test]
fn perturbation_overlaps_the_next_launch_gpu() {
    let Some(mut device) = gpu("perturbation_overlaps_the_next_launch_gpu") else { return };
    let module = load(&mut *device);
    let out = buffer(&mut *device, 64);
    device.perturb(1).expect("loads its kernels");
    device.synchronize().expect("waits");
    let (start, end) = (device.create_event().unwrap(), device.create_event().unwrap());
    device.perturb(9).expect("starts");
    device.record_event(start, StreamId::DEFAULT).expect("records");
    device.launch(StreamId::DEFAULT, &fill(module, out, 16, 0)).expect("starts");
    device.record_event(end, StreamId::DEFAULT).expect("records");
    let launch_ns = device.elapsed_ns(start, end).expect("measures");
    let whole = std::time::Instant::now();
    device.perturb(9).expect("starts");
    device.synchronize().expect("waits");
    let perturbation_ns = whole.elapsed().as_nanos() as u64;
    assert!(
        launch_ns < perturbation_ns,
        "the launch ({launch_ns} ns) waited for the perturbation ({perturbation_ns} ns)"
    );
}

const TILES: &str = "\
.version 7.0
.target sm_80
.address_size 64
.shared .align 4 .b8 tile[5000];
.visible .entry tiles(.param .u64 out)
.maxntid 256, 1, 1
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, tile;
    st.volatile.shared.u32 [%r1+4996], %r1;
    ld.volatile.shared.u32 %r2, [%r1+4996];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r2;
    ret;
}
";

#[test]
fn what_a_kernel_declares_is_told_without_what_the_driver_keeps_for_itself_gpu() {
    let test = "what_a_kernel_declares_is_told_without_what_the_driver_keeps_for_itself_gpu";
    let Some(mut device) = gpu(test) else { return };
    let module = device.load(&Image::ptx("tiles.ptx", TILES)).expect("loads");
    let facts = device.kernel_facts(module, "tiles").expect("it is there");
    assert_eq!((facts.static_shared, facts.max_threads), (5000, 256), "{facts:?}");
    let shared = device.facts().multiprocessor.expect("a GPU's multiprocessor allots");
    let each = (5000 + 40_000 + shared.reserved_shared_bytes).next_multiple_of(128);
    let blocks = device.occupancy(module, "tiles", 32, 40_000).expect("it tells");
    assert_eq!(blocks, Some(shared.shared_bytes / each), "{shared:?}");
    let threads = device.occupancy(module, "tiles", 256, 0).expect("it tells");
    assert_eq!(threads, Some((shared.threads / 256).min(shared.blocks)), "{shared:?}");
}
