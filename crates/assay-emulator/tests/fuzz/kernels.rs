//! What is damaged: the suite's PTX, the parser's corpus, and small kernels that between them use
//! every kind of instruction.

use std::path::PathBuf;

/// The longest text that is damaged; longer modules are cut into their kernels.
const LONGEST: usize = 12_000;

fn files() -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["kernels/cuda", "crates/assay-ptx/tests/corpus"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder is there");
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "ptx") {
                found.push(path);
            }
        }
    }
    found.sort();
    found.iter().map(|path| std::fs::read_to_string(path).expect("it reads")).collect()
}

/// One module for each of the first kernels of a text, with the text's head in front.
fn cut(text: &str) -> Vec<String> {
    let Some(first) = text.find("\n{") else { return Vec::new() };
    let start = text[..first].rfind("\n.visible").unwrap_or(0);
    let (head, rest) = text.split_at(start);
    let whole = rest.split("\n}\n").map(|part| format!("{head}{part}\n}}\n"));
    whole.filter(|piece| piece.len() < LONGEST && piece.contains(".entry")).take(4).collect()
}

/// All texts.
pub(crate) fn corpus() -> Vec<String> {
    let small = small();
    let compiled = files().iter().flat_map(|text| cut(text)).collect::<Vec<_>>();
    assert!(compiled.len() > 40, "only {} kernels", compiled.len());
    // As often as all that compilers made: small texts break in more interesting places.
    let times = compiled.len().div_ceil(small.len());
    let repeated = std::iter::repeat_n(small, times).flatten();
    repeated.chain(compiled).collect()
}

const HEAD: &str = ".version 8.7\n.target sm_90a\n.address_size 64\n";

const REGISTERS: &str = ".reg .pred %p<8>;
.reg .b16 %h<16>;
.reg .b32 %r<32>;
.reg .f32 %f<32>;
.reg .b64 %rd<16>;
.reg .f64 %fd<8>;
.reg .b128 %q<4>;
";

const START: &str = "ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mad.wide.u32 %rd2, %r2, 16, %rd1;
";

/// A kernel of one body, with what the body needs declared in front.
fn kernel(module: &str, declared: &str, body: &str) -> String {
    format!(
        "{HEAD}{module}\n.visible .entry k(.param .u64 p, .param .u32 n)\n{{\n\
         {REGISTERS}{declared}\n{START}{body}\nret;\n}}\n"
    )
}

/// The small kernels. `// faults` marks those that are wrong on purpose.
pub(crate) fn small() -> Vec<String> {
    let simple = SIMPLE.iter().map(|body| kernel("", SHARED, body));
    let calls = CALLS.iter().map(|(module, body)| kernel(module, SHARED, body));
    simple.chain(calls).collect()
}

const SHARED: &str = ".shared .align 128 .b8 tile[8192];
.shared .align 8 .b64 bar;
.local .align 16 .b8 depot[64];";

const SIMPLE: &[&str] = &[
    "add.s32 %r4, %r2, %r3;
mul.lo.s32 %r5, %r4, %r1;
mad.wide.s32 %rd3, %r5, 7, %rd2;
shf.l.wrap.b32 %r6, %r4, %r5, 3;
bfe.u32 %r7, %r6, 4, 8;
bfi.b32 %r8, %r7, %r6, 2, 5;
prmt.b32 %r9, %r8, %r7, 0x3210;
lop3.b32 %r10, %r7, %r8, %r9, 0xe8;
dp4a.s32.u32 %r11, %r8, %r9, %r10;
div.u32 %r12, %r11, 3;
rem.s32 %r13, %r12, %r1;
add.cc.u32 %r14, %r12, %r13;
addc.u32 %r15, %r14, 0;
clz.b32 %r16, %r15;
st.global.u32 [%rd2], %r16;",
    "cvt.rn.f32.s32 %f1, %r2;
fma.rn.f32 %f2, %f1, 0f3F000000, %f1;
ex2.approx.ftz.f32 %f3, %f2;
div.rn.f32 %f4, %f3, %f1;
sqrt.rz.f32 %f5, %f4;
max.NaN.f32 %f6, %f5, %f2;
setp.gtu.f32 %p1|%p2, %f6, %f1;
selp.f32 %f7, %f6, %f1, %p1;
cvt.f64.f32 %fd1, %f7;
fma.rn.f64 %fd2, %fd1, %fd1, 0d3FF0000000000000;
cvt.rni.s32.f64 %r4, %fd2;
cvt.rn.bf16x2.f32 %r5, %f1, %f2;
fma.rn.bf16x2 %r6, %r5, %r5, %r5;
cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;
cvt.rn.f16x2.e4m3x2 %r7, %h1;
st.global.v2.b32 [%rd2], {%r6, %r7};",
    "mov.u32 %r4, 0;
LOOP:
add.s32 %r4, %r4, 1;
and.b32 %r5, %r4, %r2;
setp.eq.s32 %p1, %r5, 3;
@%p1 bra SKIP;
add.s32 %r6, %r6, %r5;
bra.uni NEXT;
SKIP:
sub.s32 %r6, %r6, 1;
NEXT:
setp.lt.s32 %p2, %r4, 20;
@%p2 bra LOOP;
st.global.u32 [%rd2], %r6;",
    "and.b32 %r4, %r2, 3;
T: .branchtargets A, B, C, D;
brx.idx %r4, T;
A: mov.u32 %r5, 1;
bra.uni E;
B: mov.u32 %r5, 2;
bra.uni C;
C: add.u32 %r5, %r5, 3;
bra.uni E;
D: mov.u32 %r5, 4;
@%p1 bra B;
E: st.global.u32 [%rd2], %r5;",
    "mov.u32 %r4, tile;
shl.b32 %r5, %r2, 2;
add.s32 %r6, %r4, %r5;
st.shared.u32 [%r6], %r2;
bar.sync 0;
xor.b32 %r7, %r5, 4;
add.s32 %r7, %r7, %r4;
ld.shared.u32 %r8, [%r7];
barrier.red.popc.u32 %r9, 1, %p1;
bar.warp.sync 0xffffffff;
atom.shared.add.u32 %r10, [%r4], 1;
red.global.add.u32 [%rd1], %r8;
st.global.u32 [%rd2], %r10;",
    "shfl.sync.bfly.b32 %r4|%p1, %r2, 1, 31, 0xffffffff;
shfl.sync.idx.b32 %r5, %r4, 0, 0x1f, -1;
vote.sync.ballot.b32 %r6, %p1, 0xffffffff;
match.any.sync.b32 %r7, %r5, 0xffffffff;
redux.sync.add.s32 %r8, %r7, 0xffffffff;
activemask.b32 %r9;
elect.sync %r10|%p2, 0xffffffff;
fns.b32 %r11, %r6, 0, 1;
@%p2 st.global.u32 [%rd2], %r8;",
    "atom.global.cas.b32 %r4, [%rd1], 0, %r2;
atom.global.exch.b64 %rd3, [%rd2], %rd1;
atom.global.add.f32 %f1, [%rd2], 0f3F800000;
atom.global.add.noftz.f16x2 %r5, [%rd2], %r4;
red.global.add.v4.f32 [%rd2], {%f1, %f1, %f1, %f1};
atom.global.inc.u32 %r6, [%rd2], 7;
mov.b128 %q1, {%rd1, %rd2};
atom.global.cas.b128 %q2, [%rd2], %q1, %q1;
st.global.b128 [%rd2], %q2;
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2];
membar.gl;",
    "mov.u32 %r4, tile;
shl.b32 %r5, %r2, 4;
add.s32 %r6, %r4, %r5;
cp.async.ca.shared.global [%r6], [%rd2], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r7, %r8, %r9, %r10}, [%r6];
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r7, %r8, %r9, %r10}, \
{%r7, %r8}, {%f1, %f2, %f3, %f4};
movmatrix.sync.aligned.m8n8.trans.b16 %r11, %r7;
stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r6], {%r7, %r11};
st.global.f32 [%rd2], %f1;",
    "mov.u32 %r4, bar;
mov.u32 %r5, tile;
setp.eq.u32 %p1, %r2, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
fence.mbarrier_init.release.cluster;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r4], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 256, [%r4];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r6, [%r5];
st.global.u32 [%rd2], %r6;",
    "barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r4, %cluster_ctarank;
mapa.shared::cluster.u32 %r5, tile, %r4;
st.shared::cluster.u32 [%r5], %r2;
getctarank.shared::cluster.u32 %r6, %r5;
barrier.cluster.arrive.release;
barrier.cluster.wait.acquire;
ld.shared::cluster.u32 %r7, [%r5];
st.global.u32 [%rd2], %r7;",
    "wgmma.fence.sync.aligned;
mov.b64 %rd3, 0x4000004000010000;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd3, %rd3, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
st.global.f32 [%rd2], %f1;
// faults",
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}, \
[%rd1];
wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%r12, %r13, %r14, %r15, %r16, %r17, %r18, %r19}\
, [%rd1];
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, {%r4, \
%r5, %r6, %r7, %r8, %r9, %r10, %r11}, {%r12, %r13, %r14, %r15, %r16, %r17, %r18, %r19}, {%f1, \
%f2, %f3, %f4, %f5, %f6, %f7, %f8};
wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, \
%f8};",
    "mov.u64 %rd3, depot;
cvta.local.u64 %rd4, %rd3;
st.u32 [%rd4+8], %r2;
ld.local.u32 %r4, [%rd3+8];
isspacep.local %p1, %rd4;
cvta.to.local.u64 %rd5, %rd4;
mov.u32 %r5, %laneid;
mov.u64 %rd6, %globaltimer;
mov.u32 %r6, %lanemask_lt;
alloca.u64 %rd7, 32;
st.local.u64 [%rd7], %rd6;
stacksave.u64 %rd8;
stackrestore.u64 %rd8;
@%p1 st.global.u32 [%rd2], %r4;",
    "SPIN:
ld.volatile.global.u32 %r4, [%rd1];
nanosleep.u32 20;
setp.ne.u32 %p1, %r4, 12345;
@%p1 bra SPIN;
// faults",
    "setp.eq.u32 %p1, %r2, 5;
@%p1 trap;
exit;
// faults",
];

/// Modules with functions, and the bodies that call them.
const CALLS: &[(&str, &str)] = &[
    (
        ".func (.param .b32 out) fib(.param .b32 in)
{
.reg .pred %p<2>;
.reg .b32 %r<6>;
ld.param.b32 %r1, [in];
setp.lt.s32 %p1, %r1, 2;
@%p1 bra LEAF;
{
.param .b32 a;
.param .b32 b;
sub.s32 %r2, %r1, 1;
st.param.b32 [a], %r2;
call.uni (b), fib, (a);
ld.param.b32 %r3, [b];
}
add.s32 %r4, %r3, %r1;
st.param.b32 [out], %r4;
ret;
LEAF:
st.param.b32 [out], %r1;
ret;
}",
        "{
.param .b32 a;
.param .b32 b;
and.b32 %r4, %r2, 7;
st.param.b32 [a], %r4;
call.uni (b), fib, (a);
ld.param.b32 %r5, [b];
}
st.global.u32 [%rd2], %r5;",
    ),
    (
        ".func (.param .b32 out) one(.param .b32 in)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [in]; add.s32 %r2, %r1, 1; st.param.b32 [out], %r2; ret; }
.func (.param .b32 out) two(.param .b32 in)
{ .reg .b32 %r<3>; ld.param.b32 %r1, [in]; add.s32 %r2, %r1, 2; st.param.b32 [out], %r2; ret; }
.global .u64 table[2] = {one, two};",
        "and.b32 %r4, %r2, 1;
mov.u64 %rd3, table;
mad.wide.u32 %rd4, %r4, 8, %rd3;
ld.global.u64 %rd5, [%rd4];
{
.param .b32 a;
.param .b32 b;
st.param.b32 [a], %r2;
P: .callprototype (.param .b32 _) _ (.param .b32 _);
call (b), %rd5, (a), P;
ld.param.b32 %r5, [b];
}
st.global.u32 [%rd2], %r5;",
    ),
    (
        ".extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[10] = {120, 61, 37, 100, 32, 37, 115, 10, 0, 0};",
        "mov.u64 %rd3, depot;
cvta.local.u64 %rd4, %rd3;
st.local.u32 [%rd3], %r2;
mov.u64 %rd5, text;
cvta.global.u64 %rd6, %rd5;
st.local.u64 [%rd3+8], %rd6;
{
.param .b64 a;
.param .b64 b;
.param .b32 c;
st.param.b64 [a], %rd6;
st.param.b64 [b], %rd4;
call.uni (c), vprintf, (a, b);
ld.param.b32 %r4, [c];
}
st.global.u32 [%rd2], %r4;",
    ),
];
