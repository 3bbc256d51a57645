//! `HRANDFIELD`.
//!
//! Every field is equally likely. The command numbers the fields in their order, draws numbers, and reads the
//! hash up to the largest of them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

use terrane::{Key, Value};

use crate::call::{Call, Outcome, SYNTAX};
use crate::commands::aside;

/// Numbers that cannot be predicted, for samples.
struct Random(RandomState, u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.1 += 1;
        self.0.hash_one(self.1) % limit.max(1)
    }
}

/// The most fields that a call draws.
const MAX_DRAWN: u64 = 1 << 20;

/// Fields by their numbers.
type Numbered = BTreeMap<u64, (Key, Value)>;

/// The numbers that were drawn, and the fields that have them.
type Drawn = (Vec<u64>, Numbered);

/// The counts that `WITHVALUES` allows, as in Redis.
const DOUBLED: std::ops::RangeInclusive<i64> = i64::MIN / 2..=i64::MAX / 2;

pub(super) fn hrandfield(call: &mut Call<'_, '_>) -> Outcome {
    let (db, store) = (call.db(), &*call.store);
    let count = if call.arguments.len() > 2 { Some(call.integer(2)?) } else { None };
    let with_values = match call.arguments.len() {
        2 | 3 => false,
        4 if call.is(3, "withvalues") => true,
        _ => return Err(SYNTAX.into()),
    };
    if count.is_some_and(|count| with_values && !DOUBLED.contains(&count)) {
        return Err("ERR value is out of range".into());
    }
    let limit = call.shared.config.limits.output_bytes;
    let wanted = count.unwrap_or(1);
    let (may_leave, leaves) = (aside::is_possible(call), Cell::new(false));
    let found = store.read_hash(db, call.key(), |header| {
        if may_leave && header.fields > aside::MANY {
            leaves.set(true);
            return Ok(None);
        }
        let drawn = if wanted < 0 { u64::MAX } else { header.fields }.min(wanted.unsigned_abs());
        if drawn > MAX_DRAWN {
            return Ok(Some(None));
        }
        let numbers = draw(wanted, header.fields);
        Ok(match numbered(store.fields(db, header, None)?, &numbers, limit)? {
            Some(fields) if fields.is_empty() => None,
            fields => Some(fields.map(|fields| (numbers, fields))),
        })
    })?;
    if leaves.get() {
        return aside::read(call, hrandfield);
    }
    call.count_lookup(found.is_some());
    let too_long = || {
        format!("ERR the reply is longer than {limit} bytes or {MAX_DRAWN} fields; ask for fewer")
    };
    let (numbers, fields) = found.unwrap_or_else(|| Some(Drawn::default())).ok_or_else(too_long)?;
    let fields: Vec<&(Key, Value)> =
        numbers.iter().filter_map(|number| fields.get(number)).collect();
    if count.is_none() {
        call.reply.bulk_or_null(fields.first().map(|(field, _)| &**field));
        return Ok(());
    }
    match with_values {
        true => call.reply.pairs(fields.len()),
        false => call.reply.array(fields.len()),
    }
    for (field, value) in fields {
        if with_values {
            call.reply.pair();
        }
        call.reply.bulk(field);
        if with_values {
            call.reply.bulk(value);
        }
        call.check_reply_len()?;
    }
    Ok(())
}

/// Draws numbers below `fields`: distinct ones if `wanted` is positive.
fn draw(wanted: i64, fields: u64) -> Vec<u64> {
    let mut random = Random(RandomState::new(), 0);
    if wanted < 0 {
        return (0..wanted.unsigned_abs()).map(|_| random.below(fields)).collect();
    }
    let wanted = wanted.unsigned_abs();
    if wanted >= fields {
        return (0..fields).collect();
    }
    // Floyd's algorithm: every set of this size is equally likely.
    let mut drawn = BTreeSet::new();
    for last in fields - wanted..fields {
        let number = random.below(last + 1);
        if !drawn.insert(number) {
            drawn.insert(last);
        }
    }
    drawn.into_iter().collect()
}

/// Returns the fields with the given numbers; `None` if they have more than `bytes_max` bytes.
fn numbered(
    fields: impl Iterator<Item = terrane::Result<(Key, Value)>>,
    numbers: &[u64],
    bytes_max: usize,
) -> terrane::Result<Option<Numbered>> {
    let wanted: BTreeSet<u64> = numbers.iter().copied().collect();
    let end = wanted.last().map_or(0, |last| last + 1);
    let mut bytes = 0;
    let mut found = BTreeMap::new();
    for (number, entry) in (0..end).zip(fields) {
        let (field, value) = entry?;
        if wanted.contains(&number) {
            bytes += field.len() + value.len();
            found.insert(number, (field, value));
        }
        if bytes > bytes_max {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_and_all_of_them_are_drawn() {
        let mut seen = BTreeSet::new();
        for _ in 0..300 {
            let drawn = draw(3, 7);
            assert!(
                drawn.len() == 3 && drawn.windows(2).all(|pair| pair[0] < pair[1]),
                "{drawn:?}"
            );
            seen.extend(drawn);
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
        assert_eq!(draw(7, 7), draw(100, 7));
        assert_eq!(draw(-100, 7).len(), 100);
        assert!(draw(-100, 7).iter().all(|number| *number < 7));
        assert!(draw(0, 7).is_empty());
    }
}
