//! An entry, and the formats of files of entries.

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
pub(super) fn parse_expiry(text: &[u8]) -> Result<u64, String> {
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
    /// Returns the name that `--format` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsv => "tsv",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Pairs => "pairs",
        }
    }

    /// Returns the format that a file name's extension implies, also before `.zst`.
    pub fn of_path(path: &Path) -> Option<Self> {
        let is_compressed =
            path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zst"));
        if is_compressed {
            return Self::of_path(Path::new(path.file_stem()?));
        }
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "tab" | "txt" => Some(Self::Tsv),
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" | "json" => Some(Self::Jsonl),
            "bin" | "dat" => Some(Self::Pairs),
            _ => None,
        }
    }
}
