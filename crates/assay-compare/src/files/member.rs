//! A run of bytes of a file, stored as they are or compressed, read from the front.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use super::inflate::{Checksum, Inflated};
use crate::source::SourceError;

/// Bytes that are skipped at a time.
const SKIP: u64 = 1 << 16;

/// Where a run of bytes lies in its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// Where it starts in the file.
    pub(crate) start: u64,
    /// Bytes that it takes in the file.
    pub(crate) packed: u64,
    /// Bytes that it is said to hold; the same where it is not compressed.
    pub(crate) size: u64,
    pub(crate) compressed: bool,
    /// The CRC-32 of what it holds, where one is stated.
    pub(crate) checksum: Option<u32>,
}

impl Member {
    /// The whole of a file.
    pub(super) fn whole(length: u64) -> Member {
        Member { start: 0, packed: length, size: length, compressed: false, checksum: None }
    }

    /// Its bytes from the front, of an open file whose place is moved.
    pub(super) fn open<'a>(&self, file: &'a File) -> io::Result<Box<dyn Read + 'a>> {
        let packed = self.packed_stream(file)?;
        Ok(if self.compressed { Box::new(Inflated::new(packed)) } else { Box::new(packed) })
    }
}

impl Member {
    /// What lies in the file, of an open one whose place is moved.
    pub(super) fn packed_stream<'a>(&self, mut file: &'a File) -> io::Result<Take<&'a File>> {
        file.seek(SeekFrom::Start(self.start))?;
        Ok(file.take(self.packed))
    }
}

/// Reads a member: any part of one that is stored, parts in order of one that is compressed (an
/// earlier part starts it again).
pub(super) struct MemberReader {
    path: PathBuf,
    member: Member,
    stream: Stream,
    /// Bytes from the front that were read without a gap; the checksum is theirs.
    position: u64,
    checksum: Checksum,
    /// Where reading failed: the bytes before can be read.
    end: Option<u64>,
}

enum Stream {
    Stored(File),
    Inflated(Box<Inflated<Take<File>>>),
}

impl MemberReader {
    pub(super) fn open(path: &Path, member: Member) -> io::Result<MemberReader> {
        let stream = stream(path, &member)?;
        let (path, checksum) = (path.to_owned(), Checksum::default());
        Ok(MemberReader { path, member, stream, position: 0, checksum, end: None })
    }

    /// How many bytes from the front can be read, once reading went past them and failed.
    pub(super) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Fills `out` with the bytes from `from` on, and checks all of them once the last was read.
    pub(super) fn read_at(&mut self, from: u64, out: &mut [u8]) -> Result<(), SourceError> {
        if let Stream::Stored(_) = self.stream {
            // Only for the sake of the checksum is anything read that was not asked for.
            if from <= self.position || self.member.checksum.is_none() {
                return self.part(from, out);
            }
        } else if from < self.position || self.end.is_some() {
            // A stream that failed has gone on to nobody knows where.
            self.stream = stream(&self.path, &self.member)?;
            self.position = 0;
            self.checksum = Checksum::default();
        }
        let mut gap = vec![0; SKIP.min(from - self.position) as usize];
        while self.position < from {
            let step = (from - self.position).min(SKIP) as usize;
            self.part(self.position, &mut gap[..step])?;
        }
        self.part(from, out)
    }

    fn part(&mut self, from: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let filled = match &mut self.stream {
            Stream::Stored(file) => stored(file, &self.member, from, out),
            Stream::Inflated(stream) => fill(stream, from, out),
        };
        match filled {
            Ok(()) => self.took(from, out),
            Err((end, error)) => {
                self.end = Some(end);
                Err(error)
            }
        }
    }

    /// Counts bytes that were read, if they go on where the last ones ended.
    fn took(&mut self, from: u64, bytes: &[u8]) -> Result<(), SourceError> {
        if from != self.position || bytes.is_empty() {
            return Ok(());
        }
        self.position += bytes.len() as u64;
        let Some(stated) = self.member.checksum else { return Ok(()) };
        self.checksum.add(bytes);
        if self.position < self.member.size {
            return Ok(());
        }
        if let Stream::Inflated(stream) = &mut self.stream
            && stream.read(&mut [0]).is_ok_and(|more| more > 0)
        {
            let size = self.member.size;
            return broken(format!(
                "its data go on after the {size} bytes that the archive states"
            ));
        }
        let found = self.checksum.value();
        if found == stated {
            return Ok(());
        }
        broken(format!(
            "its data are damaged: their CRC-32 is {found:08x}, and the archive states {stated:08x}"
        ))
    }
}

fn stream(path: &Path, member: &Member) -> io::Result<Stream> {
    let mut file = File::open(path)?;
    if !member.compressed {
        return Ok(Stream::Stored(file));
    }
    file.seek(SeekFrom::Start(member.start))?;
    Ok(Stream::Inflated(Box::new(Inflated::new(file.take(member.packed)))))
}

/// Why reading stopped, and how many bytes of the member came before.
type Stop = (u64, SourceError);

fn stored(file: &mut File, member: &Member, from: u64, out: &mut [u8]) -> Result<(), Stop> {
    let place = SeekFrom::Start(member.start.saturating_add(from));
    file.seek(place).map_err(|error| (from, error.into()))?;
    fill(file, from, out)
}

/// Reads all that was asked for, or says where the data end.
fn fill(stream: &mut impl Read, from: u64, out: &mut [u8]) -> Result<(), Stop> {
    let mut end = from;
    let mut rest = out;
    while !rest.is_empty() {
        match stream.read(rest) {
            Ok(0) => {
                let what = format!("its data end after {end} bytes");
                return Err((end, SourceError::Broken(what)));
            }
            Ok(more) => {
                end += more as u64;
                rest = &mut rest[more..];
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_damage(&error) => {
                let what = format!("its compressed data are damaged after {end} bytes");
                return Err((end, SourceError::Broken(what)));
            }
            Err(error) => return Err((end, error.into())),
        }
    }
    Ok(())
}

fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData)
}

fn broken(what: String) -> Result<(), SourceError> {
    Err(SourceError::Broken(what))
}
