//! How fast one core compares, in bytes of both arrays together, beside a plain sum of both.
//!
//! All cases take turns, round after round, so that what else the machine does falls on all of
//! them; the least time of each is what it takes undisturbed.

use std::hint::black_box;
use std::io::Write as _;
use std::thread;
use std::time::Instant;

use assay_compare::{Options, Tensor, compare};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::Tolerance;

const SEED: u64 = 5;

/// Elements of an array: so many that both arrays of f32 take 64 MiB, more than caches hold.
const ELEMENTS: usize = 1 << 23;

const ROUNDS: usize = 11;

const FORMATS: [Format; 8] = [
    Format::F32,
    Format::F16,
    Format::Bf16,
    Format::F64,
    Format::E4m3,
    Format::I8,
    Format::I16,
    Format::I32,
];

/// How a candidate differs from its reference.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Pattern {
    /// Not at all.
    Equal,
    /// Three quarters of the elements, by up to three steps.
    Near,
    /// Nearly all elements, by about a part in a thousand.
    Far,
    /// As near, where half of the reference is zero and stays so.
    Zeros,
}

fn tensors(format: Format, pattern: Pattern) -> (Tensor, Tensor) {
    let mut random = SplitMix64::new(SEED);
    let half = |value: f64| if pattern == Pattern::Zeros { value.max(0.0) } else { value };
    let values: Vec<f64> = (0..ELEMENTS).map(|_| half(random.normal())).collect();
    let one = format.encode_slice(&values);
    let mut other = one.clone();
    match pattern {
        Pattern::Equal => {}
        Pattern::Far => {
            let far = values.iter().map(|value| value + 1e-3 * random.normal());
            other = format.encode_slice(&far.collect::<Vec<_>>());
        }
        Pattern::Near | Pattern::Zeros => {
            let elements = other.chunks_mut(format.bits() as usize / 8);
            for (element, _) in elements.zip(&values).filter(|(_, value)| **value != 0.0) {
                element[0] ^= random.below(4) as u8;
            }
        }
    }
    let tensor = |bytes| Tensor::new(format, &[ELEMENTS as u64], bytes).expect("a tensor");
    (tensor(one), tensor(other))
}

const TOLERANCES: [(&str, Tolerance); 2] = [
    ("exact", Tolerance::EXACT),
    ("tolerance", Tolerance { zero_atol: 1e-2, atol: 1e-2, rtol: 1e-2, max_ulp: 0 }),
];

fn name(format: Format, pattern: Pattern, tolerance: &str) -> String {
    format!("{format:<5} {:<6} {tolerance}", format!("{pattern:?}"))
}

/// The sum of all 64-bit words, which takes as long as reading them.
fn plain_sum(tensor: &Tensor) -> u64 {
    let words = tensor.bytes().as_chunks::<8>().0.iter();
    words.fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// One case: what it is called, what it does, the bytes it reads, the times it took.
struct Case<'a> {
    name: String,
    run: Box<dyn Fn() + Send + Sync + 'a>,
    bytes: usize,
    seconds: Vec<f64>,
}

fn cases(format: Format, pairs: &[(Pattern, (Tensor, Tensor))]) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for (pattern, (one, other)) in pairs {
        let bytes = one.bytes().len() + other.bytes().len();
        if cases.is_empty() {
            let run = || assert!(black_box(plain_sum(one)) != black_box(plain_sum(other)) + 1);
            let name = format!("{format:<5} plain sum");
            cases.push(Case { name, run: Box::new(run), bytes, seconds: Vec::new() });
        }
        for (words, tolerance) in TOLERANCES {
            let options = Options { tolerance, ..Options::default() };
            let run = move || {
                let comparison = compare(&one.view(), &other.view(), &options);
                drop(black_box(comparison.expect("compared")));
            };
            let name = name(format, *pattern, words);
            cases.push(Case { name, run: Box::new(run), bytes, seconds: Vec::new() });
        }
    }
    cases
}

/// How long this thread has had a processor, where the system says it (Linux).
fn processor_seconds() -> Option<f64> {
    // The figure is brought up to date when the thread gives way.
    thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
}

fn measure(cases: &mut [Case<'_>]) {
    for _ in 0..ROUNDS {
        for case in &mut *cases {
            let (start, used) = (Instant::now(), processor_seconds());
            (case.run)();
            let waited = start.elapsed().as_secs_f64();
            let used = processor_seconds().zip(used).map(|(end, start)| end - start);
            case.seconds.push(used.unwrap_or(waited));
        }
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn main() {
    // What follows `cargo bench --` asks for the cases whose names hold all of it.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.iter().all(|word| name.contains(word.as_str()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    say(&format!("{ELEMENTS} elements, {ROUNDS} rounds, one thread, seed {SEED}"));
    say("case                     GB/s least  median   of the sum's");
    for format in FORMATS {
        let patterns = [Pattern::Equal, Pattern::Near, Pattern::Far, Pattern::Zeros];
        let mut wanted = patterns.to_vec();
        wanted.retain(|&pattern| {
            TOLERANCES.iter().any(|&(words, _)| is_wanted(&name(format, pattern, words)))
        });
        if wanted.is_empty() {
            continue;
        }
        let pairs: Vec<_> =
            wanted.iter().map(|&pattern| (pattern, tensors(format, pattern))).collect();
        let mut cases = cases(format, &pairs);
        cases.retain(|case| case.name.contains("plain sum") || is_wanted(&case.name));
        pool.install(|| measure(&mut cases));
        let mut plain = 0.0;
        for case in &mut cases {
            case.seconds.sort_by(f64::total_cmp);
            let rate = |seconds: f64| case.bytes as f64 / seconds / 1e9;
            let (best, median) = (rate(case.seconds[0]), rate(case.seconds[ROUNDS / 2]));
            plain = if plain == 0.0 { best } else { plain };
            say(&format!("{:<24} {best:>10.2} {median:>7.2} {:>10.2}", case.name, best / plain));
        }
    }
}
