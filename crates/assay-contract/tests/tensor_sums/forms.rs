//! Matrix products of one kernel each, on the emulator's tensor cores of any architecture.

use assay_device::{Allocation, Argument, Image, Launch, StreamId, open};
use assay_num::Format;

use crate::tiles::Tiles;

/// The emulator's models.
pub(crate) const MODELS: [&str; 7] =
    ["volta", "turing", "ampere", "ada", "hopper", "blackwell", "exact"];

/// One form of a product: 16 rows by 8 columns, or 64 of `wgmma`.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) elements: Format,
    /// Products an instruction sums.
    pub(crate) depth: usize,
    /// Sums in f16.
    pub(crate) half: bool,
    wgmma: bool,
    /// The instruction, up to its operands.
    opcode: &'static str,
    /// What follows the operands of `wgmma`.
    immediates: &'static str,
}

const fn mma(name: &'static str, elements: Format, depth: usize, opcode: &'static str) -> Form {
    Form { name, elements, depth, half: false, wgmma: false, opcode, immediates: "" }
}

const fn wgmma(
    name: &'static str,
    elements: Format,
    depth: usize,
    opcode: &'static str,
    immediates: &'static str,
) -> Form {
    Form { name, elements, depth, half: false, wgmma: true, opcode, immediates }
}

const fn halves(form: Form) -> Form {
    Form { half: true, ..form }
}

/// Every kind of element with every accumulator.
pub(crate) static FORMS: &[Form] = &[
    mma("f32.f16", Format::F16, 16, "m16n8k16.row.col.f32.f16.f16.f32"),
    halves(mma("f16.f16", Format::F16, 16, "m16n8k16.row.col.f16.f16.f16.f16")),
    mma("f32.bf16", Format::Bf16, 16, "m16n8k16.row.col.f32.bf16.bf16.f32"),
    mma("f32.tf32", Format::Tf32, 8, "m16n8k8.row.col.f32.tf32.tf32.f32"),
    mma("f32.e4m3", Format::E4m3, 32, "m16n8k32.row.col.f32.e4m3.e4m3.f32"),
    mma("f32.e5m2", Format::E5m2, 32, "m16n8k32.row.col.f32.e5m2.e5m2.f32"),
    halves(mma("f16.e4m3", Format::E4m3, 32, "m16n8k32.row.col.f16.e4m3.e4m3.f16")),
    wgmma("wgmma f32.f16", Format::F16, 16, "m64n8k16.f32.f16.f16", "1, 1, 1, 0"),
    wgmma("wgmma f32.tf32", Format::Tf32, 8, "m64n8k8.f32.tf32.tf32", "1, 1, 1"),
    wgmma("wgmma f32.e4m3", Format::E4m3, 32, "m64n8k32.f32.e4m3.e4m3", "1, 1, 1"),
];

/// A row of A and a column of B are eight words an instruction; lane 4g + t has words t and t + 4
/// of rows g and g + 8 and of column g.
const START: &str = "\
.version 8.7
.target sm_90a
.address_size 64
.visible .entry sums(.param .u64 a, .param .u64 b, .param .u64 d, .param .u32 steps)
{
.reg .pred %p<3>;
.reg .b32 %r<40>;
.reg .b32 %a<4>;
.reg .b32 %b<2>;
.reg .b32 %c<4>;
.reg .b64 %rd<16>;
.shared .align 128 .b8 tile[256];
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u64 %rd3, [d];
ld.param.u32 %r1, [steps];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mov.u32 %r30, %ntid.x;
shr.u32 %r30, %r30, 1;
and.b32 %r4, %r2, 31;
shr.u32 %r5, %r2, 5;
shr.u32 %r6, %r4, 2;
and.b32 %r7, %r4, 3;
mad.lo.u32 %r8, %r5, 16, %r6;
mad.lo.u32 %r8, %r3, %r30, %r8;
shl.b32 %r9, %r1, 5;
shl.b32 %r10, %r7, 2;
mad.lo.u32 %r11, %r8, %r9, %r10;
cvt.u64.u32 %rd4, %r11;
add.u64 %rd1, %rd1, %rd4;
shl.b32 %r12, %r9, 3;
cvt.u64.u32 %rd5, %r12;
shl.b32 %r13, %r3, 3;
add.u32 %r14, %r13, %r6;
mad.lo.u32 %r15, %r14, %r9, %r10;
cvt.u64.u32 %rd6, %r15;
add.u64 %rd7, %rd2, %rd6;
mov.b32 %c0, 0;
mov.b32 %c1, 0;
mov.b32 %c2, 0;
mov.b32 %c3, 0;
// The 64 words of B in shared memory: two groups of four words of each column.
shr.u32 %r16, %r2, 3;
and.b32 %r17, %r2, 7;
add.u32 %r18, %r13, %r16;
shl.b32 %r19, %r17, 2;
mad.lo.u32 %r20, %r18, %r9, %r19;
cvt.u64.u32 %rd8, %r20;
add.u64 %rd8, %rd2, %rd8;
shr.u32 %r21, %r17, 2;
and.b32 %r22, %r17, 3;
shl.b32 %r23, %r21, 7;
mad.lo.u32 %r23, %r16, 16, %r23;
mad.lo.u32 %r23, %r22, 4, %r23;
mov.u32 %r24, tile;
add.u32 %r25, %r24, %r23;
setp.lt.u32 %p1, %r2, 64;
cvt.u64.u32 %rd9, %r24;
shr.u64 %rd9, %rd9, 4;
or.b64 %rd9, %rd9, 0x1000080000;
LOOP:
add.u64 %rd10, %rd1, %rd5;
ld.global.b32 %a0, [%rd1];
ld.global.b32 %a1, [%rd10];
ld.global.b32 %a2, [%rd1+16];
ld.global.b32 %a3, [%rd10+16];
ld.global.b32 %b0, [%rd7];
ld.global.b32 %b1, [%rd7+16];
";

const SHARED: &str = "\
@%p1 ld.global.b32 %r26, [%rd8];
@%p1 st.shared.b32 [%r25], %r26;
fence.proxy.async;
bar.sync 0;
wgmma.fence.sync.aligned;
";

const WAIT: &str = "\
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
bar.sync 0;
";

const END: &str = "\
add.u64 %rd1, %rd1, 32;
add.u64 %rd7, %rd7, 32;
add.u64 %rd8, %rd8, 32;
sub.u32 %r1, %r1, 1;
setp.ne.u32 %p2, %r1, 0;
@%p2 bra LOOP;
";

impl Form {
    pub(crate) fn accumulator(&self) -> Format {
        if self.half { Format::F16 } else { Format::F32 }
    }

    pub(crate) fn rows(&self) -> usize {
        if self.wgmma { 64 } else { 16 }
    }

    fn ptx(&self) -> String {
        let c = if self.half { "{%c0, %c1}" } else { "{%c0, %c1, %c2, %c3}" };
        let (a, opcode, immediates) = ("{%a0, %a1, %a2, %a3}", self.opcode, self.immediates);
        let product = if self.wgmma {
            let opcode = format!("wgmma.mma_async.sync.aligned.{opcode}");
            format!("{SHARED}{opcode} {c}, {a}, %rd9, {immediates};\n{WAIT}")
        } else {
            format!("mma.sync.aligned.{opcode} {c}, {a}, {{%b0, %b1}}, {c};\n")
        };
        // Columns 2t and 2t + 1 of rows g and g + 8.
        let store = if self.half {
            "shl.b32 %r27, %r8, 4;\nadd.u32 %r27, %r27, %r10;\ncvt.u64.u32 %rd11, %r27;\n\
             add.u64 %rd11, %rd3, %rd11;\nst.global.b32 [%rd11], %c0;\n\
             st.global.b32 [%rd11+128], %c1;\nret;\n}\n"
        } else {
            "shl.b32 %r27, %r8, 5;\nshl.b32 %r28, %r7, 3;\nadd.u32 %r27, %r27, %r28;\n\
             cvt.u64.u32 %rd11, %r27;\nadd.u64 %rd11, %rd3, %rd11;\n\
             st.global.v2.b32 [%rd11], {%c0, %c1};\nst.global.v2.b32 [%rd11+256], {%c2, %c3};\n\
             ret;\n}\n"
        };
        format!("{START}{product}{END}{store}")
    }

    /// D of each tile, row by row, as the tensor cores of `model` make it.
    pub(crate) fn run(&self, model: &str, tiles: &Tiles, steps: usize) -> Vec<f64> {
        let mut device = open(&format!("emulator:sm_90:{model}")).unwrap();
        let module = device.load(&Image::ptx("sums.ptx", self.ptx())).unwrap();
        let [a, b] = [&tiles.a, &tiles.b].map(|values| self.stored().encode_slice(values));
        let format = self.accumulator();
        let count = tiles.count * self.rows() * 8;
        let mut out = vec![0; format.storage_bytes(count)];
        let mut buffer = |bytes: &[u8]| {
            let buffer = device.allocate(&Allocation::new(bytes.len() as u64)).unwrap();
            device.write(buffer, 0, bytes).unwrap();
            buffer
        };
        let [a, b, d] = [buffer(&a), buffer(&b), buffer(&out)];
        let mut arguments: Vec<Argument> = [a, b, d].map(Argument::Buffer).into();
        arguments.push(Argument::u32(steps as u32));
        let launch = Launch {
            grid: [tiles.count as u32, 1, 1],
            block: [2 * self.rows() as u32, 1, 1],
            arguments,
            ..Launch::new(module, "sums")
        };
        device.launch(StreamId::DEFAULT, &launch).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        device.synchronize().unwrap();
        device.read(d, 0, &mut out).unwrap();
        format.decode_slice(&out)
    }

    /// What an element is stored as.
    fn stored(&self) -> Format {
        if self.elements == Format::Tf32 { Format::F32 } else { self.elements }
    }
}
