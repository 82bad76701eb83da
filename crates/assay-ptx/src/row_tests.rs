//! Writes random instructions from the rows of the table and reads them back.

use assay_num::random::SplitMix64;

use crate::base::Base;
use crate::fragment;
use crate::modifier::Modifier;
use crate::opcode::Opcode;
use crate::table::{Many, Row, Shown, Slot, table};
use crate::types::{Shape, Type};
use crate::{parse, print, verify};

const REGISTERS: &str = ".reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<9>;\n\
    .reg .b64 %d<9>; .reg .b128 %q<9>; .param .b32 a; t: .branchtargets L;\n";

fn pick<T: Copy>(items: &[T], random: &mut SplitMix64) -> Option<T> {
    if items.is_empty() { None } else { Some(items[random.below(items.len() as u64) as usize]) }
}

/// A random spelling of a row, its free parts shuffled.
fn spelling(row: &Row, random: &mut SplitMix64) -> String {
    let mut parts: Vec<String> = Vec::new();
    for choice in &row.choices {
        let names: Vec<Modifier> = choice.modifiers.iter().collect();
        if choice.required || random.below(3) == 0 {
            parts.extend(pick(&names, random).map(|name| name.name().to_string()));
        }
    }
    if !row.widths.is_empty() && random.below(2) == 0 {
        parts.extend(pick(&row.widths, random).map(|width| format!("v{width}")));
    }
    parts.extend(pick(&row.shapes, random).map(|rule| {
        let wide = [8, 64, 128, 256].map(|n| Shape { n, ..rule.example() });
        let fitting: Vec<Shape> = wide.into_iter().filter(|&shape| rule.allows(shape)).collect();
        pick(&fitting, random).unwrap_or(rule.example()).to_string()
    }));
    random.shuffle(&mut parts);
    // Types, spaces and layouts keep their own order, wherever they stand among the rest.
    let mut ordered: Vec<String> = Vec::new();
    for slot in &row.spaces {
        if !slot.optional || random.below(2) == 0 {
            ordered.extend(pick(&slot.allowed, random).map(|space| space.name().to_string()));
        }
    }
    ordered.extend((0..row.layouts).map(|index| ["row", "col"][index].to_string()));
    for set in &row.types {
        let types: Vec<Type> = Type::ALL.iter().copied().filter(|&ty| set.has(ty)).collect();
        ordered.extend(pick(&types, random).map(|ty| ty.name().to_string()));
    }
    let mut at = 0;
    for part in ordered {
        at += random.below((parts.len() - at) as u64 + 1) as usize;
        parts.insert(at, part);
        at += 1;
    }
    parts.insert(0, row.base.name().to_string());
    parts.join(".")
}

fn register(ty: Type, random: &mut SplitMix64) -> String {
    let bank = match (ty, ty.bits()) {
        (Type::Pred, _) => 'p',
        (_, 0..=8) => 'c',
        (_, 9..=16) => 'h',
        (_, 17..=32) => 'r',
        (_, 33..=64) => 'd',
        _ => 'q',
    };
    format!("%{bank}{}", random.below(9))
}

fn vector(ty: Type, count: usize, random: &mut SplitMix64) -> String {
    let parts: Vec<String> = (0..count).map(|_| register(ty, random)).collect();
    format!("{{{}}}", parts.join(", "))
}

fn typed(slot: &Slot, ty: Type, opcode: &Opcode, random: &mut SplitMix64) -> String {
    match slot.many {
        Many::Width if opcode.vector > 1 => vector(ty, usize::from(opcode.vector), random),
        Many::Exactly(count) => vector(ty, usize::from(count), random),
        Many::Count(factor) => vector(ty, fragment::matrices(opcode) * usize::from(factor), random),
        Many::Any => vector(ty, 2, random),
        _ if slot.only_pair => format!("{}|%p1", register(ty, random)),
        _ => register(ty, random),
    }
}

fn operand(slot: &Slot, opcode: &Opcode, random: &mut SplitMix64) -> String {
    let ty = |index: u8| opcode.types.get(usize::from(index)).copied().unwrap_or(Type::B32);
    match slot.shown {
        Shown::Address => "[%d1+16]".to_string(),
        Shown::Tensor => "[%d1, {%r1, %r2}]".to_string(),
        Shown::Constant => match opcode.base {
            Base::WgmmaMmaAsync => "1".to_string(),
            Base::Setmaxnreg => "32".to_string(),
            _ => "16".to_string(),
        },
        Shown::AddressValue => "%d2".to_string(),
        Shown::Label => "L".to_string(),
        Shown::Targets => "t".to_string(),
        Shown::Call => "callee, (a)".to_string(),
        Shown::Pack => vector(if ty(0).bits() == 16 { Type::B8 } else { half(ty(0)) }, 2, random),
        Shown::Fragment(letter) => {
            let (count, ty) = fragment::of(opcode, letter).unwrap_or((1, Type::B32));
            vector(ty, count, random)
        }
        Shown::Nth(index) => typed(slot, ty(index), opcode, random),
        Shown::Fixed(ty) => typed(slot, ty, opcode, random),
        Shown::Wide => {
            let wide = if ty(0).bits() == 16 { Type::B32 } else { Type::B64 };
            typed(slot, wide, opcode, random)
        }
    }
}

fn half(ty: Type) -> Type {
    match ty.bits() {
        32 => Type::B16,
        64 => Type::B32,
        _ => Type::B64,
    }
}

fn statement(form: &[Slot], opcode: &Opcode, random: &mut SplitMix64) -> String {
    let slots = form.iter().filter(|slot| slot.only_with.is_none_or(|with| opcode.has(with)));
    let operands: Vec<String> = slots.map(|slot| operand(slot, opcode, random)).collect();
    format!("{} {};\n", opcode.text, operands.join(", "))
}

fn module(statements: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.func callee(.param .b32 x) {{ ret; }}\n\
         .entry k(.param .u64 p)\n{{ {REGISTERS}L:\n{statements}}}\n"
    )
}

/// Types of 256 bits and more at once do not exist, whatever the table says.
fn too_wide(opcode: &Opcode) -> bool {
    u32::from(opcode.vector) * opcode.ty().map_or(0, Type::bits) > 256
}

#[test]
fn every_row_reads_what_it_describes_in_any_order() {
    let mut random = SplitMix64::new(2026);
    let rows = Base::ALL.iter().flat_map(|&base| table().rows(base));
    for row in rows {
        let mut statements = String::new();
        for form in &row.forms {
            for _ in 0..4 {
                let text = spelling(row, &mut random);
                let opcode = match Opcode::parse(&text) {
                    Ok(opcode) => opcode,
                    Err(error) => panic!("{error}\nfrom the row {}", row.text),
                };
                if !too_wide(&opcode) {
                    statements.push_str(&statement(form, &opcode, &mut random));
                }
            }
        }
        let text = module(&statements);
        let parsed = parse(&text).unwrap_or_else(|error| panic!("{error}\nfrom {}", row.text));
        assert_eq!(verify(&parsed), Ok(()));
        let again = parse(&print(&parsed)).unwrap_or_else(|error| panic!("{error}"));
        assert!(again.without_positions() == parsed.without_positions(), "{}", row.text);
    }
}

#[test]
fn a_modifier_that_no_row_of_the_base_has_is_always_rejected() {
    let mut random = SplitMix64::new(99);
    for &base in Base::ALL {
        let rows = table().rows(base);
        let strangers = Modifier::ALL.iter().copied();
        let strangers: Vec<Modifier> =
            strangers.filter(|&m| !rows.iter().any(|row| row.allowed.has(m))).collect();
        for row in rows {
            let Some(stranger) = pick(&strangers, &mut random) else { continue };
            // Behind another part, so that it cannot complete the name of another base.
            let text = format!("{}.{}", spelling(row, &mut random), stranger.name());
            let known = Opcode::parse(&text);
            assert!(known.is_err_and(|e| !e.message.is_empty()), "{text} is accepted");
        }
    }
}
