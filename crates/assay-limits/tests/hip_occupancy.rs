//! Occupancy on AMD chips against LLVM's: kernels that name a register each are compiled here, and
//! the waves of a SIMD that the compiler states must be ours.
//!
//! The compiler is `clang++-19` (`cargo xtask toolchain --hip`); where it is missing the test says
//! so on a line that starts with SKIPPED. It does not know gfx950, whose registers are gfx942's.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use assay_image::HipKernel;
use assay_limits::{HipChip, fit_hip};
use common::{hip, launch, skip};

const CHIPS: [&str; 7] =
    ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201"];
const VECTOR: [u32; 22] =
    [1, 8, 24, 25, 32, 33, 40, 41, 48, 49, 64, 65, 72, 73, 96, 97, 120, 121, 128, 168, 192, 256];
const SCALAR: [u32; 8] = [16, 64, 80, 81, 90, 98, 100, 102];
const ACCUMULATION: [u32; 6] = [1, 8, 33, 100, 200, 256];

/// What the compiler says of one kernel.
#[derive(Default, Debug)]
struct Said {
    vector: u32,
    scalar: u32,
    occupancy: u32,
}

fn kernel(text: &mut String, name: &str, registers: &str) {
    let attributes = "__attribute__((global, amdgpu_flat_work_group_size(1, 64)))";
    let body = format!("{{ asm volatile(\"\" ::: {registers}); }}");
    writeln!(text, "extern \"C\" {attributes} void {name}() {body}").expect("a text is written");
}

fn source(chip: &HipChip) -> String {
    let mut text = String::new();
    for count in VECTOR {
        kernel(&mut text, &format!("v{count}"), &format!("\"v{}\"", count - 1));
    }
    for count in SCALAR {
        kernel(&mut text, &format!("s{count}"), &format!("\"s{}\"", count - 1));
    }
    if chip.vgprs_wave32.is_none() {
        for count in ACCUMULATION {
            kernel(&mut text, &format!("a{count}"), &format!("\"v30\", \"a{}\"", count - 1));
        }
    }
    text
}

/// Compiles to assembly and reads the comments; `None` where there is no compiler.
fn compiled(chip: &HipChip, wave: u32) -> Option<Vec<Said>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hip_occupancy");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let file = folder.join(format!("{}_{wave}.hip", chip.name));
    let assembly = file.with_extension("s");
    fs::write(&file, source(chip)).expect("it can be written");
    let mode = if wave == 64 { "-mwavefrontsize64" } else { "-mno-wavefrontsize64" };
    let output = Command::new("clang++-19")
        .args(["-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-O1", "-S", mode])
        .arg(format!("--offload-arch={}", chip.name))
        .arg("-o")
        .args([&assembly, &file])
        .output()
        .ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(said(&fs::read_to_string(assembly).expect("the compiler wrote it")))
}

fn said(assembly: &str) -> Vec<Said> {
    let number = |text: &str| text.trim().parse::<u32>().expect("a number");
    let mut all = Vec::new();
    let mut now = Said::default();
    for line in assembly.lines() {
        match line.split_once(": ") {
            Some(("; NumSgprs", count)) => now.scalar = number(count),
            // Where registers are one file, the total comes after the parts.
            Some(("; NumVgprs" | "; TotalNumVgprs", count)) => now.vector = number(count),
            Some(("; Occupancy", count)) => {
                now.occupancy = number(count);
                all.push(std::mem::take(&mut now));
            }
            _ => {}
        }
    }
    all
}

/// Waves of a SIMD by our count: groups of one wave, without LDS.
fn ours(chip: &HipChip, said: &Said, wave: u32) -> u64 {
    let kernel = HipKernel {
        vgprs: said.vector,
        sgprs: said.scalar,
        max_workgroup: 64,
        wave_size: wave,
        ..HipKernel::default()
    };
    let fit = fit_hip(chip, &kernel, &launch([1, 1, 1], [wave.into(), 1, 1]));
    assert!(fit.fits(), "{}: {said:?}: {fit:?}", chip.name);
    u64::from(fit.occupancy.map_or(0, |occupancy| occupancy.warps))
        / chip.simds_per_compute_unit.value
}

/// LLVM's table of scalar registers lets 97 to 100 of them have 8 waves, and its own step of 16
/// makes that 7 x 112; we keep to the step.
fn in_dispute(chip: &HipChip, said: &Said) -> bool {
    chip.sgprs_per_simd.is_some() && (97..=100).contains(&said.scalar)
}

#[test]
fn waves_of_a_simd_are_as_many_as_llvm_states() {
    const TEST: &str = "waves_of_a_simd_are_as_many_as_llvm_states";
    for name in CHIPS {
        let chip = hip(name);
        for wave in chip.wave_sizes.value.iter().map(|size| *size as u32) {
            let Some(all) = compiled(&chip, wave) else {
                return skip(TEST, "there is no clang++-19 (cargo xtask toolchain --hip)");
            };
            assert!(all.len() >= VECTOR.len() + SCALAR.len(), "{name}: {} kernels", all.len());
            for said in all {
                let ours = ours(&chip, &said, wave);
                if in_dispute(&chip, &said) {
                    assert_eq!((ours, said.occupancy), (7, 8), "{name}: {said:?}");
                } else {
                    assert_eq!(ours, u64::from(said.occupancy), "{name}, wave {wave}: {said:?}");
                }
            }
        }
    }
}

#[test]
fn gfx950_has_the_registers_of_gfx942() {
    let (new, old) = (hip("gfx950"), hip("gfx942"));
    let registers = |chip: &HipChip| {
        [
            chip.vgprs_wave64.value,
            chip.vgpr_allocation_wave64.value,
            chip.vgprs_per_lane.value,
            chip.sgprs_per_wave.value,
            chip.waves_per_simd.value,
        ]
    };
    assert_eq!(registers(&new), registers(&old));
}
