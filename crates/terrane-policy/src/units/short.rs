//! Sizes and times, rounded for display.

/// Formats bytes with three digits and a binary unit: `64.0 MiB`. Unlike
/// [`format_bytes`](super::format_bytes), the result is rounded and cannot be parsed.
pub fn short_bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[unit])
}

/// Formats a time with three digits and one unit: `2.70 s`. Unlike
/// [`format_micros`](super::format_micros), the result is rounded and cannot be parsed.
pub fn short_micros(micros: u64) -> String {
    let units = [
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1_000),
    ];
    let found = units.iter().find(|(_, factor)| micros >= *factor);
    let Some((unit, factor)) = found else { return format!("{micros} us") };
    let value = micros as f64 / *factor as f64;
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (64 << 20, "64.0 MiB"),
            (1 << 40, "1.00 TiB"),
        ] {
            assert_eq!(short_bytes(bytes), text);
        }
    }

    #[test]
    fn times_are_short() {
        for (micros, text) in [
            (0, "0 us"),
            (999, "999 us"),
            (1_000, "1.00 ms"),
            (2_700_119, "2.70 s"),
            (59_994_000, "60.0 s"),
            (60_000_000, "1.00 min"),
            (5_400_000_000, "1.50 h"),
            (864_000_000_000, "10.0 d"),
            (86_400_000_000 * 365, "365 d"),
        ] {
            assert_eq!(short_micros(micros), text);
        }
    }
}
