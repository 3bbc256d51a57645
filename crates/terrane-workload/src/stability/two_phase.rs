//! The two phases in sequence: the maximum rate of an engine, then its latencies at nearly that rate.

use std::time::Duration;

use super::arrival::Arrival;
use super::clock::{Clock, SystemClock};
use super::mixed_load::{MixedLoad, check_mix};
use super::phase::{Load, PhaseOptions, Watch, run_phase_of};
use super::query::Query;
use super::report::PhaseReport;
use crate::error::{OptionsError, RunError};
use crate::operation_mix::OperationMix;
use crate::options::RunOptions;
use crate::store::Store;

/// The parameters of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoPhaseOptions {
    /// The duration of the testing phase, warm-up included.
    pub testing: Duration,
    /// The duration of the running phase.
    pub running: Duration,
    /// The length of the warm-up of the testing phase. It is not measured, because a freshly loaded
    /// tree has few runs.
    pub warm_up: Duration,
    /// The rate of constant arrivals in the running phase, as a fraction of the maximum.
    pub utilization: f64,
    /// The arrivals of the running phase.
    pub arrival: Arrival,
    /// The operations of the writers; `None` for updates of loaded records.
    pub mix: Option<OperationMix>,
    /// The number of writers.
    pub writers: u32,
    /// The number of readers in both phases; the maximum is measured while they read.
    pub readers: u32,
    /// The query of the readers.
    pub query: Query,
    /// The loaded keys, sizes, distribution and seed.
    pub run: RunOptions,
}

impl Default for TwoPhaseOptions {
    /// Returns the paper's proportions (a sixth of the testing phase as warm-up, and a utilization
    /// of 95 %) scaled from four hours to two minutes.
    fn default() -> Self {
        Self {
            testing: Duration::from_secs(60),
            running: Duration::from_secs(60),
            warm_up: Duration::from_secs(10),
            utilization: 0.95,
            arrival: Arrival::Constant,
            mix: None,
            writers: 1,
            readers: 0,
            query: Query::Point,
            run: RunOptions::default(),
        }
    }
}

impl TwoPhaseOptions {
    /// Returns the testing phase, a closed system.
    pub fn testing_phase(&self) -> PhaseOptions {
        self.phase(Load::Closed, self.testing, self.warm_up)
    }

    /// Returns the running phase, an open system, for a maximum of `maximum` writes per second.
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

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn check(&self) -> Result<(), OptionsError> {
        if !(self.utilization > 0.0 && self.utilization <= 2.0) {
            return Err(OptionsError::new("utilization", "a share above 0, at most 2"));
        }
        if let Some(mix) = &self.mix {
            check_mix(mix, self.writers, self.readers)?;
        }
        self.testing_phase().check()?;
        self.running_phase(1.0).check()
    }
}

/// The results of both phases.
#[derive(Debug, Clone)]
pub struct TwoPhaseReport {
    /// The testing phase, whose rate is the maximum.
    pub testing: PhaseReport,
    /// The running phase.
    pub running: PhaseReport,
}

/// An engine that can be prepared for either phase.
pub trait Subject {
    /// Returns the engine loaded, settled, and configured for the testing phase.
    ///
    /// # Errors
    /// The preparation failed.
    fn for_testing(&mut self) -> Result<&dyn Store, RunError>;

    /// Returns the engine settled and configured for the running phase.
    ///
    /// # Errors
    /// The preparation failed.
    fn for_running(&mut self) -> Result<&dyn Store, RunError>;
}

/// Runs both phases. `watch` returns the receiver of the progress of a phase, by the phase's name.
///
/// # Errors
/// Invalid options, a maximum rate of zero, or the first error of the engine.
pub fn evaluate<'w>(
    subject: &mut dyn Subject,
    options: &TwoPhaseOptions,
    watch: &dyn Fn(&'static str) -> Box<dyn Watch + 'w>,
) -> Result<TwoPhaseReport, RunError> {
    options.check()?;
    let clock = SystemClock::new();
    let clock: &dyn Clock = &clock;
    let new_load = |mix| MixedLoad::new(mix, options.writers, &options.run);
    let mix = options.mix.as_ref().map(new_load).transpose()?;
    let mix = mix.as_ref();
    let store = subject.for_testing()?;
    let testing = options.testing_phase();
    let testing = run_phase_of(mix, store, &testing, clock, &*watch("testing"))?;
    let maximum = testing.per_second();
    if maximum <= 0.0 {
        let reason = "no write completed in the testing phase; make it longer";
        return Err(OptionsError::new("testing", reason).into());
    }
    let store = subject.for_running()?;
    let running = options.running_phase(maximum);
    let running = run_phase_of(mix, store, &running, clock, &*watch("running"))?;
    Ok(TwoPhaseReport { testing, running })
}
