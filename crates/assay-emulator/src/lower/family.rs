//! Which opcodes the emulator runs, and which file lowers them.

use assay_ptx::opcode::Base;

/// Which file lowers a base opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    Arithmetic,
    Float,
    Convert,
    Memory,
    Control,
    Warp,
    Matrix,
    Tile,
    Warpgroup,
    Mbarrier,
    Bulk,
    Cluster,
    Video,
    /// Has no effect in the emulator.
    Nothing,
    Unsupported,
}

/// Integer operations that no float shares, and logic.
const ARITHMETIC: &[Base] = &[
    Base::And,
    Base::Or,
    Base::Xor,
    Base::Not,
    Base::Cnot,
    Base::Shl,
    Base::Shr,
    Base::Shf,
    Base::Bfe,
    Base::Bfi,
    Base::Bfind,
    Base::Brev,
    Base::Clz,
    Base::Popc,
    Base::Prmt,
    Base::Lop3,
    Base::Sad,
    Base::Dp4a,
    Base::Dp2a,
    Base::Fns,
    Base::Bmsk,
    Base::Szext,
    Base::Rem,
    Base::Mul24,
    Base::Mad24,
    Base::Addc,
    Base::Subc,
    Base::Madc,
    Base::Selp,
];

/// Operations that integers and floats share, and those of floats alone.
const FLOAT: &[Base] = &[
    Base::Add,
    Base::Sub,
    Base::Mul,
    Base::Mad,
    Base::Div,
    Base::Abs,
    Base::Neg,
    Base::Min,
    Base::Max,
    Base::Fma,
    Base::Rcp,
    Base::Sqrt,
    Base::Rsqrt,
    Base::Ex2,
    Base::Lg2,
    Base::Sin,
    Base::Cos,
    Base::Tanh,
    Base::Testp,
    Base::Copysign,
    Base::Setp,
    Base::Set,
    Base::Slct,
];

const MEMORY: &[Base] = &[
    Base::Mov,
    Base::Ld,
    Base::Ldu,
    Base::St,
    Base::Atom,
    Base::Red,
    Base::Cvta,
    Base::Isspacep,
    Base::CpAsync,
    Base::CpAsyncCommitGroup,
    Base::CpAsyncWaitGroup,
    Base::CpAsyncWaitAll,
    Base::Createpolicy,
    Base::Alloca,
    Base::Stacksave,
    Base::Stackrestore,
];

const CONTROL: &[Base] = &[
    Base::Bra,
    Base::BrxIdx,
    Base::Call,
    Base::Ret,
    Base::Exit,
    Base::Trap,
    Base::Brkpt,
    Base::Nanosleep,
];

const WARP: &[Base] = &[
    Base::Shfl,
    Base::Vote,
    Base::Match,
    Base::Redux,
    Base::Activemask,
    Base::Elect,
    Base::BarWarpSync,
    Base::Bar,
    Base::Barrier,
];

const MBARRIER: &[Base] = &[
    Base::MbarrierInit,
    Base::MbarrierInval,
    Base::MbarrierArrive,
    Base::MbarrierArriveDrop,
    Base::MbarrierTestWait,
    Base::MbarrierTryWait,
    Base::MbarrierExpectTx,
    Base::MbarrierCompleteTx,
    Base::MbarrierPendingCount,
    Base::CpAsyncMbarrierArrive,
];

/// Bulk copies, tensor maps, and the fence between the proxies.
const BULK: &[Base] = &[
    Base::CpAsyncBulk,
    Base::CpAsyncBulkCommitGroup,
    Base::CpAsyncBulkPrefetch,
    Base::CpAsyncBulkPrefetchTensor,
    Base::CpAsyncBulkTensor,
    Base::CpAsyncBulkWaitGroup,
    Base::CpReduceAsyncBulk,
    Base::CpReduceAsyncBulkTensor,
    Base::TensormapCpFenceproxy,
    Base::TensormapReplace,
    Base::FenceProxy,
];
const CLUSTER: &[Base] =
    &[Base::BarrierCluster, Base::Mapa, Base::Getctarank, Base::StAsync, Base::RedAsync];

const MATRIX: &[Base] = &[Base::Ldmatrix, Base::Stmatrix, Base::Movmatrix, Base::Mma];

const TILE: &[Base] = &[Base::WmmaLoad, Base::WmmaMma, Base::WmmaStore];

const WARPGROUP: &[Base] =
    &[Base::WgmmaFence, Base::WgmmaMmaAsync, Base::WgmmaCommitGroup, Base::WgmmaWaitGroup];

const VIDEO: &[Base] = &[
    Base::Vadd2,
    Base::Vsub2,
    Base::Vavrg2,
    Base::Vabsdiff2,
    Base::Vmin2,
    Base::Vmax2,
    Base::Vset2,
    Base::Vadd4,
    Base::Vsub4,
    Base::Vavrg4,
    Base::Vabsdiff4,
    Base::Vmin4,
    Base::Vmax4,
    Base::Vset4,
];

/// Fences order what already happens in one order here; the rest are hints.
const NOTHING: &[Base] = &[
    Base::Membar,
    Base::Fence,
    Base::FenceMbarrierInit,
    Base::Prefetch,
    Base::Prefetchu,
    Base::Applypriority,
    Base::Discard,
    Base::Griddepcontrol,
    Base::Pmevent,
    Base::Setmaxnreg,
];

impl Family {
    pub(super) fn of(base: Base) -> Family {
        let families = [
            (ARITHMETIC, Family::Arithmetic),
            (FLOAT, Family::Float),
            (&[Base::Cvt, Base::CvtPack], Family::Convert),
            (MEMORY, Family::Memory),
            (CONTROL, Family::Control),
            (WARP, Family::Warp),
            (MATRIX, Family::Matrix),
            (TILE, Family::Tile),
            (WARPGROUP, Family::Warpgroup),
            (MBARRIER, Family::Mbarrier),
            (BULK, Family::Bulk),
            (CLUSTER, Family::Cluster),
            (VIDEO, Family::Video),
            (NOTHING, Family::Nothing),
        ];
        let found = families.into_iter().find(|(bases, _)| bases.contains(&base));
        found.map_or(Family::Unsupported, |(_, family)| family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_opcodes_and_matrices_have_a_family_and_tensor_maps_have_none() {
        assert_eq!(Family::of(Base::Lop3), Family::Arithmetic);
        assert_eq!(Family::of(Base::Cvt), Family::Convert);
        assert_eq!(Family::of(Base::Mma), Family::Matrix);
        assert_eq!(Family::of(Base::WgmmaMmaAsync), Family::Warpgroup);
        assert_eq!(Family::of(Base::TensormapReplace), Family::Bulk);
    }

    #[test]
    fn no_opcode_is_in_two_families() {
        let all = [ARITHMETIC, FLOAT, MEMORY, CONTROL, WARP, MATRIX, TILE, WARPGROUP, MBARRIER];
        let all = [all.concat(), [BULK, VIDEO, CLUSTER, NOTHING].concat()].concat();
        for base in Base::ALL {
            assert!(all.iter().filter(|&known| known == base).count() <= 1, "{base:?}");
        }
    }
}
