//! The base opcodes: one per operation with operands of its own.

macro_rules! bases {
    ($($variant:ident $text:literal,)*) => {
        /// A base opcode. Where PTX puts several operations under one word (`cp.async`,
        /// `mbarrier`, `wgmma`), each operation with operands of its own is one base.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Base {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl Base {
            /// All bases.
            pub const ALL: &'static [Base] = &[$(Base::$variant,)*];

            /// The spelling, such as `cp.async.bulk`.
            pub fn name(self) -> &'static str {
                match self { $(Base::$variant => $text,)* }
            }

            /// Finds a base by its whole spelling.
            pub fn from_name(name: &str) -> Option<Base> {
                match name { $($text => Some(Base::$variant),)* _ => None }
            }

            /// The index of the base in [`Base::ALL`].
            pub fn index(self) -> usize {
                self as usize
            }
        }
    };
}

bases! {
    Abs "abs",
    Activemask "activemask",
    Add "add",
    Addc "addc",
    Alloca "alloca",
    And "and",
    Applypriority "applypriority",
    Atom "atom",
    Bar "bar",
    BarWarpSync "bar.warp",
    Barrier "barrier",
    BarrierCluster "barrier.cluster",
    Bfe "bfe",
    Bfi "bfi",
    Bfind "bfind",
    Bmsk "bmsk",
    Bra "bra",
    Brev "brev",
    Brkpt "brkpt",
    BrxIdx "brx.idx",
    Call "call",
    Clz "clz",
    Cnot "cnot",
    Copysign "copysign",
    Cos "cos",
    CpAsync "cp.async",
    CpAsyncBulk "cp.async.bulk",
    CpAsyncBulkCommitGroup "cp.async.bulk.commit_group",
    CpAsyncBulkPrefetch "cp.async.bulk.prefetch",
    CpAsyncBulkPrefetchTensor "cp.async.bulk.prefetch.tensor",
    CpAsyncBulkTensor "cp.async.bulk.tensor",
    CpAsyncBulkWaitGroup "cp.async.bulk.wait_group",
    CpAsyncCommitGroup "cp.async.commit_group",
    CpAsyncMbarrierArrive "cp.async.mbarrier.arrive",
    CpAsyncWaitAll "cp.async.wait_all",
    CpAsyncWaitGroup "cp.async.wait_group",
    CpReduceAsyncBulk "cp.reduce.async.bulk",
    CpReduceAsyncBulkTensor "cp.reduce.async.bulk.tensor",
    Createpolicy "createpolicy",
    Cvt "cvt",
    CvtPack "cvt.pack",
    Cvta "cvta",
    Discard "discard",
    Div "div",
    Dp2a "dp2a",
    Dp4a "dp4a",
    Elect "elect",
    Ex2 "ex2",
    Exit "exit",
    Fence "fence",
    FenceMbarrierInit "fence.mbarrier_init",
    FenceProxy "fence.proxy",
    Fma "fma",
    Fns "fns",
    Getctarank "getctarank",
    Griddepcontrol "griddepcontrol",
    Isspacep "isspacep",
    Ld "ld",
    Ldmatrix "ldmatrix",
    Ldu "ldu",
    Lg2 "lg2",
    Lop3 "lop3",
    Mad "mad",
    Mad24 "mad24",
    Madc "madc",
    Mapa "mapa",
    Match "match",
    Max "max",
    MbarrierArrive "mbarrier.arrive",
    MbarrierArriveDrop "mbarrier.arrive_drop",
    MbarrierCompleteTx "mbarrier.complete_tx",
    MbarrierExpectTx "mbarrier.expect_tx",
    MbarrierInit "mbarrier.init",
    MbarrierInval "mbarrier.inval",
    MbarrierPendingCount "mbarrier.pending_count",
    MbarrierTestWait "mbarrier.test_wait",
    MbarrierTryWait "mbarrier.try_wait",
    Membar "membar",
    Min "min",
    Mma "mma",
    Mov "mov",
    Movmatrix "movmatrix",
    Mul "mul",
    Mul24 "mul24",
    MultimemLdReduce "multimem.ld_reduce",
    MultimemRed "multimem.red",
    MultimemSt "multimem.st",
    Nanosleep "nanosleep",
    Neg "neg",
    Not "not",
    Or "or",
    Pmevent "pmevent",
    Popc "popc",
    Prefetch "prefetch",
    Prefetchu "prefetchu",
    Prmt "prmt",
    Rcp "rcp",
    Red "red",
    RedAsync "red.async",
    Redux "redux",
    Rem "rem",
    Ret "ret",
    Rsqrt "rsqrt",
    Sad "sad",
    Selp "selp",
    Set "set",
    Setmaxnreg "setmaxnreg",
    Setp "setp",
    Shf "shf",
    Shfl "shfl",
    Shl "shl",
    Shr "shr",
    Sin "sin",
    Slct "slct",
    Sqrt "sqrt",
    St "st",
    StAsync "st.async",
    StBulk "st.bulk",
    Stackrestore "stackrestore",
    Stacksave "stacksave",
    Stmatrix "stmatrix",
    Sub "sub",
    Subc "subc",
    Szext "szext",
    Tanh "tanh",
    TensormapCpFenceproxy "tensormap.cp_fenceproxy",
    TensormapReplace "tensormap.replace",
    Testp "testp",
    Trap "trap",
    Vote "vote",
    WgmmaCommitGroup "wgmma.commit_group",
    WgmmaFence "wgmma.fence",
    WgmmaMmaAsync "wgmma.mma_async",
    WgmmaWaitGroup "wgmma.wait_group",
    WmmaLoad "wmma.load",
    WmmaMma "wmma.mma",
    WmmaStore "wmma.store",
    Xor "xor",
}
