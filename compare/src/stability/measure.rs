//! The child process: runs one engine through all phases.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::sync;
use terrane_workload::stability::{
    Clock, Criteria, Finding, Load, PhaseOptions, PhaseReport, Query, Schedule, SystemClock,
    Unwatched, Verdict, run_phase,
};
use terrane_workload::{Latency, RunOptions, Silent, Store, ValueSize, Workload, run};

use super::job::{Evaluation, Job, Micros, Phase};
use crate::engines;

/// Carries out `job`.
pub(super) fn evaluate(job: &Job) -> Result<Evaluation> {
    let engine = engines::by_name(&job.engine)
        .ok_or_else(|| anyhow!("no engine '{}' in this build", job.engine))?;
    let store = (engine.open)(&job.dir, &job.settings).context(engine.name)?;
    let options = RunOptions {
        num: job.records,
        value_size: ValueSize::fixed(job.value_bytes),
        seed: job.seed,
        ..RunOptions::default()
    };
    run(&*store, Workload::FillRandom, &options, &Silent)?;
    let phases = Phases { store: &*store, clock: &SystemClock::new(), job, options };
    store.set_testing(true)?;
    let testing = phases.run(Load::Closed)?;
    store.set_testing(false)?;
    let maximum = testing.per_second();
    if maximum <= 0.0 {
        bail!("no write ended in the testing phase; it has to be longer");
    }
    let at = |rate: f64| -> Result<Phase> {
        Ok(figures(&phases.run(Load::Open(Schedule::constant(rate)))?))
    };
    let shares = job.utilizations.iter();
    let runs = shares.map(|share| at(share * maximum)).collect::<Result<Vec<_>>>()?;
    let at_reference = job.reference_per_second.map(at).transpose()?;
    let testing = figures(&testing);
    Ok(Evaluation { maximum_per_second: maximum, testing, runs, at_reference })
}

/// State shared by all phases.
struct Phases<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Clock,
    job: &'a Job,
    options: RunOptions,
}

impl Phases<'_> {
    /// Settles the engine, and runs a phase on it.
    fn run(&self, load: Load) -> Result<PhaseReport> {
        self.store.settle()?;
        sync();
        let (seconds, warm_up) = match load {
            Load::Closed => (self.job.testing_seconds, self.job.warm_up_seconds),
            Load::Open(_) => (self.job.running_seconds, 0.0),
        };
        let options = PhaseOptions {
            load,
            duration: Duration::from_secs_f64(seconds),
            warm_up: Duration::from_secs_f64(warm_up),
            writers: 1,
            readers: 0,
            query: Query::Point,
            run: self.options.clone(),
        };
        Ok(run_phase(self.store, &options, self.clock, &Unwatched)?)
    }
}

fn figures(report: &PhaseReport) -> Phase {
    let verdict = Verdict::of(report, &Criteria::default());
    let missed = verdict.findings.iter().filter(|finding| !finding.is_met());
    Phase {
        offered_per_second: report.offered_per_second(),
        done_per_second: report.per_second(),
        write: micros(&report.write),
        processing: micros(&report.processing),
        driver_late: micros(&report.late),
        slowest_second_share: report.slowest_second_share(),
        longest_stall_seconds: report.longest_stall_seconds(),
        unfinished: report.unfinished,
        is_sustainable: verdict.is_sustainable(),
        not_met: missed.map(Finding::to_string).collect(),
        runs_max: report.samples.iter().filter_map(|sample| sample.glance.components).max(),
    }
}

fn micros(latency: &Latency) -> Micros {
    let at = |percent| latency.percentile_micros(percent);
    Micros {
        p50: at(50.0),
        p90: at(90.0),
        p95: at(95.0),
        p99: at(99.0),
        p99_9: at(99.9),
        p99_99: at(99.99),
        max: latency.max_micros(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Compression, Durability, Settings};

    #[test]
    fn every_engine_goes_through_all_phases() {
        for engine in engines::ALL {
            let dir = tempfile::tempdir().unwrap();
            let settings = Settings {
                memtable_bytes: 1 << 20,
                cache_bytes: 8 << 20,
                block_bytes: 4096,
                filter_bits_per_key: 10,
                background_threads: 2,
                compression: Compression::None,
                durability: Durability::Process,
                budget_bytes_per_second: Some(20 << 20),
                memory_limit_bytes: None,
                is_direct: false,
            };
            let job = Job {
                engine: engine.name.into(),
                dir: dir.path().into(),
                records: 500,
                value_bytes: 100,
                testing_seconds: 0.6,
                warm_up_seconds: 0.1,
                running_seconds: 0.3,
                utilizations: vec![0.2, 0.5],
                reference_per_second: Some(1000.0),
                seed: 1,
                settings,
            };
            let evaluation = evaluate(&job).unwrap();
            assert_eq!(evaluation.runs.len(), 2, "{}", engine.name);
            let expected = evaluation.maximum_per_second * 0.5;
            let offered = evaluation.runs[1].offered_per_second;
            // To an arrival, of which a busy machine may leave few.
            assert!((offered - expected).abs() * 0.3 <= 1.0, "{}: {offered}", engine.name);
            let at_reference = evaluation.at_reference.unwrap();
            assert!((at_reference.offered_per_second - 1000.0).abs() < 5.0);
            let Phase { write, processing, .. } = at_reference;
            assert!(write.p50 >= processing.p50 * 0.99, "{}", engine.name);
        }
    }
}
