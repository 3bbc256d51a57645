//! Formats numbers for people: short, with a unit.

use std::time::Duration;

pub use terrane_policy::units::{grouped as count, short_bytes as bytes};

/// Returns the number of decimal places that gives three digits.
fn digits(value: f64) -> usize {
    match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    }
}

/// Formats a count with its noun: `1 key`, `2 keys`, `3 entries`, `4 flushes`.
pub fn counted(number: u64, noun: &str) -> String {
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

/// Formats a number with three significant digits: `1.23`, `12.3`, `123`, `12,345`; `-` if unknown.
pub fn number(value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    if value >= 999.5 {
        return count(value.round() as u64);
    }
    let digits = digits(value);
    format!("{value:.digits$}")
}

/// Formats a time with three digits and its unit, from microseconds to days.
pub fn duration(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 999.5 {
        format!("{} µs", number(micros))
    } else if micros < 999_500.0 {
        format!("{} ms", number(micros / 1e3))
    } else if micros < 999.5e6 {
        format!("{} s", number(micros / 1e6))
    } else if micros < 99.95 * 60e6 {
        format!("{} min", number(micros / 60e6))
    } else if micros < 99.95 * 3600e6 {
        format!("{} h", number(micros / 3600e6))
    } else {
        format!("{} days", number(micros / (24.0 * 3600e6)))
    }
}

/// Formats seconds as a time with its unit; `-` if unknown.
pub fn seconds(seconds: f64) -> String {
    if seconds.is_nan() {
        return "-".to_owned();
    }
    duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)))
}

/// Formats a ratio with three digits: `1.23×`.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    format!("{}×", number(ratio))
}

/// Formats nanoseconds as a time with its unit: `12 ns`, `3.4 µs`, `5.6 ms`.
#[must_use]
pub fn nanos(nanos: f64) -> String {
    match nanos {
        nanos if nanos < 1e3 => format!("{nanos:.0} ns"),
        nanos if nanos < 1e6 => format!("{:.1} µs", nanos / 1e3),
        nanos => format!("{:.1} ms", nanos / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_thousands_have_commas() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(number(1.234), "1.23");
        assert_eq!(number(99.97), "100");
        assert_eq!(number(1234.5), "1,235");
        assert_eq!(duration(Duration::from_micros(12)), "12.0 µs");
        assert_eq!(duration(Duration::from_millis(1500)), "1.50 s");
        let seconds = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!([seconds(999), seconds(1000), seconds(5400)], ["999 s", "16.7 min", "90.0 min"]);
        assert_eq!([seconds(86400), seconds(30 * 86400)], ["24.0 h", "30.0 days"]);
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted(2, "entry"), "2 entries");
        assert_eq!(counted(0, "key"), "0 keys");
        assert_eq!(counted(4, "flush"), "4 flushes");
    }
}
