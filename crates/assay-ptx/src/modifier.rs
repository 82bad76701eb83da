//! Modifiers of opcodes and the order-free set of them.

macro_rules! modifiers {
    ($($group:ident { $($variant:ident $text:literal,)* })*) => {
        /// One dot-separated part of an opcode that is no type, space, shape, layout or vector
        /// width. One spelling is one modifier, whatever base it stands on (`.lo` of `mul` and
        /// of `setp`).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Modifier {
            $($(#[doc = concat!("`.", $text, "`")] $variant,)*)*
        }

        /// What a modifier decides. An opcode has at most one modifier of a group, except of
        /// [`Group::Flag`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Group {
            $(#[doc = concat!("Group `", stringify!($group), "`: ", $("`.", $text, "` ",)*)]
            $group,)*
        }

        impl Modifier {
            /// All modifiers.
            pub const ALL: &'static [Modifier] = &[$($(Modifier::$variant,)*)*];

            /// The spelling without its dot.
            pub fn name(self) -> &'static str {
                match self { $($(Modifier::$variant => $text,)*)* }
            }

            /// Finds a modifier by its spelling without the dot.
            pub fn from_name(name: &str) -> Option<Modifier> {
                match name { $($($text => Some(Modifier::$variant),)*)* _ => None }
            }

            /// What the modifier decides.
            pub fn group(self) -> Group {
                match self { $($(Modifier::$variant => Group::$group,)*)* }
            }
        }
    };
}

modifiers! {
    Rounding {
        Rn "rn", Rz "rz", Rm "rm", Rp "rp", Rs "rs", Rna "rna",
        Rni "rni", Rzi "rzi", Rmi "rmi", Rpi "rpi",
        Approx "approx", Full "full",
    }
    Comparison {
        Eq "eq", Ne "ne", Lt "lt", Le "le", Gt "gt", Ge "ge",
        Ls "ls", Hs "hs",
        Equ "equ", Neu "neu", Ltu "ltu", Leu "leu", Gtu "gtu", Geu "geu",
        Num "num", Nan "nan",
    }
    Half { Lo "lo", Hi "hi", Wide "wide", }
    Operation {
        And "and", Or "or", Xor "xor", Popc "popc",
        AddOperation "add", MinOperation "min", MaxOperation "max",
        Inc "inc", Dec "dec", Cas "cas", Exch "exch",
    }
    Scope { CtaScope "cta", ClusterScope "cluster", GpuScope "gpu", SysScope "sys", Gl "gl", }
    Ordering {
        Weak "weak", Relaxed "relaxed", Acquire "acquire", Release "release", AcqRel "acq_rel",
        Sc "sc", Volatile "volatile", Mmio "mmio",
    }
    Cache { Ca "ca", Cg "cg", Cs "cs", Lu "lu", Cv "cv", Wb "wb", Wt "wt", }
    EvictionL1 {
        L1EvictNormal "L1::evict_normal", L1EvictUnchanged "L1::evict_unchanged",
        L1EvictFirst "L1::evict_first", L1EvictLast "L1::evict_last",
        L1NoAllocate "L1::no_allocate",
    }
    Prefetched { L2Prefetch64 "L2::64B", L2Prefetch128 "L2::128B", L2Prefetch256 "L2::256B", }
    Level { L1 "L1", L2 "L2", }
    ShuffleMode { Up "up", Down "down", Bfly "bfly", Idx "idx", }
    VoteMode { All "all", Any "any", Uni "uni", Ballot "ballot", }
    BarrierOperation {
        Sync "sync", Arrive "arrive", Wait "wait", Red "red",
        LaunchDependents "launch_dependents",
    }
    ShiftDirection { Left "l", Right "r", }
    ShiftMode { Clamp "clamp", Wrap "wrap", }
    PermuteMode {
        F4e "f4e", B4e "b4e", Rc8 "rc8", Ecl "ecl", Ecr "ecr", Rc16 "rc16",
    }
    NumberClass {
        Finite "finite", Infinite "infinite", Number "number", Notanumber "notanumber",
        Normal "normal", Subnormal "subnormal",
    }
    Count { X1 "x1", X2 "x2", X4 "x4", }
    Matrix { MatrixA "a", MatrixB "b", MatrixC "c", MatrixD "d", }
    Dimension { D1 "1d", D2 "2d", D3 "3d", D4 "4d", D5 "5d", }
    LoadMode {
        Tile "tile", TileGather4 "tile::gather4", TileScatter4 "tile::scatter4",
        Im2col "im2col", Im2colW "im2col::w", Im2colW128 "im2col::w::128",
        Im2colNoOffs "im2col_no_offs",
    }
    Completion {
        MbarrierCompleteTx "mbarrier::complete_tx::bytes", BulkGroup "bulk_group",
    }
    CtaGroup { CtaGroup1 "cta_group::1", CtaGroup2 "cta_group::2", }
    TensormapField {
        GlobalAddress "global_address", Rank "rank", BoxDim "box_dim", GlobalDim "global_dim",
        GlobalStride "global_stride", ElementStride "element_stride", Elemtype "elemtype",
        InterleaveLayout "interleave_layout", SwizzleMode "swizzle_mode",
        SwizzleAtomicity "swizzle_atomicity", FillMode "fill_mode",
    }
    Kind {
        KindF8f6f4 "kind::f8f6f4", KindMxf8f6f4 "kind::mxf8f6f4", KindMxf4 "kind::mxf4",
        KindMxf4nvf4 "kind::mxf4nvf4",
    }
    ScaleVector {
        ScaleVec1X "scale_vec::1X", ScaleVec2X "scale_vec::2X", ScaleVec4X "scale_vec::4X",
    }
    Sparsity { Sparse "sp", SparseOrdered "sp::ordered_metadata", }
    Proxy {
        ProxyAlias "alias", ProxyAsync "async", ProxyAsyncGeneric "async::generic",
        ProxyTensormap "tensormap::generic",
    }
    PolicySource { Fractional "fractional", Range "range", ConvertPolicy "cvt", }
    Accumulator {
        AccumulateF32 "acc::f32",
        AccumulateF16 "acc::f16",
    }
    Direction { To "to", }
    Flag {
        Ftz "ftz", Sat "sat", Satfinite "satfinite", Relu "relu", NanPropagating "NaN",
        XorSign "xorsign", Absolute "abs", CarryOut "cc", Noftz "noftz", Oob "oob",
        Scaled "scaled::n2::ue8m0",
        Nc "nc", Unified "unified",
        L2EvictLast "L2::evict_last", L2EvictNormal "L2::evict_normal",
        L2EvictFirst "L2::evict_first", L2EvictUnchanged "L2::evict_unchanged",
        L2CacheHint "L2::cache_hint",
        Aligned "aligned", Trans "trans", ShiftAmount "shiftamt", BlockScale "block_scale",
        Noinc "noinc", NoComplete "noComplete", ExpectTx "expect_tx", Parity "parity",
        Read "read", MulticastCluster "multicast::cluster", CpMask "cp_mask",
        IgnoreOob "ignore_oob",
        B1024 "b1024", ProxyWord "proxy", TensormapWord "tensormap",
        SyncRestrictCta "sync_restrict::shared::cta",
        SyncRestrictCluster "sync_restrict::shared::cluster",
    }
}

/// An order-free set of [`Modifier`]s.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Modifiers {
    bits: [u64; 4],
}

const _: () = assert!(Modifier::ALL.len() <= 256, "a modifier needs a bit of its own");

impl Modifiers {
    /// The empty set.
    pub const fn new() -> Modifiers {
        Modifiers { bits: [0; 4] }
    }

    /// The set of some modifiers.
    pub const fn of(modifiers: &[Modifier]) -> Modifiers {
        let mut set = Modifiers::new();
        let mut i = 0;
        while i < modifiers.len() {
            let bit = modifiers[i] as usize;
            set.bits[bit / 64] |= 1 << (bit % 64);
            i += 1;
        }
        set
    }

    /// Whether the modifier is in the set.
    pub const fn has(self, modifier: Modifier) -> bool {
        let bit = modifier as usize;
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Adds a modifier.
    pub fn insert(&mut self, modifier: Modifier) {
        let bit = modifier as usize;
        self.bits[bit / 64] |= 1 << (bit % 64);
    }

    /// The modifiers in the set, in the order of the enum.
    pub fn iter(self) -> impl Iterator<Item = Modifier> {
        Modifier::ALL.iter().copied().filter(move |&modifier| self.has(modifier))
    }

    /// How many modifiers both sets hold.
    pub fn common(self, other: Modifiers) -> u32 {
        self.bits.iter().zip(other.bits).map(|(a, b)| (a & b).count_ones()).sum()
    }

    /// Whether every modifier of this set is in the other.
    pub fn is_within(self, other: Modifiers) -> bool {
        self.bits.iter().zip(other.bits).all(|(a, b)| a & !b == 0)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.bits == [0; 4]
    }

    /// The modifier of a group that is in the set, if any (the first for [`Group::Flag`]).
    pub fn of_group(self, group: Group) -> Option<Modifier> {
        self.iter().find(|modifier| modifier.group() == group)
    }
}

impl std::fmt::Debug for Modifiers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
