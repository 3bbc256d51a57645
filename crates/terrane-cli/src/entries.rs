//! Keys and values in files: what `load` reads and `dump` writes.
//!
//! | format | an entry |
//! |---|---|
//! | [`tsv`] | a line: key, tab, value; what would break the line is escaped |
//! | [`jsonl`] | a line: `{"key":…,"value":…}` |
//! | [`pairs`] | eight bytes: two numbers of the CS 265 binary files |
//!
//! Every format reads back what it wrote, byte for byte.

pub(crate) mod jsonl;
pub(crate) mod pairs;
pub(crate) mod tsv;

use std::path::Path;

use clap::ValueEnum;

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// How entries are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Key, tab, value; a line each
    Tsv,
    /// {"key":"…","value":"…"}; a line each
    Jsonl,
    /// Two 32-bit little-endian numbers each, as CS 265 has them
    Pairs,
}

impl Format {
    /// What the end of a file's name says.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "tab" | "txt" => Some(Self::Tsv),
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
    fn names_of_files_tell_their_formats() {
        let of = |name: &str| Format::of_path(Path::new(name));
        assert_eq!(of("a/b.TSV"), Some(Format::Tsv));
        assert_eq!(of("b.jsonl"), Some(Format::Jsonl));
        assert_eq!(of("0.dat"), Some(Format::Pairs));
        assert_eq!(of("b.gz"), None);
        assert_eq!(of("tsv"), None);
    }
}
