//! Strings: reading and setting values.

mod set;

use crate::call::catalogue::{
    EVERY_KEY, FAST, Family, GROUPED, GROWS, ONE_KEY, READ, WRITE, command, keys,
};
use crate::call::{Call, Outcome, SYNTAX};
use crate::commands::aside;

pub(super) const FAMILY: Family = Family {
    group: "string",
    commands: &[
        command("get", 2, READ | FAST | GROUPED, ONE_KEY, "Returns the value of a key.", get),
        command("set", -3, WRITE | GROWS | GROUPED, ONE_KEY, "Sets the value of a key.", set::set),
        command(
            "setex",
            4,
            WRITE | GROWS,
            ONE_KEY,
            "Sets a value that expires after seconds.",
            set::setex,
        ),
        command(
            "psetex",
            4,
            WRITE | GROWS,
            ONE_KEY,
            "Sets a value that expires after milliseconds.",
            set::psetex,
        ),
        command(
            "setnx",
            3,
            WRITE | GROWS | FAST,
            ONE_KEY,
            "Sets the value of a key that has none.",
            set::setnx,
        ),
        command(
            "getset",
            3,
            WRITE | GROWS | FAST,
            ONE_KEY,
            "Sets a value and returns the old one.",
            set::getset,
        ),
        command(
            "getdel",
            2,
            WRITE | FAST,
            ONE_KEY,
            "Returns the value of a key and removes the key.",
            getdel,
        ),
        command(
            "getex",
            -2,
            WRITE | FAST,
            ONE_KEY,
            "Returns a value and changes its expiry time.",
            set::getex,
        ),
        command("mget", -2, READ | FAST, EVERY_KEY, "Returns the values of several keys.", mget),
        command(
            "mset",
            -3,
            WRITE | GROWS | GROUPED,
            keys(1, -1, 2),
            "Sets several values at once.",
            mset,
        ),
        command(
            "msetnx",
            -3,
            WRITE | GROWS,
            keys(1, -1, 2),
            "Sets several values if none of the keys has one.",
            msetnx,
        ),
        command("strlen", 2, READ | FAST, ONE_KEY, "Returns the length of a value.", strlen),
        command("append", 3, WRITE | GROWS | FAST, ONE_KEY, "Appends to a value.", append),
        command("getrange", 4, READ, ONE_KEY, "Returns a part of a value.", getrange),
        command("substr", 4, READ, ONE_KEY, "Returns a part of a value.", getrange),
        command("setrange", 4, WRITE | GROWS, ONE_KEY, "Overwrites a part of a value.", setrange),
    ],
};

/// The error for a value that would be longer than a request may be.
const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

fn get(call: &mut Call<'_, '_>) -> Outcome {
    let value = call.store.get(call.db(), call.key())?;
    call.count_lookup(value.is_some());
    call.reply.bulk_or_null(value.as_deref());
    Ok(())
}

fn getdel(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key) = (call.db(), call.key());
    let value = call.store.get(db, key)?;
    if value.is_some() {
        call.store.delete(db, key)?;
    }
    call.reply.bulk_or_null(value.as_deref());
    Ok(())
}

fn mget(call: &mut Call<'_, '_>) -> Outcome {
    let limit = call.shared.config.limits.output_bytes;
    let values = call.store.get_all(call.db(), call.arguments.from(1), limit)?;
    call.reply.array(call.arguments.len() - 1);
    for value in values {
        call.count_lookup(value.is_some());
        call.reply.bulk_or_null(value.as_deref());
        // Fails if the values are incomplete, because the reply is then too long.
        call.check_reply_len()?;
    }
    Ok(())
}

/// Returns the keys and values of `MSET`.
fn pairs<'c>(call: &Call<'c, '_>) -> Outcome<impl Iterator<Item = (&'c [u8], &'c [u8])> + use<'c>> {
    let arguments = call.arguments;
    if arguments.len().is_multiple_of(2) {
        let name = arguments.at(0).to_ascii_lowercase();
        let name = String::from_utf8_lossy(&name).into_owned();
        return Err(format!("ERR wrong number of arguments for '{name}' command").into());
    }
    Ok((1..arguments.len()).step_by(2).map(move |at| (arguments.at(at), arguments.at(at + 1))))
}

fn mset(call: &mut Call<'_, '_>) -> Outcome {
    let pairs = pairs(call)?;
    call.store.put_all(call.db(), pairs)?;
    call.reply.ok();
    Ok(())
}

fn msetnx(call: &mut Call<'_, '_>) -> Outcome {
    let db = call.db();
    for (key, _) in pairs(call)? {
        if call.store.contains(db, key)? {
            call.reply.integer(0);
            return Ok(());
        }
    }
    let pairs = pairs(call)?;
    call.store.put_all(db, pairs)?;
    call.reply.integer(1);
    Ok(())
}

fn strlen(call: &mut Call<'_, '_>) -> Outcome {
    let value = call.store.get(call.db(), call.key())?;
    call.reply.count(value.map_or(0, |value| value.len()));
    Ok(())
}

/// Fails if a value would be longer than the longest argument.
pub(super) fn check_len(call: &Call<'_, '_>, len: usize) -> Outcome {
    if len > call.shared.config.limits.bulk_bytes { Err(TOO_LONG.into()) } else { Ok(()) }
}

fn append(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key, more) = (call.db(), call.key(), call.argument(2));
    let Some((mut value, expires_at)) = aside::owned_value(call, key, append)? else {
        return Ok(());
    };
    check_len(call, value.len().saturating_add(more.len()))?;
    value.extend_from_slice(more);
    call.store.put(db, key, &value, expires_at)?;
    call.reply.count(value.len());
    Ok(())
}

fn getrange(call: &mut Call<'_, '_>) -> Outcome {
    let (first, last) = (call.integer(2)?, call.integer(3)?);
    let value = call.store.get(call.db(), call.key())?;
    let value = value.as_deref().unwrap_or_default();
    call.reply.bulk(part(value, first, last));
    Ok(())
}

/// Returns the part between two positions, both inclusive; negative ones count from the end.
fn part(value: &[u8], first: i64, last: i64) -> &[u8] {
    let len = i64::try_from(value.len()).unwrap_or(i64::MAX);
    // As in Redis, a negative range whose start follows its end is empty.
    if first < 0 && last < 0 && first > last {
        return &[];
    }
    let from_start = |at: i64| if at < 0 { (len + at).max(0) } else { at };
    let (first, last) = (from_start(first), from_start(last).min(len - 1));
    if first > last || len == 0 {
        return &[];
    }
    let range = usize::try_from(first).ok().zip(usize::try_from(last).ok());
    range.and_then(|(first, last)| value.get(first..=last)).unwrap_or_default()
}

fn setrange(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key, part) = (call.db(), call.key(), call.argument(3));
    let offset = usize::try_from(call.integer(2)?).map_err(|_| "ERR offset is out of range")?;
    let Some((mut value, expires_at)) = aside::owned_value(call, key, setrange)? else {
        return Ok(());
    };
    if part.is_empty() {
        call.reply.count(value.len());
        return Ok(());
    }
    let part_end = offset.saturating_add(part.len());
    check_len(call, part_end)?;
    value.resize(value.len().max(part_end), 0);
    value.get_mut(offset..part_end).ok_or(SYNTAX)?.copy_from_slice(part);
    call.store.put(db, key, &value, expires_at)?;
    call.reply.count(value.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_have_inclusive_ends_that_may_count_from_the_end() {
        let value = b"This is a string";
        for (first, last, expected) in [
            (0, 3, &b"This"[..]),
            (-3, -1, b"ing"),
            (0, -1, value),
            (10, 100, b"string"),
            (5, 3, b""),
            (-1, -3, b""),
            (-100, 3, b"This"),
            (0, -100, b"T"),
            (16, 20, b""),
            (i64::MIN, i64::MAX, value),
        ] {
            assert_eq!(part(value, first, last), expected, "{first} {last}");
        }
        assert_eq!(part(b"", 0, -1), b"");
    }
}
