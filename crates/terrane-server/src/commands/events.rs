//! Announces changes of keys on channels, as Redis does: `__keyspace@0__:KEY` carries the event as its
//! message, and `__keyevent@0__:EVENT` the key.
//!
//! The store records what a command does to keys, and the name of the command determines Redis's name for it.

use std::sync::atomic::Ordering;

use super::pubsub::send;
use crate::base::keyspace_events::{Class, KeyspaceEvents};
use crate::call::shared::Shared;
use crate::protocol::Arguments;
use crate::state::session::{Published, Session};
use crate::store::{Change, Store};

/// Up to two events.
type Named = (Option<(Class, &'static str)>, Option<(Class, &'static str)>);

/// Returns whether changes are announced.
#[inline]
pub(super) fn are_wanted(shared: &Shared) -> bool {
    shared.settings.keyspace_events.load(Ordering::Relaxed) != 0
}

/// Records the changes of a command if they are announced.
#[inline]
pub(super) fn begin(shared: &Shared, store: &mut Store<'_>) {
    if are_wanted(shared) {
        store.note_changes();
    }
}

/// Announces the changes of a command that succeeded. The commit of a transaction announces the changes of
/// its commands.
#[inline]
pub(super) fn announce(
    shared: &Shared,
    session: &mut Session,
    store: &mut Store<'_>,
    arguments: Arguments<'_>,
) {
    if store.is_noting() {
        announce_noted(shared, session, store, arguments);
    }
}

#[cold]
fn announce_noted(
    shared: &Shared,
    session: &mut Session,
    store: &mut Store<'_>,
    arguments: Arguments<'_>,
) {
    let name = arguments.at(0).to_ascii_lowercase();
    let wanted = KeyspaceEvents::of(shared.settings.keyspace_events.load(Ordering::Relaxed));
    for (slot, key, change) in store.take_noted() {
        let (first, second) = named(&name, arguments, change);
        for (class, event) in first.into_iter().chain(second) {
            for message in messages(shared, wanted, (class, event), (slot, &key)) {
                if store.is_transaction() {
                    session.published.push(message);
                } else {
                    send(shared, &message.0, &message.1);
                }
            }
        }
    }
}

/// Announces that the server has noticed the expiry of a value.
pub(crate) fn announce_expired(shared: &Shared, slot: usize, key: &[u8]) {
    let wanted = KeyspaceEvents::of(shared.settings.keyspace_events.load(Ordering::Relaxed));
    for (channel, message) in messages(shared, wanted, (Class::Expired, "expired"), (slot, key)) {
        send(shared, &channel, &message);
    }
}

/// Returns the enabled messages of an event, with their channels.
fn messages(
    shared: &Shared,
    wanted: KeyspaceEvents,
    (class, event): (Class, &str),
    (slot, key): (usize, &[u8]),
) -> impl Iterator<Item = Published> + use<> {
    let number = shared.databases.number(slot).filter(|_| wanted.has_class(class));
    let of_key = number.filter(|_| wanted.has_key_channels()).map(|number| {
        let channel = [format!("__keyspace@{number}__:").as_bytes(), key].concat();
        (channel.into(), event.as_bytes().into())
    });
    let of_event = number.filter(|_| wanted.has_event_channels()).map(|number| {
        let channel = format!("__keyevent@{number}__:{event}").into_bytes();
        (channel.into(), key.into())
    });
    of_key.into_iter().chain(of_event)
}

/// Returns Redis's names for a command's change of a key.
fn named(command: &[u8], arguments: Arguments<'_>, change: Change) -> Named {
    let one = |class, event| (Some((class, event)), None);
    match (change, command) {
        (Change::Removed, _) => one(Class::Generic, "del"),
        (
            Change::Set { has_expiry },
            b"expire" | b"pexpire" | b"expireat" | b"pexpireat" | b"getex",
        )
        | (Change::Set { has_expiry }, b"persist") => {
            one(Class::Generic, if has_expiry { "expire" } else { "persist" })
        }
        (Change::Set { .. }, b"append") => one(Class::String, "append"),
        (Change::Set { .. }, b"setrange") => one(Class::String, "setrange"),
        (Change::Set { .. }, b"incr" | b"decr" | b"incrby" | b"decrby") => {
            one(Class::String, "incrby")
        }
        (Change::Set { .. }, b"incrbyfloat") => one(Class::String, "incrbyfloat"),
        (Change::Set { .. }, b"setbit" | b"bitfield") => one(Class::String, "setbit"),
        (Change::Set { has_expiry }, b"set" | b"setex" | b"psetex") => {
            let keeps = arguments.from(3).any(|option| option.eq_ignore_ascii_case(b"keepttl"));
            let expires = has_expiry && !(command == b"set" && keeps);
            (Some((Class::String, "set")), expires.then_some((Class::Generic, "expire")))
        }
        (Change::Set { .. }, _) => one(Class::String, "set"),
        (Change::FieldsSet, b"hincrby") => one(Class::Hash, "hincrby"),
        (Change::FieldsSet, b"hincrbyfloat") => one(Class::Hash, "hincrbyfloat"),
        (Change::FieldsSet, _) => one(Class::Hash, "hset"),
        (Change::FieldsRemoved, _) => one(Class::Hash, "hdel"),
        (Change::Placed, b"copy") => one(Class::Generic, "copy_to"),
        (Change::Placed, b"move") => one(Class::Generic, "move_to"),
        (Change::Placed, _) => one(Class::Generic, "rename_to"),
        (Change::Taken, b"move") => one(Class::Generic, "move_from"),
        (Change::Taken, _) => one(Class::Generic, "rename_from"),
    }
}
