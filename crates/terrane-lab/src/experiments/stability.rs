//! Stability of writes: what *On Performance Stability in LSM-based Storage Systems* says, measured on
//! this engine with files, and at the paper's scale in the simulator.
//!
//! Both experiments play the same plan: testing phases, in which writers go as fast as the tree takes
//! writes, then running phases, in which writes arrive at a share of the rates that the testing phases
//! gave. They differ in sizes and in what plays a phase.
//!
//! | module | one line |
//! |---|---|
//! | [`plan`] | phases, and how their arrivals depend on other phases |
//! | [`scale`] | the paper's designs and numbers, at a scale |
//! | [`figures`] | the phases of the paper's figures, and their tables |
//! | [`phase`] | what a phase measures, its metrics and its row in a table |
//! | [`measured`] | databases with an I/O budget, side by side |
//! | [`simulated`] | the simulator, at the paper's sizes |

mod figures;
mod measured;
mod phase;
mod plan;
mod scale;
mod simulated;

pub(super) use measured::EXPERIMENT as MEASURED;
pub(super) use simulated::EXPERIMENT as SIMULATED;
