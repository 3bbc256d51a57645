//! A database that other processes use through its socket.
//!
//! | module | one line |
//! |---|---|
//! | `requests` | every request, and what it changes |
//! | `long` | progress, cancelling, and clients that vanish |
//! | `life` | which processes serve, and what remains of them |
//! | `hostile` | clients that send nonsense, too much, or read nothing |
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod hostile;
mod life;
mod long;
mod requests;
mod support;
