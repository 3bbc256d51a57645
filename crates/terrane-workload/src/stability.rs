//! The two-phase evaluation of write stalls (performance-stability §3.2): the maximum write rate of an
//! engine, and its latencies at nearly that rate.
//!
//! Used by `terrane stability` and by the comparison with other engines; generic over [`Store`]. In
//! the *testing* phase, a closed system, clients write as fast as they can, which measures the
//! maximum. In the *running* phase, an open system, writes arrive by a [`Schedule`] at a fraction of
//! that maximum, independently of the completion of earlier writes.
//!
//! | measurement | from | to |
//! |---|---|---|
//! | write latency | the scheduled arrival of a write | its end |
//! | processing latency | the call of the engine | its end |
//! | driver error | the scheduled start of an idle client | its actual start |
//!
//! Writes are updates of loaded records, or the operations of a [`MixedLoad`], whose lookups and
//! scans wait in the same queue and are counted like writes.
//!
//! # Invariants
//!
//! 1. Each arrival is taken by one client, in order of arrival, and every arrival counts: one that
//!    is still waiting at the end of the phase counts with its waiting time.
//! 2. A write latency is never shorter than the processing latency of the same write.
//! 3. Memory is bounded by the length of the phase, for any rate and any backlog: histograms, ticks,
//!    and one index for the queue.
//! 4. All time comes from the [`Clock`].
//!
//! [`Store`]: crate::Store

mod arrival;
mod client;
mod clock;
mod mixed_load;
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
pub use mixed_load::{MixedLoad, check_mix};
pub use phase::{Load, PhaseOptions, Unwatched, Watch, run_phase, run_phase_of};
pub use query::Query;
pub use report::{KindLatency, PERCENTILES, PhaseReport, ReaderReport, Sample, Stall};
pub use schedule::Schedule;
pub use timeline::{Tick, Timeline, Window};
pub use two_phase::{Subject, TwoPhaseOptions, TwoPhaseReport, evaluate};
pub use verdict::{Criteria, Criterion, Finding, Verdict};
