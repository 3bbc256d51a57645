//! Numbers for people: short, with a unit.

use std::time::Duration;

/// Bytes with three digits and a binary unit.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 { 0 } else { digits(value) };
    format!("{value:.digits$} {}", units[unit])
}

/// Digits after the point that make three in all.
fn digits(value: f64) -> usize {
    match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    }
}

/// A whole number with commas between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count of something, with its noun: `1 key`, `2 keys`, `3 entries`, `4 flushes`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    if number == 1 {
        return format!("1 {noun}");
    }
    let number = count(number);
    match noun.strip_suffix("ry") {
        Some(stem) => format!("{number} {stem}ries"),
        None if noun.ends_with("sh") => format!("{number} {noun}es"),
        None => format!("{number} {noun}s"),
    }
}

/// A number with three digits that count: `1.23`, `12.3`, `123`, `12,345`.
pub(crate) fn number(value: f64) -> String {
    if value >= 999.5 {
        return count(value.round() as u64);
    }
    let digits = digits(value);
    format!("{value:.digits$}")
}

/// A time from microseconds on, with three digits and its unit.
pub(crate) fn duration(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 999.5 {
        format!("{} µs", number(micros))
    } else if micros < 999_500.0 {
        format!("{} ms", number(micros / 1e3))
    } else {
        format!("{} s", number(micros / 1e6))
    }
}

/// A count that a user may write as `20000`, `20_000`, `20K` or `1.5M`; the letters are powers of
/// a thousand.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let bad = || "a whole number such as 1000000, 500K or 1M is expected".to_owned();
    let digits = text.replace('_', "");
    let (number, factor) = match digits.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&digits[..at], 1_000),
        Some((at, 'm' | 'M')) => (&digits[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&digits[..at], 1_000_000_000),
        _ => (&digits[..], 1),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(bad);
    }
    let value = number.parse::<f64>().map_err(|_| bad())? * factor as f64;
    let is_whole = value.fract() == 0.0 && (0.0..9e15).contains(&value);
    if factor > 1 && is_whole { Ok(value as u64) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_thousands_have_commas() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1000), "0.98 KiB");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(number(1.234), "1.23");
        assert_eq!(number(99.97), "100");
        assert_eq!(number(1234.5), "1,235");
        assert_eq!(duration(Duration::from_micros(12)), "12.0 µs");
        assert_eq!(duration(Duration::from_millis(1500)), "1.50 s");
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted(2, "entry"), "2 entries");
        assert_eq!(counted(0, "key"), "0 keys");
        assert_eq!(counted(4, "flush"), "4 flushes");
    }

    #[test]
    fn counts_are_read_with_letters() {
        for (text, expected) in
            [("1000000", 1_000_000), ("20_000", 20_000), ("1M", 1_000_000), ("1.5k", 1_500)]
        {
            assert_eq!(parse_count(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "1.5", "-1", "1e3", "1.0001K", "99999999999G", "ten"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }
}
