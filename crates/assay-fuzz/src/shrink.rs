//! Makes a failing case small: fewer steps of its view, fewer axes, smaller sizes. A step is kept
//! only if the candidate fails in the same way, and nothing is random.

use assay_record::{FuzzCase, FuzzShape, Recipe, ViewStep};

use crate::candidate::{Candidate, Runner};

/// The smallest case found that fails as `case` does, with the runs that it took. None where no
/// smaller one does.
pub(crate) fn shrink(
    candidate: &dyn Candidate,
    runner: &mut dyn Runner,
    case: &FuzzCase,
    more: &mut dyn FnMut() -> bool,
) -> (Option<FuzzCase>, u64) {
    let mut best: Option<FuzzCase> = None;
    let mut runs = 0;
    loop {
        let from = best.as_ref().unwrap_or(case).recipe.clone();
        let mut found = None;
        for recipe in candidate.smaller(&from) {
            if !more() {
                return (best, runs);
            }
            runs += 1;
            let tried = runner.run(&recipe);
            if tried.verdict == case.verdict {
                found = Some(tried);
                break;
            }
        }
        match found {
            Some(smaller) => best = Some(smaller),
            None => return (best, runs),
        }
    }
}

/// An operation's recipes a step smaller, the smallest first.
pub(crate) fn smaller_axes(recipe: &Recipe) -> Vec<Recipe> {
    let FuzzShape::Axes(axes) = &recipe.shape else { return Vec::new() };
    let with = |axes: Vec<u64>, view: Vec<ViewStep>| Recipe {
        shape: FuzzShape::Axes(axes),
        view,
        ..recipe.clone()
    };
    let mut smaller = simpler(recipe);
    for axis in 0..axes.len() {
        let mut fewer = axes.clone();
        fewer.remove(axis);
        if let Some(view) = without_axis(&recipe.view, axis as u64) {
            smaller.push(with(fewer, view));
        }
    }
    for axis in 0..axes.len() {
        for size in sizes(axes[axis]) {
            let mut shape = axes.clone();
            shape[axis] = size;
            smaller.push(with(shape, recipe.view.clone()));
        }
    }
    smaller
}

/// The recipe without one step of its view, or with a smaller number in one.
pub(crate) fn simpler(recipe: &Recipe) -> Vec<Recipe> {
    let mut simpler = Vec::new();
    for at in 0..recipe.view.len() {
        let mut fewer = recipe.clone();
        fewer.view.remove(at);
        simpler.push(fewer);
        let least = match recipe.view[at] {
            ViewStep::Offset(by) if by > 1 => ViewStep::Offset(1),
            ViewStep::Strided(by) if by > 2 => ViewStep::Strided(2),
            ViewStep::Misalign(class) if class > 1 => ViewStep::Misalign(1),
            _ => continue,
        };
        let mut lower = recipe.clone();
        lower.view[at] = least;
        simpler.push(lower);
    }
    simpler
}

/// A view where an axis is taken away; none where the view is about that axis.
fn without_axis(view: &[ViewStep], gone: u64) -> Option<Vec<ViewStep>> {
    let step = |step: &ViewStep| match step {
        ViewStep::Broadcast(axis) if *axis == gone => None,
        ViewStep::Broadcast(axis) if *axis > gone => Some(ViewStep::Broadcast(axis - 1)),
        ViewStep::Pitch(_) if gone == 0 => None,
        other => Some(*other),
    };
    view.iter().map(step).collect()
}

/// Sizes below one, ascending: a few small ones, then ever nearer.
pub(crate) fn sizes(size: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = vec![0, 1, 2, 3, 4, 5];
    sizes.extend((1..64).map(|power| size - size.checked_shr(power).unwrap_or(0)));
    sizes.extend(std::iter::successors(Some(size / 2), |size| (*size > 5).then_some(size / 2)));
    sizes.push(size.saturating_sub(1));
    sizes.retain(|smaller| *smaller < size);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_sizes_begin_at_none_and_come_ever_nearer() {
        let sizes = sizes(1000);
        assert!(sizes.starts_with(&[0, 1, 2, 3, 4, 5]) && sizes.ends_with(&[999]));
        assert!(sizes.contains(&500) && sizes.contains(&750) && sizes.is_sorted());
        assert!(super::sizes(0).is_empty());
        assert_eq!(super::sizes(1), [0]);
    }

    #[test]
    fn an_axis_goes_with_the_steps_that_count_axes() {
        let recipe: Recipe = "a:f32/2x3x4/broadcast:1/values/seed=1".parse().expect("a recipe");
        let shown: Vec<String> = smaller_axes(&recipe).iter().map(ToString::to_string).collect();
        assert_eq!(shown[0], "a:f32/2x3x4/dense/values/seed=1");
        assert!(shown.contains(&"a:f32/3x4/broadcast:0/values/seed=1".to_owned()), "{shown:?}");
        assert!(!shown.contains(&"a:f32/2x4/broadcast:1/values/seed=1".to_owned()), "{shown:?}");
    }
}
