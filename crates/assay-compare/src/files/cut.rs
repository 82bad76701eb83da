//! What is left of an archive that was cut off before its list of members: each member also has a
//! header where it begins (section 4.3.7 of PKWARE's APPNOTE.TXT 6.3.10).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::inflate;
use super::member::Member;
use super::{Element, EntryError, FileEntry, Listed, Placed, npz};
use crate::array::{element_count, storage};

/// What a member, the list of members and the sizes behind a member begin with.
const MEMBER: &[u8] = b"PK\x03\x04";
const LIST: &[u8] = b"PK\x01\x02";
const SIZES: &[u8] = b"PK\x07\x08";

/// A member's header without its name and extra fields.
const FIXED: usize = 30;

/// Bits of a header's flags: encrypted; sizes stand behind the data.
const ENCRYPTED: u16 = 1;
const SIZES_BEHIND: u16 = 8;

/// The extra field with sizes of 64 bits.
const WIDE: u16 = 1;

/// The arrays whose beginnings are there, where the list of them is missing or broken; nothing
/// where there are none.
pub(super) fn entries(mut file: &File, length: u64) -> io::Result<Option<Listed>> {
    let (mut entries, mut at) = (Vec::new(), 0);
    while let Some(header) = Header::read(file, at)? {
        let name = npz::array_name(&header.name);
        let (end, placed) = header.place(file, (at, length))?;
        entries.push(FileEntry { name, placed });
        let Some(next) = end else { break };
        at = next;
    }
    file.rewind()?;
    if entries.is_empty() {
        return Ok(None);
    }
    let damage = "its list of arrays is missing or broken, so that there may have been more than \
                  those whose beginning is there"
        .to_owned();
    Ok(Some(Listed { entries, damage: Some(damage) }))
}

/// What stands before a member's data.
struct Header {
    name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    packed: u64,
    size: u64,
    /// Bytes of the header itself.
    bytes: u64,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]))
}

fn double(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) | u32::from(word(bytes, at + 2)) << 16
}

fn quad(bytes: &[u8], at: usize) -> u64 {
    u64::from(double(bytes, at)) | u64::from(double(bytes, at + 4)) << 32
}

/// Up to so many bytes from a place on.
fn bytes_at(mut file: &File, at: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    file.seek(SeekFrom::Start(at))?;
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Header {
    /// The header at a place, if one is there as a whole.
    fn read(file: &File, at: u64) -> io::Result<Option<Header>> {
        let fixed = bytes_at(file, at, FIXED)?;
        if fixed.len() < FIXED || !fixed.starts_with(MEMBER) {
            return Ok(None);
        }
        let (name, extra) = (usize::from(word(&fixed, 26)), usize::from(word(&fixed, 28)));
        let rest = bytes_at(file, at + FIXED as u64, name + extra)?;
        let Some((name, extra)) = rest.split_at_checked(name).filter(|both| both.1.len() == extra)
        else {
            return Ok(None);
        };
        let mut header = Header {
            name: String::from_utf8_lossy(name).into_owned(),
            flags: word(&fixed, 6),
            method: word(&fixed, 8),
            checksum: double(&fixed, 14),
            packed: u64::from(double(&fixed, 18)),
            size: u64::from(double(&fixed, 22)),
            bytes: (FIXED + rest.len()) as u64,
        };
        header.widen(extra);
        Ok(Some(header))
    }

    /// Takes sizes of 64 bits from the extra fields, where the header has no room for them.
    fn widen(&mut self, mut extra: &[u8]) {
        while extra.len() >= 4 {
            let size = usize::from(word(extra, 2));
            let (field, rest) = extra[4..].split_at(size.min(extra.len() - 4));
            if word(extra, 0) == WIDE {
                let mut at = 0;
                for size in [&mut self.size, &mut self.packed] {
                    if *size == u64::from(u32::MAX) && field.len() >= at + 8 {
                        *size = quad(field, at);
                        at += 8;
                    }
                }
            }
            extra = rest;
        }
    }

    /// Where the next header is, if that can be told, and where the array lies.
    fn place(
        &self,
        file: &File,
        (at, length): (u64, u64),
    ) -> io::Result<(Option<u64>, Result<Placed, EntryError>)> {
        let start = at + self.bytes;
        let rest = length - start;
        let compressed = self.method == 8;
        if let Some(why) = self.refusal() {
            // Sizes of nothing and of what is behind tell no end.
            let end = (self.packed > 0).then(|| start.saturating_add(self.packed));
            return Ok((end, Err(EntryError::Layout(why))));
        }
        let is_stated = (self.packed, self.size, self.checksum) != (0, 0, 0);
        let is_empty = || {
            let next = bytes_at(file, start, MEMBER.len())?;
            Ok::<_, io::Error>(next == MEMBER || next == LIST)
        };
        // The writer of a member that is not finished has not come back to fill in its sizes.
        if self.flags & SIZES_BEHIND == 0 && (is_stated || is_empty()?) {
            let packed = self.packed.min(rest);
            let size = if compressed { self.size } else { packed };
            let checksum = Some(self.checksum);
            let placed = npz::placed(file, Member { start, packed, size, compressed, checksum });
            return Ok((start.checked_add(self.packed), placed));
        }
        let member = Member { start, packed: rest, size: rest, compressed, checksum: None };
        unsized_member(file, member, length)
    }

    fn refusal(&self) -> Option<String> {
        if self.flags & ENCRYPTED != 0 {
            return Some("it is encrypted".to_owned());
        }
        let known = [0, 8].contains(&self.method);
        (!known).then(|| format!("it is compressed by the method {} of archives", self.method))
    }
}

/// Places a member whose sizes stand behind its data, or nowhere: its array says how long it is.
fn unsized_member(
    file: &File,
    mut member: Member,
    length: u64,
) -> io::Result<(Option<u64>, Result<Placed, EntryError>)> {
    let (start, rest) = (member.start, member.packed);
    if member.compressed {
        member.size = u64::MAX;
    }
    let mut placed = match npz::placed(file, member) {
        Ok(placed) => placed,
        Err(error) => return Ok((None, Err(error))),
    };
    let needed = bytes_of(&placed);
    placed.held = placed.held.min(needed);
    placed.member.size = placed.offset.saturating_add(placed.held);
    let packed = if placed.member.compressed {
        inflate::packed_bytes(placed.member.packed_stream(file)?)
    } else {
        Some(placed.member.size).filter(|_| placed.held == needed)
    };
    let Some(packed) = packed.filter(|&packed| packed < rest) else {
        return Ok((None, Ok(placed)));
    };
    placed.member.packed = packed;
    let end = start + packed;
    let behind = bytes_at(file, end, 28)?;
    let Some((bytes, checksum)) = sizes_behind(&behind, length - end) else {
        return Ok((None, Ok(placed)));
    };
    placed.member.checksum = Some(checksum);
    Ok((Some(end + bytes), Ok(placed)))
}

/// Bytes that an array's elements take.
fn bytes_of(placed: &Placed) -> u64 {
    let elements = element_count(&placed.shape).unwrap_or_default();
    match placed.element {
        Element::Number(format) | Element::Raw(format, _) => storage(format, elements),
        Element::Text(letters) => elements.saturating_mul(letters).saturating_mul(4),
    }
}

/// How many bytes the sizes behind a member take, with the checksum that they begin with: they are
/// of 32 or 64 bits and have a mark before them or none, and the next member or the end follows.
fn sizes_behind(bytes: &[u8], rest: u64) -> Option<(u64, u32)> {
    let marked = if bytes.starts_with(SIZES) { 4 } else { 0 };
    let ends = [marked + 12, marked + 20];
    let end = ends.into_iter().find(|&end| {
        let next = bytes.get(end..).unwrap_or_default();
        next.starts_with(MEMBER) || next.starts_with(LIST) || rest == end as u64
    })?;
    Some((end as u64, double(bytes, marked)))
}
