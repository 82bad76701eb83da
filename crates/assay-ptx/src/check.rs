//! Checks the operands of an instruction against its row of the table.
//!
//! The register rules are those that ptxas applies: a `.bN` register fits any type of N bits and a
//! `.bN` type fits any register of N bits; integer types mix; a float register fits its own type.

use crate::base::Base;
use crate::call;
use crate::fragment;
use crate::modifier::Modifier;
use crate::module::{
    Address, AddressBase, Function, Operand, Prototype, Register, RegisterId, Symbol, TargetList,
    Variable,
};
use crate::opcode::Opcode;
use crate::table::{Many, Row, Shown, Slot};
use crate::types::{Type, TypeKind};

/// What operands refer to.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) registers: &'a [Register],
    pub(crate) params: &'a [Variable],
    pub(crate) returns: &'a [Variable],
    pub(crate) locals: &'a [Variable],
    pub(crate) globals: &'a [Variable],
    pub(crate) functions: &'a [Function],
    pub(crate) prototypes: &'a [Prototype],
    pub(crate) targets: &'a [TargetList],
}

/// What is wrong with the operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The index of the guilty operand, if it is one.
    pub(crate) operand: Option<usize>,
}

impl Complaint {
    pub(crate) fn new(message: impl Into<String>) -> Complaint {
        Complaint { message: message.into(), hint: None, operand: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Complaint {
        self.hint = Some(hint.into());
        self
    }
}

type Checked = Result<(), Complaint>;

/// Checks operands, and brings them into the one shape that [`Operand`] promises: decimals become
/// constants of the operand's width, a lone register becomes a vector of one where vectors stand.
pub(crate) fn check(
    context: Context<'_>,
    opcode: &Opcode,
    row: &Row,
    operands: &mut [Operand],
) -> Checked {
    if opcode.base == Base::Call {
        return call::check(context, operands);
    }
    let mut furthest: Option<(usize, Complaint)> = None;
    for form in &row.forms {
        if slots(form, opcode).count() != operands.len() {
            continue;
        }
        match check_form(context, opcode, form, operands) {
            Ok(()) => return check_constants(opcode, operands),
            Err((index, complaint)) => {
                if furthest.as_ref().is_none_or(|(other, _)| index > *other) {
                    furthest = Some((index, complaint));
                }
            }
        }
    }
    Err(furthest.map_or_else(|| wrong_count(opcode, row, operands.len()), |(_, c)| c))
}

/// Checks constants that only some values make sense for.
fn check_constants(opcode: &Opcode, operands: &[Operand]) -> Checked {
    match (opcode.base, operands) {
        (Base::CpAsync, [_, _, Operand::Immediate(bytes), ..]) => {
            let fits = match bytes {
                4 | 8 => !opcode.has(Modifier::Cg),
                bytes => *bytes == 16,
            };
            let allowed = if opcode.has(Modifier::Cg) { "16" } else { "4, 8 or 16" };
            complain_unless(fits, || format!("`cp.async` copies {allowed} bytes, not {bytes}"))
        }
        (Base::Ld | Base::Ldu | Base::St, _) => {
            let bits = u32::from(opcode.vector) * opcode.ty().map_or(0, Type::bits);
            complain_unless(bits <= 256, || format!("{bits} bits at once are over 256"))
        }
        (Base::Lop3, [_, _, _, _, Operand::Immediate(table), ..]) => {
            complain_unless(*table < 256, || format!("the table {table} of `lop3` is over 255"))
        }
        (Base::Setmaxnreg, [Operand::Immediate(count)]) => {
            let fits = (24..=256).contains(count) && count % 8 == 0;
            complain_unless(fits, || {
                format!("`setmaxnreg` takes a multiple of 8 from 24 to 256, not {count}")
            })
        }
        (Base::WgmmaMmaAsync, _) => check_wgmma(opcode, operands),
        _ => Ok(()),
    }
}

/// The constants behind `scale-d`: signs, then whether matrices are turned. Integers come in fewer
/// widths (ISA 9.7.15.5.2, 9.7.15.6.3).
fn check_wgmma(opcode: &Opcode, operands: &[Operand]) -> Checked {
    let (columns, integers) = (opcode.shape.map_or(0, |s| s.n), opcode.ty() == Some(Type::S32));
    let width = !integers || columns <= 32 || columns % 16 == 0;
    complain_unless(width, || format!("integers have no products of {columns} columns"))?;
    let sparse = opcode.has(Modifier::Sparse);
    for (index, operand) in operands.iter().skip(if sparse { 6 } else { 4 }).enumerate() {
        let Operand::Immediate(value) = operand else { continue };
        let (value, other) = (*value as i64, if index < 2 { -1 } else { 0 });
        complain_unless(value == 1 || value == other, || {
            format!("{value} stands where `wgmma.mma_async` takes {other} or 1")
        })?;
    }
    Ok(())
}

fn complain_unless(holds: bool, message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Complaint::new(message())) }
}

fn slots<'f>(form: &'f [Slot], opcode: &'f Opcode) -> impl Iterator<Item = &'f Slot> {
    form.iter().filter(|slot| slot.only_with.is_none_or(|modifier| opcode.has(modifier)))
}

fn check_form(
    context: Context<'_>,
    opcode: &Opcode,
    form: &[Slot],
    operands: &mut [Operand],
) -> Result<(), (usize, Complaint)> {
    let checker = Checker { context, opcode };
    for (index, (slot, operand)) in slots(form, opcode).zip(operands.iter_mut()).enumerate() {
        checker.slot(slot, operand).map_err(|mut complaint| {
            complaint.message =
                format!("operand {} of `{}`: {}", index + 1, opcode.text, complaint.message);
            complaint.operand = Some(index);
            (index, complaint)
        })?;
    }
    Ok(())
}

fn wrong_count(opcode: &Opcode, row: &Row, given: usize) -> Complaint {
    let mut counts: Vec<usize> = row.forms.iter().map(|f| slots(f, opcode).count()).collect();
    counts.sort_unstable();
    counts.dedup();
    let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
    Complaint::new(format!(
        "`{}` takes {} operands, but {given} are written",
        opcode.text,
        counts.join(" or ")
    ))
}

struct Checker<'a> {
    context: Context<'a>,
    opcode: &'a Opcode,
}

impl Checker<'_> {
    fn slot(&self, slot: &Slot, operand: &mut Operand) -> Checked {
        match slot.shown {
            Shown::Address => self.address_operand(operand),
            Shown::Tensor => self.tensor(operand),
            Shown::Constant => match operand {
                Operand::Immediate(_) => Ok(()),
                other => Err(unexpected(other, "an integer constant")),
            },
            Shown::Label => match operand {
                Operand::Label(_) => Ok(()),
                other => Err(unexpected(other, "a label")),
            },
            Shown::Targets => match operand {
                Operand::Targets(_) => Ok(()),
                other => Err(unexpected(other, "a `.branchtargets` list")),
            },
            // `call` is checked as a whole.
            Shown::Call => Ok(()),
            Shown::Pack => self.pack(slot, operand),
            Shown::Fragment(letter) => {
                let fragment = fragment::of(self.opcode, letter);
                let Some((count, ty)) = fragment else {
                    return Err(Complaint::new("this shape and type have no known fragment"));
                };
                self.vector(slot, ty, operand, count)
            }
            Shown::AddressValue => self.address_value(operand),
            Shown::Nth(_) | Shown::Wide | Shown::Fixed(_) => self.typed(slot, operand),
        }
    }

    fn slot_type(&self, shown: Shown) -> Type {
        match shown {
            Shown::Fixed(ty) => ty,
            Shown::Nth(index) => {
                self.opcode.types.get(usize::from(index)).copied().unwrap_or(Type::B32)
            }
            Shown::Wide => match self.opcode.ty() {
                Some(Type::U16) => Type::U32,
                Some(Type::S16) => Type::S32,
                Some(Type::S32) => Type::S64,
                _ => Type::U64,
            },
            _ => Type::B32,
        }
    }

    fn typed(&self, slot: &Slot, operand: &mut Operand) -> Checked {
        let ty = self.slot_type(slot.shown);
        match slot.many {
            Many::One => {
                // The scales of `mma`: CUTLASS writes `{%r1}` for the register alone.
                if self.opcode.base == Base::Mma {
                    unwrap_single(operand);
                }
                self.value(slot, ty, operand)
            }
            Many::Width if self.opcode.vector == 1 => {
                unwrap_single(operand);
                self.value(slot, ty, operand)
            }
            Many::Width => self.vector(slot, ty, operand, usize::from(self.opcode.vector)),
            Many::Exactly(count) => self.vector(slot, ty, operand, usize::from(count)),
            Many::Count(factor) => {
                let count = fragment::matrices(self.opcode) * usize::from(factor);
                self.vector(slot, ty, operand, count)
            }
            Many::Any => match operand {
                Operand::Vector(parts) => self.each(slot, ty, parts),
                other => Err(unexpected(other, "a vector `{...}`")),
            },
        }
    }

    fn vector(&self, slot: &Slot, ty: Type, operand: &mut Operand, count: usize) -> Checked {
        if count == 1 && matches!(operand, Operand::Register(_) | Operand::Sink) {
            *operand = Operand::Vector(vec![operand.clone()]);
        }
        match operand {
            Operand::Vector(parts) if parts.len() == count => self.each(slot, ty, parts),
            Operand::Vector(parts) => Err(Complaint::new(format!(
                "a vector of {count} is needed, this one has {}",
                parts.len()
            ))),
            other => Err(unexpected(other, &format!("a vector of {count}"))),
        }
    }

    fn each(&self, slot: &Slot, ty: Type, parts: &mut [Operand]) -> Checked {
        parts.iter_mut().try_for_each(|part| self.value(slot, ty, part))
    }

    fn value(&self, slot: &Slot, ty: Type, operand: &mut Operand) -> Checked {
        fit_float(ty, operand);
        if slot.only_pair && !matches!(operand, Operand::Pair(..)) {
            return Err(unexpected(operand, "a pair `a|p`"));
        }
        match *operand {
            Operand::Register(id) => self.register(id, ty, slot.wider),
            Operand::Sink if slot.destination => Ok(()),
            Operand::Pair(first, second) if slot.pair => {
                first.map_or(Ok(()), |id| self.register(id, ty, slot.wider))?;
                second.map_or(Ok(()), |id| self.register(id, Type::Pred, false))
            }
            _ if slot.destination => Err(unexpected(operand, "a register")),
            Operand::Not(id) if ty == Type::Pred => self.register(id, ty, false),
            Operand::Immediate(_) if takes_integer(ty) => Ok(()),
            Operand::Float32(_) if matches!(ty, Type::F32 | Type::B32) => Ok(()),
            Operand::Float64(_) if matches!(ty, Type::F64 | Type::B64) => Ok(()),
            Operand::Symbol(symbol, _) if slot.symbol && holds_address(ty) => {
                self.addressable(symbol)
            }
            Operand::Special(special, _) if slot.special => special_fits(special.ty(), ty),
            _ => Err(Self::mismatch(ty, operand)),
        }
    }

    fn mismatch(ty: Type, operand: &Operand) -> Complaint {
        let complaint = unexpected(operand, &format!("a value of type `.{}`", ty.name()));
        match operand {
            Operand::Immediate(_) if ty.is_float() => {
                complaint.hint("write a float constant, such as 0f3F800000 or 1.0")
            }
            Operand::Special(..) => complaint.hint("copy it with `mov` first"),
            Operand::Symbol(..) => complaint.hint("take its address with `mov` first"),
            _ => complaint,
        }
    }

    fn register(&self, id: RegisterId, ty: Type, wider: bool) -> Checked {
        let Some(register) = self.context.registers.get(id.index()) else {
            return Err(Complaint::new(format!("register {} is not in this function", id.0)));
        };
        if register_fits(register.ty, ty, wider) {
            return Ok(());
        }
        Err(Complaint::new(format!(
            "`{}` is a .{} register, which does not fit the type .{}",
            register.name,
            register.ty.name(),
            ty.name()
        )))
    }

    fn addressable(&self, symbol: Symbol) -> Checked {
        let context = self.context;
        let known = match symbol {
            Symbol::Global(index) => (index as usize) < context.globals.len(),
            Symbol::Local(index) => (index as usize) < context.locals.len(),
            Symbol::Parameter(index) => (index as usize) < context.params.len(),
            Symbol::Return(index) => (index as usize) < context.returns.len(),
            Symbol::Function(id) => (id.0 as usize) < context.functions.len(),
        };
        if known { Ok(()) } else { Err(Complaint::new("this symbol is not in the module")) }
    }

    fn address_value(&self, operand: &Operand) -> Checked {
        match *operand {
            Operand::Symbol(symbol, _) => self.addressable(symbol),
            Operand::Immediate(_) => Ok(()),
            Operand::Register(id) => self.address_register(id),
            ref other => Err(unexpected(other, "an address")),
        }
    }

    fn address_register(&self, id: RegisterId) -> Checked {
        self.register(id, Type::U64, false).or_else(|_| self.register(id, Type::U32, false))
    }

    fn address_operand(&self, operand: &Operand) -> Checked {
        match operand {
            Operand::Address(address) => self.address(address),
            other => Err(unexpected(other, "an address `[...]`")),
        }
    }

    fn address(&self, address: &Address) -> Checked {
        match address.base {
            AddressBase::Register(id) => self.address_register(id),
            AddressBase::Variable(Symbol::Function(_)) => {
                Err(Complaint::new("a function has no memory to access"))
            }
            AddressBase::Variable(symbol) => self.addressable(symbol),
            AddressBase::None => Ok(()),
        }
    }

    fn tensor(&self, operand: &mut Operand) -> Checked {
        let Operand::Tensor(address, coordinates) = operand else {
            return Err(unexpected(operand, "a tensor address `[map, {...}]`"));
        };
        self.address(address)?;
        if !(1..=5).contains(&coordinates.len()) {
            let count = coordinates.len();
            return Err(Complaint::new(format!("a tensor has 1 to 5 coordinates, not {count}")));
        }
        let slot = Slot::source(Type::S32);
        self.each(&slot, Type::S32, coordinates)
    }

    fn pack(&self, slot: &Slot, operand: &mut Operand) -> Checked {
        let whole = self.slot_type(Shown::Nth(0)).bits();
        let Operand::Vector(parts) = operand else {
            return Err(unexpected(operand, "a vector `{...}`"));
        };
        if !matches!(parts.len(), 2 | 4) {
            return Err(Complaint::new(format!("a vector of {} cannot be packed", parts.len())));
        }
        let part = match whole / parts.len() as u32 {
            8 => Type::B8,
            16 => Type::B16,
            32 => Type::B32,
            64 => Type::B64,
            bits => return Err(Complaint::new(format!("parts of {bits} bits do not exist"))),
        };
        self.each(slot, part, parts)
    }
}

/// Whether a register of one type can stand where another type is asked for.
pub(crate) fn register_fits(register: Type, ty: Type, wider: bool) -> bool {
    if register == ty {
        return true;
    }
    if register == Type::Pred || ty == Type::Pred {
        return false;
    }
    let width = register.bits() == ty.bits() || (wider && register.bits() > ty.bits());
    let bits = register.kind() == TypeKind::Bits || ty.kind() == TypeKind::Bits;
    width && (bits || (register.is_integer() && ty.is_integer()))
}

/// Triton writes `{ %r1 }` where there is no vector.
fn unwrap_single(operand: &mut Operand) {
    if let Operand::Vector(parts) = operand
        && parts.len() == 1
        && let Some(single) = parts.pop()
    {
        *operand = single;
    }
}

/// Float constants take the width of the operand (ISA 4.5.2).
fn fit_float(ty: Type, operand: &mut Operand) {
    match (&operand, ty) {
        (Operand::Float64(bits), Type::F32) => {
            *operand = Operand::Float32((f64::from_bits(*bits) as f32).to_bits());
        }
        (Operand::Float32(bits), Type::F64) => {
            *operand = Operand::Float64(f64::from(f32::from_bits(*bits)).to_bits());
        }
        _ => {}
    }
}

fn takes_integer(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Float | TypeKind::Opaque => false,
        TypeKind::Packed => matches!(ty, Type::U16x2 | Type::S16x2),
        _ => true,
    }
}

fn holds_address(ty: Type) -> bool {
    matches!(ty, Type::U32 | Type::U64 | Type::S32 | Type::S64 | Type::B32 | Type::B64)
}

fn special_fits(special: Type, ty: Type) -> Checked {
    let mixed = special != Type::Pred && (ty.is_integer() || ty.kind() == TypeKind::Bits);
    if special == ty || (mixed && special.bits() == ty.bits()) {
        return Ok(());
    }
    let (special, ty) = (special.name(), ty.name());
    Err(Complaint::new(format!("this special register is .{special}, which does not fit .{ty}")))
}

fn unexpected(operand: &Operand, expected: &str) -> Complaint {
    let found = match operand {
        Operand::Register(_) => "a register",
        Operand::Not(_) => "an inverted predicate",
        Operand::Immediate(_) => "an integer constant",
        Operand::Float32(_) | Operand::Float64(_) => "a float constant",
        Operand::Address(_) => "an address",
        Operand::Tensor(..) => "a tensor address",
        Operand::Vector(_) => "a vector",
        Operand::Pair(..) => "a pair `a|b`",
        Operand::Sink => "`_`",
        Operand::Label(_) => "a label",
        Operand::Symbol(..) => "a symbol",
        Operand::Special(..) => "a special register",
        Operand::List(_) => "a list `(...)`",
        Operand::Prototype(_) => "a prototype",
        Operand::Targets(_) => "a target list",
    };
    Complaint::new(format!("{expected} is needed, not {found}"))
}
