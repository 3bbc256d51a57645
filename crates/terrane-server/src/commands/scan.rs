//! `SCAN` and `KEYS`: iterating over keys.
//!
//! A scan visits the keys in their order and continues after the last one, so that it returns every key
//! that exists during the whole scan, exactly once.

use std::ops::Bound;

use crate::base::glob::{literal_prefix, matches};
use crate::call::catalogue::{Family, NO_KEYS, READ, command};
use crate::call::{Call, Outcome, SYNTAX};
use crate::commands::aside;
use crate::store::{Kind, Scanned};

pub(super) const FAMILY: Family = Family {
    group: "generic",
    commands: &[
        command("scan", -2, READ, NO_KEYS, "Iterates over the keys.", scan),
        command("keys", 2, READ, NO_KEYS, "Returns all keys that match a pattern.", keys),
    ],
};

/// The most keys that a call visits, so that other connections wait only milliseconds.
pub(super) const MAX_COUNT: usize = 10_000;

struct ScanOptions<'c> {
    pattern: Option<&'c [u8]>,
    count: usize,
    kind: Kind,
}

fn options<'c>(call: &Call<'c, '_>) -> Outcome<ScanOptions<'c>> {
    let mut options = ScanOptions { pattern: None, count: 10, kind: Kind::All };
    let mut index = 2;
    while index < call.arguments.len() {
        let argument = call.arguments.get(index + 1).ok_or(SYNTAX)?;
        if call.is(index, "match") {
            options.pattern = Some(argument);
        } else if call.is(index, "count") {
            let count = usize::try_from(call.integer(index + 1)?).ok();
            options.count = count.filter(|count| *count > 0).ok_or(SYNTAX)?.min(MAX_COUNT);
        } else if call.is(index, "type") {
            options.kind = match argument.to_ascii_lowercase().as_slice() {
                b"string" => Kind::Strings,
                b"hash" => Kind::Hashes,
                _ => Kind::Other,
            };
        } else {
            return Err(SYNTAX.into());
        }
        index += 2;
    }
    Ok(options)
}

/// Returns the cursor at `index`.
pub(super) fn cursor(call: &Call<'_, '_>, index: usize) -> Outcome<u64> {
    let cursor = std::str::from_utf8(call.argument(index)).ok().and_then(|text| text.parse().ok());
    Ok(cursor.ok_or("ERR invalid cursor")?)
}

/// Returns the position of a cursor: the key or field after which the scan continues.
pub(super) fn position(
    call: &Call<'_, '_>,
    scanned: Scanned,
    cursor: u64,
    again: &str,
) -> Outcome<Option<Box<[u8]>>> {
    if cursor == 0 {
        return Ok(None);
    }
    let found = call.shared.cursors.find(scanned, cursor);
    let unknown = || format!("ERR cursor {cursor} is unknown or too old; begin again with {again}");
    Ok(Some(found.ok_or_else(unknown)?))
}

fn scan(call: &mut Call<'_, '_>) -> Outcome {
    let cursor = cursor(call, 1)?;
    let ScanOptions { pattern, count, kind } = options(call)?;
    let db = call.db();
    let after = position(call, Scanned::Keys(db), cursor, "SCAN 0")?;
    let mut found = Vec::new();
    let mut last = None;
    let mut is_more = false;
    let prefix = pattern.map(literal_prefix).unwrap_or_default();
    let start = match &after {
        Some(after) if **after >= *prefix => Bound::Excluded(&**after),
        _ => Bound::Included(&prefix[..]),
    };
    let mut bytes = 0;
    for (visited, key) in call.store.keys(db, (start, Bound::Unbounded), kind)?.enumerate() {
        let key = key?;
        if !key.starts_with(&prefix) {
            break;
        }
        if visited == count || bytes > call.shared.config.limits.output_bytes / 2 {
            is_more = true;
            break;
        }
        if pattern.is_none_or(|pattern| matches(pattern, &key)) {
            bytes += key.len();
            found.push(key.clone());
        }
        last = Some(key);
    }
    let next = match last.filter(|_| is_more) {
        Some(key) => call.shared.cursors.add(Scanned::Keys(db), &key),
        None => 0,
    };
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

fn keys(call: &mut Call<'_, '_>) -> Outcome {
    if aside::is_possible(call) && call.store.databases().approximate_len(call.db())? > aside::MANY
    {
        return aside::read(call, keys);
    }
    let pattern = call.argument(1);
    let prefix = literal_prefix(pattern);
    let mut found = Vec::new();
    let mut bytes = 0;
    let limit = call.shared.config.limits.output_bytes;
    for key in
        call.store.keys(call.db(), (Bound::Included(&prefix), Bound::Unbounded), Kind::All)?
    {
        let key = key?;
        call.check_cancelled()?;
        if !key.starts_with(&prefix) {
            break;
        }
        if matches(pattern, &key) {
            bytes += key.len() + 16;
            if bytes > limit {
                return Err(format!(
                    "ERR the keys take more than {limit} bytes; iterate over them with SCAN"
                )
                .into());
            }
            found.push(key);
        }
    }
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}
