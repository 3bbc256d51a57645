//! A model of a database, and random operations that compare both.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(unreachable_pub, reason = "a test crate has no users")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

pub mod config;
pub mod filtered;
pub mod model;
pub mod openings;
pub mod outside;
pub mod script;
pub mod threads;
