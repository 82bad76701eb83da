//! Occupancy against NVIDIA's own calculator: `cuda_occupancy.h`, compiled here, answers for
//! launches drawn from a seed, and the blocks and what binds them must be the same.
//!
//! The header comes with nvcc (`cargo xtask toolchain`), the compiler is the system's `g++`; where
//! one is missing the test says so on a line that starts with SKIPPED.

mod common;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use assay_image::CudaKernel;
use assay_limits::{Chip, Chips, CudaChip, Fit, Launch, Resource, fit_cuda};
use common::{launch, skip};

const SEED: u64 = 0x0cc0_9a4c;
const LAUNCHES: usize = 100_000;
/// Releases whose header gives `sm_103` twice the barriers that later ones do.
const MISCOUNT: [&str; 2] = ["cuda-13.0.88", "cuda-13.2.86"];

/// The bits in which the calculator says what limits.
const BITS: [(u32, Resource); 5] = [
    (0x01, Resource::Warps),
    (0x02, Resource::Registers),
    (0x04, Resource::Shared),
    (0x08, Resource::Blocks),
    (0x10, Resource::Barriers),
];

/// `SplitMix64`, enough for a sweep.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }

    /// A number below a bound, often round or at the bound, where rules change.
    fn skewed(&mut self, bound: u64, step: u64) -> u64 {
        match self.below(4) {
            0 => self.below(bound),
            1 => (self.below(bound) / step * step + self.below(3)).saturating_sub(1).min(bound - 1),
            2 => self.below(bound.min(step * 4)),
            _ => self.below(bound) / step * step,
        }
    }
}

/// Every `cuda_occupancy.h` of an nvcc that is installed.
fn headers() -> Vec<PathBuf> {
    includes("cuda_occupancy.h")
}

/// The include folders of nvccs that are installed and have a file.
fn includes(file: &str) -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root =
        env::var_os("ASSAY_TOOLCHAIN").map_or_else(|| repository.join(".toolchain"), PathBuf::from);
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path().join("nvidia/cu13/include"))
        .filter(|folder| folder.join(file).exists())
        .collect();
    folders.sort();
    folders
}

/// Compiles one of the sources beside this file; `None` where there is no compiler.
fn compiled(source: &str, include: &Path, number: usize) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{source}_{number}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let output = Command::new("g++")
        .args(["-std=c++17", "-O1", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(include)
        .arg("-I")
        .arg(include.join("cccl"))
        .arg(source)
        .output()
        .ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// `sm_103` as 10 and 3.
fn capability(chip: &CudaChip) -> (u64, u64) {
    let digits = chip.name.trim_start_matches("sm_").parse::<u64>().expect("sm_ and digits");
    (digits / 10, digits % 10)
}

/// One line of numbers for the calculator, in the order in which it reads them.
fn line(chip: &CudaChip, kernel: &CudaKernel, launch: &Launch) -> String {
    let (major, minor) = capability(chip);
    let reserved = chip.shared_reserved_per_block.as_ref().map_or(0, |number| number.value);
    let numbers = [
        major,
        minor,
        chip.threads_per_block.value,
        chip.warps_per_multiprocessor.value * chip.warp_threads.value,
        chip.registers_per_block.value,
        chip.registers_per_multiprocessor.value,
        chip.warp_threads.value,
        chip.shared_per_block.value,
        chip.shared_per_multiprocessor.value,
        chip.shared_per_block_opt_in.value,
        reserved,
        kernel.registers.into(),
        kernel.static_shared_bytes.into(),
        launch.dynamic_shared_bytes,
        kernel.barriers.into(),
        launch.threads(),
    ];
    numbers.map(|number| number.to_string()).join(" ")
}

fn draw(draw: &mut Draw, chip: &CudaChip) -> (CudaKernel, Launch) {
    let kernel = CudaKernel {
        name: "k".into(),
        registers: draw.skewed(256, 8) as u32,
        static_shared_bytes: draw.skewed(chip.shared_per_block.value + 1, 128) as u32,
        barriers: if draw.below(2) == 0 { 1 } else { draw.below(17) as u32 },
        ..CudaKernel::default()
    };
    let mut launch = launch([1, 1, 1], [1 + draw.skewed(1024, 32), 1, 1]);
    if draw.below(3) > 0 {
        launch.dynamic_shared_bytes = draw.skewed(chip.shared_per_multiprocessor.value, 1024);
    }
    (kernel, launch)
}

fn answers(program: &Path, lines: String) -> Vec<(i64, u32)> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the calculator starts");
    let mut input = child.stdin.take().expect("it has an input");
    let writer = thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("the calculator ends");
    writer.join().expect("the writer ends").expect("the calculator reads it all");
    let text = String::from_utf8(output.stdout).expect("numbers are ASCII");
    let pair = |line: &str| {
        let (blocks, bits) = line.split_once(' ').expect("two numbers a line");
        (blocks.parse().expect("blocks"), bits.parse().expect("bits"))
    };
    text.lines().map(pair).collect()
}

/// What the calculator would have said where ours said this.
fn ours(fit: &Fit) -> (i64, u32) {
    fit.occupancy.as_ref().map_or((0, 0), |occupancy| {
        let bit = |(bit, resource): &(u32, Resource)| {
            if occupancy.binding.contains(resource) { *bit } else { 0 }
        };
        (occupancy.blocks.into(), BITS.iter().map(bit).sum())
    })
}

/// Whether both say the same. Where barriers alone bind, the calculator still sets the bits of what
/// would bind without them.
fn same((blocks, bits): (i64, u32), theirs: (i64, u32)) -> bool {
    const BARRIERS: u32 = 0x10;
    blocks == theirs.0 && (bits == theirs.1 || (bits == BARRIERS && theirs.1 & BARRIERS != 0))
}

/// Draws launches from the seed and holds every answer against one header's.
fn sweep(header: &Path, program: &Path, chips: &[&CudaChip]) {
    let old = MISCOUNT.iter().any(|folder| header.iter().any(|part| part == *folder));
    let mut stream = Draw(SEED);
    let chip_of = |at: usize| chips[at % chips.len()];
    let mut cases: Vec<(CudaKernel, Launch)> =
        (0..LAUNCHES).map(|at| draw(&mut stream, chip_of(at))).collect();
    for (at, (kernel, _)) in cases.iter_mut().enumerate() {
        if old && chip_of(at).name == "sm_103" {
            kernel.barriers = 0;
        }
    }
    let lines = cases.iter().enumerate();
    let lines: Vec<String> =
        lines.map(|(at, (kernel, launch))| line(chip_of(at), kernel, launch)).collect();
    let theirs = answers(program, lines.join("\n"));
    assert_eq!(theirs.len(), cases.len(), "the calculator answers every line");
    let mut resident = 0;
    for (at, ((kernel, launch), (blocks, bits))) in cases.iter().zip(theirs).enumerate() {
        let fit = fit_cuda(chip_of(at), kernel, launch);
        let same = if blocks == 0 { !fit.fits() } else { same(ours(&fit), (blocks, bits)) };
        resident += usize::from(blocks > 0);
        assert!(
            same,
            "{}, seed {SEED:#x}, launch {at}: {} {kernel:?} {launch:?}: {fit:?}, where the \
             calculator says {blocks} blocks, bits {bits:#x}",
            header.display(),
            chip_of(at).name,
        );
    }
    assert!(resident > LAUNCHES / 4 && resident < LAUNCHES, "{resident} of {LAUNCHES} fit");
}

#[test]
fn occupancy_equals_nvidias_calculator_on_launches_drawn_from_a_seed() {
    const TEST: &str = "occupancy_equals_nvidias_calculator_on_launches_drawn_from_a_seed";
    let chips = Chips::built_in();
    let all = chips.all().iter();
    let cuda: Vec<&CudaChip> = all
        .filter_map(|chip| if let Chip::Cuda(chip) = chip { Some(chip) } else { None })
        .collect();
    let headers = headers();
    if headers.is_empty() {
        return skip(TEST, "no nvcc with cuda_occupancy.h is installed (cargo xtask toolchain)");
    }
    for (number, header) in headers.iter().enumerate() {
        let Some(program) = compiled("occupancy.cpp", header, number) else {
            return skip(TEST, "there is no g++");
        };
        sweep(header, &program, &cuda);
    }
}

#[test]
fn the_tables_of_cuda_chips_equal_nvidias_table_of_traits() {
    const TEST: &str = "the_tables_of_cuda_chips_equal_nvidias_table_of_traits";
    let Some(include) = includes("cccl/cuda/__device/arch_traits.h").pop() else {
        return skip(TEST, "no nvcc with arch_traits.h is installed (xtask toolchain --records)");
    };
    let Some(program) = compiled("traits.cpp", &include, 0) else {
        return skip(TEST, "there is no g++");
    };
    let output = Command::new(program).output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("numbers are ASCII");
    let mut chips = 0;
    for chip in Chips::built_in().all() {
        let Chip::Cuda(chip) = chip else { continue };
        let ours = traits(chip);
        assert!(text.lines().any(|line| line == ours), "{ours}, where theirs are\n{text}");
        chips += 1;
    }
    assert_eq!(chips, 9);
}

/// A chip's numbers in the order in which `traits.cpp` writes them.
fn traits(chip: &CudaChip) -> String {
    let ([gx, gy, gz], [bx, by, bz]) = (chip.grid.value, chip.block.value);
    let reserved = chip.shared_reserved_per_block.as_ref().map_or(0, |number| number.value);
    let numbers = [
        gx,
        gy,
        gz,
        bx,
        by,
        bz,
        chip.threads_per_block.value,
        chip.warp_threads.value,
        chip.warps_per_multiprocessor.value,
        chip.blocks_per_multiprocessor.value,
        chip.registers_per_multiprocessor.value,
        chip.registers_per_block.value,
        chip.registers_per_thread.value,
        chip.shared_per_multiprocessor.value,
        chip.shared_per_block.value,
        chip.shared_per_block_opt_in.value,
        reserved,
        chip.cluster_portable.is_some().into(),
    ];
    format!("{} {}", chip.name, numbers.map(|number| number.to_string()).join(" "))
}

#[test]
fn one_step_of_allocation_more_would_be_seen_in_the_sweep() {
    let mut wrong = common::cuda("sm_90");
    let right = wrong.clone();
    wrong.register_allocation.value = 512;
    let mut stream = Draw(SEED);
    let differ = (0..1000).filter(|_| {
        let (kernel, launch) = draw(&mut stream, &right);
        ours(&fit_cuda(&right, &kernel, &launch)) != ours(&fit_cuda(&wrong, &kernel, &launch))
    });
    let differ = differ.count();
    assert!(differ > 25, "seed {SEED:#x}: {differ}");
}
