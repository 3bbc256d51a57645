//! Advice: ranks designs for a workload, explains what the best designs gain and cost and which
//! designs to avoid, and decides whether switching to the best design pays for itself.
//!
//! The compaction paper ends with three questions (§1, §6): how to avoid the worst choices, how to
//! adapt when the workload changes, and how to find strategies that no system has. The simulator,
//! which runs the engine's own policy, predicts the costs of every design of the catalogue and of
//! designs near the best of them; [`terrane_policy::advice`] ranks the costs.
//!
//! | module | one line |
//! |---|---|
//! | [`question`] | the workload, from a mix or from the counters of a database |
//! | [`predict`] | the costs of a design, from the simulator |
//! | [`search`] | the search over the catalogue and its neighbourhood |
//! | [`decide`] | whether a change of design pays for itself |
//! | [`case`] | all inputs of the advice |
//! | [`memtables`] | the kinds of memtables, ranked |
//! | [`report`] | the advice as data and as JSON |
//! | [`live`] | advice for an open database, from its counters |

pub mod case;
pub mod decide;
pub mod live;
pub mod memtables;
pub mod predict;
pub mod question;
pub mod report;
pub mod search;
#[cfg(test)]
mod tests;

pub use case::{AdviceCase, filter_bits_of};
