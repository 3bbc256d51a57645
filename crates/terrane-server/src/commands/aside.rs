//! Runs long commands in their own threads, so that the event loop serves its other connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use terrane::Maintenance;

use super::admission::locks;
use super::dispatch::{check_user, note_end};
use super::events;
use crate::call::shared::Shared;
use crate::call::{Call, CommandError, Handler, LookupCounts, Outcome};
use crate::protocol::{OwnedArguments, Protocol, Reply};
use crate::state::helpers::{AtEnd, Pending};
use crate::state::session::{Next, ReplyMode, Session};
use crate::store::{Held, Store};

/// A command that visits more keys or fields than this takes more than a few milliseconds.
pub(super) const MANY: u64 = 10_000;

/// A command that copies more fields than this takes more than a few milliseconds.
pub(super) const COPIED: u64 = 2_000;

/// A command that visits or writes every byte of a longer value takes more than a few milliseconds.
pub(super) const LONG: usize = 4 << 20;

/// Runs maintenance in a thread of its own. The reply is `OK`, or its error.
pub(super) fn maintain(
    call: &mut Call<'_, '_>,
    work: impl FnOnce(&Maintenance) -> terrane::Result<()> + Send + 'static,
) -> Outcome {
    answer_aside(call, move |maintenance, reply| {
        work(maintenance)?;
        reply.ok();
        Ok(())
    })
}

/// Runs `work`, which writes the reply, in a maintenance thread.
pub(super) fn answer_aside(
    call: &mut Call<'_, '_>,
    work: impl FnOnce(&Maintenance, &mut Reply) -> Outcome + Send + 'static,
) -> Outcome {
    let (protocol, is_wanted) = (call.session.protocol, call.session.replies == ReplyMode::On);
    let waker = call.shared.waker(call.session.client.worker);
    let waker = waker.ok_or("ERR the server is not running")?;
    let db = call.shared.databases.db();
    let pending = call.shared.helpers.start(db, waker, AtEnd::IsCancelled, move |maintenance| {
        let mut reply = Reply::new(Vec::new(), protocol);
        if let Err(CommandError(text)) = work(maintenance, &mut reply) {
            reply.restart();
            reply.error(&text);
        }
        if is_wanted { reply.into_buffer() } else { Vec::new() }
    });
    let busy = "ERR too many maintenance commands are running; try again when one has ended";
    wait(call, pending.ok_or(busy)?);
    Ok(())
}

fn wait(call: &mut Call<'_, '_>, pending: Pending) {
    call.session.pending = Some(pending);
    call.session.next = Next::Wait;
}

/// Returns whether a command may move to its own thread: not if it already runs in one, and not in a
/// transaction.
pub(super) fn is_possible(call: &Call<'_, '_>) -> bool {
    call.session.aside.is_none() && !call.store.is_transaction()
}

/// Returns whether a command visits or writes a value so long that it needs its own thread.
pub(super) fn is_long(call: &Call<'_, '_>, len: usize) -> bool {
    len > LONG && is_possible(call)
}

/// Returns a copy of the value of a key, and its expiry time. A missing key has an empty value. If
/// the value is long, a thread restarts the command, and the caller has nothing left to do.
pub(super) fn owned_value(
    call: &mut Call<'_, '_>,
    key: &[u8],
    run: Handler,
) -> Outcome<Option<(Vec<u8>, Option<u64>)>> {
    match call.store.get_with_expiry(call.db(), key)? {
        None => Ok(Some((Vec::new(), None))),
        Some((value, _)) if is_long(call, value.len()) => {
            write(call, run)?;
            Ok(None)
        }
        Some((value, expires_at)) => Ok(Some((value.to_vec(), expires_at))),
    }
}

/// Restarts a read-only command, for which [`is_possible`] holds, in its own thread. The command waits
/// while too many such threads are running.
pub(super) fn read(call: &mut Call<'_, '_>, run: Handler) -> Outcome {
    start(call, move |shared, session, arguments| {
        let unsynced = shared.durable.unsynced(session.client.worker);
        let mut store = Store::new(&shared.databases, &shared.locks, unsynced);
        reply_of(shared, session, arguments, run, &mut store)
    })
}

/// Restarts a command in its own thread, as [`read`] does; the command must not have written anything
/// yet. The thread holds the locks of the keys until the command ends. Event loops do not wait for
/// these locks: commands that need them are retried later.
pub(super) fn write(call: &mut Call<'_, '_>, run: Handler) -> Outcome {
    let info = call.shared.catalogue.find(call.argument(0)).ok_or("ERR unknown command")?;
    start(call, move |shared, mut session, arguments| {
        let _long = shared.locks.hold_long();
        let unsynced = shared.durable.unsynced_of_thread();
        let mut store = Store::new(&shared.databases, &shared.locks, unsynced);
        store.held = locks(shared, info, arguments.arguments());
        events::begin(shared, &mut store);
        let protocol = session.protocol;
        // SWAPDB may have run before this thread locked the keys.
        session.slot = shared.databases.slot(session.database);
        let reply = match check_user(shared, &session, info) {
            Ok(()) => reply_of(shared, session, arguments, run, &mut store),
            Err(CommandError(text)) => error_reply(protocol, &text),
        };
        store.held = Held::default();
        let synced = store.sync_thread();
        synced.map_or_else(|error| error_reply(protocol, &CommandError::from(error).0), |()| reply)
    })
}

fn error_reply(protocol: Protocol, text: &str) -> Vec<u8> {
    let mut reply = Reply::new(Vec::new(), protocol);
    reply.error(text);
    reply.into_buffer()
}

/// Runs `work` with a copy of the arguments in a thread that writes the reply.
fn start(
    call: &mut Call<'_, '_>,
    work: impl FnOnce(&Arc<Shared>, Session, &OwnedArguments) -> Vec<u8> + Send + 'static,
) -> Outcome {
    let is_wanted = call.session.replies == ReplyMode::On;
    let waker = call.shared.waker(call.session.client.worker);
    let waker = waker.ok_or("ERR the server is not running")?;
    let (shared, arguments) = (Arc::clone(call.shared), call.arguments.copied());
    let mut session = call.session.aside();
    let db = call.shared.databases.db();
    let pending = call.shared.long.start(db, waker, AtEnd::GoesOn, move |maintenance| {
        session.aside = Some(maintenance.clone());
        let reply = work(&shared, session, &arguments);
        if is_wanted { reply } else { Vec::new() }
    });
    match pending {
        Some(pending) => wait(call, pending),
        None => call.session.next = Next::Retry,
    }
    Ok(())
}

/// Runs a command in this thread, and returns its reply.
fn reply_of<'a>(
    shared: &'a Arc<Shared>,
    mut session: Session,
    arguments: &OwnedArguments,
    run: Handler,
    store: &mut Store<'a>,
) -> Vec<u8> {
    let began = Instant::now();
    let mut reply = Reply::new(Vec::new(), session.protocol);
    let (arguments, mut lookups) = (arguments.arguments(), LookupCounts::default());
    let outcome = run(&mut Call {
        arguments,
        reply: &mut reply,
        session: &mut session,
        store,
        shared,
        counts: &mut lookups,
    });
    let counts = &shared.counts;
    if outcome.is_ok() {
        events::announce(shared, &mut session, store, arguments);
    }
    if let Err(CommandError(text)) = outcome {
        reply.restart();
        reply.error(&text);
        counts.errors.fetch_add(1, Ordering::Relaxed);
    }
    counts.hits.fetch_add(lookups.hits, Ordering::Relaxed);
    counts.misses.fetch_add(lookups.misses, Ordering::Relaxed);
    note_end(shared, &session, &arguments, began.elapsed());
    reply.into_buffer()
}
