//! No input panics, and what is accepted verifies and prints back to itself.

mod common;

use std::sync::OnceLock;

use assay_num::random::SplitMix64;
use assay_ptx::control_flow::Graph;
use assay_ptx::liveness::{Allocation, Liveness};
use assay_ptx::{parse, print, verify};
use common::{files, read};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

/// Texts to mutate: the corpus, cut into pieces of one function each with the head in front.
fn pieces() -> &'static [String] {
    static PIECES: OnceLock<Vec<String>> = OnceLock::new();
    PIECES.get_or_init(|| files().iter().flat_map(|path| cut(&read(path))).collect())
}

const PIECE_LIMIT: usize = 12_000;

fn cut(text: &str) -> Vec<String> {
    let Some(first) = text.find("\n{") else { return Vec::new() };
    let start = text[..first].rfind("\n.visible").unwrap_or(0);
    let (head, rest) = text.split_at(start);
    let parts = rest.split("\n}\n").filter(|part| part.len() < PIECE_LIMIT);
    let whole: Vec<String> = parts.map(|part| format!("{head}{part}\n}}\n")).collect();
    whole.into_iter().filter(|piece| piece.len() < PIECE_LIMIT).take(4).collect()
}

/// Everything that must hold for any text.
fn examine(text: &str) -> bool {
    let module = match parse(text) {
        Ok(module) => module,
        Err(error) => {
            let lines = text.lines().count().max(1) as u32;
            assert!((1..=lines + 1).contains(&error.line), "{error}\nin {text:?}");
            assert!(error.column >= 1 && !error.message.is_empty());
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    if let Err(error) = verify(&module) {
        panic!("{error}\nin {text}");
    }
    for function in &module.functions {
        let graph = Graph::of(function);
        assert!(graph.reverse_postorder().len() <= graph.blocks.len());
        let liveness = Liveness::of(function, &graph);
        let allocation = Allocation::of(function, &liveness);
        assert_eq!(allocation.slots.len(), function.registers.len());
    }
    let printed = print(&module);
    match parse(&printed) {
        Ok(again) => {
            assert!(again.without_positions() == module.without_positions(), "{text}\n{printed}");
        }
        Err(error) => panic!("{error}\nprinted from {text}\n{printed}"),
    }
    true
}

fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = 0;
    let kind = |c: char| (c.is_alphanumeric() || "_$%.:".contains(c), c);
    let mut last: Option<(bool, char)> = None;
    for (index, c) in text.char_indices() {
        let this = kind(c);
        let joined = last.is_some_and(|last| last.0 && this.0);
        if !joined && index > start {
            tokens.push(&text[start..index]);
            start = index;
        }
        last = Some(this);
    }
    tokens.push(&text[start..]);
    tokens
}

/// Deletes, repeats, swaps or replaces a few tokens; replacements come from another text.
fn mutate(text: &str, donor: &str, random: &mut SplitMix64) -> String {
    let mut parts: Vec<&str> = tokens(text);
    let donors = tokens(donor);
    for _ in 0..=random.below(3) {
        let at = random.below(parts.len() as u64) as usize;
        let other = random.below(parts.len() as u64) as usize;
        match random.below(6) {
            0 => drop(parts.remove(at)),
            1 => parts.insert(at, parts[at]),
            2 => parts.swap(at, other),
            3 => parts[at] = parts[other],
            4 => parts[at] = donors[random.below(donors.len() as u64) as usize],
            _ => parts.truncate(at.max(1)),
        }
        if parts.is_empty() {
            break;
        }
    }
    parts.concat()
}

#[test]
fn mutated_compiler_output_never_panics() {
    let pieces = pieces();
    assert!(pieces.len() > 40, "only {} pieces", pieces.len());
    let mut random = SplitMix64::new(0x9e37_79b9);
    let mut accepted = 0;
    for round in 0..3000 {
        let text = &pieces[random.below(pieces.len() as u64) as usize];
        let donor = &pieces[random.below(pieces.len() as u64) as usize];
        let mutant = mutate(text, donor, &mut random.fork(&format!("round {round}")));
        accepted += usize::from(examine(&mutant));
    }
    // The control: mutation must leave enough texts whole to exercise the later stages, and
    // break enough to exercise the errors.
    assert!((200..2800).contains(&accepted), "{accepted} of 3000 mutants are accepted");
}

#[test]
fn truncated_compiler_output_never_panics() {
    let mut random = SplitMix64::new(7);
    for piece in pieces() {
        for _ in 0..8 {
            let end = random.below(piece.len() as u64) as usize;
            examine(piece.get(..end).unwrap_or(""));
        }
    }
}

#[test]
fn altered_bytes_never_panic() {
    let mut random = SplitMix64::new(11);
    for piece in pieces() {
        for _ in 0..4 {
            let mut bytes = piece.clone().into_bytes();
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
            examine(&String::from_utf8_lossy(&bytes));
        }
    }
}

fn check_all(cases: u32, strategy: impl Strategy<Value = String>) {
    let seed = RngSeed::Fixed(42);
    let fixed = ProptestConfig { rng_seed: seed, failure_persistence: None, ..<_>::default() };
    let config = ProptestConfig { cases, ..fixed };
    let outcome = TestRunner::new(config).run(&strategy, |text| {
        examine(&text);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn arbitrary_text_never_panics() {
    check_all(400, any::<String>());
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    check_all(400, bytes.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
}

/// Pieces of statements.
const WORDS: &[&str] = &[
    "add",
    ".s32",
    ".f32",
    " ",
    "%r1",
    "%p1",
    "|",
    ",",
    ";",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "+",
    "-",
    "4",
    "0f3F800000",
    "@",
    "!",
    "_",
    "L",
    ":",
    "mov",
    ".b64",
    ".v4",
    "ld",
    ".global",
    ".param",
    ".reg",
    ".b32",
    "<",
    ">",
    "=",
    "call",
    "bra",
    "ret",
    ".align",
    "%tid.x",
    ".pred",
    "setp",
    ".eq",
    "0x",
    "1e",
    "~",
    "\"",
    "/*",
    "//",
    "\n",
    ".branchtargets",
    "brx.idx",
];

#[test]
fn arbitrary_statements_never_panic() {
    let head = ".version 8.7\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p)\n{\n";
    let registers = ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<4>;\n";
    let word = proptest::sample::select(WORDS);
    let statements = proptest::collection::vec(word, 0..40).prop_map(|words| words.concat());
    check_all(1500, statements.prop_map(move |body| format!("{head}{registers}{body}\nret;\n}}")));
}

#[test]
fn deep_nesting_and_huge_numbers_are_errors_not_crashes() {
    let wrap = |body: &str| {
        format!(".version 8.0\n.target sm_80\n.entry k()\n{{ .reg .b32 %r<4294967295>; {body} }}")
    };
    let deep = 100_000;
    assert!(!examine(&wrap(&"{".repeat(deep))));
    assert!(!examine(&wrap(&format!("mov.b32 %r1, {}1;", "(".repeat(deep)))));
    assert!(!examine(&wrap(&format!("mov.b32 %r1, {}1;", "-".repeat(deep)))));
    assert!(!examine(&wrap(&format!("mov.b32 %r1, 1{};", "/0".repeat(3)))));
    assert!(!examine(&wrap("mov.b32 %r4294967295, 1;")));
    assert!(examine(&wrap("mov.b32 %r4294967294, 1;")));
    let global = |text: &str| format!(".version 8.0\n.target sm_80\n.global {text};");
    assert!(!examine(&global(&format!(".b8 x{} = 1", "[2]".repeat(deep)))));
    assert!(!examine(&global(&format!(".b8 x[2][2] = {}", "{".repeat(deep)))));
    assert!(!examine(&global(".b64 x[9][1000000000000][9] = {{1},{2}}")));
    assert!(!examine(&global(".b64 x[18446744073709551615][18446744073709551615]")));
}
