//! Consumes the bytes of a file in order and describes each of them.

use std::fmt::Write;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The bytes of a file, and their description so far.
pub(crate) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    out: String,
}

/// Bytes per line of the dump.
const WIDTH: usize = 12;

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, out: String::new() }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Adds a line without bytes.
    pub(crate) fn title(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:44}-- {text}", "");
    }

    /// Consumes the next `len` bytes, described as `what`.
    pub(crate) fn take(&mut self, len: usize, what: &str) -> &'a [u8] {
        let taken = &self.bytes[self.at..self.at + len];
        let mut what = what;
        for (index, line) in taken.chunks(WIDTH).enumerate() {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let offset = self.at + index * WIDTH;
            let text = format!("{offset:05x}  {:36} {what}", hex.join(" "));
            let _ = writeln!(self.out, "{}", text.trim_end());
            what = "";
        }
        self.at += len;
        taken
    }

    /// Consumes bytes that are all zero, in one line.
    pub(crate) fn zeros(&mut self, len: usize, what: &str) {
        assert!(self.bytes[self.at..self.at + len].iter().all(|&byte| byte == 0), "{what}");
        if len > 0 {
            let _ = writeln!(self.out, "{:05x}  {:36} {what}", self.at, format!("{len} × 00"));
            self.at += len;
        }
    }

    /// Consumes a copy of other bytes, in one line.
    pub(crate) fn copy(&mut self, len: usize, what: &str) {
        let _ = writeln!(self.out, "{:05x}  {:36} {what}", self.at, format!("{len} bytes"));
        self.at += len;
    }

    /// Consumes a fixed-width little-endian number.
    pub(crate) fn number(&mut self, len: usize, what: &str) -> u64 {
        let value = little(&self.bytes[self.at..self.at + len]);
        let shown = if value < 1 << 48 { value.to_string() } else { format!("{value:#x}") };
        self.take(len, &format!("{what} {shown}"));
        value
    }

    /// Consumes a LEB128 number.
    pub(crate) fn varint(&mut self, what: &str) -> u64 {
        let (value, len) = leb128(&self.bytes[self.at..]);
        self.take(len, &format!("{what} {value}"));
        value
    }

    /// Consumes a LEB128 length and that number of bytes.
    pub(crate) fn slice(&mut self, what: &str) -> &'a [u8] {
        let (len, len_bytes) = leb128(&self.bytes[self.at..]);
        let total = len_bytes + len as usize;
        let text = self.bytes[self.at + len_bytes..self.at + total].escape_ascii().to_string();
        let shown = if text.len() <= 24 { format!(" \"{text}\"") } else { String::new() };
        &self.take(total, &format!("{what}, {len} bytes{shown}"))[len_bytes..]
    }

    /// Consumes a checksum of `bytes` with a seed, which must match.
    pub(crate) fn checksum(&mut self, bytes: &[u8], seed: u64) {
        let sum = little(self.take(8, "checksum"));
        assert_eq!(sum, xxh3_64_with_seed(bytes, seed), "at {:#x}", self.at - 8);
    }

    pub(crate) fn finish(self) -> String {
        assert_eq!(self.at, self.bytes.len(), "every byte has a name");
        self.out
    }
}

pub(crate) fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

pub(crate) fn leb128(bytes: &[u8]) -> (u64, usize) {
    let len = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let value =
        bytes[..len].iter().rev().fold(0, |value, &byte| value << 7 | u64::from(byte & 0x7f));
    (value, len)
}

/// Returns the seed of the checksum at an offset of a file.
pub(crate) fn place(file: u64, offset: u64) -> u64 {
    file.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset.wrapping_mul(0xd6e8_feb8_6659_fd93)
}
