//! The server, through real sockets.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod commands;
mod durability;
mod hashes;
mod hostile;
mod life;
mod support;
mod transactions;
