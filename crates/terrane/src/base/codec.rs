//! Bounds-checked decoding and the matching encoding.
//!
//! All integers are little-endian or LEB128 varints. A [`Reader`] never reads past its slice, never
//! allocates, and never panics. Lengths are checked against the remaining bytes.

use std::fmt;
use std::path::Path;

use crate::base::error::Error;

/// Bytes that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodeError {
    /// The item being decoded.
    pub(crate) what: &'static str,
    /// The offset in the slice, in bytes.
    pub(crate) at: usize,
    /// The tag, if it is unknown and the item must not be skipped. The item is then not damaged: a
    /// newer version wrote it.
    pub(crate) unknown: Option<u64>,
}

impl DecodeError {
    pub(crate) fn new(what: &'static str, at: usize) -> Self {
        Self { what, at, unknown: None }
    }

    /// Returns the error for an unknown odd tag.
    pub(crate) fn unknown(what: &'static str, tag: u64) -> Self {
        Self { what, at: 0, unknown: Some(tag) }
    }

    /// Converts to an error about a file with valid checksums. This is the error that `corrupt`
    /// returns, unless a newer version of the library wrote the item.
    pub(crate) fn of_file(self, path: &Path, corrupt: impl FnOnce(String) -> Error) -> Error {
        match self.unknown {
            Some(tag) => Error::unknown(path, self.what, tag),
            None => corrupt(self.to_string()),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tag) = self.unknown {
            return write!(f, "unknown {} with tag {tag}, {} bytes in", self.what, self.at);
        }
        write!(f, "{} is cut short or out of range, {} bytes in", self.what, self.at)
    }
}

pub(crate) type Decoded<T> = Result<T, DecodeError>;

/// Decodes a varint of at most eight bytes, from the low bytes of a word. Returns it with its length.
/// There is no branch per byte, because the lengths of sequence numbers cannot be predicted.
#[inline(always)]
pub(crate) fn short_varint(word: u64) -> Option<(u64, usize)> {
    let ends = !word & 0x8080_8080_8080_8080;
    // The bits up to the top bit of the last byte.
    let bits = (ends != 0).then(|| ends.trailing_zeros() + 1)?;
    Some((varint_of_bits(word, bits), bits as usize / 8))
}

/// Decodes a varint of 8 to 64 bits, from the low bits of a word.
#[inline(always)]
pub(crate) fn varint_of_bits(word: u64, bits: u32) -> u64 {
    let groups = word & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
    // Closes the gaps between groups of 7, then of 14, then of 28 bits.
    let groups = groups & 0x007f_007f_007f_007f | (groups & 0x7f00_7f00_7f00_7f00) >> 1;
    let groups = groups & 0x0000_3fff_0000_3fff | (groups & 0x3fff_0000_3fff_0000) >> 2;
    groups & 0x0000_0000_0fff_ffff | (groups & 0x0fff_ffff_0000_0000) >> 4
}

/// Decodes a slice from front to back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bytes read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Returns the number of remaining bytes.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    pub(crate) fn error(&self, what: &'static str) -> DecodeError {
        DecodeError::new(what, self.at)
    }

    /// Reads `len` bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, len: usize, what: &'static str) -> Decoded<&'a [u8]> {
        let end = self.at.checked_add(len).ok_or_else(|| self.error(what))?;
        let taken = self.bytes.get(self.at..end).ok_or_else(|| self.error(what))?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Decoded<[u8; N]> {
        let bytes = self.bytes(N, what)?;
        bytes.try_into().map_err(|_| self.error(what))
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Decoded<u8> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Reads a LEB128 number of at most 64 bits.
    #[inline]
    pub(crate) fn varint(&mut self, what: &'static str) -> Decoded<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or_else(|| self.error(what))?;
            // The tenth byte can contribute only the last of the 64 bits.
            if shift == 63 && byte > 1 {
                break;
            }
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(what))
    }

    /// Reads a varint of at most 32 bits.
    pub(crate) fn varint_u32(&mut self, what: &'static str) -> Decoded<u32> {
        let value = self.varint(what)?;
        u32::try_from(value).map_err(|_| self.error(what))
    }

    /// Reads a varint length and that many bytes.
    #[inline]
    pub(crate) fn slice(&mut self, what: &'static str) -> Decoded<&'a [u8]> {
        let len = self.varint(what)?;
        let len = usize::try_from(len).map_err(|_| self.error(what))?;
        self.bytes(len, what)
    }

    /// Reads a varint length and that many bytes of UTF-8.
    pub(crate) fn text(&mut self, what: &'static str) -> Decoded<&'a str> {
        let bytes = self.slice(what)?;
        std::str::from_utf8(bytes).map_err(|_| self.error(what))
    }

    /// Reads a flag byte, and a value if it is 1.
    pub(crate) fn option<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(&mut Self) -> Decoded<T>,
    ) -> Decoded<Option<T>> {
        match self.u8(what)? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(self.error(what)),
        }
    }
}

/// Appends a LEB128 number.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a varint length and the bytes.
pub(crate) fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a flag byte, and the value if there is one.
pub(crate) fn put_option<T>(
    out: &mut Vec<u8>,
    value: Option<T>,
    put: impl FnOnce(&mut Vec<u8>, T),
) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

/// Encodes into a slice from front to back. The caller has computed the length: a value that does not fit panics.
pub(crate) struct SliceWriter<'a>(&'a mut [u8]);

impl<'a> SliceWriter<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self(out)
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let (to, rest) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        to.copy_from_slice(bytes);
        self.0 = rest;
    }

    #[inline(always)]
    pub(crate) fn put_u8(&mut self, byte: u8) {
        self.put(&[byte]);
    }

    /// Writes a LEB128 number.
    #[inline(always)]
    pub(crate) fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.put_u8(value as u8);
    }
}

/// Returns the encoded length of a varint.
#[inline]
pub(crate) fn varint_len(value: u64) -> usize {
    // A seventh of the bits, rounded up, as a division by a power of two.
    ((value | 1).ilog2() as usize * 9 + 73) / 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_all_lengths() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert_eq!(out.len(), varint_len(value));
                let mut reader = Reader::new(&out);
                assert_eq!(reader.varint("number"), Ok(value));
                assert!(reader.is_empty());
                assert!(Reader::new(&out[..out.len() - 1]).varint("number").is_err());
            }
        }
    }

    #[test]
    fn overlong_and_oversized_numbers_are_refused() {
        assert!(Reader::new(&[0xff; 11]).varint("number").is_err());
        let mut too_large = vec![0xff; 9];
        too_large.push(2);
        assert!(Reader::new(&too_large).varint("number").is_err());
        let mut reader = Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert!(reader.varint_u32("number").is_err());
    }

    #[test]
    fn lengths_beyond_the_slice_are_refused() {
        let mut out = Vec::new();
        put_varint(&mut out, u64::MAX);
        out.extend_from_slice(b"abc");
        let error = Reader::new(&out).slice("name").unwrap_err();
        assert_eq!(error.what, "name");
        assert!(Reader::new(b"ab").u32("number").is_err());
        assert!(Reader::new(&[2]).option("flag", |reader| reader.u8("x")).is_err());
        assert!(Reader::new(&[1, 0xff]).text("text").is_err());
    }
}
