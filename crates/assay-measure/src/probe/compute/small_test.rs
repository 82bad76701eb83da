//! The other kernels of compute on the emulator at their smallest sizes.

use assay_device::{Device, Image, ModuleId, open};

use super::atomics::{Atomic, Field};
use super::barrier::Waiting;
use super::fma::{Orbits, PIPES};

fn load(name: &str, text: &str) -> (Box<dyn Device>, ModuleId) {
    let mut device = open("emulator:sm_90").unwrap();
    let module = device.load(&Image::ptx(name, text)).unwrap();
    (device, module)
}

#[test]
fn every_orbit_ends_where_its_steps_lead_and_a_dropped_round_shows() {
    let (mut device, module) =
        load("fma.ptx", include_str!("../../../../../kernels/measure/fma.ptx"));
    for pipe in PIPES {
        let orbits = Orbits::new(&mut *device, module, pipe, (2, 64), 7).unwrap();
        orbits.run(&mut *device, 2).unwrap();
        orbits.verify(&mut *device, 2, usize::MAX).unwrap();
        assert!(orbits.verify(&mut *device, 1, 64).is_err(), "{pipe:?}: a round too many");
        assert!(orbits.verify(&mut *device, 3, 64).is_err(), "{pipe:?}: a round dropped");
        orbits.free(&mut *device).unwrap();
    }
}

#[test]
fn every_word_holds_what_was_added_and_a_lost_step_shows() {
    let (mut device, module) =
        load("atomics.ptx", include_str!("../../../../../kernels/measure/atomics.ptx"));
    let field = Field::new(&mut *device, module, 2, 64).unwrap();
    for atomic in [Atomic::AddF32, Atomic::AddU32, Atomic::Cas] {
        for addresses in [1, 3, 128] {
            field.run(&mut *device, atomic, addresses, 5).unwrap();
            field.verify(&mut *device, atomic, addresses, 5).unwrap();
            if atomic != Atomic::Cas {
                assert!(field.verify(&mut *device, atomic, addresses, 6).is_err(), "{atomic:?}");
            }
            field.spoil(&mut *device).unwrap();
            assert!(field.verify(&mut *device, atomic, addresses, 5).is_err(), "{atomic:?}");
        }
    }
    field.free(&mut *device).unwrap();
}

#[test]
fn no_block_passes_a_barrier_before_its_neighbour() {
    let (mut device, module) =
        load("grid.ptx", include_str!("../../../../../kernels/measure/grid_barrier.ptx"));
    let waiting = Waiting { module, blocks: 4, threads: 64, cluster: None };
    waiting.run(&mut *device, 3).unwrap();
    waiting.verify(&mut *device, 3).unwrap();
    let text = include_str!("../../../../../kernels/measure/cluster_barrier.sm_90.ptx");
    let (mut device, module) = load("cluster.ptx", text);
    for size in [1, 2, 4] {
        let waiting = Waiting { module, blocks: 4, threads: 64, cluster: Some(size) };
        waiting.run(&mut *device, 3).unwrap();
        waiting.verify(&mut *device, 3).unwrap();
    }
}

#[test]
fn a_cluster_barrier_without_its_wait_is_caught() {
    let text = include_str!("../../../../../kernels/measure/cluster_barrier.sm_90.ptx");
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains("barrier.cluster")).collect();
    let holes = kept.join("\n") + "\n";
    let (mut device, module) = load("cluster.ptx", &holes);
    let waiting = Waiting { module, blocks: 4, threads: 64, cluster: Some(4) };
    assert!(waiting.verify(&mut *device, 3).is_err());
}
