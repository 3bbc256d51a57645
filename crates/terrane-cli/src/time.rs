//! Moments for people.

/// Microseconds since the Unix epoch as a date and a time of day, UTC.
pub(crate) fn utc(micros: u64) -> String {
    const DAY_SECONDS: u64 = 86_400;
    let seconds = micros / 1_000_000;
    let (year, month, day) = date(seconds / DAY_SECONDS);
    let (hour, minute, second) =
        (seconds % DAY_SECONDS / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day of a number of days since 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last of them; 400 of them, an era,
/// have 146097 days each time.
fn date(days_since_epoch: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097;
    /// Days from the first of March of year 0 to the epoch.
    const TO_EPOCH: u64 = 719_468;
    let days = days_since_epoch + TO_EPOCH;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March have 31, 30, 31, 30, 31 days and again.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_735_689_599_999_999), "2024-12-31 23:59:59 UTC");
        assert_eq!(utc(4_107_542_400_000_000), "2100-03-01 00:00:00 UTC");
    }
}
