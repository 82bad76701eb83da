//! Every form that the table allows, for tools that write programs from it.
//!
//! A form is one opcode with one list of operands: base x types x spaces x modifiers x shape x
//! layouts x vector width, and where a base takes its operands in several ways, each of them.

use crate::base::Base;
use crate::fragment;
use crate::modifier::{Group, Modifier};
use crate::opcode::Opcode;
use crate::table::{Choice, Many, Row, Shown, Slot, table};
use crate::types::{Layout, Shape, Type};

/// One way to write an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// The opcode, its parts in the order of the table's columns.
    pub opcode: Opcode,
    /// Its operands, destinations first as written.
    pub operands: Vec<FormOperand>,
}

/// One operand of a [`Form`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormOperand {
    /// What stands there.
    pub kind: FormOperandKind,
    /// Whether it is written.
    pub destination: bool,
    /// Parts of a vector in braces; 0 for an operand without braces.
    pub parts: u8,
    /// Whether a predicate may follow it: `%r1|%p1`.
    pub pair: bool,
    /// Whether its register may be wider than its type.
    pub wider: bool,
}

/// What stands in the place of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormOperandKind {
    /// A value of a type, or parts that each have it.
    Value(Type),
    /// The halves of a value of the type, in braces: `{%h1, %h2}`.
    Pack(Type),
    /// `[ ]`.
    Address,
    /// An address as a value.
    AddressValue,
    /// `[map, {coordinates}]`.
    Tensor,
    /// An integer constant.
    Constant,
    /// The policy of `.L2::cache_hint`.
    CachePolicy,
    /// Labels, tables of them, and calls.
    Control,
}

/// Calls `visit` with every form of a base that `wanted` asks for.
///
/// Hints of caching (`.ca`, `.L1::evict_first`, `.L2::128B`, `.L2::cache_hint`, `.unified`) are not
/// combined: each stands alone with everything else.
pub fn each_form(base: Base, wanted: impl Fn(&Opcode) -> bool, mut visit: impl FnMut(Form)) {
    for row in table().rows(base) {
        for opcode in opcodes(row, &wanted) {
            for slots in &row.forms {
                if let Some(operands) = operands(&opcode, slots) {
                    visit(Form { opcode: opcode.clone(), operands });
                }
            }
        }
    }
}

/// The opcodes of a row.
fn opcodes(row: &Row, wanted: &impl Fn(&Opcode) -> bool) -> Vec<Opcode> {
    let empty = Opcode {
        base: row.base,
        types: Vec::new(),
        spaces: Vec::new(),
        shape: None,
        layouts: Vec::new(),
        vector: 1,
        modifiers: crate::modifier::Modifiers::new(),
        writes: row.writes(),
        text: String::new(),
    };
    let mut all = vec![empty];
    for choice in &row.choices {
        all = all.iter().flat_map(|opcode| with_choice(opcode, choice)).collect();
    }
    for slot in &row.spaces {
        let spaces = slot.allowed.iter().map(|&space| Some(space));
        let spaces: Vec<_> = spaces.chain(slot.optional.then_some(None)).collect();
        all = cross(&all, &spaces, |opcode, space| opcode.spaces.extend(*space));
    }
    if !row.shapes.is_empty() {
        let shapes: Vec<Shape> = row.shapes.iter().map(|rule| rule.example()).collect();
        all = cross(&all, &shapes, |opcode, shape| opcode.shape = Some(*shape));
    }
    for _ in 0..row.layouts {
        let layouts = [Layout::Row, Layout::Column];
        all = cross(&all, &layouts, |opcode, layout| opcode.layouts.push(*layout));
    }
    let widths: Vec<u8> = std::iter::once(1).chain(row.widths.iter().copied()).collect();
    all = cross(&all, &widths, |opcode, width| opcode.vector = *width);
    for set in &row.types {
        let types: Vec<Type> = Type::ALL.iter().copied().filter(|&ty| set.has(ty)).collect();
        all = cross(&all, &types, |opcode, ty| opcode.types.push(*ty));
    }
    for opcode in &mut all {
        opcode.text = spelling(opcode);
    }
    all.retain(wanted);
    all
}

fn cross<T>(all: &[Opcode], parts: &[T], put: impl Fn(&mut Opcode, &T)) -> Vec<Opcode> {
    let pairs = all.iter().flat_map(|opcode| parts.iter().map(move |part| (opcode, part)));
    let with = pairs.map(|(opcode, part)| {
        let mut opcode = opcode.clone();
        put(&mut opcode, part);
        opcode
    });
    with.collect()
}

/// An opcode with each modifier of a choice, and without any where it may be left out.
fn with_choice(opcode: &Opcode, choice: &Choice) -> Vec<Opcode> {
    let mut all = Vec::new();
    if !choice.required {
        all.push(opcode.clone());
    }
    let hinted = opcode.modifiers.iter().any(is_hint);
    for modifier in choice.modifiers.iter().filter(|&modifier| !(hinted && is_hint(modifier))) {
        let mut with = opcode.clone();
        with.modifiers.insert(modifier);
        all.push(with);
    }
    all
}

/// Whether a modifier says how to cache and nothing about the result.
pub fn is_hint(modifier: Modifier) -> bool {
    let group = matches!(modifier.group(), Group::Cache | Group::EvictionL1 | Group::Prefetched);
    let flags = [
        Modifier::L2EvictLast,
        Modifier::L2EvictNormal,
        Modifier::L2EvictFirst,
        Modifier::L2EvictUnchanged,
        Modifier::L2CacheHint,
        Modifier::Unified,
    ];
    group || flags.contains(&modifier)
}

/// The spelling in the order that the ISA's own synopses and assemblers take.
fn spelling(opcode: &Opcode) -> String {
    let tiles = [Base::WmmaLoad, Base::WmmaStore, Base::WmmaMma, Base::WgmmaMmaAsync];
    if tiles.contains(&opcode.base) {
        return spelling_of_tiles(opcode);
    }
    let mut parts = vec![opcode.base.name().to_string()];
    let mut modifiers: Vec<Modifier> = opcode.modifiers.iter().collect();
    modifiers.sort_by_key(|&modifier| rank(opcode.base, modifier));
    let memory = |group| {
        use Group::{Cache, Ordering, Scope};
        matches!(group, Ordering | Scope) || (group == Cache && opcode.spaces.is_empty())
    };
    let early =
        |modifier: &Modifier| memory(modifier.group()) || matches!(modifier, Modifier::ProxyWord);
    let in_front = matches!(opcode.base, Base::Ld | Base::St | Base::Atom | Base::Red);
    if in_front {
        parts.extend(modifiers.iter().filter(|m| early(m)).map(|m| m.name().to_string()));
        modifiers.retain(|modifier| !early(modifier));
        parts.extend(opcode.spaces.iter().map(|space| space.name().to_string()));
    }
    let shape = opcode.shape.map(|shape| shape.to_string());
    let (head, tail): (Vec<Modifier>, Vec<Modifier>) =
        modifiers.into_iter().partition(|&modifier| comes_before_shape(opcode, modifier));
    parts.extend(head.iter().map(|modifier| modifier.name().to_string()));
    parts.extend(shape);
    // Of one bit, the operation of `mma` follows the types.
    let last = opcode.base == Base::Mma && opcode.has(Modifier::Popc);
    let tail: Vec<String> = tail.iter().map(|modifier| modifier.name().to_string()).collect();
    let (tail, last) = if last { (Vec::new(), tail) } else { (tail, Vec::new()) };
    let layouts = opcode.layouts.iter().map(|layout| layout_name(*layout).to_string());
    if opcode.base == Base::Mma {
        parts.extend(layouts.chain(tail));
    } else {
        parts.extend(tail.into_iter().chain(layouts));
    }
    if !in_front {
        parts.extend(opcode.spaces.iter().map(|space| space.name().to_string()));
    }
    if opcode.vector > 1 {
        parts.push(format!("v{}", opcode.vector));
    }
    parts.extend(opcode.types.iter().map(|ty| ty.name().to_string()));
    parts.extend(last);
    parts.join(".")
}

/// `wmma` and `wgmma`, each in the order of its own synopsis.
fn spelling_of_tiles(opcode: &Opcode) -> String {
    let warp = opcode.base != Base::WgmmaMmaAsync;
    let bits = |m: Modifier| matches!(m, Modifier::And | Modifier::Xor | Modifier::Popc);
    let first = |m: Modifier| {
        let group = m.group();
        group == Group::Matrix || group == Group::Sparsity || bits(m) && warp
    };
    let fixed = |m: Modifier| matches!(m, Modifier::Sync | Modifier::Aligned);
    let last = |m: Modifier| bits(m) && !warp || m == Modifier::Satfinite && warp;
    let mut modifiers: Vec<Modifier> = opcode.modifiers.iter().collect();
    modifiers.sort_by_key(|&modifier| rank(opcode.base, modifier));
    let named = |wanted: &dyn Fn(Modifier) -> bool| -> Vec<String> {
        let found = modifiers.iter().filter(|&&modifier| wanted(modifier));
        found.map(|modifier| modifier.name().to_string()).collect()
    };
    let mut parts = vec![opcode.base.name().to_string()];
    parts.extend(named(&first));
    parts.extend(named(&fixed));
    parts.extend(opcode.layouts.iter().map(|layout| layout_name(*layout).to_string()));
    parts.extend(opcode.shape.map(|shape| shape.to_string()));
    parts.extend(named(&|modifier| !first(modifier) && !fixed(modifier) && !last(modifier)));
    parts.extend(opcode.spaces.iter().map(|space| space.name().to_string()));
    parts.extend(opcode.types.iter().map(|ty| ty.name().to_string()));
    parts.extend(named(&last));
    parts.join(".")
}

fn comes_before_shape(opcode: &Opcode, modifier: Modifier) -> bool {
    opcode.shape.is_none()
        || matches!(modifier, Modifier::Sync | Modifier::Aligned)
        || modifier.group() == Group::Matrix
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Row => "row",
        Layout::Column => "col",
    }
}

/// Where a modifier stands among the others of an opcode.
fn rank(base: Base, modifier: Modifier) -> u8 {
    match (modifier, modifier.group()) {
        (Modifier::Sync, _) if base != Base::Barrier => 1,
        (Modifier::CtaScope, _) if matches!(base, Base::Bar | Base::Barrier) => 0,
        (Modifier::Aligned, _) => 60,
        (Modifier::Mmio | Modifier::ProxyWord, _) => 1,
        (_, Group::BarrierOperation) if base == Base::BarrierCluster => 1,
        (_, Group::Ordering) => 2,
        (_, Group::Scope) => 3,
        (_, Group::BarrierOperation) => 4,
        (Modifier::Nc, _) => 5,
        (_, Group::Comparison) => 9,
        (_, Group::Half) => 10,
        (_, Group::Rounding) => 11,
        (Modifier::CarryOut, _) => 12,
        (Modifier::Popc, _) => 16,
        (_, Group::Operation | Group::VoteMode | Group::ShuffleMode) => 13,
        (_, Group::ShiftDirection) => 14,
        (_, Group::ShiftMode) => 15,
        (Modifier::Ftz, _) => 20,
        (Modifier::NanPropagating, _) => 21,
        (Modifier::XorSign, _) => 22,
        (Modifier::Absolute, _) if base == Base::Redux => 20,
        (Modifier::Absolute, _) => 23,
        (Modifier::Sat, _) => 24,
        (Modifier::Satfinite, _) if base == Base::Cvt => 32,
        (Modifier::Oob, _) => 30,
        (Modifier::Relu, _) => 31,
        (Modifier::Noftz, _) => 33,
        (_, Group::EvictionL1) => 41,
        (Modifier::L2CacheHint, _) => 43,
        (_, Group::Prefetched) => 44,
        _ => 40,
    }
}

/// The operands of one list, or `None` where a fragment has no size.
fn operands(opcode: &Opcode, slots: &[Slot]) -> Option<Vec<FormOperand>> {
    let shown = slots.iter().filter(|slot| slot.only_with.is_none_or(|with| opcode.has(with)));
    shown.map(|slot| operand(opcode, slot)).collect()
}

fn operand(opcode: &Opcode, slot: &Slot) -> Option<FormOperand> {
    let mut parts = match slot.many {
        Many::One => 0,
        Many::Width if opcode.vector == 1 => 0,
        Many::Width => opcode.vector,
        Many::Exactly(count) => count,
        Many::Count(factor) => fragment::matrices(opcode) as u8 * factor,
        Many::Any => 2,
    };
    let nth = |index: u8| opcode.types.get(usize::from(index)).copied();
    let kind = match slot.shown {
        Shown::Nth(index) => FormOperandKind::Value(nth(index)?),
        Shown::Wide => FormOperandKind::Value(widened(nth(0)?)),
        Shown::Fixed(_) if slot.only_with == Some(Modifier::L2CacheHint) => {
            FormOperandKind::CachePolicy
        }
        Shown::Fixed(ty) => FormOperandKind::Value(ty),
        Shown::AddressValue => FormOperandKind::AddressValue,
        Shown::Address => FormOperandKind::Address,
        Shown::Tensor => FormOperandKind::Tensor,
        Shown::Constant => FormOperandKind::Constant,
        Shown::Pack => FormOperandKind::Pack(nth(0)?),
        Shown::Fragment(letter) => {
            let (count, ty) = fragment::of(opcode, letter)?;
            parts = u8::try_from(count).ok()?;
            FormOperandKind::Value(ty)
        }
        Shown::Label | Shown::Targets | Shown::Call => FormOperandKind::Control,
    };
    let (destination, wider) = (slot.destination, slot.wider);
    Some(FormOperand { kind, destination, parts, pair: slot.pair, wider })
}

fn widened(ty: Type) -> Type {
    match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        Type::S32 => Type::S64,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{Base, Form, each_form};
    use crate::opcode::Opcode;

    fn all(base: Base) -> Vec<Form> {
        let mut forms = Vec::new();
        each_form(base, |_| true, |form| forms.push(form));
        forms
    }

    #[test]
    fn every_form_is_spelt_so_that_it_decodes_to_itself() {
        for &base in Base::ALL.iter().filter(|&&base| !matches!(base, Base::Ld | Base::St)) {
            for form in all(base) {
                let again = Opcode::parse(&form.opcode.text);
                assert_eq!(again.as_ref(), Ok(&form.opcode), "{}", form.opcode.text);
            }
        }
    }

    #[test]
    fn an_addition_of_f32_has_its_roundings_with_and_without_flushing_and_saturation() {
        let mut count = 0;
        each_form(Base::Add, |opcode| opcode.types == [crate::types::Type::F32], |_| count += 1);
        // Five roundings, of which one is none, times two, times two.
        assert_eq!(count, 20);
    }

    #[test]
    fn hints_of_caching_stand_alone() {
        let opcodes = all(Base::Ldu).len();
        assert!(opcodes > 30);
        let mut both = 0;
        each_form(
            Base::Red,
            |o| o.modifiers.iter().filter(|&m| super::is_hint(m)).count() > 1,
            |_| both += 1,
        );
        assert_eq!(both, 0);
    }
}
