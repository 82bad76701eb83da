//! The instructions that do more than compute in registers, as data.

use super::bulk::Bulk;
use super::matrix::MatrixAccess;
use super::multiply::Multiply;
use super::tensor_map::BulkTensor;
use super::wgmma::WarpgroupMultiply;
use super::wmma::{TileAccess, TileMultiply};

/// The space of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpaceKind {
    Global,
    Shared,
    /// Shared memory of any block of the cluster; see [`super::cluster`].
    Cluster,
    Local,
    /// A variable of the running function in local memory: the address counts from its frame.
    Frame,
    Const,
    Param,
    Generic,
}

/// A memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    pub(crate) space: SpaceKind,
    /// Bytes per component: 1, 2, 4, 8.
    pub(crate) bytes: u8,
    /// Components: 1, 2, 4, 8.
    pub(crate) count: u8,
    /// Loads extend the sign.
    pub(crate) signed: bool,
    /// The registers have 64 bits.
    pub(crate) wide: bool,
    /// The register is a 16-bit one, which cuts an extended sign.
    pub(crate) half: bool,
    /// The address register has 64 bits.
    pub(crate) wide_address: bool,
    /// `.volatile`, `.acquire`, `.relaxed`: a loop around it may wait for another thread.
    pub(crate) polls: bool,
}

/// What an atomic operation does to the word in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtomicOperation {
    Add,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Increment,
    Decrement,
}

/// What the word in memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtomicType {
    U32,
    S32,
    U64,
    S64,
    /// Flushes subnormals in global memory and not in shared, as the hardware does.
    F32,
    F64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    B16,
}

/// An atomic operation; `returns` tells `atom` from `red`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Atomic {
    pub(crate) space: SpaceKind,
    pub(crate) operation: AtomicOperation,
    pub(crate) ty: AtomicType,
    pub(crate) returns: bool,
    pub(crate) wide_address: bool,
    /// Elements of a vector `red`/`atom`.
    pub(crate) count: u8,
}

/// An exchange (`compares`: where the old value is as expected) of 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AtomicWide {
    pub(crate) space: SpaceKind,
    pub(crate) compares: bool,
    pub(crate) wide_address: bool,
}

/// Which lane `shfl` reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What `vote` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// What `redux` and `barrier.red` combine with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduction {
    Add,
    MinimumU,
    MaximumU,
    MinimumS,
    MaximumS,
    And,
    Or,
    Xor,
    MinimumF,
    MaximumF,
}

/// What a barrier instruction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    /// `.red.popc.u32`
    Population,
    /// `.red.and.pred`
    All,
    /// `.red.or.pred`
    Any,
}

/// A special register that differs between lanes, warps, blocks or moments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    Thread(u8),
    Threads(u8),
    Block(u8),
    Blocks(u8),
    /// The cluster in the grid, and how many there are.
    Cluster(u8),
    Clusters(u8),
    /// The block in its cluster, and how many there are.
    ClusterBlock(u8),
    ClusterBlocks(u8),
    ClusterRank,
    ClusterRanks,
    Lane,
    Warp,
    Warps,
    Multiprocessor,
    Multiprocessors,
    LaneMaskEqual,
    LaneMaskLessEqual,
    LaneMaskLess,
    LaneMaskGreaterEqual,
    LaneMaskGreater,
    Clock,
    ClockHigh,
    Clock64,
    GlobalTimer,
    GlobalTimerLow,
    GlobalTimerHigh,
    TotalShared,
    DynamicShared,
    Environment(u8),
    /// Always zero: performance counters, reserved shared memory.
    Zero,
    /// The 64-bit zero.
    Zero64,
}

/// An operation on an `mbarrier` object; see [`super::mbarrier`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MbarrierOperation {
    /// Count `b`
    Init,
    Invalidate,
    /// State `d`; count `b` when `counted`; `expects` bytes `b` first
    Arrive {
        /// Takes the thread out of later phases too.
        drops: bool,
        /// The operand is a count of arrivals.
        counted: bool,
        /// The operand is a count of bytes to expect.
        expects: bool,
        /// It may complete the phase.
        completes: bool,
    },
    /// `p` from state or parity `b`
    Wait {
        parity: bool,
    },
    /// Bytes `b`
    Expect,
    /// Bytes `b`
    Complete,
    /// Arrives when the thread's copies so far are done; `counted` when the init count has it in
    CopiesArrive {
        counted: bool,
    },
}

/// Where an `mbarrier` object is, and what happens to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mbarrier {
    pub(crate) operation: MbarrierOperation,
    pub(crate) space: SpaceKind,
    pub(crate) wide_address: bool,
}

/// An asynchronous store to shared memory of the cluster; see [`super::remote`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AsyncAccess {
    pub(crate) space: SpaceKind,
    /// Bytes per component: 4, 8.
    pub(crate) bytes: u8,
    /// Components: 1, 2, 4.
    pub(crate) count: u8,
    /// The registers have 64 bits.
    pub(crate) wide: bool,
    pub(crate) wide_address: bool,
    pub(crate) wide_barrier: bool,
    /// Added to the address of the mbarrier.
    pub(crate) barrier_offset: u64,
    /// How it combines with what is there; `None` overwrites it.
    pub(crate) combine: Option<Atomic>,
}

/// An instruction with an effect. Operands are in [`Operands`](super::frame::Operands).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// `d` (or list `c`) from `[a + immediate]`
    Load(Access),
    /// `b` (or list `c`) to `[a + immediate]`
    Store(Access),
    /// `d` from `[a + immediate]`, operands `b`, `c`
    Atomic(Atomic),
    /// At `[a + immediate]`; the list `c` has the halves of the result and of two operands
    AtomicWide(AtomicWide),
    /// Reads a special register into `d`
    Special(Special),
    /// `d` becomes the address in local memory of the frame variable at `immediate`;
    /// the flag says that `d` has 64 bits
    FrameAddress { wide: bool },
    /// To a generic address: adds the window of a space, 64 bits
    ToGeneric(SpaceKind),
    /// From a generic address: takes the window of a space off, 64 bits
    FromGeneric(SpaceKind),
    /// `p` becomes whether generic `a` lies in a space
    IsSpace(SpaceKind),
    /// `d|p` from `a`; lane `b`, clamp `c`, members in the list `immediate`
    Shuffle(Shuffle),
    /// `p`, or `d` for a ballot, from predicate `r`, members `b`
    Vote(Vote),
    /// `d` (and `p`) from `a`, members `b`
    MatchAny { wide: bool },
    /// See `MatchAny`
    MatchAll { wide: bool },
    /// `d` from `a`, members `b`; `.NaN` and `.abs` in the flags
    Redux(Reduction),
    /// `d`
    ActiveMask,
    /// `d|p`, members `b`
    Elect,
    /// Members `a`
    WarpBarrier,
    /// Barrier `a`, threads `b`, `d` or `p`, predicate `r`
    Barrier { kind: BarrierKind, aligned: bool, counted: bool },
    /// `barrier.cluster.wait`, or `.arrive`
    ClusterBarrier { waits: bool, aligned: bool },
    /// `d` becomes the address `a` of the own block as block `b` of the cluster has it; the flags
    /// say that registers have 64 bits and that the address is generic
    MapShared { wide: bool, generic: bool },
    /// `d` becomes the rank of the block whose shared memory `a` is in; flags as above
    RankOfShared { wide: bool, generic: bool },
    /// `p` becomes whether the launch has clusters
    ExplicitCluster,
    /// Shared `[a + offset]` from global `[b + offset]`, list `c`; see `asynchronous`
    CopyAsync { bytes: u8, sized: bool },
    /// `cp.async.commit_group`
    CommitCopies,
    /// `cp.async.wait_group n`
    WaitCopies { groups: u32 },
    /// `cp.async.wait_all`
    WaitAllCopies,
    /// A bulk copy; see [`Bulk`]
    Bulk(Bulk),
    /// A bulk copy of a box of a tensor; see [`BulkTensor`]
    BulkTensor(BulkTensor),
    /// `cp.async.bulk.commit_group`
    CommitBulk,
    /// `cp.async.bulk.wait_group{.read} n`
    WaitBulk { groups: u32, read: bool },
    /// `fence.proxy.async` of shared memory
    FenceAsync,
    /// Call site `immediate`
    Call,
    /// `ret`
    Return,
    /// `exit`, and `ret` of a kernel
    Exit,
    /// `brx.idx`: table `immediate`, index `a`
    BranchIndexed,
    /// `nanosleep`
    Sleep,
    /// `trap`
    Trap,
    /// `d` becomes `a` fresh bytes of the thread's stack, aligned to `immediate`
    Alloca { wide: bool },
    /// `d` becomes the thread's stack pointer
    StackSave { wide: bool },
    /// The stack pointer becomes `a`
    StackRestore { wide: bool },
    /// An `mbarrier` at `[a + immediate]`
    Mbarrier(Mbarrier),
    /// List `c` to `[a + immediate]`, counted by the mbarrier at `[b]`
    StoreAsync(AsyncAccess),
    /// Matrices into list `c` from the rows at `[a + immediate]`
    LoadMatrix(MatrixAccess),
    /// Matrices from list `c` to the rows at `[a + immediate]`
    StoreMatrix(MatrixAccess),
    /// `d` becomes the transposed `a`
    MoveMatrix,
    /// Five lists from `c` on: A, B, C, D, and what is special to the variant
    Multiply(Multiply),
    /// Registers of list `c` from `[a + immediate]`, stride `b`
    LoadTile(TileAccess),
    /// Registers of list `c` to `[a + immediate]`, stride `b`
    StoreTile(TileAccess),
    /// Lists A, B, C and D from `c` on
    MultiplyTiles(TileMultiply),
    /// Descriptors `a` and `b`, scale-d `r`, lists from `c` on: accumulators, then A's registers
    WarpgroupMultiply(WarpgroupMultiply),
    /// `wgmma.fence`
    WarpgroupFence,
    /// `wgmma.commit_group`
    WarpgroupCommit,
    /// `wgmma.wait_group n`
    WarpgroupWait { groups: u32 },
    /// Carry-in and carry-out arithmetic
    Carry(CarryKind),
    /// Not run by the emulator
    Unsupported,
}

/// Arithmetic with the carry bit, which is predicate `r` on the way in and `p` on the way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CarryKind {
    pub(crate) operation: CarryOperation,
    pub(crate) wide: bool,
    pub(crate) carry_in: bool,
    pub(crate) carry_out: bool,
}

/// See [`CarryKind`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CarryOperation {
    Add,
    Subtract,
    MultiplyAddLow,
    MultiplyAddHighU,
    MultiplyAddHighS,
}
