//! Sizes rounded for people.

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
}
