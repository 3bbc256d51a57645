//! Diagnostics: slow commands, sizes of values, pauses.

use std::time::Instant;

use crate::call::catalogue::{ADMIN, Family, NO_KEYS, NO_MULTI, READ, command, keys};
use crate::call::{Call, Outcome, SYNTAX};
use crate::commands::dispatch::{unknown_subcommand, wrong_subcommand_arity};
use crate::state::latency::{Latest, Pause};
use crate::state::session::Next;
use crate::store::Found;

pub(super) const FAMILY: Family = Family {
    group: "server",
    commands: &[
        command("slowlog", -2, ADMIN, NO_KEYS, "Returns the commands that took longest.", slowlog),
        command("latency", -2, ADMIN, NO_KEYS, "Returns the pauses of the server.", latency),
        command("debug", -2, ADMIN | NO_MULTI, NO_KEYS, "Pauses the connection.", debug),
        command("object", -2, READ, keys(2, 2, 1), "Describes a value.", object),
        command("memory", -2, READ, keys(2, 2, 1), "Estimates the memory of a value.", memory),
    ],
};

fn slowlog(call: &mut Call<'_, '_>) -> Outcome {
    match (call.argument(1).to_ascii_lowercase().as_slice(), call.arguments.len()) {
        (b"get", 2 | 3) => {
            let count = if call.arguments.len() == 3 { call.integer(2)? } else { 10 };
            if count < -1 {
                return Err("ERR count should be greater than or equal to -1".into());
            }
            let newest = call.shared.slow_log.newest(usize::try_from(count).unwrap_or(usize::MAX));
            call.reply.array(newest.len());
            for slow in newest {
                call.reply.array(6);
                for number in [slow.id, slow.at, slow.micros] {
                    call.reply.integer(i64::try_from(number).unwrap_or(i64::MAX));
                }
                call.reply.array(slow.arguments.len());
                slow.arguments.iter().for_each(|argument| call.reply.bulk(argument));
                call.reply.bulk(slow.address.as_bytes());
                call.reply.bulk(slow.name.as_bytes());
            }
        }
        (b"len", 2) => call.reply.count(call.shared.slow_log.len()),
        (b"reset", 2) => {
            call.shared.slow_log.clear();
            call.reply.ok();
        }
        (b"help", 2) => call.reply.texts(&["SLOWLOG GET [count] | SLOWLOG LEN | SLOWLOG RESET"]),
        (b"get" | b"len" | b"reset", _) => return Err(wrong_subcommand_arity(call)),
        _ => return Err(unknown_subcommand(call)),
    }
    Ok(())
}

fn latency(call: &mut Call<'_, '_>) -> Outcome {
    let monitor = &call.shared.latency;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    match (call.argument(1).to_ascii_lowercase().as_slice(), call.arguments.len()) {
        (b"latest", 2) => {
            let latest = monitor.latest();
            call.reply.array(latest.len());
            for Latest { event, last, longest_millis } in latest {
                call.reply.array(4);
                call.reply.bulk(event.as_bytes());
                [last.at, last.millis, longest_millis]
                    .into_iter()
                    .for_each(|value| call.reply.integer(number(value)));
            }
        }
        (b"history", 3) => {
            let event = String::from_utf8_lossy(call.argument(2));
            let history = monitor.history(&event);
            call.reply.array(history.len());
            for Pause { at, millis } in history {
                call.reply.array(2);
                call.reply.integer(number(at));
                call.reply.integer(number(millis));
            }
        }
        (b"reset", len) => {
            let arguments = call.arguments;
            let is_named = |event: &str| arguments.from(2).any(|name| name == event.as_bytes());
            call.reply.count(monitor.reset(|event| len == 2 || is_named(event)));
        }
        (b"help", 2) => call
            .reply
            .texts(&["LATENCY LATEST | LATENCY HISTORY event | LATENCY RESET [event ...]"]),
        (b"latest" | b"history", _) => return Err(wrong_subcommand_arity(call)),
        _ => return Err(unknown_subcommand(call)),
    }
    Ok(())
}

fn debug(call: &mut Call<'_, '_>) -> Outcome {
    if !call.is(1, "sleep") {
        return Err(unknown_subcommand(call));
    }
    if call.arguments.len() != 3 {
        return Err(wrong_subcommand_arity(call));
    }
    let time = super::server::seconds(call.argument(2)).ok_or("ERR value is not a valid float")?;
    // Only this connection waits.
    call.session.next = Next::PauseUntil(Instant::now() + time);
    call.reply.ok();
    Ok(())
}

fn object(call: &mut Call<'_, '_>) -> Outcome {
    match (call.argument(1).to_ascii_lowercase().as_slice(), call.arguments.len()) {
        (b"encoding", 3) => {
            let encoding = encoding(call, call.argument(2))?;
            call.reply.bulk_or_null(encoding.map(str::as_bytes));
        }
        (b"refcount", 3) => match call.store.contains(call.db(), call.argument(2))? {
            true => call.reply.integer(1),
            false => call.reply.null(),
        },
        (b"help", 2) => call.reply.texts(&["OBJECT ENCODING key | OBJECT REFCOUNT key"]),
        (b"encoding" | b"refcount", _) => return Err(wrong_subcommand_arity(call)),
        _ => return Err(unknown_subcommand(call)),
    }
    Ok(())
}

/// The encodings that Redis would use.
fn encoding(call: &Call<'_, '_>, key: &[u8]) -> Outcome<Option<&'static str>> {
    Ok(match call.store.find(call.db(), key)? {
        None => None,
        Some(Found::String((value, _))) => {
            Some(match (crate::call::integer(&value), value.len()) {
                (Some(_), _) => "int",
                (None, ..=44) => "embstr",
                _ => "raw",
            })
        }
        Some(Found::Hash(header)) if header.fields > 128 => Some("hashtable"),
        Some(Found::Hash(header)) => {
            for entry in call.store.fields(call.db(), &header, None)? {
                let (field, value) = entry?;
                if field.len().max(value.len()) > 64 {
                    return Ok(Some("hashtable"));
                }
            }
            Some("listpack")
        }
    })
}

/// Returns the size of the entries in a memtable; in a table they are smaller. The size of a hash is
/// extrapolated from its first fields.
fn memory_of(call: &Call<'_, '_>, key: &[u8]) -> Outcome<Option<usize>> {
    const SAMPLES: usize = 100;
    const ENTRY: usize = 16;
    Ok(match call.store.find(call.db(), key)? {
        None => None,
        Some(Found::String((value, _))) => Some(key.len() + value.len() + ENTRY),
        Some(Found::Hash(header)) => {
            let (mut bytes, mut sampled) = (0, 0);
            for entry in call.store.fields(call.db(), &header, None)?.take(SAMPLES) {
                let (field, value) = entry?;
                bytes += 9 + field.len() + value.len() + ENTRY;
                sampled += 1;
            }
            let fields = usize::try_from(header.fields).unwrap_or(usize::MAX);
            let all = bytes.saturating_mul(fields) / sampled.max(1);
            Some(all + key.len() + 17 + ENTRY)
        }
    })
}

fn memory(call: &mut Call<'_, '_>) -> Outcome {
    match (call.argument(1).to_ascii_lowercase().as_slice(), call.arguments.len()) {
        (b"usage", 3 | 5) => {
            if call.arguments.len() == 5 && !call.is(3, "samples") {
                return Err(SYNTAX.into());
            }
            let key = call.argument(2);
            match memory_of(call, key)? {
                Some(bytes) => call.reply.count(bytes),
                None => call.reply.null(),
            }
        }
        (b"help", 2) => call.reply.texts(&["MEMORY USAGE key [SAMPLES count]"]),
        (b"usage", _) => return Err(wrong_subcommand_arity(call)),
        _ => return Err(unknown_subcommand(call)),
    }
    Ok(())
}
