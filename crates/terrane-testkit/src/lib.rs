//! Utilities for the tests of all crates: text-driven cases, seeded randomness, limits on waiting,
//! stopping threads, counts for soaks, searching for bytes, the layers of a crate.
#![forbid(unsafe_code)]

mod counts;
pub mod datadriven;
mod hang_guard;
pub mod layers;
mod rng;
mod search;
pub mod source;
mod stop_on_drop;

pub use counts::{parse_counts, print_counts};
pub use hang_guard::{HANG_LIMIT, HangGuard, run_guarded, wait_until};
pub use rng::{Rng, seed_from_env};
pub use search::contains;
pub use stop_on_drop::StopOnDrop;
