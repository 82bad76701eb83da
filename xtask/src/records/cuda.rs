//! The releases of nvcc, and what each makes of the suite.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_image::{Contents, CudaKernel, Release};
use assay_limits::{Chip, Chips, Digest, RecordSet, SourceText};

use super::in_parallel;
use super::listing::{self, disagreements};
use super::module::{Module, suite};
use crate::kernels::{OPTIONS, without_banner};
use crate::toolchain;

/// One release of nvcc.
pub(super) struct Nvcc {
    pub(super) release: Release,
    pub(super) path: PathBuf,
    chips: Vec<String>,
    options: Vec<String>,
    /// Where the images are kept, so that PTX that has not changed is not compiled again.
    images: PathBuf,
}

/// A compiled module: the fatbin and what `ptxas -v` said.
struct Compiled {
    path: PathBuf,
    image: Vec<u8>,
    log: String,
}

/// Every NVIDIA chip that there are limits for.
fn chips() -> Vec<String> {
    let chips = Chips::built_in();
    let cuda = chips.all().iter().filter(|chip| matches!(chip, Chip::Cuda(_)));
    cuda.map(|chip| chip.name().to_owned()).collect()
}

/// The options of every compile: those of the PTX that the suite ships, then those by which it is
/// compiled for each chip.
///
/// The suite ships PTX for the oldest architecture, which a driver compiles for the chip at hand:
/// that compile is recorded, and not one whose front end knows the chip.
fn options(chips: &[String]) -> Vec<String> {
    let mut options = OPTIONS.map(str::to_owned).to_vec();
    options.extend(assembly(chips));
    options
}

/// How PTX is compiled for every chip at once.
fn assembly(chips: &[String]) -> [String; 2] {
    let code = format!("-gencode=arch=compute_80,code=[{}]", chips.join(","));
    ["-fatbin".to_owned(), code]
}

/// The digest of each module as it would be compiled today.
pub(super) fn digests(modules: &[Module]) -> BTreeMap<String, Digest> {
    let options = options(&chips());
    modules.iter().map(|module| (module.name.clone(), module.digest(&options))).collect()
}

impl Nvcc {
    /// Every release that is installed, oldest first.
    pub(super) fn installed() -> Result<Vec<Nvcc>, String> {
        let (chips, target) = (chips(), toolchain::target());
        toolchain::nvccs()
            .into_iter()
            .map(|(name, path)| {
                let release: Release = name.parse().map_err(|error| format!("{error}"))?;
                let images = target.join("records").join(name);
                let (chips, options) = (chips.clone(), options(&chips));
                Ok(Nvcc { release, path, chips, options, images })
            })
            .collect()
    }

    /// Compiles every module and reads the images; every problem with any of them.
    pub(super) fn derive(&self, modules: &[Module]) -> Result<RecordSet<CudaKernel>, Vec<String>> {
        let mut set = RecordSet::new(self.release, self.options.clone());
        let mut problems = Vec::new();
        let derived = in_parallel(modules, |module| self.derive_one(module));
        for (module, kernels) in modules.iter().zip(derived) {
            set.sources.insert(module.name.clone(), module.digest(&self.options));
            match kernels {
                Ok(kernels) => {
                    for (chip, kernel) in kernels {
                        set.insert(&module.name, &chip, kernel);
                    }
                }
                Err(found) => problems
                    .extend(found.into_iter().map(|problem| format!("{}: {problem}", module.name))),
            }
        }
        if problems.is_empty() { Ok(set) } else { Err(problems) }
    }

    /// The kernels of one module for each chip, confirmed by the compiler's own tools.
    fn derive_one(&self, module: &Module) -> Result<Vec<(String, CudaKernel)>, Vec<String>> {
        let compiled = self.compile(module).map_err(|problem| vec![problem])?;
        let kernels = self.read(&compiled.image).map_err(|problem| vec![problem])?;
        let mut problems = disagreements("ptxas -v", &listing::ptxas(&compiled.log), &kernels);
        if let Some(tool) = toolchain::cuobjdump() {
            let text = dump(&tool, &compiled.path).map_err(|problem| vec![problem])?;
            problems.extend(disagreements("cuobjdump", &listing::cuobjdump(&text), &kernels));
        }
        if problems.is_empty() { Ok(kernels) } else { Err(problems) }
    }

    /// The kernels in a fatbin, each with its chip.
    fn read(&self, image: &[u8]) -> Result<Vec<(String, CudaKernel)>, String> {
        let mut kernels = Vec::new();
        let mut chips = Vec::new();
        for entry in assay_image::read(image).map_err(|error| error.to_string())? {
            let Contents::Cuda(image) = entry.contents else { continue };
            if image.release != Some(self.release) {
                let named = image.release.map_or("no release".to_owned(), |r| r.to_string());
                return Err(format!("{} names {named}", entry.place));
            }
            let chip = image.architecture;
            kernels.extend(image.kernels.into_iter().map(|kernel| (chip.clone(), kernel)));
            chips.push(chip);
        }
        if chips != self.chips {
            return Err(format!("images are for {}", chips.join(", ")));
        }
        Ok(kernels)
    }

    /// Compiles a module to PTX, and that for every chip unless it was before.
    fn compile(&self, module: &Module) -> Result<Compiled, String> {
        let path = self.images.join(format!("{}.fatbin", module.name));
        let cannot = |error: io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(&self.images)).map_err(cannot)?;
        let ptx = path.with_extension("ptx");
        // The compiler gets a relative path, since names of internal symbols may depend on it.
        self.run(Command::new(&self.path).args(OPTIONS).arg("-o").args([&ptx, &module.source]))?;
        let text = fs::read_to_string(&ptx).map_err(cannot)?;
        let text = SourceText { path: String::new(), text: without_banner(&text).into() };
        let wanted = Digest::of(&[text], &self.options).to_string();
        let (stamp, log) = (path.with_extension("stamp"), path.with_extension("log"));
        if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            let mut command = Command::new(&self.path);
            command.args(assembly(&self.chips)).args(["-Xptxas", "-v", "-o"]);
            let said = self.run(command.args([&path, &ptx]))?;
            fs::write(&log, said).map_err(cannot)?;
            fs::write(&stamp, wanted).map_err(cannot)?;
        }
        let log = fs::read_to_string(log).map_err(cannot)?;
        let image = fs::read(&path).map_err(cannot)?;
        Ok(Compiled { path, image, log })
    }

    /// Runs nvcc among the sources; what it says.
    fn run(&self, command: &mut Command) -> Result<String, String> {
        let output = command.current_dir(suite()).output();
        let output = output.map_err(|error| format!("{}: {error}", self.path.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        Err(format!("nvcc {} refuses it: {said}", self.release))
    }
}

/// What `cuobjdump` says of an image.
fn dump(tool: &Path, image: &Path) -> Result<String, String> {
    let output = Command::new(tool).arg("-res-usage").arg(image).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", tool.display()))?;
    if !output.status.success() {
        return Err(format!("cuobjdump: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
