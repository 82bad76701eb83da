//! Both ends of a copy between host and device, and the ways to get bytes from one to the other.
//!
//! Memory that is not pinned can be copied by the driver's calls as they are, or through pinned
//! memory that threads of the host fill. Which of them is fastest depends on the host's processor
//! and system.

use std::fmt;

use assay_device::{BufferId, Device, HostBufferId, HostKind, StreamId};

use super::ProbeError;

/// How bytes are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// One copy in a stream, and the wait for it.
    InStream,
    /// Copies in a stream of so many bytes each, and one wait.
    Pieces(u64),
    /// The driver's call that ends with the copy, on memory of the process's own allocator.
    Waiting,
    /// Through pinned memory, piece by piece, which so many threads of the host fill or empty.
    Staged {
        /// Bytes of a piece.
        piece: u64,
        /// Threads.
        threads: usize,
    },
}

/// One way to copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// What the host's memory is.
    pub kind: HostKind,
    /// The calls.
    pub call: Call,
    /// To the device, or from it.
    pub to_device: bool,
}

impl Way {
    /// The plain one: one copy in a stream.
    pub fn plain(kind: HostKind, to_device: bool) -> Way {
        Way { kind, call: Call::InStream, to_device }
    }

    /// Every way to copy memory that is not pinned that is worth a try, the plain one first; only
    /// those that win on hosts seen so far where `few` will do.
    pub fn pageable(to_device: bool, few: bool) -> Vec<Way> {
        let way = |kind, call| Way { kind, call, to_device };
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut all = vec![
            Way::plain(HostKind::Pageable, to_device),
            Way::plain(HostKind::LargePages, to_device),
            way(HostKind::Pageable, Call::Waiting),
        ];
        if !few {
            all.push(way(HostKind::Pageable, Call::Pieces(1 << 20)));
            all.push(way(HostKind::Pageable, Call::Pieces(1 << 24)));
            all.push(way(HostKind::LargePages, Call::Pieces(1 << 24)));
        }
        for threads in [1, 2, 4, 8].into_iter().filter(|threads| *threads <= cores) {
            for piece in [1 << 24, 1 << 22].into_iter().take(if few { 1 } else { 2 }) {
                all.push(way(HostKind::Pageable, Call::Staged { piece, threads }));
            }
        }
        all
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.call {
            Call::InStream => f.write_str("one copy in a stream")?,
            Call::Waiting => f.write_str("the driver's call that waits")?,
            Call::Pieces(bytes) => write!(f, "copies of {} KiB in a stream", bytes >> 10)?,
            Call::Staged { piece, threads } => {
                let s = if threads == 1 { "" } else { "s" };
                write!(f, "{threads} thread{s} and {} KiB of pinned memory", piece >> 10)?;
            }
        }
        match self.kind {
            HostKind::LargePages => f.write_str(", pages of 2 MiB"),
            _ => Ok(()),
        }
    }
}

/// The host's end.
enum Memory {
    /// The device's own host buffer.
    Host(HostBufferId),
    /// The process's own memory, and the pinned memory in between where there is some.
    Own(Vec<u8>, Option<HostBufferId>),
}

/// Both ends of a way.
pub struct Ends {
    way: Way,
    memory: Memory,
    buffer: BufferId,
}

impl Ends {
    /// Memory for copies of up to `bytes`.
    ///
    /// # Errors
    /// The device's.
    pub fn new(device: &mut dyn Device, way: Way, bytes: u64) -> Result<Ends, ProbeError> {
        let memory = match way.call {
            Call::InStream | Call::Pieces(_) => {
                Memory::Host(device.allocate_host(bytes, way.kind)?)
            }
            Call::Waiting => Memory::Own(touched(bytes), None),
            Call::Staged { piece, .. } => {
                let stage = device.allocate_host(piece.min(bytes), HostKind::Pinned)?;
                Memory::Own(touched(bytes), Some(stage))
            }
        };
        let buffer = device.allocate_bare(bytes)?;
        Ok(Ends { way, memory, buffer })
    }

    /// Gives the memory back.
    ///
    /// # Errors
    /// The device's.
    pub fn free(self, device: &mut dyn Device) -> Result<(), ProbeError> {
        if let Memory::Host(host) | Memory::Own(_, Some(host)) = self.memory {
            device.free_host(host)?;
        }
        Ok(device.free(self.buffer)?)
    }

    /// Puts the words at one end and nothing at the other.
    ///
    /// # Errors
    /// The device's.
    pub fn prepare(&mut self, device: &mut dyn Device, words: &[u8]) -> Result<(), ProbeError> {
        if !self.way.to_device {
            device.write(self.buffer, 0, words)?;
        }
        let to_device = self.way.to_device;
        let host = self.host_bytes(device, words.len())?;
        if to_device {
            host.copy_from_slice(words);
        } else {
            host.fill(0);
        }
        if self.way.to_device {
            device.fill(StreamId::DEFAULT, self.buffer, 0, words.len() as u64, 0)?;
        }
        Ok(device.synchronize()?)
    }

    fn host_bytes<'a>(
        &'a mut self,
        device: &'a mut dyn Device,
        bytes: usize,
    ) -> Result<&'a mut [u8], ProbeError> {
        Ok(match &mut self.memory {
            Memory::Host(host) => &mut device.host_bytes(*host)?[..bytes],
            Memory::Own(own, _) => &mut own[..bytes],
        })
    }

    /// Copies so many bytes. Only [`Call::InStream`] and [`Call::Pieces`] may return before all
    /// are there.
    ///
    /// # Errors
    /// The device's.
    pub fn copy(&mut self, device: &mut dyn Device, bytes: u64) -> Result<(), ProbeError> {
        let (way, buffer) = (self.way, self.buffer);
        match (&mut self.memory, way.call) {
            (Memory::Host(host), call) => {
                let piece = if let Call::Pieces(piece) = call { piece } else { bytes };
                let mut at = 0;
                while at < bytes {
                    let length = piece.min(bytes - at);
                    in_stream(device, way.to_device, (*host, at), (buffer, at), length)?;
                    at += length;
                }
                Ok(())
            }
            (Memory::Own(own, Some(stage)), Call::Staged { threads, .. }) => {
                let own = &mut own[..bytes as usize];
                staged(device, way, (own, *stage), buffer, threads)
            }
            (Memory::Own(own, _), _) if way.to_device => {
                Ok(device.write(buffer, 0, &own[..bytes as usize])?)
            }
            (Memory::Own(own, _), _) => Ok(device.read(buffer, 0, &mut own[..bytes as usize])?),
        }
    }

    /// Whether the words have arrived.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] where one has not, and the device's.
    pub fn compare(&mut self, device: &mut dyn Device, words: &[u8]) -> Result<(), ProbeError> {
        if self.way.to_device {
            let mut found = vec![0; words.len()];
            device.read(self.buffer, 0, &mut found)?;
            return equal(&found, words);
        }
        equal(self.host_bytes(device, words.len())?, words)
    }
}

/// Memory of the process's own allocator, written to, so that a first copy measures no page faults.
fn touched(bytes: u64) -> Vec<u8> {
    vec![0xA5; bytes as usize]
}

fn in_stream(
    device: &mut dyn Device,
    to_device: bool,
    host: (HostBufferId, u64),
    buffer: (BufferId, u64),
    bytes: u64,
) -> Result<(), ProbeError> {
    let copied = if to_device {
        device.copy_to_device(StreamId::DEFAULT, host, buffer, bytes)
    } else {
        device.copy_to_host(StreamId::DEFAULT, buffer, host, bytes)
    };
    Ok(copied?)
}

/// Copies piece by piece through pinned memory. A device lends its host memory out only when all
/// copies have ended, so that threads and device take turns.
fn staged(
    device: &mut dyn Device,
    way: Way,
    (own, stage): (&mut [u8], HostBufferId),
    buffer: BufferId,
    threads: usize,
) -> Result<(), ProbeError> {
    let piece = device.host_bytes(stage)?.len().max(1);
    let mut at = 0;
    for part in own.chunks_mut(piece) {
        let (length, ends) = (part.len(), ((stage, 0), (buffer, at)));
        if way.to_device {
            spread(part, &mut device.host_bytes(stage)?[..length], threads);
            in_stream(device, true, ends.0, ends.1, length as u64)?;
        } else {
            in_stream(device, false, ends.0, ends.1, length as u64)?;
            spread(&device.host_bytes(stage)?[..length], part, threads);
        }
        at += length as u64;
    }
    Ok(device.synchronize()?)
}

/// Copies in the host's memory, by so many threads.
fn spread(from: &[u8], to: &mut [u8], threads: usize) {
    let share = from.len().div_ceil(threads.max(1)).next_multiple_of(64);
    if threads < 2 || share >= from.len() {
        to.copy_from_slice(from);
        return;
    }
    std::thread::scope(|scope| {
        for (from, to) in from.chunks(share).zip(to.chunks_mut(share)) {
            scope.spawn(|| to.copy_from_slice(from));
        }
    });
}

/// Refuses bytes that are not those expected, and names the first.
pub(super) fn equal(found: &[u8], expected: &[u8]) -> Result<(), ProbeError> {
    if found == expected {
        return Ok(());
    }
    let place = found.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
    let (is, was) = (found.get(place).copied(), expected.get(place).copied());
    Err(ProbeError::Wrong(format!(
        "byte {place} of {} arrived as {:#04x} and not as {:#04x}",
        expected.len(),
        is.unwrap_or(0),
        was.unwrap_or(0)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_copy_every_byte_whatever_their_number() {
        let from: Vec<u8> = (0..10_007_u32).map(|n| (n % 251) as u8).collect();
        for threads in [0, 1, 2, 3, 8, 200] {
            let mut to = vec![0; from.len()];
            spread(&from, &mut to, threads);
            assert_eq!(to, from, "{threads} threads");
        }
    }

    #[test]
    fn every_way_moves_every_byte_both_ways() {
        let clock = Some(assay_device::emulator::EmulatedClock::default());
        let options = assay_device::emulator::EmulatorOptions { clock, ..Default::default() };
        let mut device = assay_device::emulator::EmulatorDevice::new(options);
        let words: Vec<u8> = (0..100_003_u32).map(|n| (n.wrapping_mul(97) >> 3) as u8).collect();
        for to_device in [true, false] {
            let mut ways = Way::pageable(to_device, false);
            let staged = Call::Staged { piece: 4096, threads: 3 };
            for call in [Call::Pieces(4096), staged] {
                ways.push(Way { kind: HostKind::Pageable, call, to_device });
            }
            for way in ways {
                let mut ends = Ends::new(&mut device, way, words.len() as u64).expect("memory");
                ends.prepare(&mut device, &words).expect("words are put there");
                assert!(ends.compare(&mut device, &words).is_err(), "nothing was copied: {way}");
                ends.copy(&mut device, words.len() as u64).expect("a copy");
                device.synchronize().expect("it ends");
                ends.compare(&mut device, &words).unwrap_or_else(|e| panic!("{way}: {e}"));
                // A copy that stops short is seen.
                ends.prepare(&mut device, &words).expect("words are put there");
                ends.copy(&mut device, words.len() as u64 - 1).expect("a copy");
                device.synchronize().expect("it ends");
                assert!(ends.compare(&mut device, &words).is_err(), "{way}");
                ends.free(&mut device).expect("it is given back");
            }
        }
    }

    #[test]
    fn a_byte_that_differs_is_named_with_its_place() {
        let words: Vec<u8> = (0..100).collect();
        assert_eq!(equal(&words, &words), Ok(()));
        let mut other = words.clone();
        other[77] ^= 4;
        let error = equal(&other, &words).expect_err("one differs");
        assert!(error.to_string().starts_with("byte 77 of 100 arrived"), "{error}");
    }
}
