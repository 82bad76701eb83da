//! Global memory: an allocation table with red zones around every allocation.
//!
//! Each allocation owns its bytes, so nothing outside it can be reached, and device addresses are
//! private to the machine. Addresses of freed allocations are not handed out again as long as
//! another allocation is alive, so that a stale pointer faults and the fault can name what was
//! freed.

use std::sync::Arc;

use crate::fault::Nearest;
use crate::overlay::Overlay;

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
    length: u64,
    contents: Contents,
    /// Whether kernels may write to it.
    pub(crate) writable: bool,
    /// Whether a kernel's `malloc` made it.
    heap: bool,
    /// What was done to it; see [`READ`] and [`WRITTEN`].
    noted: u8,
}

/// What an allocation holds.
#[derive(Debug)]
enum Contents {
    Own(Box<[u8]>),
    /// Seen by several workers of a launch, each with its own writes.
    Shared(Arc<Box<[u8]>>, Option<Overlay>),
}

/// An allocation of a worker's view was read.
pub(crate) const READ: u8 = 1;
/// An allocation of a worker's view was written.
pub(crate) const WRITTEN: u8 = 2;

impl Allocation {
    fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Bytes to read, as they were when the launch began.
    #[inline(always)]
    pub(crate) fn bytes(&self, offset: usize, length: usize) -> Option<&[u8]> {
        let bytes = match &self.contents {
            Contents::Own(bytes) => bytes,
            Contents::Shared(bytes, _) => &**bytes,
        };
        bytes.get(offset..offset.checked_add(length)?)
    }

    /// Bytes that are about to be written, all of them.
    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self, offset: usize, length: usize) -> Option<&mut [u8]> {
        match &mut self.contents {
            Contents::Own(bytes) => bytes.get_mut(offset..offset.checked_add(length)?),
            Contents::Shared(bytes, overlay) => {
                overlay.get_or_insert_with(|| Overlay::new(bytes.len())).write(offset, length)
            }
        }
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
    /// Whether this is a worker's view of another memory.
    view: bool,
    /// Whether a view's worker has read and written the same allocation.
    torn: bool,
}

impl Memory {
    /// Memory of `limit` bytes, none of it allocated.
    pub(crate) fn new(limit: u64) -> Memory {
        Memory {
            allocations: Vec::new(),
            freed: Vec::new(),
            next: BASE_ADDRESS,
            used: 0,
            limit,
            view: false,
            torn: false,
        }
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
        self.allocations.push(Allocation {
            start,
            length: bytes,
            contents: Contents::Own(contents),
            writable: true,
            heap: false,
            noted: READ | WRITTEN,
        });
        self.next = start + bytes.max(1);
        self.used += bytes;
        Ok(start)
    }

    /// Frees the allocation that starts at `address`.
    pub(crate) fn free(&mut self, address: u64) -> Result<(), AllocationError> {
        let found = self.allocations.binary_search_by_key(&address, |entry| entry.start);
        let index = found.map_err(|_| AllocationError::UnknownAddress { address })?;
        let gone = self.allocations.remove(index);
        self.used -= gone.length;
        if self.freed.len() == REMEMBERED_FREED {
            self.freed.remove(0);
        }
        self.freed.push((gone.start, gone.length));
        Ok(())
    }

    /// A kernel's `malloc`: the address, or 0 when the heap is full.
    pub(crate) fn allocate_heap(&mut self, bytes: u64) -> u64 {
        let heap = self.allocations.iter().filter(|entry| entry.heap);
        let used: u64 = heap.map(|entry| entry.length).sum();
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

    /// Whether a range lies in allocation `index`, if there is one, and `use_` was noted there.
    #[inline(always)]
    pub(crate) fn holds(&self, index: usize, address: u64, length: u64, use_: u8) -> bool {
        self.allocations.get(index).is_some_and(|entry| {
            let offset = address.wrapping_sub(entry.start);
            let bytes = entry.length;
            offset <= bytes && length <= bytes - offset && entry.noted & use_ != 0
        })
    }

    /// Notes what is done to an allocation.
    pub(crate) fn note(&mut self, index: usize, use_: u8) {
        let entry = &mut self.allocations[index];
        entry.noted |= use_;
        self.torn |= entry.noted == READ | WRITTEN;
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
        let error = AllocationError::OutOfRange { address, bytes };
        let entry = &self.allocations[place.allocation];
        entry.bytes(place.offset, bytes as usize).ok_or(error)
    }

    /// Bytes for the host to write.
    pub(crate) fn host_bytes_mut(
        &mut self,
        address: u64,
        bytes: u64,
    ) -> Result<&mut [u8], AllocationError> {
        let error = AllocationError::OutOfRange { address, bytes };
        let place = self.find(address, bytes).ok_or(error)?;
        let error = AllocationError::OutOfRange { address, bytes };
        let entry = &mut self.allocations[place.allocation];
        entry.bytes_mut(place.offset, bytes as usize).ok_or(error)
    }

    /// The allocation nearest to `address`, alive or freed, for messages.
    pub(crate) fn nearest(&self, address: u64) -> Option<Nearest> {
        let alive = self.allocations.iter().map(|a| (a.start, a.length, false));
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

/// Views of one memory for the workers of a launch, and what becomes of their writes.
impl Memory {
    /// `count` views of this memory, which must be left alone until [`Memory::reclaim`].
    pub(crate) fn views(&mut self, count: usize) -> Vec<Memory> {
        let empty = || Memory { view: true, ..Memory::new(self.limit) };
        let mut views: Vec<Memory> = (0..count).map(|_| empty()).collect();
        for entry in &mut self.allocations {
            let old = std::mem::replace(&mut entry.contents, Contents::Own(Box::default()));
            let bytes = match old {
                Contents::Own(bytes) => Arc::new(bytes),
                Contents::Shared(bytes, _) => bytes,
            };
            for view in &mut views {
                view.allocations.push(Allocation {
                    contents: Contents::Shared(Arc::clone(&bytes), None),
                    noted: 0,
                    ..*entry
                });
            }
            entry.contents = Contents::Shared(bytes, None);
        }
        views
    }

    /// Takes the memory back from its views. When `keep` is set and no byte was written by two of
    /// them, and nothing that one of them wrote to was read by any, their writes are made.
    /// Whether they were.
    pub(crate) fn reclaim(&mut self, views: Vec<Memory>, keep: bool) -> bool {
        let keep = keep && !met(&views);
        let mut overlays: Vec<Vec<Overlay>> = Vec::new();
        overlays.resize_with(self.allocations.len(), Vec::new);
        for view in views {
            for (entry, overlays) in view.allocations.into_iter().zip(&mut overlays) {
                if let Contents::Shared(_, Some(overlay)) = entry.contents {
                    overlays.push(overlay);
                }
            }
        }
        for (entry, overlays) in self.allocations.iter_mut().zip(&overlays) {
            let old = std::mem::replace(&mut entry.contents, Contents::Own(Box::default()));
            let mut bytes = match old {
                Contents::Own(bytes) => bytes,
                Contents::Shared(bytes, _) => {
                    Arc::try_unwrap(bytes).unwrap_or_else(|shared| (*shared).clone())
                }
            };
            for overlay in overlays.iter().filter(|_| keep) {
                overlay.apply(&mut bytes);
            }
            entry.contents = Contents::Own(bytes);
        }
        keep
    }

    /// Whether this is a view, where writes must say exactly which bytes they write.
    #[inline(always)]
    pub(crate) fn is_view(&self) -> bool {
        self.view
    }

    /// Whether an allocation of this view was both read and written.
    pub(crate) fn is_torn(&self) -> bool {
        self.torn
    }
}

/// Whether the order of the views' blocks could be seen.
fn met(views: &[Memory]) -> bool {
    let count = views.first().map_or(0, |view| view.allocations.len());
    (0..count).any(|index| {
        let entries = || views.iter().map(|view| &view.allocations[index]);
        let noted = entries().fold(0, |noted, entry| noted | entry.noted);
        if noted == READ | WRITTEN {
            return true;
        }
        let mut union = Vec::new();
        entries().any(|entry| match &entry.contents {
            Contents::Shared(_, Some(overlay)) => {
                union.resize(overlay.words(), 0);
                overlay.meets(&mut union)
            }
            _ => false,
        })
    })
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
