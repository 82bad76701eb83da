//! What Triton makes of the kernels in `tests/corpus/triton/`, for `sm_80`, `sm_90` and `sm_120`.
//!
//! One Python process compiles all of it, once for each state of the sources. What Triton refuses
//! is a list in this file, with Triton's reason, and so is what the emulator does not run.

mod attention;
mod choice;
mod products;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_num::random::SplitMix64;

use crate::case::{Case, judged};
use crate::census::{Expected, examine};
use crate::compile::{Ptx, cache, digest, repository, say, toolchain};
use crate::{Entry, run};

/// What Triton says of one kernel compiled for one target.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// 90 for `sm_90`.
    pub(crate) target: u32,
    symbol: &'static str,
    warps: u32,
    shared: u32,
    /// Bytes a block behind the first hidden pointer.
    scratch: u32,
    /// Blocks of a cluster.
    blocks: u32,
}

/// What Triton refuses: the kernel, the targets, and a part of its reason.
const REFUSED: &[(&str, &[u32], &str)] = &[
    ("quantise_e4m3", &[80], E4M3),
    ("dequantise_e4m3", &[80], E4M3),
    ("matmul_e4m3", &[80], E4M3),
    ("matmul_mxfp8", &[80], E4M3),
    ("matmul_mxfp8_e5m2", &[80], E4M3),
    ("matmul_mxfp8_mxfp4", &[80], E4M3),
    ("matmul_nvfp4", &[80], E4M3),
    // Only sm_120 has such products, and Triton does without them only where the scale is e8m0.
    ("matmul_nvfp4", &[90], "PassManager::run failed"),
];
const E4M3: &str = "type fp8e4nv not supported in this architecture";

/// What is right in order and wrong under a seed, and why: the kernel, the target, the reason.
const FINDINGS: &[(&str, u32, &str)] = &[(
    "matmul_f16_total",
    90,
    // An assembler that waits where registers are read makes it right; PTX does not promise that.
    "Triton 3.6 reads the fp16 sums of wgmma before wgmma.wait_group",
)];

impl Facts {
    /// The kernel with a grid, and what its metadata says of the launch.
    pub(crate) fn launch(&self, grid: [u32; 3]) -> Case {
        let [x, y, z] = grid;
        let case = Case::new(self.symbol).grid([x * self.blocks, y, z]);
        let case = case.block([self.warps * 32, 1, 1]).shared(self.shared);
        case.cluster([self.blocks, 1, 1])
    }

    /// The pointers that Triton appends: scratch memory for `grid` and for a profiler.
    pub(crate) fn end(&self, case: Case, grid: [u32; 3]) -> Case {
        let bytes = grid.iter().product::<u32>() * self.blocks * self.scratch;
        let case = match bytes {
            0 => case.value(0_u64),
            bytes => case.writes(judged(bytes as usize, |_| Ok(()))),
        };
        case.value(0_u64)
    }

    /// The cases of the kernel.
    fn cases(&self) -> Vec<Case> {
        let found = rows::case(self).or_else(|| choice::case(self));
        let found = found.or_else(|| products::case(self)).or_else(|| attention::case(self));
        found.into_iter().collect()
    }

    /// What a list says of it.
    fn listed(&self, list: &[(&str, u32, &'static str)]) -> Option<&'static str> {
        let mine = |(name, target, _): &&(&str, u32, &'static str)| {
            *name == self.name && *target == self.target
        };
        list.iter().find(mine).map(|(.., reason)| *reason)
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.sm_{}.ptx", self.name, self.target))
    }
}

/// Numbers from a seed, evenly spread between -1 and 1.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    (0..count).map(|_| random.range(-1.0, 1.0)).collect()
}

/// Whole numbers from a seed, from `low` up to below `high`.
pub(crate) fn integers(seed: u64, count: usize, low: i32, high: i32) -> Vec<i32> {
    let mut random = SplitMix64::new(seed);
    let span = (i64::from(high) - i64::from(low)) as u64;
    (0..count).map(|_| (i64::from(low) + random.below(span) as i64) as i32).collect()
}

/// The folder of the compiled corpus; `None` where Triton is missing, which is said.
fn compiled() -> Option<PathBuf> {
    let Some(triton) = toolchain("triton-3.6.0") else {
        say("SKIPPED the Triton corpus: Triton is not installed (cargo xtask toolchain --triton)");
        return None;
    };
    let sources = repository().join("tests/corpus/triton");
    let script = repository().join("crates/assay/src/triton/compile.py");
    let names = ["corpus.py", "rows.py", "choice.py", "products.py", "attention.py"];
    let paths = names.iter().map(|name| sources.join(name)).chain([script.clone()]);
    let texts: Vec<String> =
        paths.map(|path| fs::read_to_string(path).expect("a source")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let folder = cache().join(format!("triton-{}", digest(&texts)));
    if folder.join("index.tsv").is_file() {
        return Some(folder);
    }
    let partial = folder.with_extension(std::process::id().to_string());
    let output = Command::new("python3")
        .arg(sources.join("corpus.py"))
        .arg(script)
        .arg(&partial)
        .env("PYTHONPATH", triton)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TRITON_CACHE_DIR", partial.join("triton"))
        .output()
        .expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let _ = fs::remove_dir_all(partial.join("triton"));
    fs::rename(&partial, &folder).expect("the target folder can be written");
    Some(folder)
}

/// The kernels that Triton compiled, and what it said of those that it refused.
fn index(folder: &Path) -> (Vec<Facts>, Vec<(String, u32, String)>) {
    let text = fs::read_to_string(folder.join("index.tsv")).expect("the script wrote it");
    let (mut facts, mut refused) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse::<u32>().expect("a number");
        match fields[..] {
            [name, _, "refused", reason] => {
                refused.push((name.to_owned(), number(1), reason.to_owned()));
            }
            [name, _, symbol, ..] => facts.push(Facts {
                name: name.to_owned(),
                target: number(1),
                symbol: String::leak(symbol.to_owned()),
                warps: number(3),
                shared: number(4),
                scratch: number(5),
                blocks: number(6),
            }),
            _ => panic!("{line}"),
        }
    }
    (facts, refused)
}

fn entry(facts: &Facts, folder: &Path) -> Entry {
    let path = facts.path(folder);
    let name = format!("{}.py, Triton 3.6.0, sm_{}", facts.name, facts.target);
    let (called, architecture) = (name.clone(), facts.target);
    let compile = move || {
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        Ok(Some(Ptx { name: called.clone(), text, architecture }))
    };
    let facts = facts.clone();
    Entry {
        name,
        compile: Box::new(compile),
        cases: Box::new(move || facts.cases()),
        expected: Expected::default(),
    }
}

/// Whether what Triton refused is what the list says, no more and no less.
fn check_refused(refused: &[(String, u32, String)]) {
    for (name, target, reason) in refused {
        say(&format!("REFUSED by Triton: {name}, sm_{target}: {reason}"));
        let listed = REFUSED.iter().any(|(kernel, targets, why)| {
            kernel == name && targets.contains(target) && reason.contains(why)
        });
        assert!(listed, "no list says that Triton refuses {name} for sm_{target}: {reason}");
    }
    let listed: usize = REFUSED.iter().map(|(_, targets, _)| targets.len()).sum();
    assert_eq!(listed, refused.len(), "the list of what Triton refuses is stale");
}

/// Whether a kernel of the list still is right in order, and wrong where what may come late does.
fn check_finding(facts: &Facts, folder: &Path) -> bool {
    let Some(reason) = facts.listed(FINDINGS) else { return false };
    let entry = entry(facts, folder);
    let ptx = (entry.compile)().expect("the script wrote it").expect("Triton is there");
    let problems = examine(&ptx, &(entry.cases)(), &entry.expected).problems;
    say(&format!("FINDING: {}, sm_{}: {reason}: {problems:?}", facts.name, facts.target));
    let late = |problem: &String| problem.contains("Seeded");
    assert!(problems.len() == 1 && problems.iter().all(late), "{}: the list is stale", facts.name);
    true
}

#[test]
fn what_triton_makes_of_the_corpus_runs_and_is_right() {
    let Some(folder) = compiled() else { return };
    let (mut facts, refused) = index(&folder);
    check_refused(&refused);
    facts.retain(|facts| !check_finding(facts, &folder));
    let entries: Vec<Entry> = facts.iter().map(|facts| entry(facts, &folder)).collect();
    run("Triton", &entries);
}
