//! How many operations one run of a kernel does: as stated, or counted from its formula.

use assay_contract::Kernel;
use assay_record::FlopCount;

use super::Arguments;
use super::kernels::Subject;

/// Operations of one run, and how they are known.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Flop {
    /// The number; `None` where it is not known.
    pub(super) value: Option<f64>,
    /// Where it is from.
    pub(super) source: Option<String>,
    /// By kind, where they were counted.
    pub(super) counted: Option<FlopCount>,
    /// Why they were not.
    pub(super) reason: Option<String>,
}

/// The operations of a kernel at its shape; `--flop` has the last word.
pub(super) fn of(subject: &Subject, arguments: &Arguments) -> Flop {
    if let Some(stated) = arguments.flop {
        let source = Some("stated".to_owned());
        return Flop { value: Some(stated), source, ..Flop::default() };
    }
    let none = |why: String| Flop { reason: Some(why), ..Flop::default() };
    let Some(program) = &subject.kernel.spec().program else {
        return none("a rule judges it, and no formula".to_owned());
    };
    match program.operations(&subject.dims) {
        Err(why) => none(why.to_string()),
        Ok(found) if found.flop() == 0.0 => none("its formula has none that count".to_owned()),
        Ok(found) => Flop {
            value: Some(found.flop()),
            source: Some("counted from the formula".to_owned()),
            counted: Some(FlopCount {
                additions: found.additions as f64,
                multiplications: found.multiplications as f64,
                divisions: found.divisions as f64,
                functions: found.functions as f64,
            }),
            reason: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::bench::kernels::Asked;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn found(typed: &[&str]) -> Flop {
        let typed = Typed::parse_from([&["bench"], typed].concat());
        let asked = Asked::select(&typed.arguments).unwrap_or_else(|error| panic!("{error}"));
        of(&asked.subjects[0], &typed.arguments)
    }

    #[test]
    fn what_a_formula_counts_is_counted_by_hand_too() {
        for (kernel, dims, wanted) in [
            ("row_sum_f32", "rows=7,cols=1000", 7.0 * 1000.0),
            ("gemv_f32", "rows=512,cols=2048", 2.0 * 512.0 * 2048.0),
            ("softmax_f32", "rows=4,cols=1000", 6.0 * 4.0 * 1000.0),
        ] {
            let flop = found(&[kernel, "--dims", dims]);
            assert_eq!(flop.value, Some(wanted), "{kernel}: {flop:?}");
            assert_eq!(flop.source.as_deref(), Some("counted from the formula"));
        }
    }

    #[test]
    fn a_stated_number_has_the_last_word_and_rules_are_not_counted() {
        let flop = found(&["row_sum_f32", "--flop", "12"]);
        assert_eq!((flop.value, flop.source.as_deref()), (Some(12.0), Some("stated")));
        let rule = found(&["argmax_f32"]);
        assert_eq!(rule.value, None);
        assert!(rule.reason.is_some_and(|reason| reason.contains("a rule judges it")));
        let extremes = found(&["row_max_f32"]);
        assert!(extremes.reason.is_some_and(|reason| reason.contains("none that count")));
    }
}
