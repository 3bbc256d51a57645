//! Decimal numbers as people write them, without the loss of floating point: `20000`, `20_000`,
//! `1.5`, `1e9`, `2.5e6`. Counts and sizes share this parser.

/// Returns the whole part of a number times a factor, and whether the product is whole.
pub(super) fn scaled(text: &str, factor: u64) -> Option<(u64, bool)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // A number begins with a digit or a point.
    if !mantissa.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let (mut digits, mut places, mut count) = (0u128, 0i32, 0);
    for (part, moves) in [(whole, 0), (fraction, 1)] {
        for digit in part.bytes().filter(|byte| *byte != b'_') {
            let digit = digit.is_ascii_digit().then(|| u128::from(digit - b'0'))?;
            digits = digits.checked_mul(10)?.checked_add(digit)?;
            (places, count) = (places + moves, count + 1);
        }
    }
    if count == 0 {
        return None;
    }
    let value = digits.checked_mul(u128::from(factor))?;
    let power = exponent.checked_sub(places)?;
    let tens = 10u128.checked_pow(power.unsigned_abs());
    let (value, is_whole) = match (tens, power >= 0) {
        (Some(tens), true) => (value.checked_mul(tens)?, true),
        (Some(tens), false) => (value / tens, value.is_multiple_of(tens)),
        // Dividing by more than a u128 holds gives 0; multiplying by it overflows, except for zero.
        (None, at_least_one) if value == 0 || !at_least_one => (0, value == 0),
        (None, _) => return None,
    };
    Some((u64::try_from(value).ok()?, is_whole))
}

/// Parses a ratio such as `1.3` into percent; `None` if it has more than two decimals.
pub(crate) fn parse_ratio_percent(text: &str) -> Option<u32> {
    let (percent, is_whole) = scaled(text, 100)?;
    u32::try_from(percent).ok().filter(|_| is_whole)
}
