//! The note in which an assembler names itself: `.note.nv.tkinfo`.
//!
//! A descriptor of six words (a version, then the places of five texts) and the texts: the tool,
//! its version line (`Cuda compilation tools, release 13.0, V13.0.88`), its build, and its options
//! (`-arch sm_90a -m 64`). Images of ptxas up to 12.8 for `sm_90` and below have none.

use crate::bytes::{Bytes, Cursor};
use crate::elf::Elf;
use crate::error::ImageError;
use crate::facts::Release;

const SECTION: &str = ".note.nv.tkinfo";
const OWNER: &[u8] = b"NVIDIA Corp\0";
const KIND: u32 = 2000;
/// The longest text that is looked at.
const LONGEST_TEXT: usize = 64;

/// What the note says, as far as it is asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ToolNote {
    pub(crate) release: Option<Release>,
    pub(crate) architecture: Option<String>,
}

/// Reads the note of an image; empty where it has none, or one of another maker.
pub(crate) fn read(elf: &Elf<'_>) -> Result<ToolNote, ImageError> {
    let Some(section) = elf.section(SECTION) else { return Ok(ToolNote::default()) };
    let mut cursor = Cursor::new(elf.contents(section)?);
    let mut note = ToolNote::default();
    while !cursor.is_at_end() {
        let owner_size = cursor.u32("n_namesz")?;
        let size = cursor.u32("n_descsz")?;
        let kind = cursor.u32("n_type")?;
        let owner = padded(&mut cursor, owner_size, "note owner")?;
        let descriptor = padded(&mut cursor, size, "note descriptor")?;
        if owner.data() == OWNER && kind == KIND {
            understand(descriptor, &mut note);
        }
    }
    Ok(note)
}

/// The next bytes, and the padding to a whole word behind them; the last padding may be missing.
fn padded<'a>(
    cursor: &mut Cursor<'a>,
    size: u32,
    field: &'static str,
) -> Result<Bytes<'a>, ImageError> {
    let taken = cursor.take(size.into(), field)?;
    let padding = u64::from(size.wrapping_neg() % 4).min(cursor.left());
    cursor.take(padding, field)?;
    Ok(taken)
}

/// Takes from the texts what is known of their form; a later form of the note says nothing.
fn understand(descriptor: Bytes<'_>, note: &mut ToolNote) {
    for text in descriptor.data().split(|byte| *byte == 0) {
        let Ok(text) = std::str::from_utf8(text) else { continue };
        if let Some((_, version)) = text.split_once(", V") {
            note.release = note.release.or_else(|| version.parse().ok());
        }
        let mut words = text.split_ascii_whitespace();
        if words.any(|word| word == "-arch") {
            let named = words.next().filter(|name| name.len() <= LONGEST_TEXT);
            note.architecture = named.map(str::to_owned);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ToolNote, understand};
    use crate::bytes::Bytes;

    #[test]
    fn the_texts_of_a_note_name_the_release_and_the_architecture() {
        let texts = b"\x02\0\0\0\0\0\0\0\x01\0\0\0\0ptxas\0Cuda compilation tools, release 13.5, \
            V13.5.37\0Build cuda_13.5.r13.5/compiler.1_0\0-arch sm_120a -m 64 \0";
        let mut note = ToolNote::default();
        understand(Bytes::new(texts), &mut note);
        assert_eq!(note.release.map(|release| release.to_string()).as_deref(), Some("13.5.37"));
        assert_eq!(note.architecture.as_deref(), Some("sm_120a"));
    }

    #[test]
    fn a_note_in_another_form_says_nothing() {
        let mut note = ToolNote::default();
        understand(Bytes::new(b"\xff\xfe\0one, V two\0-architecture\0"), &mut note);
        assert_eq!(note, ToolNote::default());
    }
}
