//! Numbers in the syntax that all flags and parameters share.
//!
//! | quantity | syntax | suffixes |
//! |---|---|---|
//! | a count | `20000`, `20_000`, `500K`, `1.5M`, `1e9` | powers of 1000 |
//! | bytes | the same, and `64MiB`, `1.5GB` | `K M G T` mean `KiB` etc., powers of 1024; `KB` etc. are powers of 1000 |
//! | bytes a second | the same, with or without `/s` | |
//! | a share, any other number | `0.95`, `95%`, `1e-3` | |
//! | a time | `90` seconds, `500ms`, `20m`, `1h 30m` | |
//!
//! The error of each parser states the expected syntax and the limits.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use terrane_policy::units;
use terrane_workload::ValueSize;

use crate::error::usage;
use crate::output::human;

/// The maximum size of a key in bytes.
pub const KEY_BYTES_MAX: u64 = terrane::MAX_KEY_LEN as u64;

/// The maximum size of a record in bytes: the largest key and the largest value of the engine.
pub const RECORD_BYTES_MAX: u64 = KEY_BYTES_MAX + terrane::MAX_VALUE_LEN as u64;

/// The maximum number of records; a larger number is most likely a mistake.
pub const RECORDS_MAX: u64 = 1_000_000_000_000_000;

/// The maximum size of all records in bytes. A larger size is most likely a mistake, and simulating
/// it would take hours.
const DATA_BYTES_MAX: u64 = 1 << 50;

/// Rejects data sets larger than the maximum.
pub fn check_data(records: f64, record_bytes: f64) -> anyhow::Result<()> {
    if records * record_bytes <= DATA_BYTES_MAX as f64 {
        return Ok(());
    }
    Err(usage(format!(
        "{} of {} exceed the maximum of {} in all; lower the number or the size",
        human::counted(records as u64, "record"),
        human::bytes(record_bytes as u64),
        human::bytes(DATA_BYTES_MAX)
    )))
}

/// Parses a count.
pub fn count(text: &str) -> Result<u64, String> {
    units::parse_count(text).map_err(|error| format!("expected {}", error.expected))
}

/// Parses a count within limits.
pub fn count_in<T: TryFrom<u64>>(
    limits: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| within(count(text)?, &limits, "a whole number", short_count)
}

/// Parses a number of bytes, which may be zero.
pub fn bytes(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).map_err(|error| format!("expected {}", error.expected))
}

/// Parses a number of bytes within limits.
pub fn bytes_in<T: TryFrom<u64>>(
    limits: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| within(bytes(text)?, &limits, "a number of bytes", units::format_bytes)
}

/// Parses a positive number of bytes per second.
pub fn rate(text: &str) -> Result<u64, String> {
    let wrong =
        || "expected a positive number of bytes per second such as 64MiB or 100MB/s".to_owned();
    let rate = bytes(text.trim_end().trim_end_matches("/s")).ok().filter(|rate| *rate > 0);
    rate.ok_or_else(wrong)
}

/// Parses a value size or a range of value sizes.
pub fn value_size(text: &str) -> Result<ValueSize, String> {
    let wrong =
        || "expected a number of bytes such as 100 or 4KiB, or a range such as 100..400".to_owned();
    let size = |text: &str| bytes(text).ok().and_then(|bytes| usize::try_from(bytes).ok());
    let too_large = |size: usize| size > terrane::MAX_VALUE_LEN;
    let last = text.rsplit("..").next().unwrap_or(text);
    if size(last).is_some_and(too_large) {
        return Err("expected a value of at most 1GiB".to_owned());
    }
    match text.split_once("..") {
        None => size(text).map(ValueSize::fixed).ok_or_else(wrong),
        Some((least, most)) => {
            let (least, most) = size(least).zip(size(most)).ok_or_else(wrong)?;
            ValueSize::range(least, most).map_err(|_| wrong())
        }
    }
}

/// Parses a number within limits; `95%` is 0.95, and fractions such as `1/30` are accepted.
pub fn number_in(limits: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let (digits, divisor) =
            text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |digits| (digits, 100.0));
        let (digits, divisor) = match digits.split_once('/') {
            Some((digits, by)) => (digits, by.parse().unwrap_or(f64::NAN) * divisor),
            None => (digits, divisor),
        };
        let number = digits.replace('_', "").parse::<f64>().ok().map(|number| number / divisor);
        let (least, most) = (limits.start(), limits.end());
        number.filter(|number| limits.contains(number)).ok_or_else(|| {
            if most.is_infinite() {
                format!("expected a number of at least {least}")
            } else {
                format!("expected a number from {least} to {most}")
            }
        })
    }
}

/// Parses a time: a number of seconds, or a number with a unit.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong =
        || "expected a time such as 500ms, 90s, 20m or 1h, or a number of seconds".to_owned();
    match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong()),
        Err(_) => humantime::parse_duration(text.trim()).map_err(|_| wrong()),
    }
}

/// Parses a positive time.
pub fn some_time(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time.is_zero() { Err("expected a positive time".to_owned()) } else { Ok(time) }
}

/// Parses the duration of a phase of an experiment.
pub fn phase_time(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(24 * 3600);
    let time = time(text)?;
    match time.is_zero() || time > LONGEST {
        true => Err("a phase must be longer than 0 s and at most 24 h".to_owned()),
        false => Ok(time),
    }
}

fn within<T: TryFrom<u64>>(
    number: u64,
    limits: &RangeInclusive<u64>,
    what: &str,
    print: impl Fn(u64) -> String,
) -> Result<T, String> {
    let (least, most) = (*limits.start(), *limits.end());
    let wrong = || between(what, print(least), (most < u64::MAX).then(|| print(most)));
    let fits = limits.contains(&number).then(|| T::try_from(number).ok()).flatten();
    fits.ok_or_else(wrong)
}

/// Formats a limit with the suffix that needs the fewest digits.
fn short_count(count: u64) -> String {
    let letters = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M")];
    let letter =
        letters.iter().find(|(factor, _)| count >= *factor && count.is_multiple_of(*factor));
    letter
        .map_or_else(|| count.to_string(), |(factor, letter)| format!("{}{letter}", count / factor))
}

fn between(what: &str, least: impl Display, most: Option<impl Display>) -> String {
    match most {
        Some(most) => format!("expected {what} from {least} to {most}"),
        None => format!("expected {what} of at least {least}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_the_same_way_everywhere() {
        assert_eq!(count("1.5M"), Ok(1_500_000));
        assert_eq!(count_in::<u32>(1..=100)("1e2"), Ok(100));
        assert_eq!(bytes("1.5KiB"), Ok(1536));
        assert_eq!(bytes_in::<usize>(1..=1 << 20)("1M"), Ok(1 << 20));
        assert_eq!(rate("100MB/s"), Ok(100_000_000));
        assert_eq!(rate("1MiB"), Ok(1 << 20));
        assert_eq!(value_size("1K..4K"), ValueSize::range(1024, 4096).map_err(|_| String::new()));
        assert!(value_size("1GiB").is_ok() && value_size("1..2GiB").is_err());
        assert_eq!(number_in(0.0..=1.0)("95%"), Ok(0.95));
        assert_eq!(number_in(0.0..=1.0)("1/30"), Ok(1.0 / 30.0));
        assert_eq!(time("90"), time("1m 30s"));
    }

    #[test]
    fn data_beyond_the_maximum_is_rejected() {
        assert!(check_data(1e12, 1000.0).is_ok());
        let message = check_data(1e15, 1e6).unwrap_err().to_string();
        assert!(message.contains("of 977 KiB exceed the maximum of 1.00 PiB"), "{message}");
    }

    #[test]
    fn values_out_of_range_are_rejected_with_the_limits() {
        let message = |result: Result<u32, String>| result.unwrap_err();
        assert_eq!(message(count_in(1..=100)("0")), "expected a whole number from 1 to 100");
        assert_eq!(message(count_in(1..=u64::MAX)("0")), "expected a whole number of at least 1");
        assert_eq!(
            message(bytes_in(1..=1 << 20)("1G")),
            "expected a number of bytes from 1 to 1MiB"
        );
        assert_eq!(message(count_in(1..=2_000_000)("0")), "expected a whole number from 1 to 2M");
        assert!(message(count_in(1..=u64::MAX)("5e9")).contains("at least"));
        assert!(count("ten").unwrap_err().contains("500K, 1.5M or 1e9"));
        for text in ["nan", "-1", "1.01", "x"] {
            assert!(number_in(0.0..=1.0)(text).is_err(), "{text}");
        }
        assert!(rate("0").is_err() && value_size("4..1").is_err() && value_size("-1").is_err());
        for text in ["", "-1", "inf", "1y 2", "soon"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(some_time("0s").is_err());
        assert!(
            phase_time("0").is_err() && phase_time("25h").is_err() && phase_time("24h").is_ok()
        );
    }
}
