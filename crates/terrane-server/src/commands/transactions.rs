//! `MULTI`, `EXEC` and `WATCH`.
//!
//! `EXEC` locks the keys of all its commands, runs them in one transaction of the engine, and commits it: no
//! client sees a part of it, and it is one log write. The server notifies a client when one of its watched
//! keys changes (`store/locks.rs`).

use std::sync::atomic::Ordering;

use super::events;
use crate::call::catalogue::{
    ALL_KEYS, COMMITS, CommandInfo, FAST, Family, IMMEDIATE, NO_KEYS, NO_MULTI, READ, WRITE,
    command, keys,
};
use crate::call::{Call, CommandError, Outcome};
use crate::protocol::OwnedArguments;
use crate::state::session::{Next, Queue};
use crate::store::Held;

pub(super) const FAMILY: Family = Family {
    group: "transactions",
    commands: &[
        command("multi", 1, FAST | IMMEDIATE, NO_KEYS, "Begins a transaction.", multi),
        command("exec", 1, COMMITS | IMMEDIATE, NO_KEYS, "Runs the queued commands.", exec),
        command(
            "discard",
            1,
            FAST | IMMEDIATE,
            NO_KEYS,
            "Ends a transaction without running it.",
            discard,
        ),
        command(
            "watch",
            -2,
            READ | FAST | NO_MULTI | IMMEDIATE,
            keys(1, -1, 1),
            "Fails the next EXEC if a key changes.",
            watch,
        ),
        command("unwatch", 1, FAST, NO_KEYS, "Forgets the watched keys.", unwatch),
    ],
};

/// How many times a transaction is tried if it conflicts with writers that bypass the server.
const ATTEMPTS: usize = 100;

/// The most bytes that the watched keys of a client may have.
const MAX_WATCHED_BYTES: usize = 1 << 20;

fn multi(call: &mut Call<'_, '_>) -> Outcome {
    if call.session.queue.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    call.session.queue = Some(Box::default());
    call.session.client.queued.store(0, Ordering::Relaxed);
    call.reply.ok();
    Ok(())
}

fn discard(call: &mut Call<'_, '_>) -> Outcome {
    call.session.take_queue().ok_or("ERR DISCARD without MULTI")?;
    call.session.unwatch(&call.shared.locks);
    call.reply.ok();
    Ok(())
}

fn watch(call: &mut Call<'_, '_>) -> Outcome {
    if call.session.queue.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let db = call.db();
    for key in call.arguments.from(1) {
        let watch = call.session.watch.get_or_insert_default();
        let id = (db, Box::from(key));
        if watch.keys.contains_key(&id) {
            continue;
        }
        if watch.bytes + key.len() > MAX_WATCHED_BYTES {
            return Err("ERR the watched keys have more than 1 MiB".into());
        }
        let (store, flag) = (&*call.store, &watch.is_changed);
        let exists = call.shared.locks.watch(db, key, flag, || store.contains_locked(db, key));
        let Some(exists) = exists else {
            // Keys that are already watched stay watched.
            call.session.next = Next::Retry;
            return Ok(());
        };
        // Registered first, so that the watch ends even if the lookup failed.
        watch.bytes += key.len() + 64;
        watch.keys.insert(id, *exists.as_ref().unwrap_or(&false));
        exists?;
    }
    if db != call.shared.databases.slot(call.session.database) {
        // SWAPDB ran before the first watch, and so did not notify this client.
        call.session.next = Next::Retry;
        return Ok(());
    }
    call.reply.ok();
    Ok(())
}

fn unwatch(call: &mut Call<'_, '_>) -> Outcome {
    // EXEC holds the locks of the watched keys, and ends the watches itself.
    if !call.store.is_transaction() {
        call.session.unwatch(&call.shared.locks);
    }
    call.reply.ok();
    Ok(())
}

fn exec(call: &mut Call<'_, '_>) -> Outcome {
    let queue = call.session.queue.as_deref().ok_or("ERR EXEC without MULTI")?;
    let held = if queue.is_broken { Some(Held::default()) } else { locks(call, queue) };
    let Some(held) = held else {
        call.session.next = Next::Retry;
        return Ok(());
    };
    call.store.held = held;
    let queue = call.session.take_queue().unwrap_or_default();
    let outcome = exec_queue(call, &queue);
    call.store.held = Held::default();
    call.session.unwatch(&call.shared.locks);
    let published = std::mem::take(&mut call.session.published);
    if outcome.is_ok() {
        for (channel, message) in published {
            super::pubsub::send(call.shared, &channel, &message);
        }
    }
    outcome
}

fn exec_queue(call: &mut Call<'_, '_>, queue: &Queue) -> Outcome {
    if queue.is_broken {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    if is_watch_broken(call)? {
        call.reply.null_array();
        return Ok(());
    }
    for _ in 0..ATTEMPTS {
        call.store.begin();
        call.session.published.clear();
        call.reply.restart();
        call.reply.array(queue.commands.len());
        let database = call.session.database;
        let limit = call.shared.config.limits.output_bytes;
        for command in &queue.commands {
            run(call, command)?;
            if call.reply.len() > limit {
                call.store.roll_back();
                call.session.select(database);
                return Err("ERR the replies of the transaction are too long".into());
            }
        }
        match call.store.commit() {
            // Another program that has the same database open has changed a key that a command read.
            Err(error) if error.kind() == terrane::ErrorKind::Conflict => {
                call.session.select(database);
            }
            committed => return Ok(committed?),
        }
    }
    Err("ERR the transaction conflicts with other writes; try again".into())
}

/// Locks the keys of all commands, so that the data they read does not change before the commit. If a command
/// reads keys that it does not name, all keys are locked. Without a write there is no conflict; then one key
/// is locked, so that `SWAPDB`, which locks all keys, does not run between two commands. Fails if a key may
/// be locked for long; while the server ends, the event loop waits for the locks instead.
fn locks<'a>(call: &Call<'_, 'a>, queue: &Queue) -> Option<Held<'a>> {
    let shared = call.shared;
    let commands = queue.commands.iter().filter_map(|command| {
        let arguments = command.arguments();
        Some((shared.catalogue.find(arguments.at(0))?, arguments))
    });
    let commands: Vec<_> = commands.collect();
    let writes = commands.iter().any(|(info, _)| info.has(WRITE));
    let needs_all =
        |info: &CommandInfo| info.has(ALL_KEYS) || (info.has(READ) && info.keys == NO_KEYS);
    if writes && commands.iter().any(|(info, _)| needs_all(info)) {
        let held = shared.locks.try_hold_everything();
        return held.or_else(|| shared.is_ending().then(|| shared.locks.hold_everything()));
    }
    let watched = call.session.watch.iter().flat_map(|watch| watch.keys.keys());
    let watched = watched.map(|(_, key)| &**key);
    let used = commands.iter().filter(|_| writes);
    let used = used.flat_map(|(info, arguments)| info.keys.of(*arguments));
    let keys: Vec<&[u8]> = used.chain(watched).collect();
    if keys.is_empty() {
        let held = shared.locks.try_hold_any();
        return held.or_else(|| shared.is_ending().then(|| shared.locks.hold(b"")));
    }
    let held = shared.locks.try_hold_all(keys.iter().copied());
    held.or_else(|| shared.is_ending().then(|| shared.locks.hold_all(keys.into_iter())))
}

/// Returns whether a watched key was changed, or its value has expired.
fn is_watch_broken(call: &Call<'_, '_>) -> Outcome<bool> {
    let Some(watch) = &call.session.watch else { return Ok(false) };
    if watch.is_changed.load(Ordering::SeqCst) {
        return Ok(true);
    }
    for ((db, key), existed) in &watch.keys {
        if *existed && !call.store.contains(*db, key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Runs a queued command. An error is its reply; the transaction continues.
fn run(call: &mut Call<'_, '_>, command: &OwnedArguments) -> Outcome {
    let arguments = command.arguments();
    let info = call.shared.catalogue.find(arguments.at(0));
    let info = info.ok_or("ERR a queued command is unknown")?;
    let before = call.reply.position();
    call.session.slot = call.shared.databases.slot(call.session.database);
    // Checked again, because SELECT may have changed the database since.
    super::dispatch::note_read(call.store, info);
    let outcome = super::dispatch::check_user(call.shared, call.session, info).and_then(|()| {
        let mut inner = Call {
            arguments,
            reply: &mut *call.reply,
            session: &mut *call.session,
            store: &mut *call.store,
            shared: call.shared,
            counts: &mut *call.counts,
        };
        (info.run)(&mut inner)
    });
    if outcome.is_ok() {
        events::announce(call.shared, call.session, call.store, arguments);
    } else {
        call.store.take_noted();
    }
    if let Err(CommandError(text)) = outcome {
        call.reply.truncate(before);
        call.reply.error(&text);
    }
    Ok(())
}
