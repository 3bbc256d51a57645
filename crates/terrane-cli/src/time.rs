//! Timestamps as people read them.

use std::time::{Duration, SystemTime};

/// The first second of the year 10000, which RFC 3339 cannot represent.
const YEAR_10000_SECONDS: u64 = 253_402_300_800;

/// Formats a timestamp in UTC by RFC 3339, or as a plain number if it is out of range.
pub(crate) fn utc(micros: u64) -> String {
    let since_epoch = Duration::from_micros(micros);
    if since_epoch.as_secs() >= YEAR_10000_SECONDS {
        return format!("{micros} us after 1970");
    }
    humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + since_epoch).to_string()
}

/// Returns the present time in microseconds since the Unix epoch.
pub(crate) fn now_micros() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_out_of_range_are_plain_numbers() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(1_795_255_722_999_999), "2026-11-21T10:08:42Z");
        assert_eq!(utc((YEAR_10000_SECONDS - 1) * 1_000_000), "9999-12-31T23:59:59Z");
        assert_eq!(utc(u64::MAX), "18446744073709551615 us after 1970");
    }
}
