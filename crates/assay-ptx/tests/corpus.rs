//! Real compiler output parses, verifies, and prints back to the same module.

mod common;

use std::collections::BTreeMap;

use std::path::Path;

use common::{files, read};

/// The first words of all opcodes that a census of compiler output found.
const CENSUS: &str = "abs activemask add addc and atom bar barrier bfe bfi bfind bmsk bra brev call
    clz copysign cos cp createpolicy cvt cvta div dp4a elect ex2 fence fma fns ld ldmatrix lg2 lop3
    mad madc mapa match max mbarrier membar min mma mov mul nanosleep neg not or popc prmt rcp redux
    rem ret rsqrt sad selp set setp shf shfl shl shr sin sqrt st stmatrix sub subc tanh tensormap
    trap vote wgmma wmma xor";

fn parse(path: &Path) -> assay_ptx::Module {
    match assay_ptx::parse(&read(path)) {
        Ok(module) => module,
        Err(error) => panic!("{}:{error}", path.display()),
    }
}

#[test]
fn every_file_of_the_corpus_parses() {
    let problems: Vec<String> = files()
        .iter()
        .filter_map(|path| {
            let error = assay_ptx::parse(&read(path)).err()?;
            Some(format!("{}:{error}", path.display()))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn every_file_of_the_corpus_verifies() {
    for path in files() {
        if let Err(error) = assay_ptx::verify(&parse(&path)) {
            panic!("{}: {error}", path.display());
        }
    }
}

#[test]
fn every_file_prints_back_to_the_same_module() {
    for path in files() {
        let module = parse(&path);
        let text = assay_ptx::print(&module);
        let again = match assay_ptx::parse(&text) {
            Ok(again) => again,
            Err(error) => panic!("{} printed: {error}", path.display()),
        };
        let (module, again) = (module.without_positions(), again.without_positions());
        assert!(module == again, "{} changes when printed", path.display());
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the census is for people to read")]
fn the_corpus_has_every_opcode_of_the_census() {
    let mut bases: BTreeMap<&str, usize> = BTreeMap::new();
    let mut opcodes: BTreeMap<String, usize> = BTreeMap::new();
    for path in files() {
        for function in &parse(&path).functions {
            for instruction in &function.body {
                *bases.entry(instruction.opcode.base.name()).or_default() += 1;
                *opcodes.entry(instruction.opcode.text.clone()).or_default() += 1;
            }
        }
    }
    let instructions: usize = opcodes.values().sum();
    println!("{instructions} instructions");
    println!("{} base opcodes: {bases:?}", bases.len());
    println!("{} full opcodes: {opcodes:?}", opcodes.len());
    let words: Vec<&str> = bases.keys().filter_map(|name| name.split('.').next()).collect();
    let missing: Vec<&str> = CENSUS.split_whitespace().filter(|w| !words.contains(w)).collect();
    assert!(missing.is_empty(), "no file of the corpus has {missing:?}");
}
