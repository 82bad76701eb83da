//! Checks a launch against the device and the kernel before it starts, so that a mistake in a
//! manifest or a caller is named in its own words instead of a driver's error number.

use crate::error::DeviceError;
use crate::facts::{DeviceFacts, KernelFacts};
use crate::launch::Launch;
use assay_emulator::TensorMap;

/// The most blocks of a cluster on any chip, with the opt-in beyond the portable 8.
pub const MAX_CLUSTER: u64 = 16;

const AXES: [&str; 3] = ["x", "y", "z"];

/// Checks a tensor map, its address the tensor's own.
///
/// # Errors
/// [`DeviceError::InvalidRequest`] with the rule of `cuTensorMapEncodeTiled` that it breaks.
pub fn check_tensor_map(map: &TensorMap) -> Result<(), DeviceError> {
    map.problem().map_or(Ok(()), |reason| {
        let hint = "keep to the rules of cuTensorMapEncodeTiled".to_string();
        Err(DeviceError::InvalidRequest { reason, hint })
    })
}

/// Checks a launch. What the kernel's facts leave unknown is not checked.
///
/// # Errors
/// [`DeviceError::InvalidLaunch`] with the first problem found and what to do about it.
pub fn check_launch(
    device: &DeviceFacts,
    kernel: &KernelFacts,
    launch: &Launch<'_>,
) -> Result<(), DeviceError> {
    check_extents(launch)
        .and_then(|()| check_grid(device, launch))
        .and_then(|()| check_block(device, kernel, launch))
        .and_then(|()| check_shared(device, kernel, launch))
        .and_then(|()| check_cluster(launch))
        .and_then(|()| check_arguments(kernel, launch))
        .map_err(|Problem { reason, hint }| DeviceError::InvalidLaunch {
            symbol: launch.symbol.to_string(),
            reason,
            hint: hint.to_string(),
        })
}

struct Problem {
    reason: String,
    hint: &'static str,
}

fn problem(reason: String, hint: &'static str) -> Result<(), Problem> {
    Err(Problem { reason, hint })
}

fn check_extents(launch: &Launch<'_>) -> Result<(), Problem> {
    let named = [("grid", launch.grid), ("block", launch.block), ("cluster", launch.cluster)];
    for (name, extents) in named {
        if extents.contains(&0) {
            return problem(
                format!("its {name} is {extents:?}, which is zero threads"),
                "make every extent at least 1, or leave the launch out for empty dims",
            );
        }
    }
    Ok(())
}

fn check_grid(device: &DeviceFacts, launch: &Launch<'_>) -> Result<(), Problem> {
    for (axis, (&asked, &most)) in launch.grid.iter().zip(&device.max_grid).enumerate() {
        if u64::from(asked) > most {
            return problem(
                format!("its grid has {asked} blocks along {}, over {most}", AXES[axis]),
                "put the largest extent along x, or give each block more work",
            );
        }
    }
    Ok(())
}

fn check_block(
    device: &DeviceFacts,
    kernel: &KernelFacts,
    launch: &Launch<'_>,
) -> Result<(), Problem> {
    let threads = launch.threads_per_block();
    let most = u64::from(device.max_threads_per_block);
    if threads > most {
        return problem(
            format!("its block {:?} has {threads} threads, over {most}", launch.block),
            "use smaller blocks",
        );
    }
    for (axis, (&asked, &most)) in launch.block.iter().zip(&device.max_block).enumerate() {
        if asked > most {
            return problem(
                format!("its block has {asked} threads along {}, over {most}", AXES[axis]),
                "put the largest extent along x",
            );
        }
    }
    if kernel.max_threads != 0 && threads > u64::from(kernel.max_threads) {
        return problem(
            format!("its block has {threads} threads, the kernel allows {}", kernel.max_threads),
            "keep to the kernel's launch bounds, or compile it with fewer registers",
        );
    }
    Ok(())
}

fn check_shared(
    device: &DeviceFacts,
    kernel: &KernelFacts,
    launch: &Launch<'_>,
) -> Result<(), Problem> {
    let asked = u64::from(kernel.static_shared) + u64::from(launch.shared_bytes);
    let most = u64::from(device.shared_per_block_opt_in.max(device.shared_per_block));
    if asked > most {
        return problem(
            format!(
                "it needs {asked} bytes of shared memory ({} of them dynamic), over {most}",
                launch.shared_bytes
            ),
            "use smaller tiles, or a device with more shared memory",
        );
    }
    Ok(())
}

fn check_cluster(launch: &Launch<'_>) -> Result<(), Problem> {
    let blocks = launch.cluster.iter().fold(1, |all: u64, &n| all.saturating_mul(u64::from(n)));
    if blocks > MAX_CLUSTER {
        return problem(
            format!("its cluster {:?} has {blocks} blocks, over {MAX_CLUSTER}", launch.cluster),
            "use clusters of at most 8 blocks, which every chip with clusters runs",
        );
    }
    for (grid, cluster) in launch.grid.iter().zip(&launch.cluster) {
        if grid % cluster != 0 {
            return problem(
                format!("its grid {:?} is not whole clusters {:?}", launch.grid, launch.cluster),
                "round each grid extent up to a multiple of the cluster's",
            );
        }
    }
    Ok(())
}

fn check_arguments(kernel: &KernelFacts, launch: &Launch<'_>) -> Result<(), Problem> {
    let Some(sizes) = &kernel.parameter_sizes else { return Ok(()) };
    let given = launch.arguments.len();
    if given != sizes.len() {
        return problem(
            format!("it has {given} arguments, the kernel has {} parameters", sizes.len()),
            "list one argument for every parameter, in the kernel's order",
        );
    }
    for (index, (argument, &size)) in launch.arguments.iter().zip(sizes).enumerate() {
        let given = argument.size();
        if given != size {
            return problem(
                format!("argument {index} has {given} bytes, its parameter has {size}"),
                "give it the parameter's type; buffers take 8 bytes",
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::{BufferId, ModuleId};
    use crate::launch::Argument;

    fn device() -> DeviceFacts {
        DeviceFacts {
            name: "test".into(),
            backend: "test".into(),
            architecture: "sm_80".into(),
            driver: None,
            multiprocessors: 2,
            warp_size: 32,
            max_threads_per_block: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [0x7fff_ffff, 65535, 65535],
            shared_per_block: 49152,
            shared_per_block_opt_in: 166_912,
            registers_per_block: 65536,
            multiprocessor: None,
            memory_bytes: 1 << 30,
        }
    }

    fn kernel() -> KernelFacts {
        KernelFacts {
            max_threads: 512,
            static_shared: 1024,
            parameter_sizes: Some(vec![8, 4]),
            ..KernelFacts::default()
        }
    }

    fn launch() -> Launch<'static> {
        let arguments = vec![Argument::Buffer(BufferId::new()), Argument::u32(1)];
        Launch { arguments, ..Launch::new(ModuleId::new(), "k") }
    }

    fn reason(launch: &Launch<'_>) -> String {
        match check_launch(&device(), &kernel(), launch) {
            Err(DeviceError::InvalidLaunch { reason, .. }) => reason,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_launch_within_all_limits_passes() {
        let largest = Launch {
            grid: [0x7fff_ffff, 65535, 65535],
            block: [8, 1, 64],
            shared_bytes: 166_912 - 1024,
            ..launch()
        };
        assert_eq!(check_launch(&device(), &kernel(), &largest), Ok(()));
    }

    #[test]
    fn every_limit_is_named_when_it_is_passed() {
        let cases: [(Launch<'_>, &str); 10] = [
            (Launch { block: [0, 1, 1], ..launch() }, "zero threads"),
            (Launch { grid: [1, 0, 1], ..launch() }, "zero threads"),
            (Launch { grid: [1, 65536, 1], ..launch() }, "65536 blocks along y"),
            (Launch { block: [1025, 1, 1], ..launch() }, "1025 threads, over 1024"),
            (Launch { block: [u32::MAX; 3], ..launch() }, "threads, over 1024"),
            (Launch { block: [1, 1, 65], ..launch() }, "65 threads along z"),
            (Launch { block: [513, 1, 1], ..launch() }, "the kernel allows 512"),
            (Launch { shared_bytes: 166_912, ..launch() }, "167936 bytes of shared memory"),
            (Launch { cluster: [32, 1, 1], ..launch() }, "32 blocks, over 16"),
            (Launch { grid: [3, 1, 1], cluster: [2, 1, 1], ..launch() }, "not whole clusters"),
        ];
        for (launch, words) in &cases {
            let reason = reason(launch);
            assert!(reason.contains(words), "{launch:?} gave {reason}");
        }
    }

    #[test]
    fn arguments_must_match_the_parameters() {
        let one = Launch { arguments: vec![Argument::u64(0)], ..launch() };
        assert!(reason(&one).contains("1 arguments, the kernel has 2 parameters"));
        let wide = Launch { arguments: vec![Argument::u64(0), Argument::u64(0)], ..launch() };
        assert!(reason(&wide).contains("argument 1 has 8 bytes, its parameter has 4"));
        let unknown = KernelFacts { parameter_sizes: None, ..kernel() };
        assert_eq!(check_launch(&device(), &unknown, &one), Ok(()), "unknown is not checked");
    }
}
