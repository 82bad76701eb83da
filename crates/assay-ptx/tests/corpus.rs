//! Real compiler output parses, and prints back to the same module.

use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = std::fs::read_dir(folder).expect("the corpus is in the repository");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "ptx")).collect();
    files.sort();
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a corpus file is text")
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

fn parse(path: &Path) -> assay_ptx::Module {
    match assay_ptx::parse(&read(path)) {
        Ok(module) => module,
        Err(error) => panic!("{}:{error}", path.display()),
    }
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
