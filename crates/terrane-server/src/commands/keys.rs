//! Commands on keys of any type.

use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;

use crate::call::catalogue::{
    ADMIN, ALL_KEYS, EVERY_KEY, FAST, Family, GROWS, NO_KEYS, NO_MULTI, ONE_KEY, READ, TWO_KEYS,
    WRITE, command,
};
use crate::call::{Call, Handler, Outcome, SYNTAX};
use crate::commands::aside;
use crate::store::{Found, Kind, Source};

pub(super) const FAMILY: Family = Family {
    group: "generic",
    commands: &[
        command("del", -2, WRITE, EVERY_KEY, "Removes keys.", del),
        command("unlink", -2, WRITE | FAST, EVERY_KEY, "Removes keys.", del),
        command(
            "exists",
            -2,
            READ | FAST,
            EVERY_KEY,
            "Returns how many of the keys exist.",
            exists,
        ),
        command("touch", -2, READ | FAST, EVERY_KEY, "Returns how many of the keys exist.", exists),
        command("type", 2, READ | FAST, ONE_KEY, "Returns the type of a value.", value_type),
        command("rename", 3, WRITE, TWO_KEYS, "Renames a key, and replaces another one.", rename),
        command(
            "renamenx",
            3,
            WRITE | FAST,
            TWO_KEYS,
            "Renames a key if the new name is free.",
            renamenx,
        ),
        command("copy", -3, WRITE | GROWS, TWO_KEYS, "Copies a value to another key.", copy),
        command("move", 3, WRITE | FAST, ONE_KEY, "Moves a key to another database.", move_key),
        command("randomkey", 1, READ, NO_KEYS, "Returns a key.", randomkey),
        command(
            "dbsize",
            1,
            READ | FAST,
            NO_KEYS,
            "Returns the number of keys; an estimate above 100,000.",
            dbsize,
        ),
        command(
            "flushdb",
            -1,
            WRITE | ALL_KEYS,
            NO_KEYS,
            "Removes all keys of the database.",
            flushdb,
        ),
        command(
            "flushall",
            -1,
            WRITE | ALL_KEYS,
            NO_KEYS,
            "Removes all keys of all databases.",
            flushall,
        ),
        command(
            "swapdb",
            3,
            WRITE | FAST | ALL_KEYS | ADMIN | NO_MULTI,
            NO_KEYS,
            "Exchanges two databases for all clients.",
            swapdb,
        ),
    ],
};

/// `DBSIZE` counts up to this number of keys, which takes some ten milliseconds.
const COUNTED_KEYS: u64 = 100_000;

fn del(call: &mut Call<'_, '_>) -> Outcome {
    let db = call.db();
    if call.arguments.len() == 2 {
        let is_removed = call.store.delete(db, call.key())?;
        call.reply.integer(i64::from(is_removed));
        return Ok(());
    }
    let mut keys: Vec<&[u8]> = call.arguments.from(1).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut removed = Vec::new();
    for key in keys {
        if call.store.contains(db, key)? {
            removed.push(key);
        }
    }
    if !removed.is_empty() {
        call.store.write(db, removed.iter().map(|key| (*key, None)))?;
    }
    call.reply.count(removed.len());
    Ok(())
}

fn exists(call: &mut Call<'_, '_>) -> Outcome {
    let mut count = 0;
    for key in call.arguments.from(1) {
        let is_found = call.store.contains(call.db(), key)?;
        call.count_lookup(is_found);
        count += i64::from(is_found);
    }
    call.reply.integer(count);
    Ok(())
}

fn value_type(call: &mut Call<'_, '_>) -> Outcome {
    call.reply.simple(match call.store.find(call.db(), call.key())? {
        None => "none",
        Some(Found::String(_)) => "string",
        Some(Found::Hash(_)) => "hash",
    });
    Ok(())
}

fn rename(call: &mut Call<'_, '_>) -> Outcome {
    if rename_key(call, true, rename)?.is_some() {
        call.reply.ok();
    }
    Ok(())
}

fn renamenx(call: &mut Call<'_, '_>) -> Outcome {
    if let Some(is_renamed) = rename_key(call, false, renamenx)? {
        call.reply.integer(i64::from(is_renamed));
    }
    Ok(())
}

/// Returns whether the key was renamed; `None` if a thread runs the command.
fn rename_key(call: &mut Call<'_, '_>, replaces: bool, run: Handler) -> Outcome<Option<bool>> {
    let (db, from, to) = (call.db(), call.key(), call.argument(2));
    let found = call.store.find(db, from)?.ok_or("ERR no such key")?;
    if !replaces && call.store.contains(db, to)? {
        return Ok(Some(false));
    }
    if let Found::String((value, _)) = &found
        && aside::is_long(call, value.len())
    {
        aside::write(call, run)?;
        return Ok(None);
    }
    if from != to {
        call.store.place((db, from), (db, to), &found, (Source::IsRemoved, 0))?;
    }
    Ok(Some(true))
}

/// Returns whether copying a value takes so long that it needs its own thread.
fn is_long(call: &Call<'_, '_>, found: &Found) -> bool {
    match found {
        Found::String((value, _)) => aside::is_long(call, value.len()),
        Found::Hash(header) => header.fields > aside::COPIED && aside::is_possible(call),
    }
}

fn copy(call: &mut Call<'_, '_>) -> Outcome {
    let (db, from, to) = (call.db(), call.key(), call.argument(2));
    let (mut target, mut replaces, mut index) = (db, false, 3);
    while index < call.arguments.len() {
        if call.is(index, "replace") {
            replaces = true;
        } else if call.is(index, "db") && index + 1 < call.arguments.len() {
            index += 1;
            target = call.shared.databases.slot(call.database(index)?);
        } else {
            return Err(SYNTAX.into());
        }
        index += 1;
    }
    if target == db && from == to {
        return Err("ERR source and destination objects are the same".into());
    }
    let found = call.store.find(db, from)?;
    let is_free = replaces || !call.store.contains(target, to)?;
    let copied = found.filter(|_| is_free);
    let limit = call.shared.config.limits.request_bytes;
    if let Some(found) = &copied {
        if is_long(call, found) {
            return aside::write(call, copy);
        }
        call.store.place((db, from), (target, to), found, (Source::Stays, limit))?;
    }
    call.reply.integer(i64::from(copied.is_some()));
    Ok(())
}

fn move_key(call: &mut Call<'_, '_>) -> Outcome {
    let target = call.shared.databases.slot(call.database(2)?);
    let (db, key) = (call.db(), call.key());
    if target == db {
        return Err("ERR source and destination objects are the same".into());
    }
    let found = call.store.find(db, key)?;
    let moved = if call.store.contains(target, key)? { None } else { found };
    let limit = call.shared.config.limits.request_bytes;
    if let Some(found) = &moved {
        if is_long(call, found) {
            return aside::write(call, move_key);
        }
        call.store.place((db, key), (target, key), found, (Source::IsRemoved, limit))?;
    }
    call.reply.integer(i64::from(moved.is_some()));
    Ok(())
}

/// Returns the first key after a random point between the first and the last key. Keys after large gaps
/// are returned more often.
fn randomkey(call: &mut Call<'_, '_>) -> Outcome {
    let db = call.db();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let Some(first) = call.store.keys(db, all, Kind::All)?.next().transpose()? else {
        call.reply.null();
        return Ok(());
    };
    let random = RandomState::new().hash_one(0_u8);
    // A random point after some prefix of the first key: short prefixes spread over the whole range.
    let len = (random % (first.len() as u64 + 1)) as usize;
    let mut point = first.get(..len).unwrap_or_default().to_vec();
    point.extend_from_slice(&random.to_be_bytes());
    let from_point = (Bound::Included(&point[..]), Bound::Unbounded);
    let skipped = (random >> 32) as usize % 64;
    let mut found = None;
    for key in call.store.keys(db, from_point, Kind::All)?.take(skipped + 1) {
        found = Some(key?);
    }
    call.reply.bulk(found.as_deref().unwrap_or(&first));
    Ok(())
}

fn dbsize(call: &mut Call<'_, '_>) -> Outcome {
    // In a transaction, the estimate leaves out what the transaction has written.
    let estimate = call.store.databases().approximate_len(call.db())?;
    if aside::is_possible(call) && (aside::MANY..=COUNTED_KEYS).contains(&estimate) {
        return aside::read(call, dbsize);
    }
    let count = if estimate > COUNTED_KEYS { estimate } else { count_keys(call)? };
    call.reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

fn count_keys(call: &Call<'_, '_>) -> Outcome<u64> {
    let mut count = 0;
    let all = (Bound::Unbounded, Bound::Unbounded);
    for key in call.store.keys(call.db(), all, Kind::All)? {
        key?;
        count += 1;
    }
    Ok(count)
}

fn flushdb(call: &mut Call<'_, '_>) -> Outcome {
    check_flush(call)?;
    let db = call.db();
    call.store.clear(std::iter::once(db))?;
    call.reply.ok();
    Ok(())
}

fn flushall(call: &mut Call<'_, '_>) -> Outcome {
    check_flush(call)?;
    let dbs = call.store.databases().slots();
    if let Some(user) = &call.session.user
        && !user.may_administer()
    {
        return Err("NOPERM this user may not remove the keys of all databases".into());
    }
    call.store.clear(dbs)?;
    call.reply.ok();
    Ok(())
}

fn swapdb(call: &mut Call<'_, '_>) -> Outcome {
    let (first, second) = (call.database(1)?, call.database(2)?);
    if first != second {
        call.store.swap(first, second)?;
    }
    call.reply.ok();
    Ok(())
}

fn check_flush(call: &Call<'_, '_>) -> Outcome {
    match call.arguments.len() {
        1 => Ok(()),
        2 if call.is(1, "async") || call.is(1, "sync") => Ok(()),
        _ => Err(SYNTAX.into()),
    }
}
