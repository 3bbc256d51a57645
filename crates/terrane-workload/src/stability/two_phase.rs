//! The two phases, one after the other: how much an engine can take, and how it takes nearly that.

use std::time::Duration;

use super::arrival::Arrival;
use super::clock::{Clock, SystemClock};
use super::phase::{Load, PhaseOptions, Watch, run_phase};
use super::query::Query;
use super::report::PhaseReport;
use crate::error::{OptionsError, RunError};
use crate::options::RunOptions;
use crate::store::Store;

/// How an engine is evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoPhaseOptions {
    /// How long the testing phase takes, warm-up included.
    pub testing: Duration,
    /// How long the running phase takes.
    pub running: Duration,
    /// What is left out of the testing phase, as a tree that was just loaded has few runs.
    pub warm_up: Duration,
    /// The share of the maximum that constant arrivals of the running phase use.
    pub utilization: f64,
    /// How writes arrive in the running phase.
    pub arrival: Arrival,
    /// Clients that write.
    pub writers: u32,
    /// Clients that read, in both phases: the maximum is what the engine can take beside them.
    pub readers: u32,
    /// What they read.
    pub query: Query,
    /// Keys that are there, sizes, distribution and seed.
    pub run: RunOptions,
}

impl Default for TwoPhaseOptions {
    /// The paper's shape, a sixth of the testing phase as warm-up and 95 %, in two minutes instead
    /// of four hours.
    fn default() -> Self {
        Self {
            testing: Duration::from_secs(60),
            running: Duration::from_secs(60),
            warm_up: Duration::from_secs(10),
            utilization: 0.95,
            arrival: Arrival::Constant,
            writers: 1,
            readers: 0,
            query: Query::Point,
            run: RunOptions::default(),
        }
    }
}

impl TwoPhaseOptions {
    /// The testing phase: a closed system.
    pub fn testing_phase(&self) -> PhaseOptions {
        self.phase(Load::Closed, self.testing, self.warm_up)
    }

    /// The running phase of an engine that can take `maximum` writes a second: an open system.
    pub fn running_phase(&self, maximum: f64) -> PhaseOptions {
        let load = Load::Open(self.arrival.schedule(maximum, self.utilization));
        self.phase(load, self.running, Duration::ZERO)
    }

    fn phase(&self, load: Load, duration: Duration, warm_up: Duration) -> PhaseOptions {
        PhaseOptions {
            load,
            duration,
            warm_up,
            writers: self.writers,
            readers: self.readers,
            query: self.query,
            run: self.run.clone(),
        }
    }

    /// Whether these can be run.
    ///
    /// # Errors
    /// What cannot, and why.
    pub fn check(&self) -> Result<(), OptionsError> {
        if !(self.utilization > 0.0 && self.utilization <= 2.0) {
            return Err(OptionsError::new("utilization", "a share above 0, at most 2"));
        }
        self.testing_phase().check()?;
        self.running_phase(1.0).check()
    }
}

/// What came out of both phases.
#[derive(Debug, Clone)]
pub struct TwoPhaseReport {
    /// The testing phase. Its rate is the maximum.
    pub testing: PhaseReport,
    /// The running phase.
    pub running: PhaseReport,
}

/// Something that can be evaluated: an engine that is made ready for either phase.
pub trait Subject {
    /// The engine, loaded, at rest and as it is to be tested.
    ///
    /// # Errors
    /// It cannot be made ready.
    fn for_testing(&mut self) -> Result<&dyn Store, RunError>;

    /// The engine, at rest and as it is to run.
    ///
    /// # Errors
    /// It cannot be made ready.
    fn for_running(&mut self) -> Result<&dyn Store, RunError>;
}

/// Runs both phases. `watch` is asked for someone to tell how far a phase is, by the phase's name.
///
/// # Errors
/// Options that make no sense, a maximum of nothing, or the first error of the engine.
pub fn evaluate<'w>(
    subject: &mut dyn Subject,
    options: &TwoPhaseOptions,
    watch: &dyn Fn(&'static str) -> Box<dyn Watch + 'w>,
) -> Result<TwoPhaseReport, RunError> {
    options.check()?;
    let clock = SystemClock::new();
    let clock: &dyn Clock = &clock;
    let store = subject.for_testing()?;
    let testing = run_phase(store, &options.testing_phase(), clock, &*watch("testing"))?;
    let maximum = testing.per_second();
    if maximum <= 0.0 {
        let reason = "no write ended in the testing phase; it has to be longer";
        return Err(OptionsError::new("testing", reason).into());
    }
    let store = subject.for_running()?;
    let running = run_phase(store, &options.running_phase(maximum), clock, &*watch("running"))?;
    Ok(TwoPhaseReport { testing, running })
}
