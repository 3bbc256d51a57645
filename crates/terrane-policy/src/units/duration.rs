//! Times as text: `500ms`, `90s`, `1h`, `7d`. Their values are in microseconds.

use crate::error::ParseError;

const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Parses a time in microseconds; a fraction such as `1.5h` is rounded down.
///
/// # Errors
/// Returns an error if the text is not a positive number followed by a unit, or does not fit in 64
/// bits.
pub fn parse_micros(text: &str) -> Result<u64, ParseError> {
    let bad = || ParseError::new("time", text, "a time such as 500ms, 90s, 10m, 1h 30m or 7d");
    let parts = text.split_whitespace().map(|part| part_of(part).ok_or_else(bad));
    let sum = parts.reduce(|sum, part| sum?.checked_add(part?).ok_or_else(bad));
    sum.ok_or_else(bad)?
}

/// Parses a number with its unit.
fn part_of(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(*factor);
    }
    let micros = number.parse::<f64>().ok()? * *factor as f64;
    let is_in_range = micros.is_finite() && (0.0..u64::MAX as f64).contains(&micros);
    is_in_range.then_some(micros as u64)
}

/// Prints a time with the largest unit that divides it.
pub fn format_micros(micros: u64) -> String {
    let divides = |factor: u64| micros != 0 && micros.is_multiple_of(factor);
    let unit = UNITS.iter().find(|(_, factor)| divides(*factor));
    let (name, factor) = unit.unwrap_or(&("s", 1_000_000));
    format!("{}{name}", micros / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_parse_to_microseconds_and_print_back() {
        for (text, micros) in
            [("1h", 3_600_000_000), ("90s", 90_000_000), ("2d", 172_800_000_000), ("7us", 7)]
        {
            assert_eq!(parse_micros(text), Ok(micros), "{text}");
            assert_eq!(parse_micros(&format_micros(micros)), Ok(micros));
        }
        assert_eq!(format_micros(90_000_000), "90s");
        assert_eq!(format_micros(0), "0s");
        assert_eq!(parse_micros("1.5m"), Ok(90_000_000));
        assert_eq!(parse_micros(" 1h 30m "), Ok(5_400_000_000));
    }

    #[test]
    fn times_without_sense_are_refused() {
        for text in ["", "5", "-1s", "h", "1y", "1e99d", "1h 5", "1h30m"] {
            assert!(parse_micros(text).is_err(), "{text}");
        }
    }
}
