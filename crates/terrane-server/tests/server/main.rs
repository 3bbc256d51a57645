//! The server, through real sockets.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod aside;
mod commands;
mod durability;
mod engine;
mod groups;
mod hashes;
mod hostile;
mod keyspace_events;
mod kill;
mod life;
mod long_replies;
mod metrics;
mod model;
mod pipelines;
mod pubsub;
mod support;
mod swap;
mod tls;
mod transactions;
