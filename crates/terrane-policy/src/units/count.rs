//! Counts as text: `20000`, `20_000`, `500K`, `1.5M`, `1e9`.
//!
//! The letters `K M G T` are powers of a thousand here, unlike those of [sizes](super::parse_bytes).

use super::number::scaled;
use crate::error::ParseError;

/// The accepted forms, for messages.
const FORMS: &str = "a whole number such as 20000, 500K, 1.5M or 1e9";

const LETTERS: [(char, u64); 4] =
    [('K', 1_000), ('M', 1_000_000), ('G', 1_000_000_000), ('T', 1_000_000_000_000)];

/// Parses a count, with an optional letter.
///
/// # Errors
/// Returns an error if the text is not a non-negative whole number, or does not fit in 64 bits.
pub fn parse_count(text: &str) -> Result<u64, ParseError> {
    let trimmed = text.trim();
    let letter = LETTERS
        .iter()
        .find(|(letter, _)| trimmed.ends_with([*letter, letter.to_ascii_lowercase()]));
    let (number, factor) =
        letter.map_or((trimmed, 1), |(_, factor)| (&trimmed[..trimmed.len() - 1], *factor));
    match scaled(number, factor) {
        Some((count, true)) => Ok(count),
        _ => Err(ParseError::new("number", text, FORMS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_with_letters_points_and_powers_of_ten() {
        for (text, count) in [
            ("0", 0),
            ("20_000", 20_000),
            ("1M", 1_000_000),
            ("1.5k", 1_500),
            ("2g", 2_000_000_000),
            ("1e9", 1_000_000_000),
            ("1.5E3", 1_500),
            ("0.5e1", 5),
            ("3e0K", 3_000),
            (".5K", 500),
            ("18446744073709551615", u64::MAX),
            ("0e999", 0),
        ] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "M",
            "K5",
            "1.5",
            "-1",
            "+1",
            "1e-1",
            "1.0001K",
            "99999999999G",
            "1e99",
            "1e",
            "e3",
            ".",
            "_",
            "nan",
            "inf",
            "ten",
            "1.2.3",
            "0x10",
            "1MiB",
            "9999999999999999999999999999999999999999",
        ] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }
}
