//! Types (ISA 5.2), state spaces (ISA 5.1), matrix shapes and layouts.

macro_rules! types {
    ($($variant:ident $text:literal $bits:literal $kind:ident,)*) => {
        /// An instruction or variable type, written with a dot in PTX.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Type {
            $(#[doc = concat!("`.", $text, "`")] $variant,)*
        }

        impl Type {
            /// All types.
            pub const ALL: &'static [Type] = &[$(Type::$variant,)*];

            /// The name without its dot.
            pub fn name(self) -> &'static str {
                match self { $(Type::$variant => $text,)* }
            }

            /// Finds a type by its name without the dot.
            pub fn from_name(name: &str) -> Option<Type> {
                match name { $($text => Some(Type::$variant),)* _ => None }
            }

            /// Bits of a value; 1 for a predicate, 64 for opaque references.
            pub fn bits(self) -> u32 {
                match self { $(Type::$variant => $bits,)* }
            }

            /// What sort of type it is.
            pub fn kind(self) -> TypeKind {
                match self { $(Type::$variant => TypeKind::$kind,)* }
            }
        }
    };
}

/// The sort of a [`Type`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    /// Two's complement.
    Signed,
    /// Unsigned.
    Unsigned,
    /// Untyped bits.
    Bits,
    /// A scalar float with a register type of its own (`.f16 .f32 .f64 .bf16 .tf32`).
    Float,
    /// Several numbers, or a narrow float, in one container.
    Packed,
    /// A predicate.
    Predicate,
    /// `.texref`, `.samplerref`, `.surfref`.
    Opaque,
}

types! {
    Pred "pred" 1 Predicate,
    B1 "b1" 1 Packed,
    B8 "b8" 8 Bits,
    B16 "b16" 16 Bits,
    B32 "b32" 32 Bits,
    B64 "b64" 64 Bits,
    B128 "b128" 128 Bits,
    U8 "u8" 8 Unsigned,
    U16 "u16" 16 Unsigned,
    U32 "u32" 32 Unsigned,
    U64 "u64" 64 Unsigned,
    S8 "s8" 8 Signed,
    S16 "s16" 16 Signed,
    S32 "s32" 32 Signed,
    S64 "s64" 64 Signed,
    F16 "f16" 16 Float,
    Bf16 "bf16" 16 Float,
    F32 "f32" 32 Float,
    F64 "f64" 64 Float,
    Tf32 "tf32" 32 Float,
    F16x2 "f16x2" 32 Packed,
    Bf16x2 "bf16x2" 32 Packed,
    F32x2 "f32x2" 64 Packed,
    U16x2 "u16x2" 32 Packed,
    S16x2 "s16x2" 32 Packed,
    U8x4 "u8x4" 32 Packed,
    S8x4 "s8x4" 32 Packed,
    U2 "u2" 2 Packed,
    S2 "s2" 2 Packed,
    U4 "u4" 4 Packed,
    S4 "s4" 4 Packed,
    E4m3 "e4m3" 8 Packed,
    E5m2 "e5m2" 8 Packed,
    E3m2 "e3m2" 8 Packed,
    E2m3 "e2m3" 8 Packed,
    E2m1 "e2m1" 4 Packed,
    E4m3x2 "e4m3x2" 16 Packed,
    E5m2x2 "e5m2x2" 16 Packed,
    E3m2x2 "e3m2x2" 16 Packed,
    E2m3x2 "e2m3x2" 16 Packed,
    E2m1x2 "e2m1x2" 8 Packed,
    E4m3x4 "e4m3x4" 32 Packed,
    E5m2x4 "e5m2x4" 32 Packed,
    E3m2x4 "e3m2x4" 32 Packed,
    E2m3x4 "e2m3x4" 32 Packed,
    E2m1x4 "e2m1x4" 16 Packed,
    Ue8m0 "ue8m0" 8 Packed,
    Ue4m3 "ue4m3" 8 Packed,
    Ue8m0x2 "ue8m0x2" 16 Packed,
    S2f6x2 "s2f6x2" 16 Packed,
    B8x16 "b8x16" 128 Packed,
    B6x16P32 "b6x16_p32" 128 Packed,
    B4x16P64 "b4x16_p64" 128 Packed,
    TexRef "texref" 64 Opaque,
    SamplerRef "samplerref" 64 Opaque,
    SurfRef "surfref" 64 Opaque,
}

impl Type {
    /// Bytes of a value in memory; sub-byte types and predicates round up to 1.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether it is a two's complement integer type.
    pub fn is_signed(self) -> bool {
        self.kind() == TypeKind::Signed
    }

    /// Whether it is `.sN` or `.uN`.
    pub fn is_integer(self) -> bool {
        matches!(self.kind(), TypeKind::Signed | TypeKind::Unsigned)
    }

    /// Whether it is a scalar float.
    pub fn is_float(self) -> bool {
        self.kind() == TypeKind::Float
    }
}

macro_rules! spaces {
    ($($variant:ident $text:literal $doc:literal,)*) => {
        /// A state space.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum StateSpace {
            /// No space written: a generic address.
            Generic,
            $(#[doc = $doc] $variant,)*
        }

        impl StateSpace {
            /// All spaces that can be written.
            pub const ALL: &'static [StateSpace] = &[$(StateSpace::$variant,)*];

            /// The name without its dot; `"generic"` for [`StateSpace::Generic`].
            pub fn name(self) -> &'static str {
                match self { StateSpace::Generic => "generic", $(StateSpace::$variant => $text,)* }
            }

            /// Finds a space by its name without the dot.
            pub fn from_name(name: &str) -> Option<StateSpace> {
                match name { $($text => Some(StateSpace::$variant),)* _ => None }
            }
        }
    };
}

spaces! {
    Const "const" "`.const`",
    Global "global" "`.global`",
    Local "local" "`.local`",
    Param "param" "`.param`",
    ParamEntry "param::entry" "`.param::entry`: parameters of the kernel",
    ParamFunc "param::func" "`.param::func`: parameters of a device function",
    Shared "shared" "`.shared`, the same as `.shared::cta`",
    SharedCta "shared::cta" "`.shared::cta`: shared memory of the own block",
    SharedCluster "shared::cluster" "`.shared::cluster`: shared memory of any block of the cluster",
    Tex "tex" "`.tex`",
}

impl StateSpace {
    /// Whether it is shared memory, of the own block or of the cluster.
    pub fn is_shared(self) -> bool {
        matches!(self, StateSpace::Shared | StateSpace::SharedCta | StateSpace::SharedCluster)
    }

    /// Whether it is parameter space.
    pub fn is_param(self) -> bool {
        matches!(self, StateSpace::Param | StateSpace::ParamEntry | StateSpace::ParamFunc)
    }
}

/// A matrix shape: `m16n8k16`; `m8n8` has `k` 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shape {
    /// Rows of D.
    pub m: u16,
    /// Columns of D.
    pub n: u16,
    /// Terms of each dot product; 0 when not written.
    pub k: u16,
}

impl Shape {
    /// Reads `m16n8k16` or `m8n8`; numbers of at most three digits without leading zeros.
    pub fn from_name(name: &str) -> Option<Shape> {
        let rest = name.strip_prefix('m')?;
        let (m, rest) = rest.split_once('n')?;
        let (n, k) = match rest.split_once('k') {
            Some((n, k)) => (n, Some(k)),
            None => (rest, None),
        };
        let k = match k {
            Some(text) => shape_number(text)?,
            None => 0,
        };
        Some(Shape { m: shape_number(m)?, n: shape_number(n)?, k })
    }
}

fn shape_number(text: &str) -> Option<u16> {
    let plain = (1..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if plain && !text.starts_with('0') { text.parse().ok() } else { None }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "m{}n{}", self.m, self.n)?;
        if self.k == 0 { Ok(()) } else { write!(f, "k{}", self.k) }
    }
}

/// How a matrix lies in memory or in registers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Layout {
    /// `.row`
    Row,
    /// `.col`
    Column,
}
