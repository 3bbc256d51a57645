//! Decides whether a write command may run now: the tree needs space, and the locks of its keys must be free.
//! Otherwise it is retried later, and its event loop serves others meanwhile.

use std::time::{Duration, Instant};

use terrane::DeferredDelays;

use crate::call::catalogue::{ALL_KEYS, COMMITS, CommandInfo, WRITE};
use crate::call::shared::Shared;
use crate::protocol::Arguments;
use crate::store::Held;

/// The time after which a command that could not run is tried again.
pub(crate) const RETRY: Duration = Duration::from_millis(5);

/// A write with a shorter delay runs at once, because event loops wait in whole milliseconds. Its
/// delay is carried over to later writes.
const SHORT_DELAY: Duration = Duration::from_millis(5);

/// Returns whether a command would make its event loop wait until the tree has space. False while
/// the server ends, because it then only answers requests that have already arrived.
#[inline]
pub(super) fn would_stall(
    shared: &Shared,
    slot: usize,
    info: &CommandInfo,
    delays: DeferredDelays,
) -> bool {
    if info.has(WRITE) {
        return is_stalled(shared, slot, delays, 1);
    }
    if !info.has(COMMITS) || shared.is_ending() {
        return false;
    }
    let stalled = shared.databases.stalled();
    stalled.inspect(|keyspace| keyspace.note_stalled(RETRY)).is_some() || is_delayed(delays)
}

/// Returns whether a write to a database would wait, given the event loop's `delays`. Reports the stall, and counts the
/// time until the next attempt of each waiting client, because their commands do not reach the engine.
#[inline]
pub(super) fn is_stalled(
    shared: &Shared,
    slot: usize,
    delays: DeferredDelays,
    clients: usize,
) -> bool {
    if shared.is_ending() {
        return false;
    }
    match shared.databases.keyspaces(slot).find(|keyspace| keyspace.is_stalled()) {
        Some(keyspace) => {
            keyspace.note_stalled(RETRY * u32::try_from(clients).unwrap_or(u32::MAX));
            true
        }
        None => is_delayed(delays),
    }
}

/// Returns whether this event loop's writes must wait, because the tree falls behind or they exceed its
/// maximum rate.
#[inline]
fn is_delayed(delays: DeferredDelays) -> bool {
    delays.until().is_some_and(|until| until > Instant::now() + SHORT_DELAY)
}

/// Locks the keys of a write command; fails if one of them may be locked for long. While the server ends, the
/// event loop waits for the locks instead.
#[inline]
pub(super) fn try_locks<'a>(
    shared: &'a Shared,
    info: &CommandInfo,
    arguments: Arguments<'_>,
) -> Option<Held<'a>> {
    if !info.has(WRITE) {
        return Some(Held::default());
    }
    let held = if info.has(ALL_KEYS) {
        shared.locks.try_hold_everything()
    } else if info.keys.first == 1 && info.keys.last == 1 {
        shared.locks.try_hold(arguments.at(1))
    } else {
        shared.locks.try_hold_all(info.keys.of(arguments))
    };
    held.or_else(|| shared.is_ending().then(|| locks(shared, info, arguments)))
}

/// Locks the keys of a write command.
pub(super) fn locks<'a>(
    shared: &'a Shared,
    info: &CommandInfo,
    arguments: Arguments<'_>,
) -> Held<'a> {
    match info.has(ALL_KEYS) {
        true => shared.locks.hold_everything(),
        false => shared.locks.hold_all(info.keys.of(arguments)),
    }
}
