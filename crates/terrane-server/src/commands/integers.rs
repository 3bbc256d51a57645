//! Numbers in values.

use crate::call::catalogue::{FAST, Family, GROUPED, GROWS, ONE_KEY, WRITE, command};
use crate::call::{Call, NOT_AN_INTEGER, Outcome, integer};
use crate::store::Store;

const FLAGS: u16 = WRITE | GROWS | FAST;
/// The flags of commands that add an integer.
const ADDS: u16 = FLAGS | GROUPED;

pub(super) const FAMILY: Family = Family {
    group: "string",
    commands: &[
        command("incr", 2, ADDS, ONE_KEY, "Adds one to an integer.", incr),
        command("decr", 2, ADDS, ONE_KEY, "Subtracts one from an integer.", decr),
        command("incrby", 3, ADDS, ONE_KEY, "Adds a number to an integer.", incrby),
        command("decrby", 3, ADDS, ONE_KEY, "Subtracts a number from an integer.", decrby),
        command("incrbyfloat", 3, FLAGS, ONE_KEY, "Adds to a floating-point number.", incrbyfloat),
    ],
};

pub(super) const OVERFLOW: &str = "ERR increment or decrement would overflow";
pub(super) const NOT_A_FLOAT: &str = "ERR value is not a valid float";

fn incr(call: &mut Call<'_, '_>) -> Outcome {
    add(call, 1)
}

fn decr(call: &mut Call<'_, '_>) -> Outcome {
    add(call, -1)
}

fn incrby(call: &mut Call<'_, '_>) -> Outcome {
    let by = call.integer(2)?;
    add(call, by)
}

fn decrby(call: &mut Call<'_, '_>) -> Outcome {
    let by = call.integer(2)?.checked_neg().ok_or("ERR decrement would overflow")?;
    add(call, by)
}

fn add(call: &mut Call<'_, '_>, by: i64) -> Outcome {
    let new = add_to(call.store, call.db(), call.key(), by)?;
    call.reply.integer(new);
    Ok(())
}

/// Adds to the value of a key, whose lock the caller holds, and returns the sum.
pub(super) fn add_to(store: &mut Store<'_>, db: usize, key: &[u8], by: i64) -> Outcome<i64> {
    let found = store.get_with_expiry(db, key)?;
    let new = sum_of(found.as_ref().map(|(value, _)| &**value), by)?;
    let mut text = Decimal::default();
    store.put(db, key, text.of(new), found.and_then(|(_, expires_at)| expires_at))?;
    Ok(new)
}

/// Adds to a value, which is 0 if it is missing.
pub(super) fn sum_of(value: Option<&[u8]>, by: i64) -> Outcome<i64> {
    let old = value.map_or(Some(0), integer).ok_or(NOT_AN_INTEGER)?;
    Ok(old.checked_add(by).ok_or(OVERFLOW)?)
}

/// Formats an integer without allocating.
#[derive(Clone, Default)]
pub(super) struct Decimal {
    digits: [u8; 20],
}

impl Decimal {
    pub(super) fn of(&mut self, value: i64) -> &[u8] {
        let (mut at, mut rest) = (self.digits.len(), value.unsigned_abs());
        loop {
            at -= 1;
            self.digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            at -= 1;
            self.digits[at] = b'-';
        }
        &self.digits[at..]
    }
}

fn incrbyfloat(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key) = (call.db(), call.key());
    let by = float(call.argument(2)).ok_or(NOT_A_FLOAT)?;
    let found = call.store.get_with_expiry(db, key)?;
    let old = found.as_ref().map_or(Some(0.0), |(value, _)| float(value)).ok_or(NOT_A_FLOAT)?;
    let new = old + by;
    if !new.is_finite() {
        return Err("ERR increment would produce NaN or Infinity".into());
    }
    let old = found.as_ref().map_or(&b"0"[..], |(value, _)| value);
    let text = sum(old, call.argument(2), new);
    call.store.put(db, key, text.as_bytes(), found.and_then(|(_, expires_at)| expires_at))?;
    call.reply.bulk(text.as_bytes());
    Ok(())
}

pub(super) fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let first = text.bytes().next()?;
    let is_number = first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.');
    text.parse().ok().filter(|value: &f64| is_number && !value.is_nan())
}

/// Returns the sum of two numbers as a string: the exact sum if possible, otherwise `approximate`.
pub(super) fn sum(first: &[u8], second: &[u8], approximate: f64) -> String {
    exact_sum(first, second).unwrap_or_else(|| decimal(approximate))
}

/// The decimal places of a sum.
const PLACES: usize = 17;
const UNIT: u128 = 10_u128.pow(PLACES as u32);

/// Adds decimal numbers, so that 0.1 and 0.2 make 0.3; `None` if a number is too long or has an exponent.
fn exact_sum(first: &[u8], second: &[u8]) -> Option<String> {
    let sum = units(first)? + units(second)?;
    let (whole, places) = (sum.unsigned_abs() / UNIT, sum.unsigned_abs() % UNIT);
    let sign = if sum < 0 { "-" } else { "" };
    let text = format!("{sign}{whole}.{places:0PLACES$}");
    Some(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

/// Returns a number in units of the last decimal place. The sum of two does not overflow.
fn units(text: &[u8]) -> Option<i128> {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, places) = digits.split_at(point.unwrap_or(digits.len()));
    let places = places.get(1..).unwrap_or_default();
    let has_digits = !(whole.is_empty() && places.is_empty());
    if !has_digits || whole.len() > 20 || places.len() > PLACES {
        return None;
    }
    let mut value = 0;
    let missing = PLACES - places.len();
    for digit in whole.iter().chain(places).chain(&b"00000000000000000"[..missing]) {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value = value * 10 + i128::from(digit);
    }
    Some(if text.starts_with(b"-") { -value } else { value })
}

/// Formats a number with 17 significant decimal places and without an exponent or trailing zeros, as Redis
/// does. Redis computes with `long double`, so the last places may differ.
fn decimal(value: f64) -> String {
    // The shortest string that denotes the same number.
    let text = format!("{value}");
    let has_long_fraction = text.split_once('.').is_some_and(|(_, places)| places.len() > 17);
    let text = if has_long_fraction { format!("{value:.17}") } else { text };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_people_write_them() {
        for (value, expected) in [
            (0.0, "0"),
            (10.6, "10.6"),
            (5.0e3, "5000"),
            (-1.5, "-1.5"),
            (1e17, "100000000000000000"),
        ] {
            assert_eq!(decimal(value), expected);
        }
        for value in [0, -1, i64::MIN, i64::MAX, 10] {
            assert_eq!(Decimal::default().of(value), value.to_string().as_bytes());
        }
        for (first, second, expected) in [
            ("0.1", "0.2", Some("0.3")),
            ("10.50", "0.1", Some("10.6")),
            ("5", "-5.", Some("0")),
            (".5", "+1", Some("1.5")),
            ("-0.25", "0", Some("-0.25")),
            ("9223372036854775807", "0.5", Some("9223372036854775807.5")),
            ("99999999999999999999", "99999999999999999999", Some("199999999999999999998")),
            ("0.00000000000000001", "1", Some("1.00000000000000001")),
            ("0.000000000000000001", "1", None),
            ("100000000000000000000", "1", None),
            ("1e3", "1", None),
            ("1", "", None),
            (".", "1", None),
        ] {
            let found = exact_sum(first.as_bytes(), second.as_bytes());
            assert_eq!(found.as_deref(), expected, "{first} + {second}");
        }
        assert_eq!(float(b"inf"), None);
        assert_eq!(float(b"5.0e3"), Some(5000.0));
    }
}
