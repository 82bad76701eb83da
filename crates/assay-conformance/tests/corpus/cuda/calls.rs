//! References for `calls.cu`.

use assay_num::Format;

use super::data::{normal, whole};
use crate::case::{Case, close, exact};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![says(), recursion(), pointers(), structures(), locals(), heap()]
}

fn says() -> Case {
    let x = whole(91, 32, 0, 10);
    let y: Vec<i32> = x.iter().map(|x| x + 1).collect();
    Case::new("says").sized(1, 32).reads(&x).writes(exact(&y))
}

fn recursion() -> Case {
    let collatz = |start: u32| {
        let next = |&n: &u32| (n != 1).then_some(if n % 2 == 1 { 3 * n + 1 } else { n / 2 });
        std::iter::successors(Some(start), next).count() as u32 - 1
    };
    let fibonacci = |n: u32| (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0;
    let mut y: Vec<u32> = (0..40).map(|i| collatz(i + 1)).collect();
    y.extend((0..40).map(|i| fibonacci(i % 12)));
    y.extend((0..40).map(|i| 2 * (i % 4) + 3));
    Case::new("recursion").sized(1, 40).writes(exact(&y))
}

fn pointers() -> Case {
    let x = normal(92, 32, Format::F32);
    let area = |(i, x): (usize, &f64)| if i % 3 == 1 { x * x } else { 3.0 * x * x };
    let mut y: Vec<f64> = x.iter().enumerate().map(area).collect();
    let called = |(i, x): (usize, &f64)| [2.0 * x, x * x, -x][(i + 1) % 3];
    y.extend(x.iter().enumerate().map(called));
    Case::new("pointers")
        .sized(1, 32)
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &y, 2e-7, 0.0))
        .value(1)
}

fn structures() -> Case {
    let values = whole(93, 20, -1000, 1000);
    let y = (0..24).flat_map(|by| (0..20).map(move |i| (i + 40 - by) % 20));
    let y: Vec<i32> = y.map(|at| values[at]).collect();
    Case::new("structures")
        .sized(1, 24)
        .structure(vec![crate::case::Field::Bytes(crate::case::bytes(&values))])
        .writes(exact(&y))
}

fn locals() -> Case {
    let x = whole(94, 16, -50, 50);
    let weights = [1, 10, 100, 1000];
    let value = |i: usize| x[((i & 15) * 3) & 15] * weights[(((i & 15) * 3) & 15) & 3];
    let mut y: Vec<i32> = (0..32).map(value).collect();
    y[0] += 5;
    Case::new("locals").sized(1, 32).reads(&x).writes(exact(&y)).value(10)
}

fn heap() -> Case {
    let y: Vec<i32> = (0..32).map(|t| t * t * (t + 1) / 2).collect();
    Case::new("heap").sized(1, 32).writes(exact(&y))
}
