//! The server as a whole.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane::{Clock, SystemClock};

use crate::call::catalogue::{ADMIN, FAST, Family, NO_KEYS, NO_MULTI, READ, STATE, command};
use crate::call::{Call, NOT_AN_INTEGER, Outcome, SYNTAX};
use crate::commands::aside::maintain;
use crate::state::session::Next;

pub(super) const FAMILY: Family = Family {
    group: "server",
    commands: &[
        command("time", 1, FAST, NO_KEYS, "Returns the time.", time),
        command(
            "save",
            1,
            ADMIN | NO_MULTI,
            NO_KEYS,
            "Writes the memtables to tables, and waits.",
            save,
        ),
        command(
            "lastsave",
            1,
            FAST,
            NO_KEYS,
            "Returns the time of the last SAVE, or of the start.",
            lastsave,
        ),
        command("shutdown", -1, ADMIN | NO_MULTI, NO_KEYS, "Ends the server.", shutdown),
        command("wait", 3, 0, NO_KEYS, "Returns the number of replicas: there are none.", wait),
        command(
            "waitaof",
            4,
            0,
            NO_KEYS,
            "Makes all writes so far survive a power failure.",
            waitaof,
        ),
        command(
            "role",
            1,
            STATE | READ | FAST,
            NO_KEYS,
            "Returns that the server is a master without replicas.",
            role,
        ),
    ],
};

fn time(call: &mut Call<'_, '_>) -> Outcome {
    let now = SystemClock.now_micros();
    call.reply.array(2);
    call.reply.bulk((now / 1_000_000).to_string().as_bytes());
    call.reply.bulk((now % 1_000_000).to_string().as_bytes());
    Ok(())
}

fn save(call: &mut Call<'_, '_>) -> Outcome {
    let shared = Arc::clone(call.shared);
    maintain(call, move |maintenance| {
        maintenance.keyspaces().iter().try_for_each(|keyspace| maintenance.flush(keyspace))?;
        shared
            .counts
            .last_save_seconds
            .store(SystemClock.now_micros() / 1_000_000, Ordering::Relaxed);
        Ok(())
    })
}

fn lastsave(call: &mut Call<'_, '_>) -> Outcome {
    let last = call.shared.counts.last_save_seconds.load(Ordering::Relaxed);
    call.reply.integer(i64::try_from(last).unwrap_or(i64::MAX));
    Ok(())
}

fn shutdown(call: &mut Call<'_, '_>) -> Outcome {
    for index in 1..call.arguments.len() {
        let is_known = ["save", "nosave", "now", "force"].iter().any(|word| call.is(index, word));
        if !is_known {
            return Err(SYNTAX.into());
        }
    }
    call.shared.end("a client sent SHUTDOWN");
    // As in Redis, the only answer is that the connection ends.
    call.session.next = Next::Close;
    Ok(())
}

fn wait(call: &mut Call<'_, '_>) -> Outcome {
    call.integer(1)?;
    if call.integer(2)? < 0 {
        return Err("ERR timeout is negative".into());
    }
    call.reply.integer(0);
    Ok(())
}

fn waitaof(call: &mut Call<'_, '_>) -> Outcome {
    let (local, replicas) = (call.integer(1)?, call.integer(2)?);
    if !(0..=1).contains(&local) || replicas < 0 {
        return Err(NOT_AN_INTEGER.into());
    }
    if local > 0 {
        call.shared.databases.db().sync()?;
    }
    call.reply.array(2);
    call.reply.integer(local);
    call.reply.integer(0);
    Ok(())
}

fn role(call: &mut Call<'_, '_>) -> Outcome {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

/// Parses a number of seconds; `None` above a day.
pub(super) fn seconds(text: &[u8]) -> Option<Duration> {
    let seconds: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| time.as_secs() <= 86_400)
}
