//! Experiments on LSM trees: measuring databases, playing them in the simulator, comparing the
//! numbers with the papers' claims, and writing reports.
//!
//! The command `terrane` parses arguments and prints; every measurement it offers is a function
//! of this crate that takes plain option structs and returns values that serialise to JSON.
#![forbid(unsafe_code)]
