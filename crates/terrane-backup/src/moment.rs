//! Times: microseconds since 1970, as text by RFC 3339, and as part of a name.

use std::time::{Duration, SystemTime};

/// The first microsecond of the year 10000, which RFC 3339 cannot represent.
const YEAR_10000_MICROS: u64 = 253_402_300_800_000_000;

/// Returns the present time.
pub(crate) fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Formats a time, such as `2026-11-26T10:15:30.123456Z`.
pub fn utc(micros: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_micros(micros.min(YEAR_10000_MICROS - 1));
    humantime::format_rfc3339_micros(time).to_string()
}

/// Formats a time for names: like [`utc`], without the characters that file systems or shells reject.
pub(crate) fn compact(micros: u64) -> String {
    utc(micros).replace(['-', ':'], "")
}

/// Parses a time, such as `2026-11-26T10:15:30Z` or `2026-11-26 10:15:30`, which is UTC as well.
pub fn parse_utc(text: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339_weak(text).ok()?;
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_micros()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_and_parsed() {
        let micros = 1_795_255_722_123_456;
        assert_eq!(utc(micros), "2026-11-21T10:08:42.123456Z");
        assert_eq!(parse_utc(&utc(micros)), Some(micros));
        assert_eq!(parse_utc("2026-11-21 10:08:42"), Some(1_795_255_722_000_000));
        assert_eq!(compact(micros), "20261121T100842.123456Z");
        assert_eq!(parse_utc("yesterday"), None);
        assert_eq!(utc(u64::MAX), "9999-12-31T23:59:59.999999Z");
    }
}
