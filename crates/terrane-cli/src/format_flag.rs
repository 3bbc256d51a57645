//! The flag `--format` of files of entries.

use clap::ValueEnum;
use terrane_lab::input::import_export::EntryFormat;

/// The value of `--format`: a file format of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatFlag {
    /// Key, tab, value; one entry per line
    Tsv,
    /// Key, comma, value, with quotes where they are needed
    Csv,
    /// {"key":"…","value":"…"}; one entry per line
    Jsonl,
    /// Two 32-bit little-endian numbers per entry, as in CS 265
    Pairs,
}

impl From<FormatFlag> for EntryFormat {
    fn from(flag: FormatFlag) -> Self {
        match flag {
            FormatFlag::Tsv => Self::Tsv,
            FormatFlag::Csv => Self::Csv,
            FormatFlag::Jsonl => Self::Jsonl,
            FormatFlag::Pairs => Self::Pairs,
        }
    }
}
