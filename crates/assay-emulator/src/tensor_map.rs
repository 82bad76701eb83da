//! Tensor maps: what `cp.async.bulk.tensor` is told of a tensor (ISA 5.5).
//!
//! The 128 bytes of a map are opaque to programs, and those of a GPU are no one's business here.
//! This is the emulator's own layout; `tensormap.replace` writes it field by field, from zeros or
//! over a map that the host made.

use crate::arithmetic::half::OUT_OF_BOUNDS_NAN;

/// Bytes of a map.
pub const TENSOR_MAP_BYTES: usize = 128;
/// The most dimensions of a tensor.
pub const MAX_TENSOR_RANK: usize = 5;

/// Where `tensormap.replace` puts the global address.
pub(crate) const ADDRESS: usize = 0;
/// Strides in bytes, 64 bits each, from dimension 1 on.
pub(crate) const STRIDES: usize = 8;
/// Sizes in elements, 32 bits each.
pub(crate) const SIZES: usize = 40;
/// The box in elements, 32 bits each.
pub(crate) const BOX: usize = 60;
/// Traversal strides in elements, 32 bits each.
pub(crate) const ELEMENT_STRIDES: usize = 80;
/// Dimensions less one, a byte, as are the next ones.
pub(crate) const RANK: usize = 100;
pub(crate) const ELEMENT: usize = 101;
pub(crate) const INTERLEAVE: usize = 102;
pub(crate) const SWIZZLE: usize = 103;
pub(crate) const ATOMICITY: usize = 104;
pub(crate) const FILL: usize = 105;
/// Whether the map is one of pixels.
const MODE: usize = 106;
/// Corners of the pixel box, 16 bits each, from dimension 1 on; channels and pixels per copy.
const LOWER: usize = 108;
const UPPER: usize = 114;
const CHANNELS: usize = 120;
const PIXELS: usize = 122;

/// The type of a tensor's elements, numbered as `tensormap.replace.elemtype` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorElement {
    /// `.u8`
    U8,
    /// `.u16`
    U16,
    /// `.u32`
    U32,
    /// `.s32`
    S32,
    /// `.u64`
    U64,
    /// `.s64`
    S64,
    /// `.f16`
    F16,
    /// `.f32`
    F32,
    /// `.f32.ftz`
    F32Ftz,
    /// `.f64`
    F64,
    /// `.bf16`
    Bf16,
    /// `.tf32`
    Tf32,
    /// `.tf32.ftz`
    Tf32Ftz,
}

impl TensorElement {
    /// All of them, in the order of their numbers.
    pub const ALL: [TensorElement; 13] = [
        TensorElement::U8,
        TensorElement::U16,
        TensorElement::U32,
        TensorElement::S32,
        TensorElement::U64,
        TensorElement::S64,
        TensorElement::F16,
        TensorElement::F32,
        TensorElement::F32Ftz,
        TensorElement::F64,
        TensorElement::Bf16,
        TensorElement::Tf32,
        TensorElement::Tf32Ftz,
    ];

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            TensorElement::U8 => 1,
            TensorElement::U16 | TensorElement::F16 | TensorElement::Bf16 => 2,
            TensorElement::U64 | TensorElement::S64 | TensorElement::F64 => 8,
            _ => 4,
        }
    }

    /// Whether elements outside the tensor may be NaN.
    pub fn is_float(self) -> bool {
        !matches!(
            self,
            TensorElement::U8
                | TensorElement::U16
                | TensorElement::U32
                | TensorElement::S32
                | TensorElement::U64
                | TensorElement::S64
        )
    }
}

/// How a box lies in shared memory: which 16-byte parts of a row change places (ISA 5.5.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TensorSwizzle {
    /// In order.
    #[default]
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl TensorSwizzle {
    /// All of them, in the order of their numbers.
    pub const ALL: [TensorSwizzle; 4] = [
        TensorSwizzle::None,
        TensorSwizzle::Bytes32,
        TensorSwizzle::Bytes64,
        TensorSwizzle::Bytes128,
    ];

    /// Bytes within which parts change places; 0 for none.
    pub fn span(self) -> u32 {
        match self {
            TensorSwizzle::None => 0,
            TensorSwizzle::Bytes32 => 32,
            TensorSwizzle::Bytes64 => 64,
            TensorSwizzle::Bytes128 => 128,
        }
    }
}

/// The box of pixels of a map for `.im2col` (ISA 5.5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PixelBox {
    /// Its lower corner relative to the tensor's, W first.
    pub lower: [i16; 3],
    /// Its upper corner relative to the tensor's, W first.
    pub upper: [i16; 3],
    /// Channels of a copy.
    pub channels: u16,
    /// Pixels of a copy.
    pub pixels: u16,
}

/// A tensor in global memory, and the box that one copy takes of it. Dimension 0 is the innermost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// Dimensions: 1 to 5. What lies beyond in the arrays is ignored.
    pub rank: usize,
    /// The type of an element.
    pub element: TensorElement,
    /// The address of the first element.
    pub address: u64,
    /// Elements along each dimension.
    pub sizes: [u32; MAX_TENSOR_RANK],
    /// Bytes from one element to the next along dimensions 1 to 4.
    pub strides: [u64; MAX_TENSOR_RANK - 1],
    /// Elements of the box along each dimension, before traversal strides.
    pub box_sizes: [u32; MAX_TENSOR_RANK],
    /// Every how many elements one is taken, along each dimension.
    pub element_strides: [u32; MAX_TENSOR_RANK],
    /// The order of the box in shared memory.
    pub swizzle: TensorSwizzle,
    /// Bytes that a swizzle keeps together: 16, 32 or 64.
    pub atom: u32,
    /// Elements outside the tensor are NaN rather than zero.
    pub fills_nan: bool,
    /// For `.im2col`: the pixels.
    pub pixels: Option<PixelBox>,
}

impl TensorMap {
    /// A dense tensor in row-major order, taken in whole boxes.
    pub fn dense(
        element: TensorElement,
        address: u64,
        sizes: &[u32],
        box_sizes: &[u32],
    ) -> TensorMap {
        let mut map = TensorMap {
            rank: sizes.len().clamp(1, MAX_TENSOR_RANK),
            element,
            address,
            sizes: [1; MAX_TENSOR_RANK],
            strides: [0; MAX_TENSOR_RANK - 1],
            box_sizes: [1; MAX_TENSOR_RANK],
            element_strides: [1; MAX_TENSOR_RANK],
            swizzle: TensorSwizzle::None,
            atom: 16,
            fills_nan: false,
            pixels: None,
        };
        let mut bytes = u64::from(element.bytes());
        for (dimension, &size) in sizes.iter().take(MAX_TENSOR_RANK).enumerate() {
            map.sizes[dimension] = size;
            map.box_sizes[dimension] = box_sizes.get(dimension).copied().unwrap_or(1);
            bytes = bytes.saturating_mul(u64::from(size));
            if let Some(stride) = map.strides.get_mut(dimension) {
                *stride = bytes;
            }
        }
        map
    }

    /// The bytes that a kernel gets.
    pub fn encode(&self) -> [u8; TENSOR_MAP_BYTES] {
        let mut bytes = [0; TENSOR_MAP_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(ADDRESS, &self.address.to_le_bytes());
        for (dimension, stride) in self.strides.iter().enumerate() {
            put(STRIDES + 8 * dimension, &stride.to_le_bytes());
        }
        for dimension in 0..MAX_TENSOR_RANK {
            let at = 4 * dimension;
            put(SIZES + at, &self.sizes[dimension].to_le_bytes());
            put(BOX + at, &self.box_sizes[dimension].to_le_bytes());
            put(ELEMENT_STRIDES + at, &self.element_strides[dimension].to_le_bytes());
        }
        put(RANK, &[self.rank.wrapping_sub(1) as u8, self.element as u8, 0, self.swizzle as u8]);
        put(ATOMICITY, &[ATOMS.iter().position(|&(atom, _)| atom == self.atom).unwrap_or(0) as u8]);
        put(FILL, &[u8::from(self.fills_nan), u8::from(self.pixels.is_some())]);
        if let Some(pixels) = self.pixels {
            for axis in 0..3 {
                put(LOWER + 2 * axis, &pixels.lower[axis].to_le_bytes());
                put(UPPER + 2 * axis, &pixels.upper[axis].to_le_bytes());
            }
            put(CHANNELS, &pixels.channels.to_le_bytes());
            put(PIXELS, &pixels.pixels.to_le_bytes());
        }
        bytes
    }

    /// Reads a map, and refuses what a copy may not be given.
    pub(crate) fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Result<TensorMap, MapError> {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let wide = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let words = |at: usize| std::array::from_fn(|dimension| word(at + 4 * dimension));
        let corner = |at: usize| std::array::from_fn(|axis| half(at + 2 * axis) as i16);
        let element = *TensorElement::ALL
            .get(usize::from(bytes[ELEMENT]))
            .ok_or_else(|| MapError::unsupported("a tensor map of packed 4- or 6-bit elements"))?;
        if bytes[INTERLEAVE] != 0 {
            return Err(MapError::unsupported("a tensor map with an interleaved layout"));
        }
        let swizzle = *TensorSwizzle::ALL
            .get(usize::from(bytes[SWIZZLE]))
            .ok_or_else(|| MapError::unsupported("a tensor map with a swizzle of 96 bytes"))?;
        let atom = ATOMS
            .get(usize::from(bytes[ATOMICITY]))
            .filter(|(_, emulated)| *emulated)
            .ok_or_else(|| MapError::unsupported("a tensor map whose swizzle flips 8 bytes"))?
            .0;
        let map = TensorMap {
            rank: usize::from(bytes[RANK]) + 1,
            element,
            address: wide(ADDRESS),
            sizes: words(SIZES),
            strides: std::array::from_fn(|dimension| wide(STRIDES + 8 * dimension)),
            box_sizes: words(BOX),
            element_strides: words(ELEMENT_STRIDES),
            swizzle,
            atom,
            fills_nan: bytes[FILL] != 0,
            pixels: (bytes[MODE] != 0).then(|| PixelBox {
                lower: corner(LOWER),
                upper: corner(UPPER),
                channels: half(CHANNELS),
                pixels: half(PIXELS),
            }),
        };
        map.problem().map_or(Ok(map), |what| Err(MapError::Misuse(what)))
    }

    /// What is wrong with the map, if anything: the rules of `cuTensorMapEncodeTiled` and
    /// `cuTensorMapEncodeIm2col`, which hold for maps made on the device too.
    pub fn problem(&self) -> Option<String> {
        if !(1..=MAX_TENSOR_RANK).contains(&self.rank) {
            return Some(format!("a tensor map of {} dimensions; 1 to 5 are possible", self.rank));
        }
        if !self.address.is_multiple_of(16) {
            let address = self.address;
            return Some(format!(
                "the tensor's address {address:#x} in the map is no multiple of 16"
            ));
        }
        (0..self.rank).find_map(|dimension| self.dimension_problem(dimension)).or_else(|| {
            let (span, row) = (self.swizzle.span(), self.row_bytes());
            if row == 0 || !row.is_multiple_of(16) {
                return Some(format!("a box row of {row} bytes in a tensor map; take 16, 32, ..."));
            }
            (span != 0 && row > u64::from(span))
                .then(|| format!("a box row of {row} bytes in a swizzle of {span} bytes"))
        })
    }

    fn dimension_problem(&self, dimension: usize) -> Option<String> {
        if self.sizes[dimension] == 0 {
            return Some(format!("size 0 along dimension {dimension} of a tensor map"));
        }
        let (taken, step) = (self.box_sizes[dimension], self.element_strides[dimension]);
        if self.pixels.is_none() && !(1..=256).contains(&taken) {
            return Some(format!(
                "a box of {taken} elements along dimension {dimension} of a tensor map; \
                 1 to 256 are possible"
            ));
        }
        if dimension > 0 && !(1..=8).contains(&step) {
            return Some(format!(
                "element stride {step} along dimension {dimension} of a tensor map; \
                 1 to 8 are possible"
            ));
        }
        let stride = *self.strides.get(dimension)?;
        (dimension + 1 < self.rank && !stride.is_multiple_of(16))
            .then(|| format!("stride {stride} in a tensor map, which is no multiple of 16 bytes"))
    }

    /// Bytes of a row of the box, which are together in both memories.
    pub(crate) fn row_bytes(&self) -> u64 {
        let elements = self.pixels.map_or(self.box_sizes[0], |pixels| pixels.channels.into());
        u64::from(elements) * u64::from(self.element.bytes())
    }

    /// Bytes from one row of the box to the next in shared memory: a swizzle keeps short rows
    /// apart.
    pub(crate) fn pitch(&self) -> u64 {
        self.row_bytes().max(self.swizzle.span().into())
    }

    /// Where byte `address` of shared memory lies after swizzling.
    #[inline]
    pub(crate) fn swizzled(&self, address: u64) -> u64 {
        let span = u64::from(self.swizzle.span());
        if span == 0 {
            return address;
        }
        let atom = u64::from(self.atom);
        address ^ (((address >> 7) & (span / atom - 1)) * atom)
    }

    /// What every 16 bits outside the tensor hold, of whatever type the elements are: zeros, or the
    /// NaN that `fma.oob` knows. Settled on an H200.
    pub(crate) fn filler(&self) -> u16 {
        if self.fills_nan && self.element.is_float() { OUT_OF_BOUNDS_NAN } else { 0 }
    }
}

/// Bytes that the numbers of `tensormap.replace.swizzle_atomicity` keep together, and whether the
/// emulator has them.
const ATOMS: [(u32, bool); 4] = [(16, true), (32, true), (32, false), (64, true)];

/// Why a copy cannot use a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MapError {
    /// A limit of the emulator.
    Unsupported(String),
    /// A mistake in the map.
    Misuse(String),
}

impl MapError {
    fn unsupported(what: &str) -> MapError {
        MapError::Unsupported(what.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap::dense(TensorElement::F16, 0x1000, &[64, 10, 3], &[64, 8])
    }

    #[test]
    fn a_map_comes_back_from_its_bytes() {
        let mut map = map();
        map.swizzle = TensorSwizzle::Bytes128;
        map.fills_nan = true;
        map.element_strides[1] = 2;
        assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
        map.pixels =
            Some(PixelBox { lower: [-1, -2, 0], upper: [1, -3, 0], channels: 64, pixels: 100 });
        assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
    }

    #[test]
    fn strides_of_a_dense_tensor_are_products_of_sizes() {
        assert_eq!(map().strides[..2], [128, 1280]);
    }

    #[test]
    fn a_swizzle_permutes_the_parts_of_each_row_by_its_number() {
        let part = |swizzle, atom, row: u64, part: u64| {
            let map = TensorMap { swizzle, atom, ..map() };
            map.swizzled(1024 + 128 * row + 16 * part) % 128 / 16
        };
        let row = |swizzle, atom, number| {
            std::array::from_fn(|at| part(swizzle, atom, number, at as u64))
        };
        // The tables of ISA 5.5.7: what lies where in the second and the fourth line.
        assert_eq!(row(TensorSwizzle::Bytes32, 16, 1), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(row(TensorSwizzle::Bytes64, 16, 3), [3, 2, 1, 0, 7, 6, 5, 4]);
        assert_eq!(row(TensorSwizzle::Bytes128, 16, 5), [5, 4, 7, 6, 1, 0, 3, 2]);
        assert_eq!(row(TensorSwizzle::Bytes128, 32, 1), [2, 3, 0, 1, 6, 7, 4, 5]);
        assert_eq!(row(TensorSwizzle::Bytes128, 64, 1), [4, 5, 6, 7, 0, 1, 2, 3]);
        assert_eq!(row(TensorSwizzle::None, 16, 5), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_map_that_no_copy_may_use_says_why() {
        let zeros = TensorMap::decode(&[0; TENSOR_MAP_BYTES]).unwrap_err();
        assert!(matches!(zeros, MapError::Misuse(what) if what.contains("size 0")));
        let problem = |change: fn(&mut TensorMap)| {
            let mut map = map();
            change(&mut map);
            map.problem().unwrap_or_default()
        };
        assert!(problem(|map| map.address = 8).contains("0x8"));
        assert!(problem(|map| map.strides[0] = 100).contains("stride 100"));
        assert!(problem(|map| map.box_sizes[1] = 257).contains("257"));
        assert!(problem(|map| map.box_sizes[0] = 4).contains("8 bytes"));
        assert!(problem(|map| map.element_strides[1] = 0).contains("element stride 0"));
        assert!(problem(|map| map.swizzle = TensorSwizzle::Bytes64).contains("128 bytes"));
        assert_eq!(map().problem(), None);
    }
}
