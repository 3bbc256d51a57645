//! Stability of writes: the claims of *On Performance Stability in LSM-based Storage Systems*,
//! checked on this engine with files, and at the paper's scale in the simulator.
//!
//! Both experiments run the same plan: testing phases with writers in a closed loop, then running
//! phases in which writes arrive at a share of the rates of the testing phases. They differ in
//! their sizes and in the system that runs a phase.
//!
//! | module | one line |
//! |---|---|
//! | [`plan`] | phases, and how their arrivals depend on other phases |
//! | [`scale`] | the paper's designs and numbers, at a scale |
//! | [`figures`] | the phases of the paper's figures, and their tables |
//! | [`size_tiered`] | size-tiered merges, of the extended version |
//! | [`phase`] | the measurements of a phase, their metrics and their row in a table |
//! | [`measured`] | databases with an I/O budget, in parallel |
//! | [`simulated`] | the simulator, at the paper's sizes |

mod figures;
mod measured;
mod phase;
mod plan;
mod scale;
mod simulated;
mod size_tiered;

pub(super) use measured::EXPERIMENT as MEASURED;
pub(super) use simulated::EXPERIMENT as SIMULATED;
