//! Matrix descriptors: where a matrix of `wgmma` lies in shared memory (ISA 9.7.15.5.1.2).
//!
//! Everything is made of runs of 16 bytes. A K-major matrix has a run for each row and so many
//! bytes along the depth; an MN-major one has a run for eight rows at one depth. A swizzle of W
//! bytes permutes the runs of a line by the number of the line, which is in the address itself.

/// Bits of an address that a descriptor can name.
const ADDRESS_MASK: u32 = 0x3_ffff;
/// Bytes of a run.
pub(crate) const RUN: u32 = 16;

/// A descriptor, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Descriptor {
    /// The address of the matrix in shared memory.
    start: u32,
    /// Leading dimension byte offset.
    leading: u32,
    /// Stride dimension byte offset.
    stride: u32,
    /// Lines from a boundary of the pattern to where this one begins.
    base: u32,
    /// Bytes of a line: 16 without swizzle, else 32, 64 or 128.
    line: u32,
}

impl Descriptor {
    /// The fields of the 64 bits.
    pub(crate) fn open(bits: u64) -> Descriptor {
        let field = |shift: u32| ((bits >> shift & 0x3fff) as u32) << 4;
        Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: (bits >> 49 & 7) as u32,
            line: match bits >> 62 {
                0 => RUN,
                1 => 128,
                2 => 64,
                _ => 32,
            },
        }
    }

    /// Where the run is that holds bytes `16 * run` and on of row `row` of a K-major matrix.
    pub(crate) fn along_depth(&self, row: u32, run: u32) -> u32 {
        let step = if self.line == RUN { self.leading } else { RUN };
        self.placed(row % 8 * self.line + row / 8 * self.stride + run * step)
    }

    /// Where the run is that holds rows `8 * eight` and on at one depth of an MN-major matrix.
    pub(crate) fn along_rows(&self, eight: u32, depth: u32) -> u32 {
        if self.line == RUN {
            let outer = eight * self.stride + depth / 8 * self.leading;
            return self.placed(outer + depth % 8 * RUN);
        }
        let runs = self.line / RUN;
        let outer = eight / runs * self.leading + depth / 8 * self.stride;
        self.placed(outer + depth % 8 * self.line + eight % runs * RUN)
    }

    /// The address of an offset, swizzled.
    fn placed(&self, offset: u32) -> u32 {
        let address = self.start.wrapping_add(offset) & ADDRESS_MASK;
        let line = (address >> 7).wrapping_sub(self.base) & (self.line / RUN - 1);
        address ^ (line * RUN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u64, leading: u64, stride: u64, mode: u64) -> Descriptor {
        Descriptor::open(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62)
    }

    #[test]
    fn a_k_major_matrix_without_swizzle_lies_as_the_isa_shows() {
        // tf32: ((8,2),(4,4)):((4,32),(1,64)) in elements of four bytes.
        let place = descriptor(0, 256, 128, 0);
        for (row, depth) in [(0, 0), (1, 0), (7, 4), (8, 0), (15, 12)] {
            let want = 4 * (row % 8 * 4 + row / 8 * 32 + depth / 4 * 64);
            assert_eq!(place.along_depth(row, depth / 4), want, "row {row} depth {depth}");
        }
    }

    #[test]
    fn a_line_of_128_bytes_has_its_runs_permuted_by_its_number() {
        let place = descriptor(2048, 16, 1024, 1);
        for row in 0..16 {
            for run in 0..8 {
                let want = 2048 + row * 128 + (run ^ (row % 8)) * 16;
                assert_eq!(place.along_depth(row, run), want);
            }
        }
        // A start inside a line goes on in the same pattern.
        let inside = descriptor(2048 + 32, 16, 1024, 1);
        assert_eq!(inside.along_depth(3, 1), place.along_depth(3, 3));
    }

    #[test]
    fn narrow_swizzles_look_at_fewer_bits() {
        let place = descriptor(0, 16, 512, 2);
        assert_eq!(place.along_depth(1, 0), 64);
        assert_eq!(place.along_depth(2, 0), 128 + 16);
        assert_eq!(place.along_depth(6, 1), 384 + 32);
        let place = descriptor(0, 16, 256, 3);
        assert_eq!(place.along_depth(3, 0), 96);
        assert_eq!(place.along_depth(4, 0), 128 + 16);
    }

    #[test]
    fn an_mn_major_matrix_lies_as_the_isa_shows() {
        // bf16: ((8,1,2),(8,2)):((1,8,64),(8,128)); swizzled ((8,4,2),(8,2)):((1,8,256),(32,512)).
        let plain = descriptor(0, 256, 128, 0);
        assert_eq!(plain.along_rows(1, 0), 2 * 64);
        assert_eq!(plain.along_rows(0, 9), 2 * (8 + 128));
        let swizzled = descriptor(0, 512, 1024, 2);
        assert_eq!(swizzled.along_rows(1, 0), 2 * 8);
        assert_eq!(swizzled.along_rows(4, 0), 2 * 256);
        assert_eq!(swizzled.along_rows(0, 1), 2 * 32);
        assert_eq!(swizzled.along_rows(0, 8), 2 * 512);
        assert_eq!(swizzled.along_rows(0, 2), (2 * 64) ^ 16);
    }

    #[test]
    fn a_pattern_that_starts_elsewhere_counts_its_lines_from_there() {
        let bits = (1024 + 256) >> 4 | 1024 >> 4 << 32 | 2 << 49 | 1 << 62;
        let place = Descriptor::open(bits);
        assert_eq!(place.along_depth(0, 0), 1024 + 256);
        assert_eq!(place.along_depth(1, 0), 1024 + 384 + 16);
    }
}
