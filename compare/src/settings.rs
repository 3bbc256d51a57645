//! The settings with which every engine is opened.
//!
//! All engines get the same values, as far as they have the settings; `compare/README.md` lists the
//! settings that an engine lacks. The defaults are those of the published comparisons.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The settings that every engine gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Bytes of one write buffer.
    pub(crate) memtable_bytes: u64,
    /// Bytes of the cache for blocks or pages.
    pub(crate) cache_bytes: u64,
    /// Bytes of a data block.
    pub(crate) block_bytes: u32,
    /// Bits of the filter for each key.
    pub(crate) filter_bits_per_key: u32,
    /// Threads for flushes and compactions.
    pub(crate) background_threads: u32,
    /// The compression of data blocks, if the engine supports it.
    pub(crate) compression: Compression,
    /// The durability of a plain write.
    pub(crate) durability: Durability,
    /// The bytes per second that flushes and compactions may write, if the engine can limit this.
    pub(crate) budget_bytes_per_second: Option<u64>,
    /// The limit for all memory of the process, page cache included, if it is limited.
    pub(crate) memory_limit_bytes: Option<u64>,
    /// Whether tables bypass the page cache.
    pub(crate) is_direct: bool,
}

/// The compression of data blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compression {
    /// No compression.
    None,
    /// LZ4.
    Lz4,
}

/// The durability of a write that has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// The write survives the death of the process.
    Process,
    /// The write survives a power failure.
    Sync,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
        })
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Process => "process",
            Self::Sync => "sync",
        })
    }
}

/// Parses a number of bytes with an optional binary unit: `4096`, `4KiB`, `64MiB`, `1GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match &text[digits.len()..] {
            "" | "B" => 1,
            "K" | "KiB" => 1 << 10,
            "M" | "MiB" => 1 << 20,
            "G" | "GiB" => 1 << 30,
            unit => return Err(format!("unknown unit '{unit}'; use KiB, MiB or GiB")),
        };
        let number: u64 =
            digits.parse().map_err(|_| format!("'{text}' is not a number of bytes"))?;
        number.checked_mul(factor).map(Self).ok_or_else(|| format!("'{text}' is too large"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_with_binary_units_and_nothing_else_does() {
        for (text, bytes) in [("4096", 4096), ("4KiB", 4096), ("64M", 64 << 20), ("2GiB", 2 << 30)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }
        for text in ["", "MiB", "1.5GiB", "-1", "4KB", "99999999999999G"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
