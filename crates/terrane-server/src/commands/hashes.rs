//! Hashes.

mod numbers;
mod random;
mod scan;

use std::cell::Cell;

use crate::call::catalogue::{FAST, Family, GROWS, ONE_KEY, READ, WRITE, command};
use crate::call::{Call, Handler, Outcome};
use crate::commands::aside;

const SETS: u16 = WRITE | GROWS | FAST;
const READS: u16 = READ | FAST;

pub(super) const FAMILY: Family = Family {
    group: "hash",
    commands: &[
        command("hset", -4, SETS, ONE_KEY, "Sets fields of a hash.", hset),
        command("hmset", -4, SETS, ONE_KEY, "Sets fields of a hash.", hmset),
        command("hsetnx", 4, SETS, ONE_KEY, "Sets a field that the hash does not have.", hsetnx),
        command("hget", 3, READS, ONE_KEY, "Returns the value of a field.", hget),
        command("hmget", -3, READS, ONE_KEY, "Returns the values of several fields.", hmget),
        command("hgetall", 2, READ, ONE_KEY, "Returns all fields with their values.", hgetall),
        command("hkeys", 2, READ, ONE_KEY, "Returns all fields.", hkeys),
        command("hvals", 2, READ, ONE_KEY, "Returns the values of all fields.", hvals),
        command("hdel", -3, WRITE | FAST, ONE_KEY, "Removes fields.", hdel),
        command("hexists", 3, READS, ONE_KEY, "Returns whether a hash has a field.", hexists),
        command("hlen", 2, READS, ONE_KEY, "Returns the number of fields.", hlen),
        command("hstrlen", 3, READS, ONE_KEY, "Returns the length of a field's value.", hstrlen),
        command("hincrby", 4, SETS, ONE_KEY, "Adds to an integer in a field.", numbers::hincrby),
        command(
            "hincrbyfloat",
            4,
            SETS,
            ONE_KEY,
            "Adds to a floating-point number in a field.",
            numbers::hincrbyfloat,
        ),
        command("hrandfield", -2, READ, ONE_KEY, "Returns random fields.", random::hrandfield),
        command("hscan", -3, READ, ONE_KEY, "Iterates over the fields of a hash.", scan::hscan),
    ],
};

/// Returns the fields and values from the third argument on.
fn pairs<'c>(call: &Call<'c, '_>) -> Outcome<Vec<(&'c [u8], &'c [u8])>> {
    let arguments = call.arguments;
    if !arguments.len().is_multiple_of(2) {
        let name = String::from_utf8_lossy(call.argument(0)).to_ascii_lowercase();
        return Err(format!("ERR wrong number of arguments for '{name}' command").into());
    }
    Ok((2..arguments.len()).step_by(2).map(|at| (arguments.at(at), arguments.at(at + 1))).collect())
}

fn set_all(call: &mut Call<'_, '_>) -> Outcome<u64> {
    let (db, key, pairs) = (call.db(), call.key(), pairs(call)?);
    let hash = call.store.hash(db, key)?;
    Ok(call.store.set_fields(db, key, hash, &pairs)?)
}

fn hset(call: &mut Call<'_, '_>) -> Outcome {
    let added = set_all(call)?;
    call.reply.unsigned(added);
    Ok(())
}

fn hmset(call: &mut Call<'_, '_>) -> Outcome {
    set_all(call)?;
    call.reply.ok();
    Ok(())
}

fn hsetnx(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key, field) = (call.db(), call.key(), call.argument(2));
    let hash = call.store.hash(db, key)?;
    let exists = match &hash {
        Some(header) => call.store.field(db, header, field)?.is_some(),
        None => false,
    };
    if !exists {
        call.store.set_fields(db, key, hash, &[(field, call.argument(3))])?;
    }
    call.reply.integer(i64::from(!exists));
    Ok(())
}

/// Returns the value of the field in the third argument.
fn value_of_field(call: &mut Call<'_, '_>) -> Outcome<Option<terrane::Value>> {
    let (db, field) = (call.db(), call.argument(2));
    let store = &*call.store;
    let value = store.read_hash(db, call.key(), |header| store.field(db, header, field))?;
    call.count_lookup(value.is_some());
    Ok(value)
}

fn hget(call: &mut Call<'_, '_>) -> Outcome {
    let value = value_of_field(call)?;
    call.reply.bulk_or_null(value.as_deref());
    Ok(())
}

fn hexists(call: &mut Call<'_, '_>) -> Outcome {
    let value = value_of_field(call)?;
    call.reply.integer(i64::from(value.is_some()));
    Ok(())
}

fn hstrlen(call: &mut Call<'_, '_>) -> Outcome {
    let value = value_of_field(call)?;
    call.reply.count(value.map_or(0, |value| value.len()));
    Ok(())
}

fn hmget(call: &mut Call<'_, '_>) -> Outcome {
    let (db, store) = (call.db(), &*call.store);
    let limit = call.shared.config.limits.output_bytes;
    let found = store.read_hash(db, call.key(), |header| {
        let values = store.some_fields(db, header, call.arguments.from(2), limit)?;
        Ok(Some(values).filter(|values| values.iter().any(Option::is_some)))
    })?;
    call.count_lookup(found.is_some());
    let fields = call.arguments.len() - 2;
    let values = found.unwrap_or_else(|| vec![None; fields]);
    call.reply.array(fields);
    for value in values {
        call.reply.bulk_or_null(value.as_deref());
        // Fails if the values are incomplete, because the reply is then too long.
        call.check_reply_len()?;
    }
    Ok(())
}

/// The part of each field that a command returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Field,
    Value,
    Both,
}

fn hgetall(call: &mut Call<'_, '_>) -> Outcome {
    all(call, Part::Both, hgetall)
}

fn hkeys(call: &mut Call<'_, '_>) -> Outcome {
    all(call, Part::Field, hkeys)
}

fn hvals(call: &mut Call<'_, '_>) -> Outcome {
    all(call, Part::Value, hvals)
}

/// Returns all fields of a hash, for the command that `run` carries out.
fn all(call: &mut Call<'_, '_>, part: Part, run: Handler) -> Outcome {
    let (db, store) = (call.db(), &*call.store);
    let limit = call.shared.config.limits.output_bytes;
    let (may_leave, leaves) = (aside::is_possible(call), Cell::new(false));
    let found = store.read_hash(db, call.key(), |header| {
        if may_leave && header.fields > aside::MANY {
            leaves.set(true);
            return Ok(None);
        }
        let mut bytes = 0;
        let mut entries = Vec::new();
        for entry in store.fields(db, header, None)? {
            let (field, value) = entry?;
            call.check_cancelled()?;
            bytes += field.len() + value.len() + 16;
            entries.push((field, value));
            if bytes > limit {
                break;
            }
        }
        Ok(Some((entries, bytes)).filter(|(entries, _)| !entries.is_empty()))
    })?;
    if leaves.get() {
        return aside::read(call, run);
    }
    call.count_lookup(found.is_some());
    let (entries, bytes) = found.unwrap_or_default();
    if bytes > limit {
        let text =
            format!("ERR the hash takes more than {limit} bytes; iterate over it with HSCAN");
        return Err(text.into());
    }
    match part {
        Part::Both => call.reply.map(entries.len()),
        Part::Field | Part::Value => call.reply.array(entries.len()),
    }
    for (field, value) in &entries {
        if part != Part::Value {
            call.reply.bulk(field);
        }
        if part != Part::Field {
            call.reply.bulk(value);
        }
    }
    Ok(())
}

fn hdel(call: &mut Call<'_, '_>) -> Outcome {
    let (db, key) = (call.db(), call.key());
    let removed = match call.store.hash(db, key)? {
        Some(header) => call.store.remove_fields(db, key, header, call.arguments.from(2))?,
        None => 0,
    };
    call.reply.unsigned(removed);
    Ok(())
}

fn hlen(call: &mut Call<'_, '_>) -> Outcome {
    let hash = call.store.hash(call.db(), call.key())?;
    call.count_lookup(hash.is_some());
    call.reply.unsigned(hash.map_or(0, |header| header.fields));
    Ok(())
}
