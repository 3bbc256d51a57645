//! Numbers as every flag and every parameter understands them.
//!
//! | what | is written | letters |
//! |---|---|---|
//! | a count | `20000`, `20_000`, `500K`, `1.5M`, `1e9` | powers of a thousand |
//! | bytes | the same, and `64MiB`, `1.5GB` | `K M G T` as `KiB` and so on, powers of 1024; `KB` and so on powers of a thousand |
//! | bytes a second | the same, with or without `/s` | |
//! | a share, any other number | `0.95`, `95%`, `1e-3` | |
//! | a time | `90` seconds, `500ms`, `20m`, `1h 30m` | |
//!
//! Each parser says what it understands and, where there are limits, between which.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use terrane_policy::units;
use terrane_workload::ValueSize;

use crate::error::usage;
use crate::human;

/// The largest key, in bytes.
pub const KEY_BYTES_MAX: u64 = terrane::MAX_KEY_LEN as u64;

/// The largest record: a key and a value as large as the engine takes them.
pub const RECORD_BYTES_MAX: u64 = KEY_BYTES_MAX + terrane::MAX_VALUE_LEN as u64;

/// The most records that are thought about: what is beyond it is a slip.
pub const RECORDS_MAX: u64 = 1_000_000_000_000_000;

/// The most that all records together are thought to be, in bytes; what is more is a slip, and would
/// be played for hours.
const DATA_BYTES_MAX: u64 = 1 << 50;

/// Refuses records that are more than anyone has.
pub fn check_data(records: f64, record_bytes: f64) -> anyhow::Result<()> {
    if records * record_bytes <= DATA_BYTES_MAX as f64 {
        return Ok(());
    }
    Err(usage(format!(
        "{} of {} are more than {} in all, and no one has that",
        human::counted(records as u64, "record"),
        human::bytes(record_bytes as u64),
        human::bytes(DATA_BYTES_MAX)
    )))
}

/// A count.
pub fn count(text: &str) -> Result<u64, String> {
    units::parse_count(text).map_err(|error| format!("{} is expected", error.expected))
}

/// A count within limits.
pub fn count_in<T: TryFrom<u64>>(
    limits: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| within(count(text)?, &limits, "a whole number", short_count)
}

/// Bytes, none of them too.
pub fn bytes(text: &str) -> Result<u64, String> {
    units::parse_bytes(text).map_err(|error| format!("{} is expected", error.expected))
}

/// Bytes within limits.
pub fn bytes_in<T: TryFrom<u64>>(
    limits: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| within(bytes(text)?, &limits, "a number of bytes", units::format_bytes)
}

/// Bytes a second, at least one.
pub fn rate(text: &str) -> Result<u64, String> {
    let wrong =
        || "bytes a second such as 64MiB or 100MB/s are expected, more than none".to_owned();
    let rate = bytes(text.trim_end().trim_end_matches("/s")).ok().filter(|rate| *rate > 0);
    rate.ok_or_else(wrong)
}

/// A size of values, or a range of them.
pub fn value_size(text: &str) -> Result<ValueSize, String> {
    let wrong = || {
        "a number of bytes such as 100 or 4KiB, or a range such as 100..400, is expected".to_owned()
    };
    let size = |text: &str| bytes(text).ok().and_then(|bytes| usize::try_from(bytes).ok());
    match text.split_once("..") {
        None => size(text).map(ValueSize::fixed).ok_or_else(wrong),
        Some((least, most)) => {
            let (least, most) = size(least).zip(size(most)).ok_or_else(wrong)?;
            ValueSize::range(least, most).map_err(|_| wrong())
        }
    }
}

/// Any number within limits; `95%` is 0.95.
pub fn number_in(limits: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let (digits, divisor) =
            text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |digits| (digits, 100.0));
        let number = digits.replace('_', "").parse::<f64>().ok().map(|number| number / divisor);
        let (least, most) = (limits.start(), limits.end());
        number.filter(|number| limits.contains(number)).ok_or_else(|| {
            if most.is_infinite() {
                format!("a number of at least {least} is expected")
            } else {
                format!("a number from {least} to {most} is expected")
            }
        })
    }
}

/// A time: seconds, or with its units.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong =
        || "a time such as 500ms, 90s, 20m or 1h, or a number of seconds, is expected".to_owned();
    match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong()),
        Err(_) => humantime::parse_duration(text.trim()).map_err(|_| wrong()),
    }
}

/// A time, more than none.
pub fn some_time(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time.is_zero() { Err("more than no time is expected".to_owned()) } else { Ok(time) }
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

/// A limit, with as few digits as its letters allow.
fn short_count(count: u64) -> String {
    let letters = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M")];
    let letter =
        letters.iter().find(|(factor, _)| count >= *factor && count.is_multiple_of(*factor));
    letter
        .map_or_else(|| count.to_string(), |(factor, letter)| format!("{}{letter}", count / factor))
}

fn between(what: &str, least: impl Display, most: Option<impl Display>) -> String {
    match most {
        Some(most) => format!("{what} from {least} to {most} is expected"),
        None => format!("{what} of at least {least} is expected"),
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
        assert_eq!(number_in(0.0..=1.0)("95%"), Ok(0.95));
        assert_eq!(time("90"), time("1m 30s"));
    }

    #[test]
    fn more_data_than_anyone_has_is_refused() {
        assert!(check_data(1e12, 1000.0).is_ok());
        let told = check_data(1e15, 1e6).unwrap_err().to_string();
        assert!(told.contains("of 977 KiB are more than 1.00 PiB in all"), "{told}");
    }

    #[test]
    fn what_is_out_of_its_limits_is_refused_with_them() {
        let told = |result: Result<u32, String>| result.unwrap_err();
        assert_eq!(told(count_in(1..=100)("0")), "a whole number from 1 to 100 is expected");
        assert_eq!(told(count_in(1..=u64::MAX)("0")), "a whole number of at least 1 is expected");
        assert_eq!(
            told(bytes_in(1..=1 << 20)("1G")),
            "a number of bytes from 1 to 1MiB is expected"
        );
        assert_eq!(told(count_in(1..=2_000_000)("0")), "a whole number from 1 to 2M is expected");
        assert!(told(count_in(1..=u64::MAX)("5e9")).contains("at least"));
        assert!(count("ten").unwrap_err().contains("500K, 1.5M or 1e9"));
        for text in ["nan", "-1", "1.01", "x"] {
            assert!(number_in(0.0..=1.0)(text).is_err(), "{text}");
        }
        assert!(rate("0").is_err() && value_size("4..1").is_err() && value_size("-1").is_err());
        for text in ["", "-1", "inf", "1y 2", "soon"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(some_time("0s").is_err());
    }
}
