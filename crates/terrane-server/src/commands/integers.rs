//! Numbers in values.

use crate::call::{Call, NOT_AN_INTEGER, Outcome, integer};
use crate::catalogue::{FAST, Family, GROWS, ONE_KEY, WRITE, command};

const FLAGS: u16 = WRITE | GROWS | FAST;

pub(super) const FAMILY: Family = Family {
    group: "string",
    commands: &[
        command("incr", 2, FLAGS, ONE_KEY, "Adds one to an integer.", incr),
        command("decr", 2, FLAGS, ONE_KEY, "Subtracts one from an integer.", decr),
        command("incrby", 3, FLAGS, ONE_KEY, "Adds a number to an integer.", incrby),
        command("decrby", 3, FLAGS, ONE_KEY, "Subtracts a number from an integer.", decrby),
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
    let (db, key) = (call.db(), call.key());
    let found = call.store.get_with_end(db, key)?;
    let old = found.as_ref().map_or(Some(0), |(value, _)| integer(value)).ok_or(NOT_AN_INTEGER)?;
    let new = old.checked_add(by).ok_or(OVERFLOW)?;
    let mut text = Decimal::default();
    call.store.put(db, key, text.of(new), found.and_then(|(_, end)| end))?;
    call.reply.integer(new);
    Ok(())
}

/// Formats an integer without memory of its own.
#[derive(Default)]
struct Decimal {
    digits: [u8; 20],
}

impl Decimal {
    fn of(&mut self, value: i64) -> &[u8] {
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
    let found = call.store.get_with_end(db, key)?;
    let old = found.as_ref().map_or(Some(0.0), |(value, _)| float(value)).ok_or(NOT_A_FLOAT)?;
    let new = old + by;
    if !new.is_finite() {
        return Err("ERR increment would produce NaN or Infinity".into());
    }
    let text = decimal(new);
    call.store.put(db, key, text.as_bytes(), found.and_then(|(_, end)| end))?;
    call.reply.bulk(text.as_bytes());
    Ok(())
}

pub(super) fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let first = text.bytes().next()?;
    let is_number = first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.');
    text.parse().ok().filter(|value: &f64| is_number && !value.is_nan())
}

/// Formats a number with 17 significant decimal places and without an exponent, as Redis does; the zeros
/// at its end are left out. Redis computes with `long double`, so that the last places may differ.
pub(super) fn decimal(value: f64) -> String {
    // The shortest text that is the same number.
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
        assert_eq!(float(b"inf"), None);
        assert_eq!(float(b"5.0e3"), Some(5000.0));
    }
}
