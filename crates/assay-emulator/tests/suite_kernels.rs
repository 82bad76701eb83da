//! The suite's own kernels, compiled by nvcc, run on the emulator.

mod common;

use assay_emulator::{CompileOptions, LaunchConfig, Machine, MachineConfig, Schedule};
use common::compile_with;

const MODULES: [&str; 9] =
    ["gemv", "layer_norm", "rms_norm", "row_dot", "row_max", "row_sum", "silu", "softmax", "top_k"];

fn source(name: &str) -> String {
    let path = format!("{}/../../kernels/cuda/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// Runs every kernel of a module: buffers for its pointers, small sizes for its integers, 1e-6 for
/// its floats. Gives the final contents of all buffers.
fn run(name: &str, schedule: Schedule, portable: bool) -> Vec<Vec<u8>> {
    let options = CompileOptions { portable, ..CompileOptions::default() };
    let text = source(name);
    let program = compile_with(&text, options);
    let module = assay_ptx::parse(&text).unwrap();
    let mut results = Vec::new();
    for function in module.functions.iter().filter(|function| function.is_kernel()) {
        let mut machine = Machine::new(MachineConfig::default());
        let mut parameters = Vec::new();
        let mut buffers = Vec::new();
        let mut sizes = [8_u32, 1000, 5].into_iter();
        for (number, parameter) in function.params.iter().enumerate() {
            match parameter.ty.bytes() {
                8 => {
                    let buffer = machine.allocate(1 << 16, 256).unwrap();
                    let values = (0..1 << 14).map(|n| ((n * 7 + number as i32) % 23) as f32 * 0.25);
                    let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
                    machine.write(buffer, &bytes).unwrap();
                    buffers.push(buffer);
                    parameters.extend(buffer.to_le_bytes());
                }
                _ if parameter.ty.is_float() => parameters.extend(1e-6_f32.to_le_bytes()),
                _ => parameters.extend(sizes.next().unwrap_or(1).to_le_bytes()),
            }
        }
        let resources = program.resources(&function.name).unwrap();
        let threads = resources.max_threads.unwrap_or(256);
        let config = LaunchConfig {
            grid: [8, 1, 1],
            block: [threads, 1, 1],
            parameters,
            schedule,
            ..LaunchConfig::default()
        };
        let launched = machine.launch(&program, &function.name, &config);
        launched.unwrap_or_else(|fault| panic!("{fault}"));
        for buffer in buffers {
            let mut bytes = vec![0; 1 << 16];
            machine.read(buffer, &mut bytes).unwrap();
            results.push(bytes);
        }
    }
    results
}

#[test]
fn every_kernel_gives_the_same_bytes_under_every_schedule_and_on_every_host() {
    for name in MODULES {
        let want = run(name, Schedule::InOrder, false);
        for schedule in [Schedule::Reversed, Schedule::Seeded(1), Schedule::Seeded(2)] {
            let got = run(name, schedule, false);
            assert!(got == want, "{name} differs under {schedule:?}");
        }
        let portable = run(name, Schedule::InOrder, true);
        assert!(portable == want, "{name} differs between AVX2 and portable functions");
    }
}

#[test]
fn row_sums_of_small_integers_are_exact() {
    let program = compile_with(&source("row_sum"), CompileOptions::default());
    let mut machine = Machine::new(MachineConfig::default());
    let (rows, cols) = (7_usize, 1000_usize);
    let x: Vec<f32> = (0..rows * cols).map(|i| (i % 13) as f32 - 4.0).collect();
    let input = machine.allocate(4 * x.len() as u64, 256).unwrap();
    let output = machine.allocate(4 * rows as u64, 256).unwrap();
    let bytes: Vec<u8> = x.iter().flat_map(|value| value.to_le_bytes()).collect();
    machine.write(input, &bytes).unwrap();
    let mut parameters = input.to_le_bytes().to_vec();
    parameters.extend(output.to_le_bytes());
    parameters.extend((rows as i32).to_le_bytes());
    parameters.extend((cols as i32).to_le_bytes());
    let config = LaunchConfig {
        grid: [rows as u32, 1, 1],
        block: [256, 1, 1],
        parameters,
        ..LaunchConfig::default()
    };
    machine.launch(&program, "row_sum_f32", &config).unwrap();
    let mut bytes = vec![0; 4 * rows];
    machine.read(output, &mut bytes).unwrap();
    let got: Vec<f32> =
        bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
    let want: Vec<f32> = x.chunks(cols).map(|row| row.iter().sum()).collect();
    assert_eq!(got, want);
}
