//! Lane-operations per second on one core: a mixed loop, and kernels of the suite.
//!
//! Bounds are checked and poison is written, as always. `cargo bench -p assay-emulator`.

use std::time::Instant;

use assay_emulator::{CompileOptions, LaunchConfig, Machine, MachineConfig, Program};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Sixteen instructions: shared memory, fma, maximum, integer arithmetic, selection, conversion,
/// comparison, branch.
const MIXED: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry mixed(.param .u64 out, .param .u32 turns)
{
    .reg .pred %p<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<4>;
    .shared .align 16 .b8 tile[2048];
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [turns];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, tile;
    mad.lo.s32 %r4, %r2, 4, %r3;
    mov.b32 %r5, 0f3F800000;
    mov.b32 %r6, 0f3F000000;
    mov.u32 %r7, 0;
    mov.u32 %r8, 1;
    st.shared.b32 [%r4], %r5;
    bar.sync 0;
LOOP:
    ld.shared.b32 %r9, [%r4];
    fma.rn.f32 %r10, %r9, %r6, %r5;
    max.f32 %r11, %r10, %r9;
    st.shared.b32 [%r4], %r11;
    mad.lo.s32 %r8, %r8, 5, %r7;
    fma.rn.f32 %r12, %r11, %r5, %r6;
    setp.gt.f32 %p1, %r12, %r10;
    selp.b32 %r13, %r12, %r10, %p1;
    cvt.rn.bf16.f32 %h1, %r13;
    cvt.f32.bf16 %r14, %h1;
    max.f32 %r15, %r14, %r6;
    mul.f32 %r16, %r15, %r5;
    and.b32 %r17, %r8, 255;
    add.s32 %r7, %r7, 1;
    setp.lt.u32 %p2, %r7, %r1;
    @%p2 bra LOOP;
    add.s32 %r18, %r17, %r16;
    mad.wide.u32 %rd2, %r2, 4, %rd1;
    st.global.b32 [%rd2], %r18;
    ret;
}";

fn compile(source: &str, portable: bool) -> Program {
    let module = assay_ptx::parse(source).expect("the benchmark's PTX parses");
    let options = CompileOptions { portable, ..CompileOptions::default() };
    Program::compile_with(&module, options).expect("the benchmark's PTX compiles")
}

fn suite(name: &str) -> Option<Program> {
    let path = format!("{}/../../kernels/cuda/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).ok().map(|source| compile(&source, false))
}

/// A launch that can be repeated.
struct Case {
    name: &'static str,
    machine: Machine,
    program: Program,
    symbol: &'static str,
    config: LaunchConfig,
}

fn mixed(name: &'static str, portable: bool) -> Case {
    let mut machine = Machine::new(MachineConfig::default());
    let out = machine.allocate(4 * 256, 256).expect("memory");
    let mut parameters = out.to_le_bytes().to_vec();
    parameters.extend(2_000_u32.to_le_bytes());
    let config = LaunchConfig { block: [256, 1, 1], parameters, ..LaunchConfig::default() };
    Case { name, machine, program: compile(MIXED, portable), symbol: "mixed", config }
}

/// A kernel that takes pointers and then dimensions.
fn kernel(
    name: &'static str,
    symbol: &'static str,
    buffers: &[u64],
    scalars: &[u32],
    grid: u32,
) -> Option<Case> {
    let program = suite(name)?;
    let mut machine = Machine::new(MachineConfig::default());
    let mut parameters = Vec::new();
    for &elements in buffers {
        let address = machine.allocate(4 * elements, 256).expect("memory");
        let values: Vec<u8> =
            (0..elements).flat_map(|n| ((n % 17) as f32 * 0.1).to_le_bytes()).collect();
        machine.write(address, &values).expect("in range");
        parameters.extend(address.to_le_bytes());
    }
    parameters.extend(scalars.iter().flat_map(|scalar| scalar.to_le_bytes()));
    let bytes = program.parameter_bytes(symbol)? as usize;
    parameters.resize(bytes, 0);
    let config = LaunchConfig {
        grid: [grid, 1, 1],
        block: [256, 1, 1],
        parameters,
        ..LaunchConfig::default()
    };
    Some(Case { name, machine, program, symbol, config })
}

fn cases() -> Vec<Case> {
    let mut cases = vec![mixed("mixed loop", false), mixed("mixed loop, portable", true)];
    let (rows, cols) = (16_u32, 4096_u32);
    let elements = u64::from(rows * cols);
    let all = [
        kernel("row_sum", "row_sum_f32", &[elements, rows.into()], &[rows, cols], rows),
        kernel("softmax", "softmax_f32", &[elements, elements], &[rows, cols], rows),
        kernel("gemv", "gemv_f32", &[elements, cols.into(), rows.into()], &[rows, cols], rows),
    ];
    cases.extend(all.into_iter().flatten());
    cases
}

fn run(case: &mut Case) -> u64 {
    let launched = case.machine.launch(&case.program, case.symbol, &case.config);
    launched.unwrap_or_else(|fault| panic!("{}: {fault}", case.name)).lane_operations
}

/// The best of many short runs, in lane-operations per nanosecond: what the core does when nobody
/// else is on it.
fn best(case: &mut Case) -> f64 {
    let mut best = 0.0_f64;
    let begin = Instant::now();
    while begin.elapsed().as_secs() < 2 {
        let start = Instant::now();
        let operations = run(case);
        best = best.max(operations as f64 / start.elapsed().as_nanos() as f64);
    }
    best
}

#[expect(clippy::print_stdout, reason = "a benchmark reports on its standard output")]
fn benchmark(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("emulator");
    let only = std::env::var("ASSAY_BENCH_ONLY").unwrap_or_default();
    for mut case in cases().into_iter().filter(|case| case.name.contains(&only)) {
        let speed = best(&mut case);
        println!("{}: {speed:.2} G lane-ops/s", case.name);
        if std::env::var_os("ASSAY_BENCH_QUICK").is_some() {
            continue;
        }
        let operations = run(&mut case);
        group.throughput(Throughput::Elements(operations));
        group.sample_size(20);
        group.bench_function(case.name, |bencher| bencher.iter(|| run(&mut case)));
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
