//! The rules of CUDA, each at its boundary, and what a launcher must ask for.

mod common;

use std::collections::BTreeSet;

use assay_image::CudaKernel;
use assay_limits::{CudaChip, Fit, Launch, Need, Rule, Verdict, fit_cuda};
use common::{boundary, cuda, launch, rules};

const CHIPS: [&str; 9] =
    ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"];
/// The largest number of kernels' facts.
const NEVER: u64 = u32::MAX as u64;

fn kernel() -> CudaKernel {
    CudaKernel { name: "k".into(), registers: 32, barriers: 1, ..CudaKernel::default() }
}

fn fit(chip: &CudaChip, change: impl Fn(&mut CudaKernel, &mut Launch)) -> Fit {
    let (mut kernel, mut launch) = (kernel(), launch([16, 16, 16], [32, 1, 1]));
    change(&mut kernel, &mut launch);
    fit_cuda(chip, &kernel, &launch)
}

/// How a value is put into a kernel and its launch.
type Put = fn(&mut CudaKernel, &mut Launch, u64);

/// Rules of launches' dimensions and kernels' bounds, which every chip has alike.
const ALIKE: [(Rule, u64, Put); 13] = [
    (Rule::GridX, (1 << 31) - 1, |_, launch, value| launch.grid[0] = value),
    (Rule::GridY, 65_535, |_, launch, value| launch.grid[1] = value),
    (Rule::GridZ, 65_535, |_, launch, value| launch.grid[2] = value),
    (Rule::BlockZ, 64, |_, launch, value| launch.block = [1, 1, value]),
    (Rule::BlockThreads, 1024, |_, launch, value| launch.block = [value, 1, 1]),
    (Rule::LaunchBounds, 256, |kernel, launch, value| {
        kernel.max_threads = Some([64, 4, 1]);
        launch.block = [value, 1, 1];
    }),
    (Rule::RegistersPerThread, 255, |kernel, _, value| kernel.registers = value as u32),
    (Rule::RegistersPerBlock, 64, |kernel, launch, value| {
        kernel.registers = value as u32;
        launch.block = [32, 32, 1];
    }),
    (Rule::StaticShared, 49_152, |kernel, _, value| kernel.static_shared_bytes = value as u32),
    (Rule::Barriers, 16, |kernel, _, value| kernel.barriers = value as u32),
    (Rule::Parameters, 32_764, |kernel, _, value| kernel.parameter_bytes = value as u32),
    (Rule::Stack, 512 << 10, |kernel, _, value| kernel.stack_bytes = value as u32),
    (Rule::RequiredX, 128, |kernel, launch, value| {
        kernel.required_threads = Some([128, 1, 1]);
        launch.block = [value, 1, 1];
    }),
];

#[test]
fn the_rules_that_all_chips_have_alike_hold_at_the_limit_and_break_one_past_it() {
    for name in CHIPS {
        let chip = cuda(name);
        for (rule, last, put) in ALIKE {
            // One thread more than 1,024 is one more along x as well.
            if rule == Rule::BlockThreads {
                assert_eq!(rules(&fit(&chip, |k, l| put(k, l, last))), []);
                let past = rules(&fit(&chip, |k, l| put(k, l, last + 1)));
                assert_eq!(past, [Rule::BlockX, Rule::BlockThreads]);
                continue;
            }
            boundary(rule, last, |value| fit(&chip, |kernel, launch| put(kernel, launch, value)));
        }
    }
}

#[test]
fn a_block_along_y_is_as_long_as_one_along_x() {
    let chip = cuda("sm_90");
    let past = fit(&chip, |_, launch| launch.block = [1, 1025, 1]);
    assert_eq!(rules(&past), [Rule::BlockY, Rule::BlockThreads]);
}

#[test]
fn shared_memory_of_a_block_is_bounded_by_what_each_chip_lets_a_launcher_opt_in_to() {
    let limits = [163, 99, 163, 99, 227, 227, 227, 99, 99];
    for (name, kib) in CHIPS.into_iter().zip(limits) {
        let chip = cuda(name);
        boundary(Rule::Shared, kib << 10, |bytes| {
            fit(&chip, |kernel, launch| {
                kernel.static_shared_bytes = 4096;
                launch.dynamic_shared_bytes = bytes - 4096;
            })
        });
    }
}

#[test]
fn a_launch_past_48_kib_needs_its_launcher_to_opt_in() {
    let chip = cuda("sm_86");
    let needs = |bytes: u64| fit(&chip, |_, launch| launch.dynamic_shared_bytes = bytes).needs;
    assert_eq!(needs(48 << 10), []);
    assert_eq!(needs((48 << 10) + 1), [Need::DynamicShared((48 << 10) + 1)]);
}

#[test]
fn a_launch_fits_where_a_larger_chip_has_the_shared_memory_and_not_elsewhere() {
    let red: Vec<&str> = CHIPS
        .into_iter()
        .filter(|name| {
            let fit = fit(&cuda(name), |_, launch| launch.dynamic_shared_bytes = 128 << 10);
            !fit.fits()
        })
        .collect();
    assert_eq!(red, ["sm_86", "sm_89", "sm_120", "sm_121"]);
}

#[test]
fn the_hardware_rounds_warps_up_to_its_partitions_before_it_counts_registers() {
    // 9 warps of 7,168 registers are 64,512, and 12 warps 86,016.
    let chip = cuda("sm_80");
    let nine = |registers: u64| {
        fit(&chip, |kernel, launch| {
            kernel.registers = registers as u32;
            launch.block = [9 * 32, 1, 1];
        })
    };
    assert_eq!(rules(&nine(224)), [Rule::RegistersPerBlock]);
    boundary(Rule::RegistersPerBlock, 168, nine);
    let text = nine(224).problems[0].to_string();
    assert!(text.starts_with("86,016 registers a block, where a block has at most 65,536: "));
}

#[test]
fn a_required_block_must_be_met_along_each_axis_and_from_both_sides() {
    let chip = cuda("sm_89");
    let with = |block: [u64; 3]| {
        rules(&fit(&chip, |kernel, launch| {
            kernel.required_threads = Some([32, 4, 2]);
            launch.block = block;
        }))
    };
    assert_eq!(with([32, 4, 2]), []);
    assert_eq!(with([31, 4, 2]), [Rule::RequiredX]);
    assert_eq!(with([32, 5, 2]), [Rule::RequiredY]);
    assert_eq!(with([32, 4, 1]), [Rule::RequiredZ]);
    assert_eq!(with([256, 1, 1]), [Rule::RequiredX, Rule::RequiredY, Rule::RequiredZ]);
}

#[test]
fn clusters_are_bounded_by_the_chip_and_past_8_blocks_need_leave() {
    let with = |name: &str, cluster: u64| {
        fit(&cuda(name), |_, launch| {
            launch.grid = [cluster, 1, 1];
            launch.cluster = [cluster, 1, 1];
        })
    };
    for name in ["sm_80", "sm_86", "sm_87", "sm_89"] {
        boundary(Rule::NoClusters, 1, |cluster| with(name, cluster));
    }
    for (name, most) in [("sm_90", 16), ("sm_100", 16), ("sm_121", 8)] {
        boundary(Rule::ClusterBlocks, most, |cluster| with(name, cluster));
        assert_eq!(with(name, 8).needs, []);
    }
    for name in ["sm_103", "sm_120"] {
        assert_eq!(with(name, 8).verdict(), Verdict::Fits);
        assert_eq!(with(name, 16).verdict(), Verdict::UnknownUntilCompiled);
        assert!(with(name, 16).unknown[0].contains("is not confirmed"));
        assert_eq!(rules(&with(name, 17)), [Rule::ClusterBlocks]);
        assert!(with(name, 17).problems[0].to_string().contains("at most 16 (unconfirmed)"));
    }
    assert_eq!(with("sm_90", 9).needs, [Need::NonPortableCluster(9)]);
}

#[test]
fn a_grid_is_whole_clusters_along_each_axis() {
    let chip = cuda("sm_90");
    let with = |grid: [u64; 3]| {
        rules(&fit(&chip, |_, launch| {
            launch.grid = grid;
            launch.cluster = [4, 2, 1];
        }))
    };
    assert_eq!(with([8, 2, 3]), []);
    assert_eq!(with([9, 2, 3]), [Rule::ClusterDivides]);
    assert_eq!(with([9, 3, 3]), [Rule::ClusterDivides, Rule::ClusterDivides]);
}

#[test]
fn a_kernel_compiled_for_a_cluster_runs_with_that_cluster_only() {
    let chip = cuda("sm_100");
    let with = |grid: u64, cluster: [u64; 3]| {
        rules(&fit(&chip, |kernel, launch| {
            kernel.cluster = Some([4, 1, 1]);
            launch.grid = [grid, 1, 1];
            launch.cluster = cluster;
        }))
    };
    assert_eq!(with(8, [1, 1, 1]), [], "the launch need not name it");
    assert_eq!(with(8, [4, 1, 1]), []);
    assert_eq!(with(8, [2, 1, 1]), [Rule::ClusterRequired]);
    assert_eq!(with(6, [1, 1, 1]), [Rule::ClusterDivides], "and the grid is whole clusters");
}

#[test]
fn nothing_launches_without_a_block_or_a_thread() {
    let chip = cuda("sm_80");
    let zeros: [Put; 3] = [
        |_, launch, _| launch.grid[1] = 0,
        |_, launch, _| launch.block[2] = 0,
        |_, launch, _| launch.cluster[0] = 0,
    ];
    for put in zeros {
        assert!(rules(&fit(&chip, |k, l| put(k, l, 0))).contains(&Rule::Empty));
    }
}

#[test]
fn no_launch_of_any_size_makes_a_rule_overflow() {
    let values = [0, 1, 33, NEVER, u64::MAX / 2, u64::MAX];
    for name in CHIPS {
        let chip = cuda(name);
        for value in values {
            let red = fit(&chip, |kernel, launch| {
                kernel.registers = value as u32;
                kernel.static_shared_bytes = value as u32;
                kernel.barriers = value as u32;
                kernel.cluster = Some([value as u32; 3]);
                kernel.max_threads = Some([value as u32; 3]);
                *launch = Launch {
                    grid: [value; 3],
                    block: [value; 3],
                    cluster: [value; 3],
                    dynamic_shared_bytes: value,
                };
            });
            assert_eq!(red.problems.is_empty(), value == 1, "{name}, {value}: {:?}", red.problems);
        }
    }
}

#[test]
fn every_rule_of_cuda_has_a_launch_that_breaks_it() {
    let chip = cuda("sm_90");
    let mut red: BTreeSet<Rule> = BTreeSet::new();
    for (_, last, put) in ALIKE {
        red.extend(rules(&fit(&chip, |k, l| put(k, l, last + 1))));
    }
    let others = [
        Rule::Empty,
        Rule::BlockY,
        Rule::RequiredY,
        Rule::RequiredZ,
        Rule::Shared,
        Rule::NoClusters,
        Rule::ClusterBlocks,
        Rule::ClusterRequired,
        Rule::ClusterDivides,
    ];
    red.extend(others);
    let first_of_others = Rule::ALL.iter().position(|rule| *rule == Rule::WaveSize);
    let cuda_only = &Rule::ALL[..first_of_others.expect("HIP has rules of its own")];
    let missing: Vec<&Rule> = cuda_only.iter().filter(|rule| !red.contains(rule)).collect();
    assert_eq!(missing, [&Rule::GridItems], "rules that no test of CUDA breaks");
}
