//! Runs prepared launches on demand, for `benches/compare/compare.py`: a name a line in,
//! milliseconds and lane-operations a line out.
//!
//!     launches FOLDER WORKERS
//!
//! What a launch is, FOLDER says: `NAME.case` names the PTX, the shape, the buffers' contents and
//! the other arguments, one a line; the result goes to `NAME.out`. Memory is written and poisoned
//! outside the time that is taken; parsing and lowering too, which a user pays once a module.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Instant;

use assay_emulator::{LaunchConfig, Machine, MachineConfig, Program};

/// One argument.
enum Argument {
    /// A buffer and what is in it.
    Buffer(Vec<u8>),
    /// Any other, as bytes.
    Bytes(Vec<u8>),
}

/// A launch that can be repeated.
struct Case {
    program: Program,
    symbol: String,
    config: LaunchConfig,
    arguments: Vec<Argument>,
    output: usize,
}

fn three(text: &str) -> [u32; 3] {
    let mut words = text.split(' ').map(|word| word.parse().expect("a number"));
    std::array::from_fn(|_| words.next().unwrap_or(1))
}

fn read(folder: &Path, name: &str) -> Case {
    let text = |path: PathBuf| std::fs::read_to_string(&path).expect("a readable file");
    let description = text(folder.join(format!("{name}.case")));
    let mut fields = HashMap::new();
    let mut arguments = Vec::new();
    for (key, value) in description.lines().filter_map(|line| line.split_once(' ')) {
        match key {
            "buffer" => {
                let contents = std::fs::read(folder.join(value)).expect("a readable file");
                arguments.push(Argument::Buffer(contents));
            }
            "i32" => {
                let value: i32 = value.parse().expect("an integer");
                arguments.push(Argument::Bytes(value.to_le_bytes().to_vec()));
            }
            "fp32" => {
                let value: f32 = value.parse().expect("a number");
                arguments.push(Argument::Bytes(value.to_le_bytes().to_vec()));
            }
            _ => drop(fields.insert(key, value)),
        }
    }
    let module = assay_ptx::parse(&text(folder.join(fields["ptx"]))).expect("PTX that parses");
    let config = LaunchConfig {
        grid: three(fields["grid"]),
        block: three(fields["block"]),
        shared_bytes: fields["shared"].parse().expect("a number"),
        ..LaunchConfig::default()
    };
    Case {
        program: Program::compile(&module).expect("PTX that compiles"),
        symbol: fields["symbol"].to_owned(),
        config,
        arguments,
        output: fields["output"].parse().expect("a number"),
    }
}

/// Milliseconds and lane-operations of one run, and what it wrote.
fn run(case: &mut Case, workers: u32) -> (f64, u64, Vec<u8>) {
    let mut machine = Machine::new(MachineConfig { workers, ..MachineConfig::default() });
    let layouts = case.program.parameters(&case.symbol).expect("a kernel of the module").to_vec();
    let bytes = case.program.parameter_bytes(&case.symbol).unwrap_or(0);
    let mut parameters = vec![0; bytes as usize];
    let mut output = (0, 0);
    for (number, (argument, layout)) in case.arguments.iter().zip(&layouts).enumerate() {
        let address;
        let value = match argument {
            Argument::Buffer(contents) => {
                let start = machine.allocate(contents.len() as u64, 256).expect("memory");
                machine.write(start, contents).expect("in range");
                if number == case.output {
                    // Poisoned, as the gates do; and all pages are there.
                    machine.fill(start, contents.len() as u64, 0xa5).expect("in range");
                    output = (start, contents.len());
                }
                address = start.to_le_bytes();
                &address[..]
            }
            Argument::Bytes(bytes) => bytes,
        };
        parameters[layout.offset as usize..][..value.len()].copy_from_slice(value);
    }
    let config = LaunchConfig { parameters, ..case.config.clone() };
    let begin = Instant::now();
    let launched = machine.launch(&case.program, &case.symbol, &config);
    let spent = begin.elapsed().as_secs_f64() * 1000.0;
    let statistics = launched.unwrap_or_else(|fault| panic!("{fault}"));
    let mut written = vec![0; output.1];
    machine.read(output.0, &mut written).expect("in range");
    (spent, statistics.lane_operations, written)
}

#[expect(clippy::print_stdout, reason = "its answers go there")]
fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [folder, workers] = &arguments[..] else {
        // `cargo bench` calls every bench, this one with nothing to do.
        return;
    };
    let (folder, workers) = (Path::new(folder), workers.parse().expect("a number of workers"));
    let mut cases = HashMap::new();
    for name in std::io::stdin().lock().lines().map_while(Result::ok) {
        let case = cases.entry(name.clone()).or_insert_with(|| read(folder, &name));
        let (spent, operations, written) = run(case, workers);
        std::fs::write(folder.join(format!("{name}.out")), written).expect("a writable folder");
        println!("{spent} {operations}");
    }
}
