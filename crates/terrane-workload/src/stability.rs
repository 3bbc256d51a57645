//! The two-phase evaluation of write stalls (performance-stability §3.2): how many writes a second
//! an engine can take, and whether it takes nearly as many with a small latency.
//!
//! Called by `terrane stability` and by the comparison with other engines; generic over [`Store`].
//! In the *testing* phase, a closed system, clients write as fast as they can, which gives the
//! maximum. In the *running* phase, an open system, writes arrive by a [`Schedule`] at a share of
//! that maximum, whether or not the engine is done with those before them.
//!
//! | figure | from | to |
//! |---|---|---|
//! | write latency | the moment a write arrives, by the schedule | its end |
//! | processing latency | the moment a client gives it to the engine | its end |
//! | the driver's error | the moment an idle client should begin | when it does |
//!
//! # Invariants
//!
//! 1. Arrivals are taken in order, each by one client, and none is left out: one that the end of
//!    the phase finds waiting counts with the time that it has waited.
//! 2. A write latency is never shorter than the processing latency of the same write.
//! 3. Memory is bounded by the length of the phase, whatever the rate and however far the engine
//!    falls behind: histograms, ticks, and one index for the queue.
//! 4. All time comes from the [`Clock`].
//!
//! [`Store`]: crate::Store

mod arrival;
mod client;
mod clock;
mod phase;
mod query;
mod recorder;
mod report;
mod schedule;
mod timeline;
mod two_phase;
mod verdict;

#[cfg(test)]
mod tests;

pub use arrival::{Arrival, Rate};
pub use clock::{Clock, SystemClock};
pub use phase::{Load, PhaseOptions, Unwatched, Watch, run_phase};
pub use query::Query;
pub use report::{PERCENTILES, PhaseReport, ReaderReport, Sample, Stall};
pub use schedule::Schedule;
pub use timeline::{Tick, Timeline, Window};
pub use two_phase::{Subject, TwoPhaseOptions, TwoPhaseReport, evaluate};
pub use verdict::{Criteria, Criterion, Finding, Verdict};
