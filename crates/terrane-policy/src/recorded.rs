//! Decisions of other systems, recorded, and compared with those of a design.
//!
//! A [`Trace`] holds what a real system did: a tree to start from, its flushes, and its compactions
//! with their inputs and outputs. [`replay`] rebuilds the tree before each decision, asks
//! [`pick`](crate::pick()) what a design would do there, and then carries out what the *system* did,
//! so that differences do not accumulate. Each [`Decision`] is judged by rule: a [`Difference`] is
//! computed from the two choices and the tree, and never stated by hand.
//!
//! `compare/` records traces; `docs/recorded.md` shows the result for all of them.

mod difference;
mod replay;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod tree;

pub use difference::Difference;
pub use replay::{Decision, ReplayError, replay};
pub use trace::{Event, SystemCompaction, Trace};
