//! `BITFIELD`: integers of any width at any bit of a value.

use crate::call::{Call, Outcome, SYNTAX, integer};
use crate::commands::aside;
use crate::commands::strings::check_len;

use super::BAD_OFFSET;

/// The type of an integer in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FieldType {
    is_signed: bool,
    bits: u32,
}

/// What happens to a result that the type cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64),
    Increment(i64),
}

/// An operation on the integer that begins at a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operation {
    action: Action,
    field: FieldType,
    first: u64,
    overflow: Overflow,
}

impl FieldType {
    fn parse(text: &[u8]) -> Outcome<Self> {
        let parts = text.split_first();
        let parsed = parts.and_then(|(sign, bits)| {
            let is_signed = sign.eq_ignore_ascii_case(&b'i');
            let is_known = is_signed || sign.eq_ignore_ascii_case(&b'u');
            let bits = integer(bits).and_then(|bits| u32::try_from(bits).ok())?;
            let bits_max = if is_signed { 64 } else { 63 };
            (is_known && (1..=bits_max).contains(&bits)).then_some(Self { is_signed, bits })
        });
        Ok(parsed.ok_or(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        )?)
    }

    /// Returns the smallest and the largest number of the type.
    fn range(self) -> (i128, i128) {
        match self.is_signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// Returns the number that the low bits of `number` encode.
    fn wrap(self, number: i128) -> i128 {
        let low = number & ((1 << self.bits) - 1);
        let is_negative = self.is_signed && low >> (self.bits - 1) == 1;
        if is_negative { low - (1 << self.bits) } else { low }
    }

    /// Returns the number to store for `number`; `None` if it is out of range and overflow is a failure.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i128> {
        let (least, most) = self.range();
        match overflow {
            _ if (least..=most).contains(&number) => Some(number),
            Overflow::Wrap => Some(self.wrap(number)),
            Overflow::Saturate => Some(number.clamp(least, most)),
            Overflow::Fail => None,
        }
    }

    /// Reads the integer that begins at a bit. Bits after the end of the value are clear.
    fn read(self, value: &[u8], first: u64) -> i128 {
        let bit = |at: u64| {
            let byte = value.get((at / 8) as usize).copied().unwrap_or(0);
            i128::from(byte >> (7 - at % 8) & 1)
        };
        self.wrap((first..first + u64::from(self.bits)).fold(0, |number, at| number << 1 | bit(at)))
    }

    /// Writes an integer to a value, which is long enough.
    fn write(self, value: &mut [u8], first: u64, number: i128) {
        for index in 0..u64::from(self.bits) {
            let at = first + u64::from(self.bits) - 1 - index;
            if let Some(byte) = value.get_mut((at / 8) as usize) {
                let mask = 0x80 >> (at % 8);
                let is_set = number >> index & 1 == 1;
                *byte = if is_set { *byte | mask } else { *byte & !mask };
            }
        }
    }
}

impl Operation {
    /// Returns the length that a value needs for the operation.
    fn end(&self) -> usize {
        (self.first + u64::from(self.field.bits)).div_ceil(8) as usize
    }

    /// Carries out the operation; returns its answer, and whether it wrote.
    fn run(&self, value: &mut Vec<u8>) -> (Option<i128>, bool) {
        let old = self.field.read(value, self.first);
        let (new, answers_new) = match self.action {
            Action::Get => return (Some(old), false),
            // As in Redis, an unsigned integer takes a negative number as a large one.
            Action::Set(number) if !self.field.is_signed => (i128::from(number as u64), false),
            Action::Set(number) => (i128::from(number), false),
            Action::Increment(by) => (old + i128::from(by), true),
        };
        let Some(new) = self.field.fit(new, self.overflow) else { return (None, false) };
        value.resize(value.len().max(self.end()), 0);
        self.field.write(value, self.first, new);
        (Some(if answers_new { new } else { old }), true)
    }
}

/// Parses a number of bits, or with `#` a number of integers of a type.
fn position(text: &[u8], field: FieldType) -> Outcome<u64> {
    let (number, unit) = match text.strip_prefix(b"#") {
        Some(number) => (number, u64::from(field.bits)),
        None => (text, 1),
    };
    let number = integer(number).and_then(|number| u64::try_from(number).ok());
    let first = number.and_then(|number| number.checked_mul(unit));
    Ok(first.filter(|first| *first < 1 << 32).ok_or(BAD_OFFSET)?)
}

/// Parses the operations of a call.
fn operations(call: &Call<'_, '_>) -> Outcome<Vec<Operation>> {
    let (mut all, mut overflow, mut index) = (Vec::new(), Overflow::Wrap, 2);
    while index < call.arguments.len() {
        let next = |by: usize| call.arguments.get(index + by).ok_or(SYNTAX);
        if call.is(index, "overflow") {
            overflow = match next(1)?.to_ascii_lowercase().as_slice() {
                b"wrap" => Overflow::Wrap,
                b"sat" => Overflow::Saturate,
                b"fail" => Overflow::Fail,
                _ => return Err("ERR Invalid OVERFLOW type specified".into()),
            };
            index += 2;
            continue;
        }
        let (is_get, is_set) = (call.is(index, "get"), call.is(index, "set"));
        if !is_get && !is_set && !call.is(index, "incrby") {
            return Err(SYNTAX.into());
        }
        let count = if is_get { 3 } else { 4 };
        next(count - 1)?;
        let field = FieldType::parse(next(1)?)?;
        let first = position(next(2)?, field)?;
        let action = match (is_get, is_set) {
            (true, _) => Action::Get,
            (_, true) => Action::Set(call.integer(index + 3)?),
            _ => Action::Increment(call.integer(index + 3)?),
        };
        all.push(Operation { action, field, first, overflow });
        index += count;
    }
    Ok(all)
}

fn answer(call: &mut Call<'_, '_>, answers: &[Option<i128>]) {
    call.reply.array(answers.len());
    for answer in answers {
        match answer.and_then(|number| i64::try_from(number).ok()) {
            Some(number) => call.reply.integer(number),
            None => call.reply.null(),
        }
    }
}

pub(super) fn bitfield(call: &mut Call<'_, '_>) -> Outcome {
    let operations = operations(call)?;
    let (db, key) = (call.db(), call.key());
    let writes = operations.iter().filter(|operation| operation.action != Action::Get);
    if let Some(end) = writes.map(Operation::end).max() {
        check_len(call, end)?;
    }
    let Some((mut value, expires_at)) = aside::owned_value(call, key, bitfield)? else {
        return Ok(());
    };
    let (mut answers, mut has_written) = (Vec::new(), false);
    for operation in &operations {
        let (answer, wrote) = operation.run(&mut value);
        answers.push(answer);
        has_written |= wrote;
    }
    if has_written {
        call.store.put(db, key, &value, expires_at)?;
    }
    answer(call, &answers);
    Ok(())
}

pub(super) fn bitfield_ro(call: &mut Call<'_, '_>) -> Outcome {
    let operations = operations(call)?;
    if operations.iter().any(|operation| operation.action != Action::Get) {
        return Err("ERR BITFIELD_RO only supports the GET subcommand".into());
    }
    let value = call.store.get(call.db(), call.key())?;
    let value = value.as_deref().unwrap_or_default();
    let read = |operation: &Operation| Some(operation.field.read(value, operation.first));
    let answers: Vec<Option<i128>> = operations.iter().map(read).collect();
    answer(call, &answers);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_and_position_are_read_as_written() {
        for is_signed in [false, true] {
            for bits in 1..=(if is_signed { 64 } else { 63 }) {
                let field = FieldType { is_signed, bits };
                let (least, most) = field.range();
                for first in [0, 1, 7, 8, 13] {
                    for number in [least, most, 0, least + (most - least) / 3] {
                        let mut value = vec![0xA5; 12];
                        field.write(&mut value, first, number);
                        assert_eq!(field.read(&value, first), number, "{field:?} at {first}");
                        // The bits around it stay.
                        field.write(&mut value, first, field.read(&[0xA5; 12], first));
                        assert_eq!(value, [0xA5; 12]);
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_that_do_not_fit_wrap_saturate_or_fail() {
        let byte = |text: &[u8]| FieldType::parse(text).unwrap();
        for (field, number, wrapped, saturated) in [
            ("i8", 128, -128, 127),
            ("i8", -129, 127, -128),
            ("u8", 256, 0, 255),
            ("u8", -1, 255, 0),
            ("i64", 1 << 63, i128::from(i64::MIN), i128::from(i64::MAX)),
        ] {
            let field = byte(field.as_bytes());
            assert_eq!(field.fit(number, Overflow::Wrap), Some(wrapped));
            assert_eq!(field.fit(number, Overflow::Saturate), Some(saturated));
            assert_eq!(field.fit(number, Overflow::Fail), None);
        }
        for text in ["u64", "i65", "i0", "u", "8", "", "x8", "u-1"] {
            assert!(FieldType::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
