//! The commands, a family of them per file. `dispatch` finds and runs the command of a request.
//!
//! A new command is a function `fn(&mut Call) -> Outcome` and a line in the list of its family: name,
//! arity, flags, keys, summary. Everything else follows from the line: the check of arguments, the locks of
//! keys, permissions, `MULTI`, and the answers of `COMMAND`. A new family is a file and a line in
//! [`FAMILIES`].

mod admission;
mod aside;
mod bits;
mod client;
mod connection;
mod diagnostics;
mod dispatch;
mod engine;
mod events;
mod expiry;
mod groups;
mod hashes;
mod info;
mod integers;
mod introspection;
mod keys;
mod pubsub;
mod scan;
mod server;
mod settings;
mod strings;
mod transactions;

use crate::call::catalogue::Family;

pub(crate) use admission::RETRY;
pub(crate) use dispatch::{Work, run_request};
pub(crate) use events::announce_expired;
pub(crate) use groups::{Group, GroupKind, Joining, Ran, Request, note_slow_member};

/// All families of commands.
pub(crate) const FAMILIES: &[Family] = &[
    bits::FAMILY,
    client::FAMILY,
    connection::FAMILY,
    diagnostics::FAMILY,
    engine::FAMILY,
    expiry::FAMILY,
    hashes::FAMILY,
    info::FAMILY,
    integers::FAMILY,
    introspection::FAMILY,
    keys::FAMILY,
    pubsub::FAMILY,
    scan::FAMILY,
    server::FAMILY,
    settings::FAMILY,
    strings::FAMILY,
    transactions::FAMILY,
];
