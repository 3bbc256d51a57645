//! Byte sizes as text: `64MiB`, `4KB`, `512`, `1e9`.
//!
//! `KiB`, `MiB`, `GiB`, `TiB` and the bare letters `K M G T` are powers of 1024; `KB`, `MB`, `GB`,
//! `TB` are powers of 1000. Printing picks the largest binary unit that divides the value, so
//! that printing and parsing round-trip.

use super::number::scaled;
use crate::error::ParseError;

const UNITS: [(&str, u64); 13] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("B", 1),
];

/// Parses a size in bytes, with an optional unit; fractions such as `1.5MiB` are rounded down.
///
/// # Errors
/// Returns an error if the text is not a non-negative number with an optional known unit, or does
/// not fit in 64 bits.
pub fn parse_bytes(text: &str) -> Result<u64, ParseError> {
    let bad = || ParseError::new("size", text, "a number of bytes such as 4096, 64MiB or 1.5GB");
    let trimmed = text.trim();
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| strip_unit(trimmed, unit).map(|number| (number, *factor)))
        .unwrap_or((trimmed, 1));
    scaled(number.trim_end(), factor).map(|(bytes, _)| bytes).ok_or_else(bad)
}

/// Returns the part of `text` before `unit`, ignoring case.
fn strip_unit<'a>(text: &'a str, unit: &str) -> Option<&'a str> {
    let split = text.len().checked_sub(unit.len())?;
    let (number, suffix) = (text.get(..split)?, text.get(split..)?);
    (suffix.eq_ignore_ascii_case(unit) && !number.is_empty()).then_some(number)
}

/// Prints a size with the largest binary unit that divides it.
pub fn format_bytes(bytes: u64) -> String {
    for (unit, factor) in
        [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
    {
        if bytes != 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units_parse_to_bytes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("64MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("64 MB", 64_000_000),
            ("1.5K", 1536),
            ("2g", 2 << 30),
            ("1e9", 1_000_000_000),
            ("1_000", 1000),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_without_sense_are_refused() {
        for text in ["", "MiB", "-1", "64XB", "1e400", "99999999999999999999", "20000000TiB", "NaN"]
        {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn printed_sizes_parse_back() {
        for bytes in [0, 1, 1023, 1024, 1025, 64 << 20, 3 << 30, u64::MAX] {
            assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }
    }
}
