//! The dossiers that this version was released with.

use assay_record::{Dossier, DossierError};

/// Name and text of every file under `records/dossiers/`.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/dossiers.rs"));

/// The pinned dossiers by name, such as `h200`.
///
/// # Errors
/// Where a file in the program does not read, which a test rules out.
pub fn pinned_dossiers() -> Result<Vec<(&'static str, Dossier)>, DossierError> {
    FILES.iter().map(|&(name, text)| Ok((name, Dossier::from_json(text)?))).collect()
}

/// The pinned dossier of the device that `dossier` is of, by its name and size.
pub fn pinned_for(dossier: &Dossier) -> Option<(&'static str, Dossier)> {
    let pinned = pinned_dossiers().ok()?;
    pinned.into_iter().find(|(_, pinned)| {
        pinned.device.name == dossier.device.name
            && pinned.device.multiprocessors == dossier.device.multiprocessors
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certify::{Evidence, certify};

    #[test]
    fn every_pinned_dossier_reads_and_satisfies_the_invariants() {
        for (name, dossier) in pinned_dossiers().expect("dossiers that read") {
            for result in certify(&dossier, &Evidence::default()) {
                assert_ne!(
                    result.standing,
                    assay_record::InvariantStanding::Broken,
                    "{name}: {result:?}"
                );
                assert!(result.control.red, "{name}: {result:?}");
            }
            assert!(pinned_for(&dossier).is_some());
        }
    }
}
