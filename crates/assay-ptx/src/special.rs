//! Special registers (ISA 10): their names, types and axes.

use crate::opcode::Type;

/// The axis of a vector special register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Axis {
    /// `.x`
    X,
    /// `.y`
    Y,
    /// `.z`
    Z,
    /// `.w`, always zero.
    W,
}

impl Axis {
    /// 0 for x, 1 for y, 2 for z, 3 for w.
    pub fn index(self) -> usize {
        self as usize
    }

    /// `"x"`, `"y"`, `"z"` or `"w"`.
    pub fn name(self) -> &'static str {
        ["x", "y", "z", "w"][self.index()]
    }
}

macro_rules! special_registers {
    ($($variant:ident $text:literal $kind:ident,)*) => {
        /// A special register.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum SpecialRegister {
            $(#[doc = concat!("`%", $text, "`")] $variant,)*
            /// `%pm0` to `%pm7`: performance counters.
            Pm(u8),
            /// `%pm0_64` to `%pm7_64`.
            Pm64(u8),
            /// `%envreg0` to `%envreg31`: set by the driver.
            Envreg(u8),
            /// `%reserved_smem_offset_0` and `_1`.
            ReservedSmemOffset(u8),
        }

        impl SpecialRegister {
            /// The registers without a number in their name.
            pub const NAMED: &'static [SpecialRegister] = &[$(SpecialRegister::$variant,)*];

            /// The name without its `%`.
            pub fn name(self) -> String {
                match self {
                    $(SpecialRegister::$variant => $text.to_string(),)*
                    SpecialRegister::Pm(n) => format!("pm{n}"),
                    SpecialRegister::Pm64(n) => format!("pm{n}_64"),
                    SpecialRegister::Envreg(n) => format!("envreg{n}"),
                    SpecialRegister::ReservedSmemOffset(n) => format!("reserved_smem_offset_{n}"),
                }
            }

            fn kind(self) -> Kind {
                match self {
                    $(SpecialRegister::$variant => Kind::$kind,)*
                    SpecialRegister::Pm64(_) => Kind::Long,
                    SpecialRegister::Pm(_)
                    | SpecialRegister::Envreg(_)
                    | SpecialRegister::ReservedSmemOffset(_) => Kind::Word,
                }
            }

            fn from_plain_name(name: &str) -> Option<SpecialRegister> {
                match name {
                    $($text => Some(SpecialRegister::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Long,
    Predicate,
    Vector,
}

special_registers! {
    Tid "tid" Vector,
    Ntid "ntid" Vector,
    Laneid "laneid" Word,
    Warpid "warpid" Word,
    Nwarpid "nwarpid" Word,
    Ctaid "ctaid" Vector,
    Nctaid "nctaid" Vector,
    Smid "smid" Word,
    Nsmid "nsmid" Word,
    Gridid "gridid" Long,
    IsExplicitCluster "is_explicit_cluster" Predicate,
    Clusterid "clusterid" Vector,
    Nclusterid "nclusterid" Vector,
    ClusterCtaid "cluster_ctaid" Vector,
    ClusterNctaid "cluster_nctaid" Vector,
    ClusterCtarank "cluster_ctarank" Word,
    ClusterNctarank "cluster_nctarank" Word,
    LanemaskEq "lanemask_eq" Word,
    LanemaskLe "lanemask_le" Word,
    LanemaskLt "lanemask_lt" Word,
    LanemaskGe "lanemask_ge" Word,
    LanemaskGt "lanemask_gt" Word,
    Clock "clock" Word,
    ClockHi "clock_hi" Word,
    Clock64 "clock64" Long,
    Globaltimer "globaltimer" Long,
    GlobaltimerLo "globaltimer_lo" Word,
    GlobaltimerHi "globaltimer_hi" Word,
    ReservedSmemOffsetBegin "reserved_smem_offset_begin" Word,
    ReservedSmemOffsetEnd "reserved_smem_offset_end" Word,
    ReservedSmemOffsetCap "reserved_smem_offset_cap" Word,
    TotalSmemSize "total_smem_size" Word,
    AggrSmemSize "aggr_smem_size" Word,
    DynamicSmemSize "dynamic_smem_size" Word,
    CurrentGraphExec "current_graph_exec" Long,
}

impl SpecialRegister {
    /// Finds a special register by its name without `%` and without an axis.
    pub fn from_name(name: &str) -> Option<SpecialRegister> {
        SpecialRegister::from_plain_name(name).or_else(|| SpecialRegister::numbered(name))
    }

    fn numbered(name: &str) -> Option<SpecialRegister> {
        let number = |text: &str, limit: u8| {
            let canonical = text == "0" || !text.starts_with('0');
            text.parse().ok().filter(|&n: &u8| n < limit && canonical && !text.starts_with('+'))
        };
        if let Some(rest) = name.strip_prefix("pm") {
            return match rest.strip_suffix("_64") {
                Some(digits) => number(digits, 8).map(SpecialRegister::Pm64),
                None => number(rest, 8).map(SpecialRegister::Pm),
            };
        }
        if let Some(rest) = name.strip_prefix("envreg") {
            return number(rest, 32).map(SpecialRegister::Envreg);
        }
        let rest = name.strip_prefix("reserved_smem_offset_")?;
        number(rest, 2).map(SpecialRegister::ReservedSmemOffset)
    }

    /// The type of the register, or of one axis of it.
    pub fn ty(self) -> Type {
        match self.kind() {
            Kind::Word | Kind::Vector => Type::U32,
            Kind::Long => Type::U64,
            Kind::Predicate => Type::Pred,
        }
    }

    /// Whether the register has axes x, y and z.
    pub fn is_vector(self) -> bool {
        self.kind() == Kind::Vector
    }
}
