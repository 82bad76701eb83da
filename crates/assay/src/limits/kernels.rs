//! The kernels of an inventory: each with what its images for several architectures say of it.

use std::collections::BTreeMap;

use assay_image::{Contents, CudaKernel, Entry, HipKernel};
use assay_limits::{Chip, Vendor};

use super::files::Inventory;

/// What one image says of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Facts<'a> {
    Cuda(&'a CudaKernel),
    Hip(&'a HipKernel),
}

/// What the images of a kernel say of it, by their architectures.
type Images<'a> = BTreeMap<&'a str, Facts<'a>>;

/// A kernel of one module.
pub(crate) struct Kernel<'a> {
    /// The file.
    pub(crate) file: &'a str,
    /// The module in the file: the place of its images, without their own numbers.
    pub(crate) module: &'a str,
    pub(crate) name: &'a str,
    /// By the architecture of the image.
    pub(crate) images: Images<'a>,
}

impl<'a> Kernel<'a> {
    /// The image that a chip runs: its own, or for CUDA the newest of the same generation that is
    /// bound to no chip (no suffix), as a driver chooses.
    pub(crate) fn image_for(&self, chip: &Chip) -> Option<(&'a str, Facts<'a>)> {
        let images = self.images.iter().filter(|(_, facts)| match facts {
            Facts::Cuda(_) => chip.vendor() == Vendor::Cuda,
            Facts::Hip(_) => chip.vendor() == Vendor::Hip,
        });
        let suited = images.filter_map(|(architecture, facts)| {
            let rank = suitability(architecture, chip.name())?;
            Some((rank, (*architecture, *facts)))
        });
        suited.max_by_key(|(rank, _)| *rank).map(|(_, image)| image)
    }
}

/// How well an image for one architecture suits a chip; `None` if the chip does not run it.
fn suitability(architecture: &str, chip: &str) -> Option<u32> {
    // Features of an AMD target (`gfx90a:xnack+`) name a mode of the chip.
    let architecture = architecture.split(':').next().unwrap_or(architecture);
    if architecture == chip {
        return Some(u32::MAX - 1);
    }
    let digits = architecture.trim_end_matches(['a', 'f']);
    let (image, chip) = (digits.strip_prefix("sm_")?, chip.strip_prefix("sm_")?);
    let (image, chip): (u32, u32) = (image.parse().ok()?, chip.parse().ok()?);
    let suffix = architecture.strip_prefix(digits).unwrap_or("");
    let same_generation = image / 10 == chip / 10 && image <= chip;
    match suffix {
        "a" => (image == chip).then_some(u32::MAX),
        _ => same_generation.then_some(image),
    }
}

/// Every kernel whose name holds a text, by file, module and name.
pub(crate) fn of<'a>(inventory: &'a Inventory, only: Option<&str>) -> Vec<Kernel<'a>> {
    let mut kernels: BTreeMap<(&str, &str, &str), Vec<Images<'_>>> = BTreeMap::new();
    for file in &inventory.files {
        for entry in &file.entries {
            for (name, architecture, facts) in facts_of(entry) {
                if only.is_none_or(|text| name.contains(text)) {
                    let key = (file.path.as_str(), module_of(&entry.place), name);
                    insert(kernels.entry(key).or_default(), architecture, facts);
                }
            }
        }
    }
    let rows = kernels.into_iter().flat_map(|((file, module, name), rows)| {
        rows.into_iter().map(move |images| Kernel { file, module, name, images })
    });
    rows.collect()
}

/// Adds an image to the first of the kernels of one name that has none of its architecture: two
/// modules may each have a kernel of that name.
fn insert<'a>(rows: &mut Vec<Images<'a>>, architecture: &'a str, facts: Facts<'a>) {
    match rows.iter_mut().find(|row| !row.contains_key(architecture)) {
        Some(row) => {
            row.insert(architecture, facts);
        }
        None => rows.push(BTreeMap::from([(architecture, facts)])),
    }
}

/// Name, architecture and facts of each kernel of an image.
fn facts_of(entry: &Entry) -> Vec<(&str, &str, Facts<'_>)> {
    match &entry.contents {
        Contents::Cuda(image) => {
            let kernels = image.kernels.iter();
            let architecture = image.architecture.as_str();
            kernels
                .map(|kernel| (kernel.name.as_str(), architecture, Facts::Cuda(kernel)))
                .collect()
        }
        Contents::Hip(image) => {
            let kernels = image.kernels.iter();
            let architecture = image.architecture.as_str();
            kernels.map(|kernel| (kernel.name.as_str(), architecture, Facts::Hip(kernel))).collect()
        }
        Contents::Ptx(_) | Contents::Skipped(_) => Vec::new(),
    }
}

/// `.nv_fatbin[2]` of `.nv_fatbin[2][5]`.
fn module_of(place: &str) -> &str {
    place.rfind('[').and_then(|at| place.get(..at)).unwrap_or(place)
}

#[cfg(test)]
mod tests {
    use super::{module_of, suitability};

    #[test]
    fn a_chip_runs_its_own_image_rather_than_an_older_one_of_its_generation() {
        assert!(suitability("sm_86", "sm_86") > suitability("sm_80", "sm_86"));
        assert!(suitability("sm_80", "sm_89").is_some());
        assert!(suitability("sm_90a", "sm_90") > suitability("sm_90", "sm_90"));
        assert!(suitability("gfx90a:xnack+", "gfx90a").is_some());
    }

    #[test]
    fn a_chip_runs_no_image_of_another_generation_or_of_another_chip() {
        let cannot = [
            ("sm_80", "sm_90"),
            ("sm_86", "sm_80"),
            ("sm_100a", "sm_103"),
            ("gfx1100", "gfx1101"),
            ("sm_90", "gfx90a"),
            ("", "sm_90"),
        ];
        for (architecture, chip) in cannot {
            assert_eq!(suitability(architecture, chip), None, "{architecture} on {chip}");
        }
    }

    #[test]
    fn a_module_is_a_place_without_the_number_of_the_image() {
        assert_eq!(module_of(".nv_fatbin[2][5]"), ".nv_fatbin[2]");
        assert_eq!(module_of("[5]"), "");
        assert_eq!(module_of(""), "");
    }
}
