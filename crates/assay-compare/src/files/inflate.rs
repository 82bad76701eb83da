//! What compressed members of archives need: inflating as one reads (RFC 1951), and the CRC-32 of
//! what came out.

use std::io::{self, Read};

use flate2::Crc;
use flate2::read::DeflateDecoder;

/// Bytes of compressed data that are read at a time.
const BUFFER: usize = 1 << 16;

/// The inflated bytes of a stream.
pub(super) struct Inflated<R>(DeflateDecoder<R>);

impl<R: Read> Inflated<R> {
    pub(super) fn new(packed: R) -> Inflated<R> {
        Inflated(DeflateDecoder::new_with_buf(packed, vec![0; BUFFER]))
    }
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

/// How many bytes a stream takes before its own end; none where it is damaged or cut off.
pub(super) fn packed_bytes(packed: impl Read) -> Option<u64> {
    let mut decoder = DeflateDecoder::new_with_buf(packed, vec![0; BUFFER]);
    io::copy(&mut decoder, &mut io::sink()).ok()?;
    Some(decoder.total_in())
}

/// The CRC-32 of bytes that come one after the other.
#[derive(Default)]
pub(super) struct Checksum(Crc);

impl Checksum {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn value(&self) -> u32 {
        self.0.sum()
    }
}
