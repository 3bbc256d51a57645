//! Numbers as people read them in a table.

/// Formats a count with three significant digits: `7.10 k`, `535 k`, `18.6 M`.
pub(super) fn count(value: f64) -> String {
    for (unit, factor) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        // Half a unit of the last digit below the limit, so that 999,999 is 1.00 M and not 1000 k.
        if value >= factor * 0.9995 {
            return format!("{} {unit}", three_digits(value / factor));
        }
    }
    three_digits(value)
}

/// Formats a small number with three significant digits: `0.34`, `3.31`, `107`.
pub(super) fn decimals(value: f64) -> String {
    three_digits(value)
}

/// Formats a ratio: `2.51x`.
pub(super) fn factor(value: f64) -> String {
    format!("{}x", three_digits(value))
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, text) in [
            (0.0, "0.00"),
            (12.34, "12.3"),
            (999.4, "999"),
            (999.6, "1.00 k"),
            (7_100.0, "7.10 k"),
            (535_222.0, "535 k"),
            (999_999.0, "1.00 M"),
            (18_610_000.0, "18.6 M"),
        ] {
            assert_eq!(count(value), text);
        }
        assert_eq!(factor(2.514), "2.51x");
        assert_eq!(decimals(107.2), "107");
        assert_eq!(decimals(9.999), "10.0");
    }
}
