//! The rules of gate 5, and the words in which a broken one is told.

use serde::Serialize;

/// A rule that a launch may break. `docs/limits.md` gives each its source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A grid, block or cluster without threads.
    Empty,
    /// Blocks of the grid along x.
    GridX,
    /// Blocks of the grid along y.
    GridY,
    /// Blocks of the grid along z.
    GridZ,
    /// Work-items of the whole grid along one axis (HIP).
    GridItems,
    /// Threads of a block along x.
    BlockX,
    /// Threads of a block along y.
    BlockY,
    /// Threads of a block along z.
    BlockZ,
    /// Threads of a block.
    BlockThreads,
    /// Threads of a block against what the kernel was compiled for.
    LaunchBounds,
    /// Threads along x against the block that the kernel requires.
    RequiredX,
    /// Threads along y against the block that the kernel requires.
    RequiredY,
    /// Threads along z against the block that the kernel requires.
    RequiredZ,
    /// Registers of a thread.
    RegistersPerThread,
    /// Registers of a block, as the hardware counts them.
    RegistersPerBlock,
    /// Static shared memory of a block.
    StaticShared,
    /// Static and dynamic shared memory of a block.
    Shared,
    /// Named barriers of a block.
    Barriers,
    /// Bytes of parameters.
    Parameters,
    /// Local memory of a thread.
    Stack,
    /// A cluster on a chip that has none.
    NoClusters,
    /// Blocks of a cluster.
    ClusterBlocks,
    /// Blocks of a cluster along an axis against what the kernel was compiled for.
    ClusterRequired,
    /// Blocks of a grid along an axis against the cluster.
    ClusterDivides,
    /// Lanes of a wave.
    WaveSize,
    /// Vector registers of a lane.
    VectorRegisters,
    /// Vector registers of a work-group's waves on one SIMD.
    VectorRegistersPerSimd,
    /// Waves of a work-group on one SIMD.
    WavesPerSimd,
    /// Scalar registers of a wave.
    ScalarRegisters,
    /// Static and dynamic LDS of a work-group.
    Lds,
    /// Threads of a threadgroup against the pipeline's compile.
    PipelineThreads,
    /// Threads of a threadgroup against what the source reserves.
    ReservedThreads,
    /// Threads of a threadgroup of a kernel of tensor operations.
    TensorThreads,
    /// Static and dynamic threadgroup memory.
    ThreadgroupBytes,
    /// Dynamic threadgroup memory that is not a multiple of its alignment.
    ThreadgroupAlignment,
    /// Threads of a SIMD group against what the pipeline was compiled for.
    ExecutionWidth,
}

/// The words of one rule: "{asked} {.asked}, {.limit} {limit}: {.advice}".
pub(crate) struct Words {
    pub(crate) asked: &'static str,
    pub(crate) limit: &'static str,
    pub(crate) advice: &'static str,
}

impl Rule {
    /// Every rule, in the order in which `docs/limits.md` explains them.
    pub const ALL: [Rule; 36] = [
        Rule::Empty,
        Rule::GridX,
        Rule::GridY,
        Rule::GridZ,
        Rule::GridItems,
        Rule::BlockX,
        Rule::BlockY,
        Rule::BlockZ,
        Rule::BlockThreads,
        Rule::LaunchBounds,
        Rule::RequiredX,
        Rule::RequiredY,
        Rule::RequiredZ,
        Rule::RegistersPerThread,
        Rule::RegistersPerBlock,
        Rule::StaticShared,
        Rule::Shared,
        Rule::Barriers,
        Rule::Parameters,
        Rule::Stack,
        Rule::NoClusters,
        Rule::ClusterBlocks,
        Rule::ClusterRequired,
        Rule::ClusterDivides,
        Rule::WaveSize,
        Rule::VectorRegisters,
        Rule::VectorRegistersPerSimd,
        Rule::WavesPerSimd,
        Rule::ScalarRegisters,
        Rule::Lds,
        Rule::PipelineThreads,
        Rule::ReservedThreads,
        Rule::TensorThreads,
        Rule::ThreadgroupBytes,
        Rule::ThreadgroupAlignment,
        Rule::ExecutionWidth,
    ];

    /// The rule's name in JSON: `registers-per-block`.
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    pub(crate) fn words(self) -> Words {
        let (asked, limit, advice) = self.sentence();
        Words { asked, limit, advice }
    }

    fn sentence(self) -> (&'static str, &'static str, &'static str) {
        const SPREAD: &str = "spread the blocks over another axis, or loop over them in the kernel";
        const SMALLER: &str = "launch fewer threads a block";
        const EXACT: &str = "launch exactly the block that the kernel was compiled for";
        match self {
            Rule::Empty => ("along an axis", "where there must be at least", "launch nothing"),
            Rule::GridX => ("blocks along x", "where a grid has at most", SPREAD),
            Rule::GridY => ("blocks along y", "where a grid has at most", SPREAD),
            Rule::GridZ => ("blocks along z", "where a grid has at most", SPREAD),
            Rule::GridItems => ("work-items along an axis", "where a grid has at most", SPREAD),
            Rule::BlockX => ("threads along x", "where a block has at most", SMALLER),
            Rule::BlockY => ("threads along y", "where a block has at most", SMALLER),
            Rule::BlockZ => ("threads along z", "where a block has at most", SMALLER),
            Rule::BlockThreads => ("threads a block", "where a block has at most", SMALLER),
            Rule::RequiredX => ("threads along x", "where the kernel requires", EXACT),
            Rule::RequiredY => ("threads along y", "where the kernel requires", EXACT),
            Rule::RequiredZ => ("threads along z", "where the kernel requires", EXACT),
            Rule::LaunchBounds => (
                "threads a block",
                "where the kernel was compiled for at most",
                "launch fewer threads, or raise its launch bounds",
            ),
            _ => self.sentence_of_resources(),
        }
    }

    fn sentence_of_resources(self) -> (&'static str, &'static str, &'static str) {
        const BOUND: &str = "cap them with launch bounds, or launch fewer threads a block";
        const TILES: &str = "take smaller tiles, or keep part of them in registers";
        match self {
            Rule::RegistersPerThread => ("registers a thread", "where a thread has at most", BOUND),
            Rule::RegistersPerBlock => ("registers a block", "where a block has at most", BOUND),
            Rule::StaticShared => (
                "bytes of static shared memory",
                "where a block declares at most",
                "make it dynamic shared memory, which a launcher may opt in to",
            ),
            Rule::Shared => {
                ("bytes of static and dynamic shared memory", "where a block has at most", TILES)
            }
            Rule::Barriers => {
                ("named barriers", "where a block has at most", "use fewer barriers at a time")
            }
            Rule::Parameters => (
                "bytes of parameters",
                "where a kernel takes at most",
                "pass a pointer to them instead",
            ),
            Rule::Stack => (
                "bytes of local memory a thread",
                "where a thread has at most",
                "move the arrays to global memory",
            ),
            Rule::NoClusters => (
                "blocks a cluster",
                "where the chip has no clusters and a launch at most",
                "launch without clusters on this chip",
            ),
            Rule::ClusterBlocks => {
                ("blocks a cluster", "where a cluster has at most", "launch smaller clusters")
            }
            Rule::ClusterRequired => (
                "blocks along an axis of the cluster",
                "where the kernel requires",
                "launch the cluster that the kernel was compiled for",
            ),
            Rule::ClusterDivides => (
                "blocks along an axis of the grid",
                "where whole clusters need a multiple of",
                "round the grid up to whole clusters",
            ),
            _ => self.sentence_of_others(),
        }
    }

    fn sentence_of_others(self) -> (&'static str, &'static str, &'static str) {
        const BOUND: &str = "cap them with launch bounds, or launch fewer threads a work-group";
        const SMALLER: &str = "launch fewer threads a threadgroup";
        match self {
            Rule::WaveSize => (
                "lanes a wave",
                "where the chip's waves have",
                "compile the kernel for the chip's wave size",
            ),
            Rule::VectorRegisters => ("vector registers a lane", "where a lane has at most", BOUND),
            Rule::VectorRegistersPerSimd => {
                ("vector registers a lane of one SIMD", "where a SIMD has", BOUND)
            }
            Rule::WavesPerSimd => {
                ("waves of a work-group on one SIMD", "where a SIMD holds at most", BOUND)
            }
            Rule::ScalarRegisters => ("scalar registers a wave", "where a wave has at most", BOUND),
            Rule::Lds => (
                "bytes of static and dynamic LDS",
                "where a work-group has at most",
                "take smaller tiles, or keep part of them in registers",
            ),
            Rule::PipelineThreads => (
                "threads a threadgroup",
                "where the pipeline was compiled for at most",
                "size groups to the pipeline's maximum, or reserve the threads in the source",
            ),
            Rule::ReservedThreads => (
                "threads a threadgroup",
                "where the source reserves",
                "launch no more than max_total_threads_per_threadgroup says",
            ),
            Rule::TensorThreads => (
                "threads a threadgroup with tensor operations, which cannot be compiled here ahead \
                 of time",
                "where they are held to",
                SMALLER,
            ),
            Rule::ThreadgroupBytes => (
                "bytes of threadgroup memory",
                "where a threadgroup has at most",
                "take smaller tiles, or keep part of them in registers",
            ),
            Rule::ThreadgroupAlignment => (
                "bytes of dynamic threadgroup memory",
                "where a length is a multiple of",
                "round the length up",
            ),
            _ => (
                "threads a SIMD group",
                "where the chip's SIMD groups have",
                "record the pipeline on this chip again",
            ),
        }
    }
}
