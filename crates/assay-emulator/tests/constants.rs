//! Registers that are constants of a launch are kept once for all lanes: nobody can tell, neither
//! by bytes nor by counts.

mod common;

use assay_emulator::{CompileOptions, LaunchConfig, LaunchStatistics, Machine, MachineConfig};
use assay_num::random::SplitMix64;
use common::{Out, compile_with, kernel, run_ptx};

const COUNT: usize = 96;

fn operands() -> Vec<[u64; 3]> {
    let mut random = SplitMix64::new(20_261_130);
    (0..COUNT).map(|_| std::array::from_fn(|_| random.next_u64())).collect()
}

/// What a body gives, and what it counted. Contraction keeps all registers in rows; where there are
/// no products to fuse it changes nothing else.
fn ran(body: &str, out: Out, in_rows: bool) -> (Vec<u8>, LaunchStatistics) {
    let contract_multiply_add = in_rows.then_some(1);
    let options = CompileOptions { contract_multiply_add, ..CompileOptions::default() };
    let program = compile_with(&kernel(body, out), options);
    let mut machine = Machine::new(MachineConfig::default());
    let input = machine.allocate(24 * COUNT as u64, 256).unwrap();
    let output = machine.allocate(8 * COUNT as u64, 256).unwrap();
    let bytes: Vec<u8> = operands().iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    machine.write(input, &bytes).unwrap();
    let mut parameters = [input, output].map(u64::to_le_bytes).concat();
    parameters.extend((COUNT as u32).to_le_bytes());
    let config = LaunchConfig { block: [128, 1, 1], parameters, ..LaunchConfig::default() };
    let statistics = machine.launch(&program, "test", &config).unwrap();
    let mut bytes = vec![0; 8 * COUNT];
    machine.read(output, &mut bytes).unwrap();
    (bytes, statistics)
}

#[test]
fn constants_in_every_place_of_an_instruction_give_the_bytes_and_counts_of_rows() {
    let cases = [
        ("mov.u32 %r5, 7; mov.u32 %r6, %r5; sub.u32 %r4, %r1, %r6;", Out::Word),
        ("mov.b32 %r5, 0f3FC00000; mov.b32 %r6, 0fBF000000; min.f32 %r4, %r5, %r6;", Out::Word),
        ("mov.u16 %h5, 65535; mov.b16 %h6, 3; mad.lo.u16 %h4, %h1, %h6, %h5;", Out::Half),
        ("mov.u64 %rd5, 0x123456789abcdef0; xor.b64 %rd4, %rd1, %rd5;", Out::Wide),
        ("mov.b32 %r5, 9; mov.b32 %r6, 5; mov.b64 %rd4, {%r5, %r6};", Out::Wide),
        ("mov.u64 %rd5, -2; mov.b64 {%r5, %r6}, %rd5; and.b32 %r4, %r1, %r5;", Out::Word),
        (
            "mov.u32 %r5, buffer; mov.u32 %r6, 1; mov.u32 %r7, 2; mov.u32 %r8, %r7;
             st.shared.v4.u32 [%r5], {%r6, %r7, %r8, %r6}; bar.sync 0;
             ld.shared.v4.u32 {%r9, %r10, %r11, %r12}, [%r5];
             mad.lo.u32 %r4, %r11, %r10, %r12;",
            Out::Word,
        ),
        (
            "ld.param.u32 %r5, [count]; ld.param.u64 %rd5, [in]; cvta.to.global.u64 %rd6, %rd5;
             ld.global.u32 %r6, [%rd6+8]; add.u32 %r4, %r5, %r6;",
            Out::Word,
        ),
        (
            "mov.u32 %r5, 3; mov.u32 %r6, 31; mov.u32 %r7, -1;
             shfl.sync.idx.b32 %r4, %r1, %r5, %r6, %r7;",
            Out::Word,
        ),
        (
            "mov.u32 %r5, 1; mov.u32 %r6, 96; mov.u32 %r7, buffer; mov.u32 %r8, 0;
             st.shared.u32 [%r7], %r8; barrier.sync %r5; red.shared.add.u32 [%r7], %r6;
             barrier.sync %r5; ld.shared.u32 %r4, [%r7];",
            Out::Word,
        ),
        ("mov.u32 %r5, 4; setp.lt.u32 %p1, %r1, %r5;", Out::Bit),
        (
            "mov.u32 %r5, 0; LOOP: mov.u32 %r6, 3; add.u32 %r5, %r5, %r6; mov.u32 %r7, 30;
             setp.lt.u32 %p2, %r5, %r7; @%p2 bra LOOP; mov.u32 %r4, %r5;",
            Out::Word,
        ),
    ];
    for (body, out) in cases {
        let ((bytes, counted), (rows, counted_rows)) =
            (ran(body, out, false), ran(body, out, true));
        assert_eq!(bytes, rows, "{body}");
        assert_eq!(counted.lane_operations, counted_rows.lane_operations, "{body}");
    }
}

#[test]
fn a_register_that_some_way_leaves_unwritten_is_no_constant() {
    let body = "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra SKIP; mov.u32 %r6, 77;
         SKIP: mov.u32 %r4, %r6;";
    for (words, got) in operands().iter().zip(run_ptx(body, Out::Word, &operands())) {
        assert_eq!(got == 77, words[0] & 1 == 1, "{got}");
    }
}

#[test]
fn a_register_that_is_written_twice_or_under_a_guard_is_no_constant() {
    let bodies = [
        "mov.u32 %r6, 5; and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; @!%p1 mov.u32 %r6, 77;
         mov.u32 %r4, %r6;",
        "and.b32 %r5, %r1, 1; setp.ne.u32 %p1, %r5, 0; @%p1 mov.u32 %r6, 77; mov.u32 %r4, %r6;",
        "mov.u32 %r6, 77; and.b32 %r5, %r1, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra DONE2;
         mov.u32 %r6, 5; DONE2: mov.u32 %r4, %r6;",
    ];
    for body in bodies {
        for (words, got) in operands().iter().zip(run_ptx(body, Out::Word, &operands())) {
            assert_eq!(got == 77, words[0] & 1 == 1, "{body}: {got}");
        }
    }
}
