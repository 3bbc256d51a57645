//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns microseconds since the Unix epoch.
pub(crate) fn now_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}
