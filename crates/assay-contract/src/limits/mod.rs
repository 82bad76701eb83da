//! What gate 5 knows before any kernel runs: the chips, what compilers made of a kernel for each,
//! and the launches that the kernel is served at.

mod compiled;
mod declared;
mod launches;

use std::sync::OnceLock;

use assay_limits::{Chip, Chips, Vendor};

pub use compiled::{Build, Compiled, Facts, ImageFacts, Images, NamedImage, RecordedModule};
pub(crate) use declared::declared;
pub(crate) use launches::{Served, served_launches};

/// The chips that come with Assay, read once.
pub fn chips() -> &'static Chips {
    static CHIPS: OnceLock<Chips> = OnceLock::new();
    CHIPS.get_or_init(Chips::built_in)
}

/// The chips of a name, or all of one vendor: `sm_90`, `cuda`. `None` if there is no such chip.
pub fn chips_named(word: &str) -> Option<Vec<&'static str>> {
    let vendor = match word {
        "cuda" => Some(Vendor::Cuda),
        "hip" => Some(Vendor::Hip),
        "metal" => Some(Vendor::Metal),
        _ => None,
    };
    match vendor {
        Some(vendor) => {
            let of_vendor = chips().all().iter().filter(|chip| chip.vendor() == vendor);
            Some(of_vendor.map(Chip::name).collect())
        }
        None => chips().chip(word).map(|chip| vec![chip.name()]),
    }
}
