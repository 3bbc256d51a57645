//! Advice: which design suits a workload, what the best designs gain and cost, which to avoid, and
//! what a change to the best one takes.
//!
//! The compaction paper ends with three questions (§1, §6): how to avoid the worst choices, how to
//! adapt when the workload changes, and how to find strategies that no system has. The simulator,
//! which runs the engine's own policy, plays every design of the catalogue and designs near the best
//! of them; [`terrane_policy::advice`] ranks the costs.
//!
//! | module | one line |
//! |---|---|
//! | [`question`] | the workload, from a mix or from the counters of a database |
//! | [`predict`] | what a design would cost |
//! | [`search`] | the catalogue, and designs near the best of it |
//! | [`decide`] | whether a change pays for itself |
//! | [`case`] | everything that a piece of advice depends on |
//! | [`report`] | the advice as data and as JSON |
//! | [`live`] | advice for an open database, from its counters |

pub mod case;
pub mod decide;
pub mod live;
pub mod predict;
pub mod question;
pub mod report;
pub mod search;
#[cfg(test)]
mod tests;

pub use case::{AdviceCase, filter_bits_of};
