//! Compiles one source with one fault, and makes sure that the fault is in it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::plan::Build;
use crate::kernels::{OPTIONS, without_banner};
use crate::sources::texts;

/// How a file came to be there.
#[derive(Debug, PartialEq)]
pub(super) enum Made {
    /// It was built before from the same text.
    Kept,
    /// It was built now.
    Built,
}

/// A compiler with the folders that it reads and writes.
pub(super) struct Builder {
    nvcc: PathBuf,
    /// The compiler's own words on what it is.
    version: String,
    /// The sources.
    suite: PathBuf,
    /// The builds.
    pub(super) folder: PathBuf,
}

impl Builder {
    pub(super) fn new(nvcc: PathBuf, suite: PathBuf, folder: PathBuf) -> Builder {
        let output = Command::new(&nvcc).arg("--version").output();
        let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        Builder { nvcc, version: version.unwrap_or_default(), suite, folder }
    }

    /// Makes one build and checks that the source tests its define, and that the code of every
    /// fault's kernel is another than the correct one's.
    pub(super) fn make(&self, build: &Build) -> Result<Made, String> {
        let texts = texts(&self.suite, &build.source)?;
        let test = format!("fault(\"{}\")", build.define);
        if !texts.iter().any(|(_, text)| text.contains(&test)) {
            let source = build.source.display();
            return Err(format!("nothing in {source} or what it includes tests {test}"));
        }
        let correct = build.source.with_extension("ptx");
        self.compile(&build.source, None, &correct, &texts)?;
        let made = self.compile(&build.source, Some(&build.define), &build.path(), &texts)?;
        let (correct, faulty) = (self.read(&correct)?, self.read(&build.path())?);
        for (fault, symbols) in &build.faults {
            if code_of(&correct, symbols) == code_of(&faulty, symbols) {
                return Err(format!("{fault}: the define changes nothing in this kernel's code"));
            }
        }
        Ok(made)
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        let path = self.folder.join(path);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Compiles to a file below the folder, unless it was made from the same text already. The
    /// compiler gets a relative path, since names of internal symbols may depend on it.
    fn compile(
        &self,
        source: &Path,
        define: Option<&str>,
        to: &Path,
        texts: &[(PathBuf, String)],
    ) -> Result<Made, String> {
        let to = self.folder.join(to);
        let stamp = to.with_extension("stamp");
        let mut hasher = DefaultHasher::new();
        (texts, define, OPTIONS, &self.version).hash(&mut hasher);
        let wanted = format!("{:016x}\n", hasher.finish());
        if to.exists() && fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(Made::Kept);
        }
        let cannot = |error: std::io::Error| format!("{}: {error}", to.display());
        fs::create_dir_all(to.parent().unwrap_or(&self.folder)).map_err(cannot)?;
        // Beside its place first: several builds need the correct one at the same time.
        let thread = format!("{:?}", std::thread::current().id());
        let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
        let fresh = to.with_extension(format!("{}-{thread}.new", std::process::id()));
        let mut command = Command::new(&self.nvcc);
        command.current_dir(&self.suite).args(OPTIONS);
        command.args(define.map(|define| format!("-DASSAY_FAULT=\"{define}\"")));
        let output = command.arg("-o").arg(&fresh).arg(source).output().map_err(cannot)?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        fs::rename(&fresh, &to).map_err(cannot)?;
        fs::write(&stamp, wanted).map_err(cannot)?;
        Ok(Made::Built)
    }
}

/// PTX without the entries that are none of `symbols`: a fault in another kernel of the same source
/// is none of theirs. The banner names the compiler's build and is left out too.
fn code_of(ptx: &str, symbols: &[String]) -> String {
    let (mut code, mut skipping) = (String::new(), false);
    for line in without_banner(ptx).lines() {
        if let Some((_, rest)) = line.split_once(".entry ") {
            let name = rest.split(['(', ' ']).next().unwrap_or_default();
            skipping = !symbols.iter().any(|symbol| symbol == name);
        }
        if !skipping {
            code.push_str(line);
            code.push('\n');
        }
        // The compiler writes an entry's last brace at the start of a line.
        skipping &= line != "}";
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "// banner\n.version 9.0\n.visible .entry a(\n)\n{\n\tadd;\n\t{\n\t}\n}\n\
                       .visible .entry b(\n)\n{\n\tmul;\n}\n.shared x;\n";

    #[test]
    fn a_change_in_another_kernel_is_none_of_this_one() {
        let symbols = |name: &str| vec![name.to_owned()];
        let other = PTX.replace("mul", "sub");
        assert_eq!(code_of(PTX, &symbols("a")), code_of(&other, &symbols("a")));
        assert_ne!(code_of(PTX, &symbols("b")), code_of(&other, &symbols("b")));
        let shared = PTX.replace(".shared x", ".shared y");
        assert_ne!(code_of(PTX, &symbols("a")), code_of(&shared, &symbols("a")));
    }
}
