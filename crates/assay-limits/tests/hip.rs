//! The rules of HIP, each at its boundary.

mod common;

use std::collections::BTreeSet;

use assay_image::HipKernel;
use assay_limits::{Fit, HipChip, Launch, Place, Resource, Rule, fit_hip};
use common::{boundary, hip, launch, rules};

const RDNA: [&str; 5] = ["gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201"];
const CDNA: [&str; 3] = ["gfx90a", "gfx942", "gfx950"];

fn kernel(chip: &HipChip) -> HipKernel {
    HipKernel {
        name: "k".into(),
        vgprs: 32,
        sgprs: 32,
        max_workgroup: 1024,
        wave_size: chip.wave_sizes.value[0] as u32,
        workgroup_processor_mode: chip.compute_units_per_processor.is_some(),
        ..HipKernel::default()
    }
}

fn fit(chip: &HipChip, change: impl Fn(&mut HipKernel, &mut Launch)) -> Fit {
    let (mut kernel, mut launch) = (kernel(chip), launch([16, 16, 16], [64, 1, 1]));
    change(&mut kernel, &mut launch);
    fit_hip(chip, &kernel, &launch)
}

type Put = fn(&mut HipKernel, &mut Launch, u64);

/// Rules that every chip has alike.
const ALIKE: [(Rule, u64, Put); 5] = [
    (Rule::GridX, (1 << 31) - 1, |_, launch, value| {
        launch.grid[0] = value;
        launch.block[0] = 1;
    }),
    (Rule::GridY, 65_535, |_, launch, value| launch.grid[1] = value),
    (Rule::GridZ, 65_535, |_, launch, value| launch.grid[2] = value),
    (Rule::LaunchBounds, 256, |kernel, launch, value| {
        kernel.max_workgroup = 256;
        launch.block = [value, 1, 1];
    }),
    (Rule::ScalarRegisters, 108, |kernel, _, value| kernel.sgprs = value as u32),
];

#[test]
fn the_rules_that_all_chips_have_alike_hold_at_the_limit_and_break_one_past_it() {
    for name in RDNA.into_iter().chain(CDNA) {
        let chip = hip(name);
        for (rule, last, put) in ALIKE {
            boundary(rule, last, |value| fit(&chip, |kernel, launch| put(kernel, launch, value)));
        }
    }
}

#[test]
fn a_work_group_is_bounded_along_each_axis_and_in_all() {
    let chip = hip("gfx1100");
    let with = |block: [u64; 3]| rules(&fit(&chip, |_, launch| launch.block = block));
    let past = [Rule::BlockThreads, Rule::LaunchBounds];
    assert_eq!(with([1024, 1, 1]), []);
    assert_eq!(with([32, 33, 1]), past);
    assert_eq!(with([1025, 1, 1]), [&[Rule::BlockX], &past[..]].concat());
    assert_eq!(with([1, 1025, 1]), [&[Rule::BlockY], &past[..]].concat());
    assert_eq!(with([1, 1, 1025]), [&[Rule::BlockZ], &past[..]].concat());
    assert!(with([0, 1, 1]).contains(&Rule::Empty));
}

#[test]
fn a_required_work_group_must_be_met_along_each_axis() {
    let with = |block: [u64; 3]| {
        rules(&fit(&hip("gfx1201"), |kernel, launch| {
            kernel.required_workgroup = Some([64, 2, 1]);
            launch.block = block;
        }))
    };
    assert_eq!(with([64, 2, 1]), []);
    assert_eq!(with([128, 1, 1]), [Rule::RequiredX, Rule::RequiredY]);
    assert_eq!(with([64, 2, 2]), [Rule::RequiredZ]);
}

#[test]
fn the_work_items_of_a_grid_are_counted_in_32_bits_along_each_axis() {
    let chip = hip("gfx942");
    let blocks = u64::from(u32::MAX) / 64;
    boundary(Rule::GridItems, blocks, |blocks| fit(&chip, |_, launch| launch.grid[0] = blocks));
}

#[test]
fn lds_of_a_work_group_is_bounded_static_and_dynamic_together() {
    for (name, kib) in [("gfx1030", 64), ("gfx1201", 64), ("gfx942", 64), ("gfx950", 160)] {
        boundary(Rule::Lds, kib << 10, |bytes| {
            fit(&hip(name), |kernel, launch| {
                kernel.static_lds_bytes = 40 << 10;
                launch.dynamic_shared_bytes = bytes - (40 << 10);
            })
        });
    }
    let red: Vec<&str> = RDNA
        .into_iter()
        .chain(CDNA)
        .filter(|name| {
            let fit = fit(&hip(name), |kernel, launch| {
                kernel.static_lds_bytes = 40 << 10;
                launch.dynamic_shared_bytes = 32 << 10;
            });
            rules(&fit) == [Rule::Lds]
        })
        .collect();
    assert_eq!(red, [&RDNA[..], &["gfx90a", "gfx942"]].concat());
}

#[test]
fn a_wave_is_of_a_size_that_the_chip_has() {
    for name in CDNA {
        let red = fit(&hip(name), |kernel, _| kernel.wave_size = 32);
        assert_eq!(rules(&red), [Rule::WaveSize]);
        assert_eq!((red.problems[0].asked, red.problems[0].limit), (32, 64));
    }
    for name in RDNA {
        for size in [32, 64] {
            assert!(fit(&hip(name), |kernel, _| kernel.wave_size = size).fits());
        }
        assert_eq!(rules(&fit(&hip(name), |kernel, _| kernel.wave_size = 0)), [Rule::WaveSize]);
    }
}

#[test]
fn vector_registers_of_a_lane_are_bounded_by_what_it_may_address() {
    for name in RDNA {
        boundary(Rule::VectorRegisters, 256, |vgprs| {
            fit(&hip(name), |kernel, _| kernel.vgprs = vgprs as u32)
        });
    }
    for name in CDNA {
        let with = |vgprs: u32| rules(&fit(&hip(name), |kernel, _| kernel.vgprs = vgprs));
        assert_eq!(with(512), []);
        assert_eq!(with(513), [Rule::VectorRegisters, Rule::VectorRegistersPerSimd]);
    }
}

#[test]
fn vector_registers_are_rounded_up_and_shared_by_the_waves_on_one_simd() {
    // The last count that 1,024 threads may have, by chip, wave and mode: 8 waves of 32 on each of
    // 4 SIMDs or 16 on each of 2; in waves of 64 half as many, of twice the size.
    let cases = [
        ("gfx1030", 32, true, 128),
        ("gfx1030", 32, false, 64),
        ("gfx1030", 64, true, 128),
        ("gfx1030", 64, false, 64),
        ("gfx1100", 32, true, 192),
        ("gfx1100", 32, false, 96),
        ("gfx1201", 64, true, 192),
        ("gfx1201", 64, false, 96),
        ("gfx90a", 64, false, 128),
        ("gfx950", 64, false, 128),
    ];
    for (name, size, pair, last) in cases {
        boundary(Rule::VectorRegistersPerSimd, last, |vgprs| {
            fit(&hip(name), |kernel, launch| {
                kernel.vgprs = vgprs as u32;
                kernel.wave_size = size;
                kernel.workgroup_processor_mode = pair;
                launch.block = [1024, 1, 1];
            })
        });
    }
}

#[test]
fn a_simd_holds_so_many_waves_of_one_work_group() {
    let mut chip = hip("gfx90a");
    chip.waves_per_simd.value = 3;
    boundary(Rule::WavesPerSimd, 3, |waves| {
        fit(&chip, |_, launch| launch.block = [waves * 4 * 64, 1, 1])
    });
}

#[test]
fn occupancy_counts_on_a_compute_unit_or_on_a_pair_and_names_what_binds() {
    let chip = hip("gfx1100");
    let with = |change: fn(&mut HipKernel, &mut Launch)| {
        fit(&chip, change).occupancy.expect("the launch fits")
    };
    let light = with(|_, launch| launch.block = [256, 1, 1]);
    assert_eq!((light.blocks, light.warps, light.warps_max), (8, 64, 64));
    assert_eq!((light.place, light.binding), (Place::WorkgroupProcessor, vec![Resource::Warps]));
    let alone = with(|kernel, launch| {
        kernel.workgroup_processor_mode = false;
        kernel.vgprs = 97; // 120 of 1,536: 12 waves a SIMD, 24 a compute unit.
        launch.block = [256, 1, 1];
    });
    assert_eq!((alone.blocks, alone.warps, alone.warps_max), (3, 24, 32));
    assert_eq!((alone.place, alone.binding), (Place::ComputeUnit, vec![Resource::Registers]));
    let shared = with(|_, launch| launch.dynamic_shared_bytes = (64 << 10) - 1);
    assert_eq!((shared.blocks, shared.binding), (2, vec![Resource::Shared]));
    let groups = with(|_, launch| launch.block = [33, 1, 1]);
    assert_eq!((groups.blocks, groups.binding), (32, vec![Resource::Warps, Resource::Blocks]));
}

#[test]
fn scalar_registers_bind_only_where_a_simd_shares_them_out() {
    let with = |name: &str| {
        fit(&hip(name), |kernel, launch| {
            kernel.sgprs = 102; // 112 of 800: 7 waves a SIMD.
            launch.block = [64, 1, 1];
        })
    };
    let occupancy = with("gfx90a").occupancy.expect("it fits");
    assert_eq!((occupancy.blocks, occupancy.binding), (28, vec![Resource::ScalarRegisters]));
    let occupancy = with("gfx1030").occupancy.expect("it fits");
    assert!(!occupancy.binding.contains(&Resource::ScalarRegisters));
}

#[test]
fn no_launch_of_any_size_makes_a_rule_overflow() {
    for name in RDNA.into_iter().chain(CDNA) {
        for value in [0, 1, 65, u64::from(u32::MAX), u64::MAX] {
            fit(&hip(name), |kernel, launch| {
                kernel.vgprs = value as u32;
                kernel.sgprs = value as u32;
                kernel.static_lds_bytes = value as u32;
                kernel.max_workgroup = value as u32;
                *launch = Launch {
                    grid: [value; 3],
                    block: [value; 3],
                    cluster: [1; 3],
                    dynamic_shared_bytes: value,
                };
            });
        }
    }
}

#[test]
fn every_rule_of_hip_alone_is_broken_here() {
    let all = Rule::ALL.into_iter();
    let own = all.filter(|rule| (Rule::WaveSize..=Rule::Lds).contains(rule));
    let broken = [
        Rule::WaveSize,
        Rule::VectorRegisters,
        Rule::VectorRegistersPerSimd,
        Rule::WavesPerSimd,
        Rule::ScalarRegisters,
        Rule::Lds,
    ];
    assert_eq!(own.collect::<BTreeSet<Rule>>(), broken.into_iter().collect());
}
