//! Global memory: an allocation table with red zones around every allocation.
//!
//! Each allocation owns its bytes, so nothing outside it can be reached, and device addresses are
//! private to the machine. Addresses of freed allocations are not handed out again as long as
//! another allocation is alive, so that a stale pointer faults and the fault can name what was
//! freed.

use crate::fault::Nearest;

/// The first device address that [`Memory`] hands out.
pub const BASE_ADDRESS: u64 = 0x7f00_0000_0000;
/// Bytes between two allocations that belong to neither.
pub const RED_ZONE_BYTES: u64 = 4096;
/// Where the addresses end.
const END_ADDRESS: u64 = 0x7fff_0000_0000;
/// Bytes that kernels can have from `malloc` at once, as many as CUDA gives by default.
const HEAP_BYTES: u64 = 8 << 20;
/// How many freed ranges are remembered for messages.
const REMEMBERED_FREED: usize = 1024;

/// Why memory could not be allocated, freed or copied by the host.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllocationError {
    /// Not enough memory is left.
    #[error(
        "out of memory: {requested} bytes asked for, {available} left; \
         free buffers or use smaller shapes"
    )]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes left.
        available: u64,
    },
    /// The alignment is not a power of two, or the skew is not less than it.
    #[error(
        "alignment {alignment} with skew {skew} is impossible; use 1, 2, 4, ... bytes and less skew"
    )]
    Alignment {
        /// The alignment asked for.
        alignment: u64,
        /// The distance from it asked for.
        skew: u64,
    },
    /// The address is not the start of an allocation.
    #[error("{address:#x} is not the start of an allocation; pass what allocate returned")]
    UnknownAddress {
        /// The address.
        address: u64,
    },
    /// A host copy leaves its allocation.
    #[error("{bytes} bytes at {address:#x} do not lie in one allocation; check offset and length")]
    OutOfRange {
        /// The first address.
        address: u64,
        /// The number of bytes.
        bytes: u64,
    },
}

/// One allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// The first device address.
    pub(crate) start: u64,
    /// The contents.
    pub(crate) bytes: Box<[u8]>,
    /// Whether kernels may write to it.
    pub(crate) writable: bool,
    /// Whether a kernel's `malloc` made it.
    heap: bool,
}

impl Allocation {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// Where an access lies: an allocation and an offset inside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) allocation: usize,
    pub(crate) offset: usize,
}

/// The table of allocations, sorted by address.
#[derive(Debug)]
pub(crate) struct Memory {
    allocations: Vec<Allocation>,
    freed: Vec<(u64, u64)>,
    next: u64,
    used: u64,
    limit: u64,
}

impl Memory {
    /// Memory of `limit` bytes, none of it allocated.
    pub(crate) fn new(limit: u64) -> Memory {
        Memory { allocations: Vec::new(), freed: Vec::new(), next: BASE_ADDRESS, used: 0, limit }
    }

    /// Bytes still to be had.
    pub(crate) fn available(&self) -> u64 {
        self.limit - self.used
    }

    /// Allocates `bytes` zero bytes at an address that is `skew` more than a multiple of
    /// `alignment`.
    pub(crate) fn allocate(
        &mut self,
        bytes: u64,
        alignment: u64,
        skew: u64,
    ) -> Result<u64, AllocationError> {
        if !alignment.is_power_of_two() || skew >= alignment {
            return Err(AllocationError::Alignment { alignment, skew });
        }
        let available = self.available();
        let full = AllocationError::OutOfMemory { requested: bytes, available };
        if bytes > available {
            return Err(full);
        }
        if self.allocations.is_empty() {
            self.next = BASE_ADDRESS;
            self.freed.clear();
        }
        let unaligned = self.next + RED_ZONE_BYTES;
        let aligned = unaligned.checked_next_multiple_of(alignment);
        let Some(start) = aligned.and_then(|start| start.checked_add(skew)) else {
            return Err(full);
        };
        if start.checked_add(bytes).is_none_or(|end| end > END_ADDRESS) {
            return Err(full);
        }
        let Some(contents) = zeroed(bytes) else {
            return Err(full);
        };
        self.allocations.push(Allocation { start, bytes: contents, writable: true, heap: false });
        self.next = start + bytes.max(1);
        self.used += bytes;
        Ok(start)
    }

    /// Frees the allocation that starts at `address`.
    pub(crate) fn free(&mut self, address: u64) -> Result<(), AllocationError> {
        let found = self.allocations.binary_search_by_key(&address, |entry| entry.start);
        let index = found.map_err(|_| AllocationError::UnknownAddress { address })?;
        let gone = self.allocations.remove(index);
        self.used -= gone.bytes.len() as u64;
        if self.freed.len() == REMEMBERED_FREED {
            self.freed.remove(0);
        }
        self.freed.push((gone.start, gone.bytes.len() as u64));
        Ok(())
    }

    /// A kernel's `malloc`: the address, or 0 when the heap is full.
    pub(crate) fn allocate_heap(&mut self, bytes: u64) -> u64 {
        let heap = self.allocations.iter().filter(|entry| entry.heap);
        let used: u64 = heap.map(|entry| entry.bytes.len() as u64).sum();
        if bytes > HEAP_BYTES - used.min(HEAP_BYTES) {
            return 0;
        }
        let Ok(address) = self.allocate(bytes, 16, 0) else {
            return 0;
        };
        if let Some(entry) = self.allocations.last_mut() {
            entry.heap = true;
        }
        address
    }

    /// A kernel's `free`: whether the address came from `malloc`.
    pub(crate) fn free_heap(&mut self, address: u64) -> bool {
        let found = self.allocations.binary_search_by_key(&address, |entry| entry.start);
        found.is_ok_and(|index| self.allocations[index].heap) && self.free(address).is_ok()
    }

    /// The place of `length` bytes at `address`, or `None` outside every allocation.
    pub(crate) fn find(&self, address: u64, length: u64) -> Option<Place> {
        let behind = self.allocations.partition_point(|entry| entry.start <= address);
        let allocation = behind.checked_sub(1)?;
        let entry = &self.allocations[allocation];
        let inside = address.checked_add(length).is_some_and(|end| end <= entry.end());
        // An access of no bytes at the very end is inside; kernels never make one.
        inside.then(|| Place { allocation, offset: (address - entry.start) as usize })
    }

    /// Whether a range lies in allocation `index`, if there is one.
    #[inline(always)]
    pub(crate) fn holds(&self, index: usize, address: u64, length: u64) -> bool {
        self.allocations.get(index).is_some_and(|entry| {
            let offset = address.wrapping_sub(entry.start);
            let bytes = entry.bytes.len() as u64;
            offset <= bytes && length <= bytes - offset
        })
    }

    /// The allocation of a [`Place`].
    pub(crate) fn allocation(&self, index: usize) -> &Allocation {
        &self.allocations[index]
    }

    /// The allocation of a [`Place`], for writing.
    pub(crate) fn allocation_mut(&mut self, index: usize) -> &mut Allocation {
        &mut self.allocations[index]
    }

    /// Makes an allocation read-only for kernels.
    pub(crate) fn protect(&mut self, address: u64) {
        if let Some(place) = self.find(address, 0) {
            self.allocations[place.allocation].writable = false;
        }
    }

    /// Bytes for the host to read.
    pub(crate) fn host_bytes(&self, address: u64, bytes: u64) -> Result<&[u8], AllocationError> {
        let error = AllocationError::OutOfRange { address, bytes };
        let place = self.find(address, bytes).ok_or(error)?;
        let entry = &self.allocations[place.allocation];
        Ok(&entry.bytes[place.offset..place.offset + bytes as usize])
    }

    /// Bytes for the host to write.
    pub(crate) fn host_bytes_mut(
        &mut self,
        address: u64,
        bytes: u64,
    ) -> Result<&mut [u8], AllocationError> {
        let error = AllocationError::OutOfRange { address, bytes };
        let place = self.find(address, bytes).ok_or(error)?;
        let entry = &mut self.allocations[place.allocation];
        Ok(&mut entry.bytes[place.offset..place.offset + bytes as usize])
    }

    /// The allocation nearest to `address`, alive or freed, for messages.
    pub(crate) fn nearest(&self, address: u64) -> Option<Nearest> {
        let alive = self.allocations.iter().map(|a| (a.start, a.bytes.len() as u64, false));
        let freed = self.freed.iter().map(|&(start, bytes)| (start, bytes, true));
        let distance = |start: u64, bytes: u64| {
            if address < start { start - address } else { (address - start).saturating_sub(bytes) }
        };
        let closest = alive.chain(freed).min_by_key(|&(start, bytes, gone)| {
            // At the same distance a freed allocation that holds the address says more.
            (distance(start, bytes), !(gone && address < start + bytes))
        })?;
        let (start, bytes, freed) = closest;
        Some(Nearest { start, bytes, offset: address.wrapping_sub(start) as i64, freed })
    }
}

/// Zero bytes from the system, without touching them; `None` when it has none.
fn zeroed(bytes: u64) -> Option<Box<[u8]>> {
    let length = usize::try_from(bytes).ok()?;
    if length > 1 << 28 {
        // Asked and given back first: running out must be an error, and `vec!` would abort.
        Vec::<u8>::new().try_reserve_exact(length).ok()?;
    }
    // `vec!` asks the allocator for zero pages, which cost nothing until they are used.
    Some(vec![0; length].into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_aligned_and_apart() {
        let mut memory = Memory::new(1 << 20);
        let a = memory.allocate(100, 256, 0).unwrap();
        let b = memory.allocate(100, 512, 0).unwrap();
        assert_eq!(a % 256, 0);
        assert_eq!(b % 512, 0);
        assert!(b >= a + 100 + RED_ZONE_BYTES);
        assert!(memory.find(a, 100).is_some());
        assert!(memory.find(a, 101).is_none());
        assert!(memory.find(a - 1, 1).is_none());
        assert!(memory.find(b + 99, 1).is_some());
    }

    #[test]
    fn a_skewed_allocation_ends_where_its_bytes_do() {
        let mut memory = Memory::new(1 << 20);
        let start = memory.allocate(100, 256, 4).unwrap();
        assert_eq!(start % 256, 4);
        assert!(memory.find(start, 100).is_some());
        assert!(memory.find(start - 1, 1).is_none());
        assert!(memory.find(start + 100, 1).is_none());
        assert!(memory.allocate(100, 4, 4).is_err());
    }

    #[test]
    fn memory_runs_out_and_comes_back() {
        let mut memory = Memory::new(1000);
        let a = memory.allocate(600, 1, 0).unwrap();
        let error = memory.allocate(600, 1, 0).unwrap_err();
        assert_eq!(error, AllocationError::OutOfMemory { requested: 600, available: 400 });
        memory.free(a).unwrap();
        assert!(memory.allocate(1000, 1, 0).is_ok());
    }

    #[test]
    fn freeing_twice_is_an_error() {
        let mut memory = Memory::new(1000);
        let a = memory.allocate(10, 1, 0).unwrap();
        memory.free(a).unwrap();
        assert_eq!(memory.free(a), Err(AllocationError::UnknownAddress { address: a }));
    }

    #[test]
    fn the_nearest_allocation_names_a_freed_one() {
        let mut memory = Memory::new(1 << 20);
        let kept = memory.allocate(64, 64, 0).unwrap();
        let gone = memory.allocate(64, 64, 0).unwrap();
        memory.free(gone).unwrap();
        let nearest = memory.nearest(gone + 8).unwrap();
        assert!(nearest.freed);
        assert_eq!(nearest.offset, 8);
        let nearest = memory.nearest(kept + 65).unwrap();
        assert_eq!((nearest.start, nearest.freed), (kept, false));
        assert_eq!(nearest.to_string().split(" of the").next(), Some("1 bytes past the end"));
    }

    #[test]
    fn an_alignment_of_three_is_refused() {
        let error = Memory::new(10).allocate(1, 3, 0).unwrap_err();
        assert_eq!(error, AllocationError::Alignment { alignment: 3, skew: 0 });
    }
}
