//! Which opcodes of real compiler output the emulator does not run.

mod common;

use std::path::PathBuf;

use assay_emulator::Program;

fn sources() -> Vec<(String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["kernels/cuda", "kernels/cuda/controls", "crates/assay-ptx/tests/corpus"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "ptx") {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// What the emulator leaves to a GPU, by words of the opcode.
const LEFT_OUT: &[&str] = &["cp.async.bulk", "wgmma", "wmma"];

#[test]
fn only_warp_tensor_cores_and_bulk_copies_are_unsupported() {
    let mut kernels = 0;
    let mut left_out = 0;
    for (name, source) in sources() {
        let module = assay_ptx::parse(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
        let program = Program::compile(&module).unwrap();
        for kernel in program.kernels() {
            kernels += 1;
            if let Some((opcode, line)) = program.unsupported(kernel) {
                left_out += 1;
                let expected = LEFT_OUT.iter().any(|word| opcode.contains(word));
                assert!(expected, "{name}:{line}: {opcode} of {kernel} is not supported");
            }
        }
    }
    assert!(kernels > 60 && left_out < kernels / 4, "{left_out} of {kernels} kernels left out");
}
