//! Decimal numbers as people write them, without the loss of floating point: `20000`, `20_000`,
//! `1.5`, `1e9`, `2.5e6`. What counts and sizes have in common.

/// A number times a factor: its whole part, and whether there is nothing beside it.
pub(super) fn scaled(text: &str, factor: u64) -> Option<(u64, bool)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // A text that is no number at all begins with neither a digit nor a point.
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
        // Nothing is left of what is divided by so much, and only of nothing something so large.
        (None, at_least_one) if value == 0 || !at_least_one => (0, value == 0),
        (None, _) => return None,
    };
    Some((u64::try_from(value).ok()?, is_whole))
}
