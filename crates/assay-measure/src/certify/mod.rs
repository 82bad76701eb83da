//! Certification: invariants that hold of every working device, whatever its maker's paper says.
//!
//! Each comes with a control: the same dossier doctored so that the invariant must break. A control
//! that is not seen broken says that the invariant proves nothing, and fails the certificate.

mod figures;
mod invariants;
mod model;
mod tensor;

use assay_record::{Dossier, Entry, InvariantControl, InvariantResult, InvariantStanding};

use figures::Missing;

pub use model::model;

/// What was measured beside the dossier.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Evidence {
    /// The rate of a large fp16 matrix product of a library, in FLOP/s, and which that was.
    pub gemm: Option<(f64, String)>,
    /// The latencies of a second run of the chases.
    pub chases_again: Vec<Entry>,
}

/// One invariant.
struct Invariant {
    name: &'static str,
    claim: &'static str,
    judge: fn(&Dossier, &Evidence) -> Result<Finding, Missing>,
    /// What [`Invariant::doctor`] changes, in words.
    doctored: &'static str,
    doctor: fn(&mut Dossier, &mut Evidence),
}

/// What the figures say.
struct Finding {
    holds: bool,
    said: String,
}

/// Holds a dossier against all invariants, and each invariant against its control.
pub fn certify(dossier: &Dossier, evidence: &Evidence) -> Vec<InvariantResult> {
    invariants::all().map(|invariant| judged(invariant, dossier, evidence)).collect()
}

fn judged(invariant: &Invariant, dossier: &Dossier, evidence: &Evidence) -> InvariantResult {
    let found = (invariant.judge)(dossier, evidence);
    // A figure that is not there cannot be doctored; the model's are always there.
    let control = match &found {
        Ok(_) => controlled(invariant, dossier.clone(), evidence.clone()),
        Err(_) => controlled(invariant, model(), model::evidence()),
    };
    let (standing, found) = match found {
        Ok(Finding { holds: true, said }) => (InvariantStanding::Holds, said),
        Ok(Finding { holds: false, said }) => (InvariantStanding::Broken, said),
        Err(missing) if missing.failed => (InvariantStanding::Unproven, missing.said),
        Err(missing) => (InvariantStanding::Inapplicable, missing.said),
    };
    InvariantResult {
        name: invariant.name.to_owned(),
        claim: invariant.claim.to_owned(),
        standing,
        found,
        control,
    }
}

fn controlled(
    invariant: &Invariant,
    mut dossier: Dossier,
    mut evidence: Evidence,
) -> InvariantControl {
    (invariant.doctor)(&mut dossier, &mut evidence);
    let (red, found) = match (invariant.judge)(&dossier, &evidence) {
        Ok(finding) => (!finding.holds, finding.said),
        Err(missing) => (false, missing.said),
    };
    InvariantControl { doctored: invariant.doctored.to_owned(), red, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_satisfies_every_invariant_and_each_is_seen_to_break() {
        let results = certify(&model(), &model::evidence());
        assert!(results.len() >= 10);
        for result in results {
            assert_eq!(result.standing, InvariantStanding::Holds, "{result:?}");
            assert!(result.control.red, "{result:?}");
        }
    }

    #[test]
    fn a_doctored_figure_breaks_its_own_invariant_and_few_others() {
        for invariant in invariants::all() {
            let (mut dossier, mut evidence) = (model(), model::evidence());
            (invariant.doctor)(&mut dossier, &mut evidence);
            let broken: Vec<String> = certify(&dossier, &evidence)
                .into_iter()
                .filter(|result| result.standing == InvariantStanding::Broken)
                .map(|result| result.name)
                .collect();
            assert!(broken.iter().any(|name| name == invariant.name), "{broken:?}");
            assert!(broken.len() <= 4, "{}: {broken:?}", invariant.name);
        }
    }

    #[test]
    fn a_figure_that_failed_leaves_its_invariant_unproven_and_one_unsupported_inapplicable() {
        let mut dossier = model();
        for entry in &mut dossier.entries {
            match entry.name.as_str() {
                "l2_read" => *entry = Entry::failed("l2_read", "B/s", "", "wrong sums"),
                "dram_gather" => *entry = Entry::unsupported("dram_gather", "B/s", "", "none"),
                _ => {}
            }
        }
        let results = certify(&dossier, &Evidence::default());
        let standing = |name: &str| {
            results.iter().find(|result| result.name == name).map(|result| result.standing)
        };
        assert_eq!(standing("l2_over_dram"), Some(InvariantStanding::Unproven));
        assert_eq!(standing("gather_dearer"), Some(InvariantStanding::Inapplicable));
        assert_eq!(standing("library_gemm"), Some(InvariantStanding::Inapplicable));
        assert!(results.iter().all(|result| result.control.red), "controls run all the same");
    }

    #[test]
    fn a_dossier_with_no_entries_is_never_broken() {
        let mut dossier = model();
        dossier.entries.clear();
        let results = certify(&dossier, &Evidence::default());
        assert!(results.iter().all(|result| result.standing == InvariantStanding::Inapplicable));
    }
}
