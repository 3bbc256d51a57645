//! The entries of CS 265: pairs of signed 32-bit numbers, in files and in databases.
//!
//! In a file a pair is eight bytes, key and value, each little-endian, without header or separator.
//! In a database both are four bytes, big-endian with the sign bit flipped, so that keys sort like
//! the numbers. The shell writes them `i32:7`.

use std::io::{self, Read, Write};

use super::entry::Entry;

/// Bytes of a pair in a file.
const PAIR_BYTES: usize = 8;

/// The size of a read.
const READ_BYTES: usize = 32_768 * PAIR_BYTES;

/// Encodes a number for a database.
pub fn encode(number: i32) -> [u8; 4] {
    (number.cast_unsigned() ^ (1 << 31)).to_be_bytes()
}

/// Decodes a number of a database; `None` if the bytes are not a number.
pub fn decode(bytes: &[u8]) -> Option<i32> {
    let bytes = u32::from_be_bytes(bytes.try_into().ok()?);
    Some((bytes ^ (1 << 31)).cast_signed())
}

/// Reads the pairs of a file.
#[derive(Debug)]
pub struct PairReader<R> {
    input: R,
    buffer: Vec<u8>,
    filled: usize,
}

impl<R: Read> PairReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self { input, buffer: vec![0; READ_BYTES], filled: 0 }
    }

    /// Reads the next pairs, as many as one read returns; an empty list at the end.
    ///
    /// # Errors
    ///
    /// If the input cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<(i32, i32)>> {
        loop {
            let count = match self.input.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            self.filled += count;
            let whole = self.filled - self.filled % PAIR_BYTES;
            if count > 0 && whole == 0 {
                continue;
            }
            let pairs = self.buffer[..whole].chunks_exact(PAIR_BYTES).map(pair).collect();
            self.buffer.copy_within(whole..self.filled, 0);
            self.filled -= whole;
            return Ok(pairs);
        }
    }

    /// Returns the number of bytes after the last whole pair.
    pub fn left_over_bytes(&self) -> usize {
        self.filled
    }
}

fn pair(bytes: &[u8]) -> (i32, i32) {
    let number =
        |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (number(0), number(4))
}

/// Encodes a pair as an entry of a database.
pub fn entry((key, value): (i32, i32)) -> Entry {
    Entry::new(encode(key).into(), encode(value).into())
}

/// Writes an entry as a pair; returns false if the entry is not a pair of numbers.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, key: &[u8], value: &[u8]) -> io::Result<bool> {
    let (Some(key), Some(value)) = (decode(key), decode(value)) else { return Ok(false) };
    out.write_all(&key.to_le_bytes())?;
    out.write_all(&value.to_le_bytes())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order_and_round_trip() {
        let numbers = [i32::MIN, -70_000, -1, 0, 1, 256, i32::MAX];
        assert!(numbers.map(encode).is_sorted());
        assert_eq!(numbers.map(|number| decode(&encode(number))), numbers.map(Some));
        assert_eq!(decode(b"abc"), None);
    }

    /// Returns one byte per read.
    struct OneByteReader(Vec<u8>);

    impl Read for OneByteReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            buffer[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn files_round_trip_and_a_partial_pair_is_left_over() {
        let mut file = Vec::new();
        for pair in [(1, -4), (i32::MIN, 5)] {
            let Entry { key, value, .. } = entry(pair);
            assert!(write(&mut file, &key, &value).unwrap());
        }
        assert_eq!(file[..8], [1, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff]);
        assert!(!write(&mut file, b"long key", b"v").unwrap());
        file.extend(b"rest");
        let mut reader = PairReader::new(OneByteReader(file));
        assert_eq!(reader.read().unwrap(), [(1, -4)]);
        assert_eq!(reader.read().unwrap(), [(i32::MIN, 5)]);
        assert_eq!(reader.read().unwrap(), []);
        assert_eq!(reader.left_over_bytes(), 4);
    }
}
