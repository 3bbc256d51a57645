//! Keys and values in files: what `load` reads and `dump` writes.
//!
//! | format | an entry |
//! |---|---|
//! | [`tsv`] | a line: key, tab, value; control characters are escaped |
//! | [`csv`] | a line, or several with a quoted field: key, comma, value |
//! | [`jsonl`] | a line: `{"key":…,"value":…}` |
//! | [`pairs`] | eight bytes: two numbers of the CS 265 binary files |
//!
//! Every format reads back what it wrote, byte for byte. An expiry time, in microseconds since the Unix epoch,
//! follows `\e` in [`tsv`], is the third field in [`csv`] and `expires_at_micros` in [`jsonl`]; [`pairs`] cannot
//! store it. Entries without one are written as before expiry times existed, so old files remain readable, and old
//! versions can read such entries.

pub mod csv;
pub mod jsonl;
pub mod pairs;
pub mod tsv;

use std::path::Path;

/// A key and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<B = Vec<u8>> {
    /// The key.
    pub key: B,
    /// The value.
    pub value: B,
    /// When the value expires, in microseconds since the Unix epoch; `None` if it does not.
    pub expires_at_micros: Option<u64>,
}

impl<B> Entry<B> {
    /// An entry whose value does not expire.
    pub fn new(key: B, value: B) -> Self {
        Self { key, value, expires_at_micros: None }
    }
}

/// Parses the expiry time of a value.
fn parse_expiry(text: &[u8]) -> Result<u64, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        let found = text.escape_ascii();
        format!("invalid expiry time '{found}'; expected microseconds since the Unix epoch")
    })
}

/// A format of entries in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryFormat {
    /// Key, tab, value; one entry per line.
    Tsv,
    /// Key, comma, value, with quotes where they are needed.
    Csv,
    /// `{"key":"…","value":"…"}`; one entry per line.
    Jsonl,
    /// Two 32-bit little-endian numbers per entry, as in CS 265.
    Pairs,
}

impl EntryFormat {
    /// Returns the format that a file name's extension implies.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "tab" | "txt" => Some(Self::Tsv),
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" | "json" => Some(Self::Jsonl),
            "bin" | "dat" => Some(Self::Pairs),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_extensions_imply_formats() {
        let of = |name: &str| EntryFormat::of_path(Path::new(name));
        assert_eq!(of("a/b.TSV"), Some(EntryFormat::Tsv));
        assert_eq!(of("b.jsonl"), Some(EntryFormat::Jsonl));
        assert_eq!(of("b.csv"), Some(EntryFormat::Csv));
        assert_eq!(of("0.dat"), Some(EntryFormat::Pairs));
        assert_eq!(of("b.gz"), None);
        assert_eq!(of("tsv"), None);
    }
}
