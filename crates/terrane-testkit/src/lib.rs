//! What the tests of all crates share: text-driven cases and seeded randomness.
#![forbid(unsafe_code)]

pub mod datadriven;
mod rng;

pub use rng::{Rng, seed_from_env};
