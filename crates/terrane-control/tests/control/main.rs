//! A database that other processes use through its socket.
//!
//! | module | one line |
//! |---|---|
//! | `requests` | every request and its effect |
//! | `follow` | the tables of a database, followed through their changes |
//! | `long` | progress, cancelling, and clients that vanish |
//! | `life` | the processes that serve, and their remains |
//! | `hostile` | clients that send nonsense, send too much, or read nothing |
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod follow;
mod hostile;
mod life;
mod long;
mod requests;
mod support;
