//! The families as fp32 kernels, emulated: every operation rounded, sums in several orders,
//! approximate functions at the edge of their bounds. Written without the crate under test.

use assay_num::random::SplitMix64;

/// The order of a kernel's sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    Chain,
    Reversed,
    Pairwise,
    Lanes,
    Tree(u64),
}

impl Order {
    pub(crate) fn all(seed: u64) -> [Order; 5] {
        [Order::Chain, Order::Reversed, Order::Pairwise, Order::Lanes, Order::Tree(seed)]
    }

    /// The sum of `terms` and the longest chain of roundings in it.
    pub(crate) fn sum(self, terms: &[f32]) -> (f32, usize) {
        match self {
            Order::Chain => chain(terms.iter().copied()),
            Order::Reversed => chain(terms.iter().rev().copied()),
            Order::Pairwise => pairwise(terms),
            Order::Lanes => lanes(terms),
            Order::Tree(seed) => tree(terms, seed),
        }
    }
}

fn chain(mut terms: impl Iterator<Item = f32>) -> (f32, usize) {
    let first = terms.next().unwrap_or(0.0);
    terms.fold((first, 0), |(sum, depth), term| (sum + term, depth + 1))
}

fn pairwise(terms: &[f32]) -> (f32, usize) {
    if terms.len() <= 1 {
        return chain(terms.iter().copied());
    }
    let (left, right) = terms.split_at(terms.len() / 2);
    join(pairwise(left), pairwise(right))
}

fn join(a: (f32, usize), b: (f32, usize)) -> (f32, usize) {
    (a.0 + b.0, a.1.max(b.1) + 1)
}

/// 32 lanes, then their halves.
fn lanes(terms: &[f32]) -> (f32, usize) {
    let mut partials: Vec<(f32, usize)> =
        (0..32).map(|lane| chain(terms.iter().skip(lane).step_by(32).copied())).collect();
    while partials.len() > 1 {
        let half = partials.len() / 2;
        partials = (0..half).map(|at| join(partials[at], partials[at + half])).collect();
    }
    partials[0]
}

/// Joins two random partial sums until one is left.
fn tree(terms: &[f32], seed: u64) -> (f32, usize) {
    let mut random = SplitMix64::new(seed);
    let mut partials: Vec<(f32, usize)> = terms.iter().map(|term| (*term, 0)).collect();
    while partials.len() > 1 {
        let a = partials.swap_remove(random.below(partials.len() as u64) as usize);
        let at = random.below(partials.len() as u64) as usize;
        partials[at] = join(a, partials[at]);
    }
    partials.pop().unwrap_or((0.0, 0))
}

/// Where approximate functions err.
pub(crate) struct Approximation {
    random: SplitMix64,
    /// 0: either way at random; else the way all results lean.
    lean: i32,
}

impl Approximation {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let lean = random.below(3) as i32 - 1;
        Self { random, lean }
    }

    fn sign(&mut self) -> f64 {
        match self.lean {
            0 if self.random.below(2) == 0 => -1.0,
            -1 => -1.0,
            _ => 1.0,
        }
    }

    /// `exp` within 2 ulp; of 0 exactly 1, as `ex2` gives.
    pub(crate) fn exp(&mut self, x: f32) -> f32 {
        if x == 0.0 {
            return 1.0;
        }
        let exact = libm::exp(f64::from(x));
        if exact > f64::from(f32::MAX) {
            return f32::INFINITY;
        }
        let ulp = assay_num::Format::F32.ulp(exact);
        (exact + self.sign() * 1.49 * ulp).max(0.0) as f32
    }

    /// `1/sqrt` within 2^-22.9.
    pub(crate) fn rsqrt(&mut self, x: f32) -> f32 {
        let reach = 2f64.powf(-22.9) - 2f64.powi(-24);
        (1.0 / f64::from(x).sqrt() * (1.0 + self.sign() * reach)) as f32
    }
}

/// A row and what a family does to it: the outputs and the depth of its sum, or sums.
pub(crate) type Row<'a> = (&'a [f32], &'a [f32], &'a [f32]);

pub(crate) fn dot(a: &[f32], b: &[f32], order: Order) -> (f32, usize) {
    let products: Vec<f32> = a.iter().zip(b).map(|(a, b)| a * b).collect();
    order.sum(&products)
}

/// A chain of fused multiply-adds, which rounds no product.
pub(crate) fn fused_dot(a: &[f32], b: &[f32]) -> (f32, usize) {
    (a.iter().zip(b).fold(0.0, |sum, (a, b)| a.mul_add(*b, sum)), a.len())
}

pub(crate) fn softmax(x: &[f32], order: Order, near: &mut Approximation) -> (Vec<f32>, usize) {
    let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let terms: Vec<f32> = x.iter().map(|x| near.exp(x - most)).collect();
    let (sum, depth) = order.sum(&terms);
    (x.iter().map(|x| near.exp(x - most) / sum).collect(), depth)
}

pub(crate) fn rms_norm(
    (x, w): (&[f32], &[f32]),
    eps: f32,
    order: Order,
    near: &mut Approximation,
) -> (Vec<f32>, usize) {
    let squares: Vec<f32> = x.iter().map(|x| x * x).collect();
    let (sum, depth) = order.sum(&squares);
    let scale = near.rsqrt(sum / x.len() as f32 + eps);
    (x.iter().zip(w).map(|(x, w)| x * scale * w).collect(), depth)
}

pub(crate) fn layer_norm(
    (x, w, b): Row<'_>,
    eps: f32,
    order: Order,
    near: &mut Approximation,
) -> (Vec<f32>, usize) {
    let (sum, depth) = order.sum(x);
    let mean = sum / x.len() as f32;
    let squares: Vec<f32> = x.iter().map(|x| (x - mean) * (x - mean)).collect();
    let (sum, _) = order.sum(&squares);
    let scale = near.rsqrt(sum / x.len() as f32 + eps);
    let normal = |((x, w), b): ((&f32, &f32), &f32)| (x - mean) * scale * w + b;
    (x.iter().zip(w).zip(b).map(normal).collect(), depth)
}

/// The one-pass variance, which loses all digits where the mean is large: not sound.
pub(crate) fn one_pass_layer_norm(
    (x, w, b): Row<'_>,
    eps: f32,
    sum: impl Fn(&[f32]) -> f32,
) -> Vec<f32> {
    let count = x.len() as f32;
    let mean = sum(x) / count;
    let squares: Vec<f32> = x.iter().map(|x| x * x).collect();
    let variance = sum(&squares) / count - mean * mean;
    let scale = 1.0 / (variance.max(0.0) + eps).sqrt();
    x.iter().zip(w).zip(b).map(|((x, w), b)| (x - mean) * scale * w + b).collect()
}
