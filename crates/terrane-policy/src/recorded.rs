//! Recorded decisions of other systems, compared with the decisions of a design.
//!
//! A [`Trace`] records a real system's actions: the initial tree, its flushes, and its compactions
//! with their inputs and outputs. [`replay`] rebuilds the tree before each decision, asks
//! [`pick`](crate::pick()) what a design would do, and then applies the *system's* action, so that
//! differences do not accumulate. Each [`Decision`] is judged by rule: a [`Difference`] is computed
//! from the two choices and the tree, never entered by hand.
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
