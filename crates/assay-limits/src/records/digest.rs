//! Digests of the texts that a record was compiled from.
//!
//! A digest guards against a source that was changed and not compiled again, not against an
//! adversary: FNV-1a of 128 bits, which no accident collides, needs ten lines and no dependency.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One text that a compile reads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourceText {
    /// Its path within the suite, with `/`.
    pub path: String,
    /// Its bytes.
    pub text: Vec<u8>,
}

/// A digest of a source, the headers that it includes and the options of its compile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest(u128);

/// The offset basis and the prime of FNV-1a with 128 bits (RFC 9923, section 5).
const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Digest {
    /// The digest of some texts, whatever their order, and of options in their order.
    pub fn of(texts: &[SourceText], options: &[String]) -> Digest {
        let mut texts: Vec<&SourceText> = texts.iter().collect();
        texts.sort();
        let mut digest = Digest(BASIS);
        for text in texts {
            digest.add(text.path.as_bytes());
            digest.add(&text.text);
        }
        for option in options {
            digest.add(option.as_bytes());
        }
        digest
    }

    /// Adds a piece and its length, so that moving a byte to the next piece changes the digest.
    fn add(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

/// Text that is not a digest.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a digest of 32 hexadecimal digits")]
pub struct NotADigest(String);

impl TryFrom<String> for Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Digest, NotADigest> {
        text.parse()
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Digest, NotADigest> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parsed = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        parsed.map(Digest).ok_or_else(|| NotADigest(text.to_owned()))
    }
}
