//! What every engine is opened with.
//!
//! One value for all engines, as far as an engine has the setting; `compare/README.md` says which
//! have not. The defaults are those of the published comparisons.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Settings that every engine gets.
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
    /// How data blocks are compressed, where the engine can.
    pub(crate) compression: Compression,
    /// What a plain write promises.
    pub(crate) durability: Durability,
    /// What flushes and compactions may write in a second, where the engine can limit that.
    pub(crate) budget_bytes_per_second: Option<u64>,
}

/// How data blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compression {
    /// Not at all.
    None,
    /// With LZ4.
    Lz4,
}

/// What a write promises once it has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// It survives the death of the process.
    Process,
    /// It survives the loss of power.
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

/// A number of bytes with an optional binary unit: `4096`, `4KiB`, `64MiB`, `1GiB`.
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
