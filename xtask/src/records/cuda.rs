//! The releases of nvcc, and what each makes of the suite.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_image::{Contents, CudaKernel, Release};
use assay_limits::{Chip, Chips, Digest, RecordSet};

use super::in_parallel;
use super::listing::{self, disagreements};
use super::module::{Module, suite};
use crate::toolchain;

/// One release of nvcc.
pub(super) struct Nvcc {
    pub(super) release: Release,
    pub(super) path: PathBuf,
    chips: Vec<String>,
    options: Vec<String>,
    /// Where the images are kept, so that what has not changed is not compiled again.
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

/// The options of every compile.
///
/// The suite ships PTX for the oldest architecture, which a driver compiles for the chip at hand:
/// that compile is recorded, and not one whose front end knows the chip.
fn options(chips: &[String]) -> Vec<String> {
    let code = format!("-gencode=arch=compute_80,code=[{}]", chips.join(","));
    ["-O3", "-std=c++17", "-fatbin", &code].map(str::to_owned).to_vec()
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

    /// Compiles a module, unless it was compiled from the same texts already. The compiler gets a
    /// relative path, since names of internal symbols may depend on it.
    fn compile(&self, module: &Module) -> Result<Compiled, String> {
        let path = self.images.join(format!("{}.fatbin", module.name));
        let cannot = |error: std::io::Error| format!("{}: {error}", path.display());
        let stamp = path.with_extension("stamp");
        let wanted = module.digest(&self.options).to_string();
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            let log = fs::read_to_string(path.with_extension("log")).map_err(cannot)?;
            let image = fs::read(&path).map_err(cannot)?;
            return Ok(Compiled { path, image, log });
        }
        fs::create_dir_all(path.parent().unwrap_or(&self.images)).map_err(cannot)?;
        let mut command = Command::new(&self.path);
        command.current_dir(suite()).args(&self.options).args(["-Xptxas", "-v", "-o"]);
        let output = command.arg(&path).arg(&module.source).output().map_err(cannot)?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(format!("nvcc {} refuses it: {log}", self.release));
        }
        fs::write(path.with_extension("log"), &log).map_err(cannot)?;
        fs::write(&stamp, wanted).map_err(cannot)?;
        let image = fs::read(&path).map_err(cannot)?;
        Ok(Compiled { path, image, log })
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
