//! Programs around `wgmma`: a block is a warpgroup, and has one product of 64 rows.
//!
//! Of the widths that the ISA has, 8 and 64 columns occur in every form, 24, 128 and 256 in one of
//! halves. All layouts in shared memory occur with halves, in programs of their own.

use assay_ptx::forms::{Form, FormOperandKind};
use assay_ptx::{Base, Modifier, Opcode, Shape, Type};

use crate::program::{Check, Program, Skip, program};
use crate::select;
use crate::tiles::{CHUNK_THREADS, Content, Part, TileForm};
use crate::values::{CASES, Limit};
use crate::writer::{THREADS, Writer};

/// Rows of A.
const ROWS: u32 = 64;
/// Bytes of a row of A, and of a column of B where A is not sparse.
const LINE: u32 = 32;

/// The forms of the table, with other widths.
pub(crate) fn widths(form: &Form) -> Vec<Form> {
    let opcode = &form.opcode;
    let Some(shape) = opcode.shape else { return Vec::new() };
    let plain = opcode.types == [Type::F32, Type::F16, Type::F16];
    let many = plain && !opcode.has(Modifier::Sparse) && !in_registers(form);
    let widths: &[u16] = if many { &[8, 24, 64, 128, 256] } else { &[8, 64] };
    let wider = |&n: &u16| {
        let other = Shape { n, ..shape };
        let text = opcode.text.replace(&shape.to_string(), &other.to_string());
        let opcode = Opcode { shape: Some(other), text, ..opcode.clone() };
        Form { opcode, operands: form.operands.clone() }
    };
    widths.iter().map(wider).collect()
}

/// Whether A comes from registers: then it is a vector.
pub(crate) fn in_registers(form: &Form) -> bool {
    form.operands.get(1).is_some_and(|operand| operand.parts > 0)
}

/// A matrix in shared memory, as a descriptor says it.
#[derive(Clone, Copy)]
struct Place {
    /// Bytes of a line: 16 without swizzle, else 32, 64 or 128.
    line: u32,
    /// MN-major.
    turned: bool,
    /// Bytes of the memory that it spans.
    bytes: u32,
    leading: u32,
    stride: u32,
}

impl Place {
    /// A matrix of so many rows, and so many bytes along the depth.
    fn of(rows: u32, width: u32, line: u32, turned: bool) -> Place {
        let (leading, stride, bytes) = match (turned, line) {
            (false, 16) => (rows * 16, 128, rows * width),
            (false, _) => (16, 8 * line, rows * line.max(width)),
            (true, 16) => (128, 8 * width, rows * width),
            // A line holds line / 2 rows at one depth; eight depths are a pattern.
            (true, _) => {
                let panel = width / 2 * line;
                (panel, 8 * line, rows.div_ceil(line / 2) * panel)
            }
        };
        // Each thread fills as many words as another.
        Place { line, turned, bytes: bytes.next_multiple_of(4 * THREADS), leading, stride }
    }

    /// All of the descriptor but the address.
    fn descriptor(self) -> u64 {
        let mode: u64 = match self.line {
            16 => 0,
            128 => 1,
            64 => 2,
            _ => 3,
        };
        u64::from(self.leading >> 4) << 16 | u64::from(self.stride >> 4) << 32 | mode << 62
    }
}

/// One product.
struct Product<'a> {
    opcode: &'a Opcode,
    in_registers: bool,
    a: Place,
    b: Place,
    negated: [bool; 2],
}

/// A form of the table: K-major, A without swizzle and B in lines of 32 bytes; signs by turns.
pub(crate) fn product(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    let shape = opcode.shape.ok_or("no shape")?;
    if form.operands.iter().any(|operand| operand.kind == FormOperandKind::Address) {
        return Err("an operand that no template makes yet");
    }
    let columns = u32::from(shape.n);
    let sparse = opcode.has(Modifier::Sparse);
    let (width, line) = if sparse { (2 * LINE, 64) } else { (LINE, 32) };
    let product = Product {
        opcode,
        in_registers: in_registers(form),
        a: Place::of(ROWS, LINE, 16, false),
        b: Place::of(columns, width, line, false),
        negated: [columns == 24, columns == 8],
    };
    product.write(writer)
}

/// The forms that have tiles: 64 by 8 with A in shared memory, of floats and of signed integers,
/// dense, and sparse where A and B have one type.
pub(crate) fn tile_forms() -> Vec<TileForm> {
    let forms = select::forms(Base::WgmmaMmaAsync).into_iter().filter(has_tiles);
    let tiles = forms.filter_map(|form| {
        let plain = program(&form).ok()?;
        let contents = contents(&form.opcode, &plain)?;
        let program = Program { cases: CHUNK_THREADS, ..plain };
        Some(TileForm { program, contents, lanes: THREADS as usize })
    });
    tiles.collect()
}

fn has_tiles(form: &Form) -> bool {
    let opcode = &form.opcode;
    let &[_, a, b] = opcode.types.as_slice() else { return false };
    let narrow = opcode.shape.is_some_and(|shape| shape.n == 8);
    let others = [Type::B1, Type::U8];
    let plain = !others.contains(&a) && !others.contains(&b) && !opcode.has(Modifier::Satfinite);
    narrow && plain && !in_registers(form) && (a == b || !opcode.has(Modifier::Sparse))
}

/// What the operands of a program of 8 columns hold, in the order in which it loads them.
fn contents(opcode: &Opcode, program: &Program) -> Option<Vec<Content>> {
    let &[d, a, b] = opcode.types.as_slice() else { return None };
    let sparse = opcode.has(Modifier::Sparse);
    let (width, line) = if sparse { (2 * LINE, 64) } else { (LINE, 32) };
    let left = Place::of(ROWS, LINE, 16, false).bytes;
    let right = Place::of(8, width, line, false).bytes;
    let mut contents = Vec::new();
    for (part, ty, bytes) in [(Part::A, a, left), (Part::B, b, right)] {
        let words = bytes / (THREADS * word_type(ty).bits() / 8);
        contents.extend((0..words as usize).map(|register| Content { part, ty, register }));
    }
    let sums = program.inputs.len().checked_sub(contents.len() + usize::from(sparse))?;
    contents.extend((0..sums).map(|register| Content { part: Part::C, ty: d, register }));
    if sparse {
        contents.push(Content { part: Part::Metadata, ty: a, register: 0 });
    }
    Some(contents)
}

/// Every swizzle and order of A and B, in halves.
pub(crate) fn layouts() -> Vec<Program> {
    let mut programs = Vec::new();
    for line in [16, 32, 64, 128] {
        for (a_turned, b_turned) in [(false, false), (true, false), (false, true), (true, true)] {
            let text = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16";
            let Ok(opcode) = Opcode::parse(text) else { continue };
            let product = Product {
                opcode: &opcode,
                in_registers: false,
                a: Place::of(ROWS, LINE, line, a_turned),
                b: Place::of(64, LINE, line, b_turned),
                negated: [false, false],
            };
            let mut writer = Writer::default();
            if product.write(&mut writer).is_err() {
                continue;
            }
            let major = |turned| if turned { "MN" } else { "K" };
            let (a, b) = (major(a_turned), major(b_turned));
            programs.push(Program {
                name: format!("{text} of {line}-byte lines, A {a}-major, B {b}-major"),
                text: writer.finish(),
                inputs: writer.inputs,
                outputs: writer.outputs,
                cluster: 1,
                opcode,
                cases: CASES,
                check: Check::Exact,
            });
        }
    }
    programs
}

impl Product<'_> {
    fn write(&self, writer: &mut Writer) -> Result<Check, Skip> {
        let &[d, a, b] = self.opcode.types.as_slice() else { return Err("types of no product") };
        let left = if self.in_registers {
            let (ty, count) = (word_type(a), 128 / word_type(a).bits());
            let words: Vec<String> = (0..count).map(|_| writer.input(ty, Limit::Tile)).collect();
            registers_of(writer, &words, ty)
        } else {
            fill(writer, "left", self.a, a)
        };
        let right = fill(writer, "right", self.b, b);
        let columns = u32::from(self.opcode.shape.map_or(0, |shape| shape.n));
        let sums = if d == Type::F16 { Type::F16x2 } else { d };
        let count = columns * d.bits() / 64;
        let sums: Vec<(String, Type)> =
            (0..count).map(|_| (writer.input(sums, Limit::Tile), sums)).collect();
        let scale = writer.register(Type::Pred, false);
        // Every fourth block starts from zero.
        writer.declare(".reg .b32 %quarter;");
        writer.line("and.b32 %quarter, %block, 3;");
        writer.line(&format!("setp.ne.u32 {scale}, %quarter, 3;"));
        let metadata = self.metadata(writer, a);
        let names: Vec<&str> = sums.iter().map(|(name, _)| name.as_str()).collect();
        writer.line("fence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;");
        writer.line(&format!(
            "{} {{{}}}, {left}, {right}, {metadata}{scale}{};",
            self.opcode.text,
            names.join(", "),
            self.immediates(d, a),
        ));
        writer.line("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
        for (name, ty) in &sums {
            writer.output(name, *ty);
        }
        Ok(Check::Exact)
    }

    /// Signs, and for 16 bits whether matrices in shared memory are turned.
    fn immediates(&self, d: Type, a: Type) -> String {
        if d == Type::S32 {
            return String::new();
        }
        let sign = |negated| if negated { "-1" } else { "1" };
        let turned = |turned| if turned { ", 1" } else { ", 0" };
        let mut all = format!(", {}, {}", sign(self.negated[0]), sign(self.negated[1]));
        if a.bits() == 16 {
            if !self.in_registers {
                all.push_str(turned(self.a.turned));
            }
            all.push_str(turned(self.b.turned));
        }
        all
    }

    /// Metadata that name two places of four in order, or of tf32 one of two; selector 0.
    fn metadata(&self, writer: &mut Writer, a: Type) -> String {
        if !self.opcode.has(Modifier::Sparse) {
            return String::new();
        }
        let choice = writer.input(Type::B32, Limit::Any);
        // Four bits for each of the choices.
        let (choices, fields) = if a.bits() == 32 { (2, 0xe4) } else { (6, 0xed_9c84) };
        writer.declare(".reg .b32 %metadata, %field;");
        writer.line("mov.b32 %metadata, 0;");
        for nibble in 0..8 {
            writer.line(&format!("bfe.u32 %field, {choice}, {}, 4;", 4 * nibble));
            writer.line(&format!("rem.u32 %field, %field, {choices};\nshl.b32 %field, %field, 2;"));
            writer.line(&format!("shr.u32 %field, {fields:#x}, %field;"));
            writer.line(&format!("bfi.b32 %metadata, %field, %metadata, {}, 4;", 4 * nibble));
        }
        "%metadata, 0, ".to_string()
    }
}

/// Four registers of 32 bits made of narrower or equal ones.
fn registers_of(writer: &mut Writer, words: &[String], ty: Type) -> String {
    if ty.bits() == 32 {
        return format!("{{{}}}", words.join(", "));
    }
    let mut names = Vec::new();
    for pair in words.chunks(2) {
        let name = writer.register(Type::B32, false);
        writer.line(&format!("mov.b32 {name}, {{{}}};", pair.join(", ")));
        names.push(name);
    }
    format!("{{{}}}", names.join(", "))
}

/// Fills the memory of a matrix with words of all threads, and makes its descriptor.
fn fill(writer: &mut Writer, name: &str, place: Place, ty: Type) -> String {
    let ty = word_type(ty);
    let unit = ty.bits() / 8;
    writer.declare(&format!(".shared .align 1024 .b8 {name}[{}];", place.bytes));
    writer.declare(&format!(".reg .b32 %{name};\n.reg .b64 %{name}_matrix;"));
    writer.line(&format!("mov.u32 %{name}, {name};"));
    writer.line(&format!("bfe.u32 %{name}, %{name}, 4, 14;"));
    writer.line(&format!("cvt.u64.u32 %{name}_matrix, %{name};"));
    let rest = place.descriptor();
    writer.line(&format!("or.b64 %{name}_matrix, %{name}_matrix, {rest:#x};"));
    writer.line(&format!("mov.u32 %{name}, {name};"));
    writer.line(&format!("mad.lo.u32 %{name}, %lane, {unit}, %{name};"));
    for word in 0..place.bytes / (THREADS * unit) {
        let value = writer.input(ty, Limit::Tile);
        let at = word * THREADS * unit;
        writer.line(&format!("st.shared.b{} [%{name}+{at}], {value};", ty.bits()));
    }
    format!("%{name}_matrix")
}

/// What a matrix is filled with, so that its elements get values that mean something to it.
fn word_type(ty: Type) -> Type {
    match ty {
        Type::F16 => Type::F16x2,
        Type::Bf16 => Type::Bf16x2,
        Type::Tf32 => Type::F32,
        Type::E4m3 => Type::E4m3x2,
        Type::E5m2 => Type::E5m2x2,
        _ => Type::B32,
    }
}
