//! Runs small PTX programs through the whole pipeline: text, parser, lowering, launch.
#![allow(clippy::result_large_err, reason = "as in the crate")]
#![allow(dead_code, unreachable_pub, reason = "shared by test binaries, each of which uses a part")]

use assay_emulator::{
    CompileOptions, Fault, LaunchConfig, LaunchStatistics, Machine, MachineConfig, Program,
};
use assay_num::random::SplitMix64;

/// What `run_ptx` reads back from each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// `%h4`, a 16-bit register.
    Half,
    /// `%r4`, a 32-bit register.
    Word,
    /// `%rd4`, a 64-bit register.
    Wide,
    /// `%p1`, as 0 or 1.
    Bit,
}

/// A kernel around `body`. Before it, every thread has its operands a, b, c in `%rd1..3`, their low
/// halves in `%r1..3` and their low quarters in `%h1..3`; after it, one register is stored.
pub fn kernel(body: &str, out: Out) -> String {
    let store = match out {
        Out::Half => "cvt.u64.u16 %rd20, %h4;",
        Out::Word => "cvt.u64.u32 %rd20, %r4;",
        Out::Wide => "mov.b64 %rd20, %rd4;",
        Out::Bit => "selp.u64 %rd20, 1, 0, %p1;",
    };
    format!(
        "{HEADER}
.visible .entry test(.param .u64 in, .param .u64 out, .param .u32 count)
{{
    .reg .pred %p<10>, %q<3>;
    .reg .b16 %h<20>;
    .reg .b32 %r<30>, %i<6>;
    .reg .b64 %rd<30>;
    .shared .align 16 .b8 buffer[4096];
    ld.param.u64 %rd21, [in];
    ld.param.u64 %rd22, [out];
    ld.param.u32 %i1, [count];
    mov.u32 %i2, %ctaid.x;
    mov.u32 %i3, %ntid.x;
    mov.u32 %i4, %tid.x;
    mad.lo.s32 %i5, %i2, %i3, %i4;
    setp.ge.u32 %q1, %i5, %i1;
    @%q1 bra DONE;
    mad.wide.u32 %rd23, %i5, 24, %rd21;
    ld.global.u64 %rd1, [%rd23];
    ld.global.u64 %rd2, [%rd23+8];
    ld.global.u64 %rd3, [%rd23+16];
    cvt.u32.u64 %r1, %rd1;
    cvt.u32.u64 %r2, %rd2;
    cvt.u32.u64 %r3, %rd3;
    cvt.u16.u64 %h1, %rd1;
    cvt.u16.u64 %h2, %rd2;
    cvt.u16.u64 %h3, %rd3;
    mov.u32 %r4, 0;
    mov.u64 %rd4, 0;
    mov.u16 %h4, 0;
    {body}
    {store}
    mad.wide.u32 %rd24, %i5, 8, %rd22;
    st.global.u64 [%rd24], %rd20;
DONE:
    ret;
}}"
    )
}

pub const HEADER: &str = ".version 8.8\n.target sm_100\n.address_size 64\n";

pub fn compile(source: &str) -> Program {
    compile_with(source, CompileOptions::default())
}

pub fn compile_with(source: &str, options: CompileOptions) -> Program {
    let module = assay_ptx::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    Program::compile_with(&module, options).unwrap()
}

/// Runs `body` on each triple of operands.
pub fn run_ptx(body: &str, out: Out, operands: &[[u64; 3]]) -> Vec<u64> {
    run_ptx_with(body, out, operands, &LaunchConfig::default(), CompileOptions::default())
}

/// As `run_ptx`, with what the launch and the compiler are told.
pub fn run_ptx_with(
    body: &str,
    out: Out,
    operands: &[[u64; 3]],
    config: &LaunchConfig,
    options: CompileOptions,
) -> Vec<u64> {
    let program = compile_with(&kernel(body, out), options);
    let mut machine = Machine::new(MachineConfig::default());
    let input = machine.allocate(24 * operands.len() as u64, 256).unwrap();
    let output = machine.allocate(8 * operands.len() as u64, 256).unwrap();
    let bytes: Vec<u8> = operands.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    machine.write(input, &bytes).unwrap();
    let mut parameters = input.to_le_bytes().to_vec();
    parameters.extend(output.to_le_bytes());
    parameters.extend((operands.len() as u32).to_le_bytes());
    let config = LaunchConfig {
        grid: [operands.len().div_ceil(128) as u32, 1, 1],
        block: [128, 1, 1],
        parameters,
        ..config.clone()
    };
    machine.launch(&program, "test", &config).unwrap_or_else(|fault| panic!("{body}: {fault}"));
    let mut bytes = vec![0; 8 * operands.len()];
    machine.read(output, &mut bytes).unwrap();
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// A machine with one buffer, whose address is the only parameter of the kernel.
pub struct Bench {
    pub machine: Machine,
    pub buffer: u64,
    pub bytes: u64,
}

impl Bench {
    pub fn new(bytes: u64) -> Bench {
        let mut machine = Machine::new(MachineConfig::default());
        let buffer = machine.allocate(bytes, 256).unwrap();
        Bench { machine, buffer, bytes }
    }

    pub fn launch(
        &mut self,
        source: &str,
        config: &LaunchConfig,
    ) -> Result<LaunchStatistics, Fault> {
        let program = compile(source);
        let parameters = self.buffer.to_le_bytes().to_vec();
        self.machine.launch(&program, "test", &LaunchConfig { parameters, ..config.clone() })
    }

    pub fn words(&self) -> Vec<u32> {
        let mut bytes = vec![0; self.bytes as usize];
        self.machine.read(self.buffer, &mut bytes).unwrap();
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }
}

/// A kernel with one pointer parameter, in `%rd1`, and the thread's index in `%r1`.
pub fn pointer_kernel(declarations: &str, body: &str) -> String {
    format!(
        "{HEADER}
.visible .entry test(.param .u64 out)
{{
    .reg .pred %p<10>;
    .reg .b16 %h<10>;
    .reg .b32 %r<30>;
    .reg .b64 %rd<30>;
    {declarations}
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
{body}
    ret;
}}"
    )
}

/// The line of the first line of `source` that contains `text`.
pub fn line_of(source: &str, text: &str) -> u32 {
    1 + source.lines().position(|line| line.contains(text)).unwrap() as u32
}

/// Words with special meaning to integer and f32 operations, and random ones.
pub fn words(random: &mut SplitMix64) -> Vec<u64> {
    let special: [u32; 34] = [
        0,
        1,
        2,
        3,
        7,
        8,
        31,
        32,
        33,
        63,
        64,
        255,
        0x7fff,
        0x8000,
        0xffff,
        0x0001_0000,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        0xffff_ffff,
        0xffff_fffe,
        0x3f80_0000,
        0xbf80_0000,
        0x3f00_0000,
        0x4000_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc0_0001,
        0x0080_0000,
        0x007f_ffff,
        0x8000_0010,
        0x7f7f_ffff,
        0x4b80_0001,
    ];
    let mut all: Vec<u64> = special.iter().map(|&word| u64::from(word)).collect();
    for _ in 0..14 {
        all.push(random.next_u64() & 0xffff_ffff);
        // Near one, so that sums and products of them are of one size.
        all.push((random.next_u64() & 0x80ff_ffff) | 0x3f00_0000);
    }
    all
}

/// All pairs of words, each with a random third.
pub fn word_triples(seed: u64) -> Vec<[u64; 3]> {
    let mut random = SplitMix64::new(seed);
    let words = words(&mut random);
    let mut triples = Vec::new();
    for &a in &words {
        for &b in &words {
            let c = words[random.below(words.len() as u64) as usize];
            triples.push([a, b, c]);
        }
    }
    triples
}

/// As `word_triples`, for 64 bits.
pub fn wide_triples(seed: u64) -> Vec<[u64; 3]> {
    let mut random = SplitMix64::new(seed);
    let mut words: Vec<u64> = vec![
        0,
        1,
        2,
        31,
        32,
        63,
        64,
        65,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x1_0000_0000,
        0x7fff_ffff_ffff_ffff,
        0x8000_0000_0000_0000,
        0xffff_ffff_ffff_ffff,
        1.0_f64.to_bits(),
        (-1.5_f64).to_bits(),
        f64::INFINITY.to_bits(),
        f64::MAX.to_bits(),
        f64::MIN_POSITIVE.to_bits(),
        3,
    ];
    for _ in 0..10 {
        words.push(random.next_u64());
        words.push((random.next_u64() & 0x801f_ffff_ffff_ffff) | 0x3fe0_0000_0000_0000);
    }
    let mut triples = Vec::new();
    for &a in &words {
        for &b in &words {
            let c = words[random.below(words.len() as u64) as usize];
            triples.push([a, b, c]);
        }
    }
    triples
}

/// Checks one instruction on 32-bit operands `%r1..3` with its result in `%r4`.
pub fn check(instruction: &str, want: impl Fn(u32, u32, u32) -> u32) {
    check_on(instruction, Out::Word, &word_triples(11), |a, b, c| {
        u64::from(want(a as u32, b as u32, c as u32))
    });
}

/// Checks one instruction whose result is `%p1`.
pub fn check_bit(instruction: &str, want: impl Fn(u32, u32, u32) -> bool) {
    check_on(instruction, Out::Bit, &word_triples(12), |a, b, c| {
        u64::from(want(a as u32, b as u32, c as u32))
    });
}

/// Checks one instruction on 16-bit operands `%h1..3` with its result in `%h4`.
pub fn check_half(instruction: &str, want: impl Fn(u16, u16, u16) -> u16) {
    check_on(instruction, Out::Half, &word_triples(13), |a, b, c| {
        u64::from(want(a as u16, b as u16, c as u16))
    });
}

/// Checks one instruction on 64-bit operands `%rd1..3` with its result in `%rd4`.
pub fn check_wide(instruction: &str, want: impl Fn(u64, u64, u64) -> u64) {
    check_on(instruction, Out::Wide, &wide_triples(14), want);
}

pub fn check_on(
    instruction: &str,
    out: Out,
    operands: &[[u64; 3]],
    want: impl Fn(u64, u64, u64) -> u64,
) {
    let got = run_ptx(instruction, out, operands);
    for (&[a, b, c], got) in operands.iter().zip(got) {
        let want = want(a, b, c);
        assert!(got == want, "{instruction} of {a:#x}, {b:#x}, {c:#x}: {got:#x}, not {want:#x}");
    }
}

/// f32 operations on bits, with the NaN that the hardware gives.
pub fn f32_bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

pub fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// Flushes a subnormal f32.
pub fn ftz(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}
