//! A model of a database, random operations that compare the two, and test storages.
//!
//! The tests of the engine are a separate package, because they would otherwise be optimised with the engine.
//! Optimising them would take most of a test build, although test runs spend their time in the engine.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

pub mod config;
pub mod filtered;
mod forward_storage;
pub mod model;
pub mod openings;
pub mod outside;
pub mod script;
pub mod threads;
