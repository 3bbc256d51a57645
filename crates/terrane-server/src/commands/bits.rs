//! Bits of values.

mod fields;

use crate::call::catalogue::{FAST, Family, GROWS, ONE_KEY, READ, WRITE, command, keys};
use crate::call::{Call, Outcome, SYNTAX, integer};
use crate::commands::aside;
use crate::commands::strings::check_len;

pub(super) const FAMILY: Family = Family {
    group: "bitmap",
    commands: &[
        command(
            "setbit",
            4,
            WRITE | GROWS,
            ONE_KEY,
            "Sets a bit, and returns the old one.",
            setbit,
        ),
        command("getbit", 3, READ | FAST, ONE_KEY, "Returns a bit.", getbit),
        command("bitcount", -2, READ, ONE_KEY, "Counts the bits that are set.", bitcount),
        command("bitpos", -3, READ, ONE_KEY, "Finds the first bit of a kind.", bitpos),
        command(
            "bitfield",
            -2,
            WRITE | GROWS,
            ONE_KEY,
            "Reads and changes integers of any width.",
            fields::bitfield,
        ),
        command(
            "bitfield_ro",
            -2,
            READ | FAST,
            ONE_KEY,
            "Reads integers of any width.",
            fields::bitfield_ro,
        ),
        command("bitop", -4, WRITE | GROWS, keys(2, -1, 1), "Combines the bits of values.", bitop),
    ],
};

const BAD_OFFSET: &str = "ERR bit offset is not an integer or out of range";

/// Returns the index of the byte that holds a bit, and the mask of the bit in this byte.
fn bit_position(call: &Call<'_, '_>) -> Outcome<(usize, u8)> {
    let offset = integer(call.argument(2)).and_then(|offset| usize::try_from(offset).ok());
    let offset = offset.filter(|offset| *offset < 1 << 32).ok_or(BAD_OFFSET)?;
    Ok((offset / 8, 0x80 >> (offset % 8)))
}

fn setbit(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key) = (call.db(), call.key());
    let (byte, mask) = bit_position(call)?;
    let is_set = match call.argument(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err("ERR bit is not an integer or out of range".into()),
    };
    check_len(call, byte + 1)?;
    let Some((mut value, expires_at)) = aside::owned_value(call, key, setbit)? else {
        return Ok(());
    };
    value.resize(value.len().max(byte + 1), 0);
    let target = value.get_mut(byte).ok_or(BAD_OFFSET)?;
    let was_set = *target & mask != 0;
    *target = if is_set { *target | mask } else { *target & !mask };
    call.store.put(db, key, &value, expires_at)?;
    call.reply.integer(i64::from(was_set));
    Ok(())
}

fn getbit(call: &mut Call<'_, '_>) -> Outcome {
    let (byte, mask) = bit_position(call)?;
    let value = call.store.get(call.db(), call.key())?;
    let byte = value.as_deref().and_then(|value| value.get(byte)).copied().unwrap_or(0);
    call.reply.integer(i64::from(byte & mask != 0));
    Ok(())
}

/// A range of bits: the first one, and the number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BitRange {
    first: u64,
    len: u64,
}

/// Parses `first [last [BYTE | BIT]]` at `index`, for a value of `bytes` bytes.
fn bit_range(call: &Call<'_, '_>, index: usize, bytes: usize) -> Outcome<BitRange> {
    let all = BitRange { first: 0, len: bytes as u64 * 8 };
    if call.arguments.get(index).is_none() {
        return Ok(all);
    }
    let first = call.integer(index)?;
    let has_last = call.arguments.get(index + 1).is_some();
    let last = if has_last { call.integer(index + 1)? } else { -1 };
    let counts_bits = match call.arguments.get(index + 2) {
        None => false,
        Some(_) if call.is(index + 2, "byte") => false,
        Some(_) if call.is(index + 2, "bit") => true,
        Some(_) => return Err(SYNTAX.into()),
    };
    if call.arguments.len() > index + 3 {
        return Err(SYNTAX.into());
    }
    let unit: u64 = if counts_bits { 1 } else { 8 };
    Ok(bits_between(first, last, all.len / unit, unit))
}

/// Returns the bits of the units from `first` to `last`; negative numbers count from the end.
fn bits_between(first: i64, last: i64, units: u64, bits_per_unit: u64) -> BitRange {
    let none = BitRange { first: 0, len: 0 };
    let units = i64::try_from(units).unwrap_or(i64::MAX);
    if first < 0 && last < 0 && first > last {
        return none;
    }
    let from_start = |at: i64| if at < 0 { units.saturating_add(at).max(0) } else { at };
    let (first, last) = (from_start(first), from_start(last).min(units - 1));
    if first > last {
        return none;
    }
    let (first, last) = (first.unsigned_abs(), last.unsigned_abs());
    BitRange { first: first * bits_per_unit, len: (last - first + 1) * bits_per_unit }
}

/// Returns the bytes of a range with the bits outside of it replaced by `fill`.
fn masked(value: &[u8], range: BitRange, fill: bool) -> impl Iterator<Item = (u64, u8)> {
    let end = range.first + range.len;
    let bytes = (range.first / 8) as usize..(end.div_ceil(8) as usize).min(value.len());
    bytes.map(move |at| {
        let start = at as u64 * 8;
        let before = range.first.saturating_sub(start).min(8) as u32;
        let after = (start + 8).saturating_sub(end).min(8) as u32;
        let outside = !(0xFF_u32 >> before) | ((1_u32 << after) - 1);
        let outside = outside as u8;
        let byte = value.get(at).copied().unwrap_or(0);
        (start, if fill { byte | outside } else { byte & !outside })
    })
}

/// Returns the whole bytes of a range of bits, and the index of the first one.
fn whole_bytes(value: &[u8], range: BitRange) -> (usize, &[u8]) {
    let (start, end) = (range.first.div_ceil(8) as usize, (range.first + range.len) as usize / 8);
    (start, value.get(start..end).unwrap_or_default())
}

/// Counts the bits of a range that are set.
fn count_set(value: &[u8], range: BitRange) -> u64 {
    let masked_count = |first: u64, end: u64| -> u64 {
        let part = BitRange { first, len: end.saturating_sub(first) };
        masked(value, part, false).map(|(_, byte)| u64::from(byte.count_ones())).sum()
    };
    let end = range.first + range.len;
    let (start, whole) = whole_bytes(value, range);
    if whole.is_empty() {
        return masked_count(range.first, end);
    }
    let (words, rest) = whole.as_chunks::<8>();
    let in_words: u64 =
        words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    let in_rest: u64 = rest.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let start = start as u64 * 8;
    let after = start + whole.len() as u64 * 8;
    in_words + in_rest + masked_count(range.first, start) + masked_count(after, end)
}

/// Returns the position of the first set or clear bit in a range.
fn find_bit(value: &[u8], range: BitRange, is_set: bool) -> Option<u64> {
    let (first, end) = (range.first, range.first + range.len);
    let (start, whole) = whole_bytes(value, range);
    let start = start as u64 * 8;
    let search = |first: u64, end: u64| {
        let part = BitRange { first, len: end.saturating_sub(first) };
        masked(value, part, !is_set).find_map(|(start, byte)| {
            let zeros = if is_set { byte } else { !byte }.leading_zeros();
            (zeros < 8).then(|| start + u64::from(zeros))
        })
    };
    if whole.is_empty() {
        return search(first, end);
    }
    search(first, start).or_else(|| {
        // Words without such a bit are skipped.
        let none = if is_set { [0; 8] } else { [0xFF; 8] };
        let (words, _) = whole.as_chunks::<8>();
        let skipped = words.iter().take_while(|word| **word == none).count() as u64;
        search(start + skipped * 64, end)
    })
}

fn bitcount(call: &mut Call<'_, '_>) -> Outcome {
    if call.arguments.len() == 3 {
        return Err(SYNTAX.into());
    }
    let value = call.store.get(call.db(), call.key())?;
    let value = value.as_deref().unwrap_or_default();
    if aside::is_long(call, value.len()) {
        return aside::read(call, bitcount);
    }
    let range = bit_range(call, 2, value.len())?;
    call.reply.unsigned(count_set(value, range));
    Ok(())
}

fn bitpos(call: &mut Call<'_, '_>) -> Outcome {
    let is_set = match call.argument(2) {
        b"0" => false,
        b"1" => true,
        _ => return Err("ERR The bit argument must be 1 or 0.".into()),
    };
    let value = call.store.get(call.db(), call.key())?;
    let Some(value) = value.as_deref() else {
        call.reply.integer(if is_set { -1 } else { 0 });
        return Ok(());
    };
    if aside::is_long(call, value.len()) {
        return aside::read(call, bitpos);
    }
    let range = bit_range(call, 3, value.len())?;
    // Without an explicit end, the bits after the value count as clear.
    let has_end = call.arguments.len() > 4;
    let position = match find_bit(value, range, is_set) {
        Some(position) => i64::try_from(position).unwrap_or(i64::MAX),
        None if !is_set && !has_end && range.len > 0 => {
            i64::try_from(value.len() * 8).unwrap_or(i64::MAX)
        }
        None => -1,
    };
    call.reply.integer(position);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BitOperation {
    And,
    Or,
    Xor,
    Not,
}

impl BitOperation {
    /// Combines a result with another value; the shorter one is padded with clear bits.
    fn combine(self, result: &mut Vec<u8>, other: &[u8]) {
        result.resize(result.len().max(other.len()), 0);
        let (common, rest) = result.split_at_mut(other.len());
        let pairs = common.iter_mut().zip(other);
        match self {
            Self::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                rest.fill(0);
            }
            Self::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Self::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
            Self::Not => pairs.for_each(|(byte, other)| *byte = !other),
        }
    }
}

fn bitop(call: &mut Call<'_, '_>) -> Outcome {
    let operation = match call.argument(1).to_ascii_lowercase().as_slice() {
        b"and" => BitOperation::And,
        b"or" => BitOperation::Or,
        b"xor" => BitOperation::Xor,
        b"not" if call.arguments.len() > 4 => {
            return Err("ERR BITOP NOT must be called with a single source key.".into());
        }
        b"not" => BitOperation::Not,
        _ => return Err(SYNTAX.into()),
    };
    let (db, target) = (call.db(), call.argument(2));
    let (mut result, mut visited) = (Vec::new(), 0);
    // The keys are locked, so they do not change in between.
    for (index, key) in call.arguments.from(3).enumerate() {
        let value = call.store.get(db, key)?;
        let value = value.as_deref().unwrap_or_default();
        visited += value.len();
        if aside::is_long(call, visited) {
            return aside::write(call, bitop);
        }
        match (operation, index) {
            (BitOperation::And | BitOperation::Or | BitOperation::Xor, 0) => {
                result.extend_from_slice(value);
            }
            _ => operation.combine(&mut result, value),
        }
    }
    if result.is_empty() {
        call.store.delete(db, target)?;
    } else {
        call.store.put(db, target, &result, None)?;
    }
    call.reply.count(result.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bits_are_masked() {
        let count = |first, last, unit| {
            let value = [0xFF, 0xF0, 0x0F];
            let range = bits_between(first, last, 24 / unit, unit);
            count_set(&value, range)
        };
        assert_eq!(count(0, -1, 8), 16);
        assert_eq!(count(1, 1, 8), 4);
        assert_eq!(count(5, 30, 1), 3 + 4 + 4);
        assert_eq!(count(-5, -1, 1), 4);
        assert_eq!(count(3, 3, 1), 1);
        assert_eq!(count(2, 1, 8), 0);
        assert_eq!(count(7, 8, 1), 2);
    }

    #[test]
    fn whole_words_count_as_single_bits_do() {
        let mut value: Vec<u8> = (0..40_u8).map(|byte| byte.wrapping_mul(37)).collect();
        value[8..24].fill(0);
        value[24..36].fill(0xFF);
        let bit = |at: u64| value[at as usize / 8] & (0x80 >> (at % 8)) != 0;
        for first in 0..320 {
            for end in (first..=320).step_by(7) {
                let range = BitRange { first, len: end - first };
                let set = (first..end).filter(|at| bit(*at)).count() as u64;
                assert_eq!(count_set(&value, range), set, "{first}..{end}");
                for is_set in [true, false] {
                    let expected = (first..end).find(|at| bit(*at) == is_set);
                    assert_eq!(
                        find_bit(&value, range, is_set),
                        expected,
                        "{first}..{end} {is_set}"
                    );
                }
            }
        }
    }
}
