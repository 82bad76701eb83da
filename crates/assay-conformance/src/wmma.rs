//! Programs around `wmma`: tiles go through shared memory, as fragments are nobody's business.

use assay_ptx::forms::Form;
use assay_ptx::{Base, Layout, Modifier, Opcode, Shape, StateSpace, Type};

use crate::program::{Check, Skip};
use crate::values::Limit;
use crate::writer::{ROW, THREADS, Writer};

/// Warps of a block, each with tiles of its own.
const WARPS: u32 = THREADS / 32;
/// Bytes between the lines of a tile with a stride: the ISA aligns lines to fragments of 32 bytes.
const GAP: u32 = 32;

/// Everything that one program does with tiles.
struct Tiles {
    shape: Shape,
    /// Of A, B, C and D.
    types: [Type; 4],
    /// Of A, B, C and D.
    layouts: [Layout; 4],
    /// The multiplication, or `None` where C goes straight to D.
    multiplies: Option<String>,
    /// What the form in question writes instead of `.shared`.
    space: StateSpace,
    /// Which of A, B, C, D has that space.
    spaced: usize,
    /// It has a stride with a gap between its lines.
    strided: bool,
}

/// `wmma.mma`, `wmma.load` and `wmma.store`: A, B and C are loaded, multiplied, and D is stored.
pub(crate) fn product(form: &Form, writer: &mut Writer) -> Result<Check, Skip> {
    let opcode = &form.opcode;
    let shape = opcode.shape.ok_or("no shape")?;
    let ty = opcode.ty().ok_or("no type")?;
    let natural = [Layout::Row, Layout::Column, Layout::Row, Layout::Row];
    let mut tiles = Tiles {
        shape,
        types: [Type::F16, Type::F16, Type::F32, Type::F32],
        layouts: natural,
        multiplies: None,
        space: StateSpace::Shared,
        spaced: 0,
        strided: false,
    };
    if opcode.base == Base::WmmaMma {
        tiles.types = match opcode.types.as_slice() {
            [d, c] => [Type::F16, Type::F16, *c, *d],
            [d, a, b, c] => [*a, *b, *c, *d],
            _ => return Err("types of no product"),
        };
        tiles.layouts[..2].copy_from_slice(opcode.layouts.get(..2).ok_or("no layouts")?);
        tiles.multiplies = Some(opcode.text.clone());
    } else {
        let place = moved(opcode);
        let sum = sum_of(ty, place);
        tiles.types = if place < 2 { [ty, ty, sum, sum] } else { [Type::F16, Type::F16, ty, ty] };
        tiles.layouts[place] = *opcode.layouts.first().ok_or("no layout")?;
        (tiles.space, tiles.spaced) = (opcode.space(), place);
        tiles.strided = strided(form);
        tiles.multiplies = (place < 2).then(|| tiles.plain_product());
    }
    Ok(tiles.write(writer))
}

/// Whether a load or store has a stride.
fn strided(form: &Form) -> bool {
    form.opcode.base != Base::WmmaMma && form.operands.len() > 2
}

/// Which of A, B, C, D a load or store moves.
fn moved(opcode: &Opcode) -> usize {
    let letters = [Modifier::MatrixA, Modifier::MatrixB, Modifier::MatrixC, Modifier::MatrixD];
    letters.iter().position(|&letter| opcode.has(letter)).unwrap_or(3)
}

/// The type that products of a type are added in.
fn sum_of(ty: Type, place: usize) -> Type {
    match ty {
        _ if place >= 2 => ty,
        Type::F64 => Type::F64,
        Type::S8 | Type::U8 | Type::S4 | Type::U4 | Type::B1 => Type::S32,
        _ => Type::F32,
    }
}

impl Tiles {
    fn plain_product(&self) -> String {
        let layout = |index: usize| layout_name(self.layouts[index]);
        let [a, b, c, d] = self.types.map(Type::name);
        let types = if a == "f16" { format!("{d}.{c}") } else { format!("{d}.{a}.{b}.{c}") };
        let bits = if a == "b1" { ".xor.popc" } else { "" };
        let (a, b) = (layout(0), layout(1));
        format!("wmma.mma{bits}.sync.aligned.{a}.{b}.{}.{types}", self.shape)
    }

    /// Rows and columns of A, B, C and D in memory, the second along it.
    fn lines(&self, index: usize) -> (u32, u32) {
        let Shape { m, n, k } = self.shape;
        let [m, n, k] = [m, n, k].map(u32::from);
        let (rows, columns) = [(m, k), (k, n), (m, n), (m, n)][index];
        if self.layouts[index] == Layout::Row { (rows, columns) } else { (columns, rows) }
    }

    /// Elements between lines that are not the tile's: in global memory there is no room for any.
    fn gap(&self, index: usize) -> u32 {
        let gaps = self.strided && index == self.spaced && self.space != StateSpace::Global;
        if gaps { GAP * 8 / self.types[index].bits() } else { 0 }
    }

    /// Bytes of memory for A, B, C and D: as many for each lane.
    fn bytes(&self, index: usize) -> u32 {
        let (lines, length) = self.lines(index);
        let bytes = lines * (length + self.gap(index)) * self.types[index].bits() / 8;
        bytes.next_multiple_of(32 * word_type(self.types[index]).bits() / 8)
    }

    /// Registers of a thread for A, B, C and D: of f16, A and B have eight.
    fn registers(&self, index: usize) -> u32 {
        if index < 2 && self.types[index] == Type::F16 {
            return 8;
        }
        let (lines, length) = self.lines(index);
        let bits = lines * length * self.types[index].bits();
        bits / (32 * register_type(self.types[index]).bits())
    }

    fn write(&self, writer: &mut Writer) -> Check {
        let places = if self.multiplies.is_some() { 0..4 } else { 2..4 };
        writer.line(".reg .b32 %warp, %own;");
        writer.line("shr.u32 %warp, %lane, 5;\nand.b32 %own, %lane, 31;");
        let mut fragments = vec![String::new(); 4];
        for index in places.clone() {
            self.place(writer, index);
            if index < 3 || self.gap(index) > 0 {
                self.fill(writer, index);
            }
            let ty = register_type(self.types[index]);
            let names = (0..self.registers(index)).map(|_| writer.register(ty, false));
            fragments[index] = format!("{{{}}}", names.collect::<Vec<_>>().join(", "));
        }
        writer.line("bar.sync 0;");
        for index in places.filter(|&index| index < 3) {
            let to = &fragments[index];
            writer.line(&format!("{} {to}, {};", self.access(index), self.address(index)));
        }
        if let Some(product) = &self.multiplies {
            let [a, b, c, d] = [0, 1, 2, 3].map(|index| &fragments[index]);
            writer.line(&format!("{product} {d}, {a}, {b}, {c};"));
        } else {
            let moved = fragments[2].clone();
            fragments[3] = moved;
        }
        let from = &fragments[3];
        let address = self.address(3);
        let (at, stride) = address.split_once(", ").unwrap_or((&address, ""));
        let stride = if stride.is_empty() { String::new() } else { format!(", {stride}") };
        writer.line(&format!("{} {at}, {from}{stride};", self.access(3)));
        writer.line("bar.sync 0;");
        self.read(writer);
        Check::Exact
    }

    /// Whether a tile is in global memory.
    fn global(&self, index: usize) -> bool {
        index == self.spaced && self.space == StateSpace::Global
    }

    /// Memory for a tile of each warp, and where this lane's part of it starts.
    fn place(&self, writer: &mut Writer, index: usize) {
        let (bytes, name) = (self.bytes(index), NAMES[index]);
        let unit = word_type(self.types[index]).bits() / 8;
        writer.declare(&format!(".reg .b64 %{name}_generic;"));
        if self.global(index) {
            // The rows of a warp's cases lie together, and a tile has no more bytes than they.
            writer.declare(&format!(".reg .b64 %{name}_own;"));
            writer.line(&format!("mul.wide.u32 %{name}_own, %own, {ROW};"));
            writer.line(&format!("sub.s64 %{name}_generic, %memory, %{name}_own;"));
            writer.line(&format!("mad.wide.u32 %{name}_own, %own, {unit}, %{name}_generic;"));
            return;
        }
        writer.declare(&format!(".shared .align 128 .b8 {name}[{}];", bytes * WARPS));
        writer.declare(&format!(".reg .b32 %{name}, %{name}_own;"));
        writer.line(&format!("mov.u32 %{name}, {name};"));
        writer.line(&format!("mad.lo.u32 %{name}, %warp, {bytes}, %{name};"));
        writer.line(&format!("mad.lo.u32 %{name}_own, %own, {unit}, %{name};"));
        writer.line(&format!("cvt.u64.u32 %{name}_generic, %{name};"));
        writer.line(&format!("cvta.shared.u64 %{name}_generic, %{name}_generic;"));
    }

    /// The address of a tile in the space that it is accessed in, and its stride.
    fn address(&self, index: usize) -> String {
        let wide = matches!(self.space, StateSpace::Generic | StateSpace::Global);
        let generic = if index == self.spaced && wide { "_generic" } else { "" };
        let at = format!("[%{}{generic}]", NAMES[index]);
        if !(self.strided && index == self.spaced) {
            return at;
        }
        format!("{at}, {}", self.lines(index).1 + self.gap(index))
    }

    fn words(&self, index: usize) -> u32 {
        self.bytes(index) * 8 / (32 * word_type(self.types[index]).bits())
    }

    fn fill(&self, writer: &mut Writer, index: usize) {
        let (ty, name) = (word_type(self.types[index]), NAMES[index]);
        for word in 0..self.words(index) {
            let value = writer.input(ty, Limit::Tile);
            let at = word * 32 * ty.bits() / 8;
            let space = if self.global(index) { "global" } else { "shared" };
            writer.line(&format!("st.{space}.b{} [%{name}_own+{at}], {value};", ty.bits()));
        }
    }

    fn read(&self, writer: &mut Writer) {
        let ty = word_type(self.types[3]);
        for word in 0..self.words(3) {
            let value = writer.register(ty, false);
            let at = word * 32 * ty.bits() / 8;
            let space = if self.global(3) { "global" } else { "shared" };
            writer.line(&format!("ld.{space}.b{} {value}, [%to_own+{at}];", ty.bits()));
            writer.output(&value, ty);
        }
    }

    /// The opcode of a load or store.
    fn access(&self, index: usize) -> String {
        let verb = ["load.a", "load.b", "load.c", "store.d"][index];
        let (layout, ty) = (layout_name(self.layouts[index]), self.types[index].name());
        let space = if index == self.spaced { self.space } else { StateSpace::Shared };
        let space = match space {
            StateSpace::Generic => String::new(),
            space => format!(".{}", space.name()),
        };
        format!("wmma.{verb}.sync.aligned.{layout}.{}{space}.{ty}", self.shape)
    }
}

/// Names of the tiles A, B, C and D in a program.
const NAMES: [&str; 4] = ["left", "right", "sums", "to"];

fn layout_name(layout: Layout) -> &'static str {
    if layout == Layout::Row { "row" } else { "col" }
}

/// What a fragment's registers are declared as.
fn register_type(ty: Type) -> Type {
    match ty {
        Type::F64 | Type::F32 | Type::S32 => ty,
        _ => Type::B32,
    }
}

/// What a tile is filled with, so that its elements get values that mean something to it.
fn word_type(ty: Type) -> Type {
    match ty {
        Type::F16 => Type::F16x2,
        Type::Bf16 => Type::Bf16x2,
        Type::Tf32 => Type::F32,
        Type::F64 | Type::F32 | Type::S32 => ty,
        _ => Type::B32,
    }
}
