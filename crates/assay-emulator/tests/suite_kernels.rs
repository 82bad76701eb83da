//! The suite's own kernels, compiled by nvcc, run on the emulator.

use assay_emulator::{LaunchConfig, Machine, MachineConfig, Program};

fn program(name: &str) -> Program {
    let path = format!("{}/../../kernels/cuda/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(&path).unwrap();
    Program::compile(&assay_ptx::parse(&source).unwrap()).unwrap()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(machine: &Machine, address: u64, count: usize) -> Vec<f32> {
    let mut bytes = vec![0; 4 * count];
    machine.read(address, &mut bytes).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

#[test]
fn row_sums_of_small_integers_are_exact() {
    let program = program("row_sum");
    let mut machine = Machine::new(MachineConfig::default());
    let (rows, cols) = (7_usize, 1000_usize);
    let x: Vec<f32> = (0..rows * cols).map(|i| (i % 13) as f32 - 4.0).collect();
    let input = machine.allocate(4 * x.len() as u64, 256).unwrap();
    let output = machine.allocate(4 * rows as u64, 256).unwrap();
    machine.write(input, &bytes(&x)).unwrap();
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
    let want: Vec<f32> = x.chunks(cols).map(|row| row.iter().sum()).collect();
    assert_eq!(floats(&machine, output, rows), want);
}
