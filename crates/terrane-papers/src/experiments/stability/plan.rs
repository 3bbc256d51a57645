//! Phases, and how the arrivals of a phase depend on the rates of other phases.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use terrane_lab::output::human;
use terrane_workload::Indexes;
use terrane_workload::stability::Query;

use super::phase::{HEADERS, PhaseMeasurement};
use crate::experiment::ExperimentOptions;
use crate::results::Results;

/// Writes of a running phase arrive at this share of the rate of its testing phase.
pub(super) const UTILIZATION: f64 = 0.95;

/// A stage of a plan. Phases of a stage may run in parallel; the stages run one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Writers run in a closed loop.
    Testing,
    /// Writes arrive at a fraction of the rate that a testing phase measured.
    Running,
    /// Running phases with readers, which occupy all processors.
    Queries,
    /// Repetitions of running phases.
    Round(usize),
    /// One phase on a disk of its own.
    Disk(usize),
}

/// How writes arrive; each share is relative to the rate of a testing phase, which is named by its
/// subject.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PlannedArrival {
    /// A closed loop.
    Closed,
    /// At a constant share of a rate.
    Share { of: String, share: f64 },
    /// Two shares in alternation, each for a share of the length of a full phase.
    Burst { of: String, low: f64, low_length: f64, high: f64, high_length: f64 },
}

/// A disk whose writes and reads matter: tables are synced, and read past the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhaseDisk {
    /// Bytes between two syncs of a table; 0 for a sync at its end only.
    pub(super) sync_bytes: u64,
    /// Bytes that flushes and merges write per second.
    pub(super) budget: u64,
}

/// A phase of one design.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PhasePlan {
    /// The first key of its measurements: the design, in a word or two.
    pub(super) subject: String,
    /// The second key: `testing`, `running`, or what varies.
    pub(super) phase: String,
    pub(super) stage: Stage,
    /// The design as text.
    pub(super) design: String,
    pub(super) arrival: PlannedArrival,
    /// The limit on the rate of writers, relative to the rate of a testing phase.
    pub(super) max_rate: Option<(String, f64)>,
    pub(super) writers: u32,
    pub(super) is_skewed: bool,
    pub(super) query: Option<Query>,
    pub(super) indexes: Option<Indexes>,
    /// The disk; `None` if nothing is synced, so that phases can run side by side.
    pub(super) disk: Option<PhaseDisk>,
    /// The length, relative to a full phase.
    pub(super) length: f64,
    /// True if the first sixth of the phase is left out of the rate.
    pub(super) has_warm_up: bool,
}

impl PhasePlan {
    /// Returns the testing phase of a design.
    pub(super) fn testing(subject: impl Into<String>, design: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            phase: "testing".to_owned(),
            stage: Stage::Testing,
            design: design.into(),
            arrival: PlannedArrival::Closed,
            max_rate: None,
            writers: 1,
            is_skewed: false,
            query: None,
            indexes: None,
            disk: None,
            length: 1.0,
            has_warm_up: true,
        }
    }

    /// Returns a running phase at 95 % of the rate of the testing phase of `of`.
    pub(super) fn running(
        subject: impl Into<String>,
        design: impl Into<String>,
        of: impl Into<String>,
    ) -> Self {
        let arrival = PlannedArrival::Share { of: of.into(), share: UTILIZATION };
        Self {
            phase: "running".to_owned(),
            stage: Stage::Running,
            arrival,
            has_warm_up: false,
            ..Self::testing(subject, design)
        }
    }

    /// Returns the subjects whose rates in testing phases this phase depends on.
    fn rates_of(&self) -> impl Iterator<Item = &String> {
        let arrival = match &self.arrival {
            PlannedArrival::Closed => None,
            PlannedArrival::Share { of, .. } | PlannedArrival::Burst { of, .. } => Some(of),
        };
        arrival.into_iter().chain(self.max_rate.as_ref().map(|(of, _)| of))
    }
}

/// How writes arrive, in writes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Arrivals {
    /// A closed loop.
    Closed,
    /// At a constant rate.
    Constant(f64),
    /// Two rates in alternation, each for a share of the length of a full phase.
    Burst { low: f64, low_length: f64, high: f64, high_length: f64 },
}

/// A phase with its arrival rates resolved.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResolvedPhase {
    pub(super) design: String,
    pub(super) arrivals: Arrivals,
    pub(super) writers: u32,
    pub(super) is_skewed: bool,
    pub(super) query: Option<Query>,
    pub(super) indexes: Option<Indexes>,
    pub(super) disk: Option<PhaseDisk>,
    pub(super) length: f64,
    pub(super) has_warm_up: bool,
}

/// A system that runs phases.
pub(super) trait PhasePlayer {
    /// Runs the phases of a stage; returns a measurement for each.
    fn play(&mut self, stage: Stage, phases: &[ResolvedPhase]) -> Result<Vec<PhaseMeasurement>>;
}

/// The measurements of all phases, by subject and phase, in the order of the plan.
#[derive(Debug, Default)]
pub(super) struct PlayedPhases {
    by_name: BTreeMap<(String, String), PhaseMeasurement>,
    names: Vec<(String, String)>,
    /// The number of phases that ran; equal phases run once.
    pub(super) count: usize,
}

impl PlayedPhases {
    /// Returns the measurement of a phase.
    pub(super) fn get(&self, subject: &str, phase: &str) -> Result<&PhaseMeasurement> {
        let found = self.by_name.get(&(subject.to_owned(), phase.to_owned()));
        found.with_context(|| format!("the phase '{subject}, {phase}' did not run"))
    }

    /// Returns the writes per second in the testing phase of a subject.
    pub(super) fn greatest_rate(&self, subject: &str) -> Result<f64> {
        Ok(self.get(subject, "testing")?.rate)
    }

    /// Returns all measurements with subject and phase, in the order of the plan.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str, &PhaseMeasurement)> {
        self.names.iter().filter_map(|name| {
            let measurement = self.by_name.get(name)?;
            Some((name.0.as_str(), name.1.as_str(), measurement))
        })
    }

    fn resolve(&self, plan: &PhasePlan) -> Result<ResolvedPhase> {
        let arrivals = match &plan.arrival {
            PlannedArrival::Closed => Arrivals::Closed,
            PlannedArrival::Share { of, share } => {
                Arrivals::Constant((share * self.greatest_rate(of)?).max(1.0))
            }
            PlannedArrival::Burst { of, low, low_length, high, high_length } => {
                let rate = self.greatest_rate(of)?;
                let (low_length, high_length) = (*low_length, *high_length);
                Arrivals::Burst { low: low * rate, low_length, high: high * rate, high_length }
            }
        };
        let mut design = plan.design.clone();
        if let Some((of, share)) = &plan.max_rate {
            let most = (share * self.greatest_rate(of)?) as u32;
            design = format!("{design}; max-rate={}", most.max(1));
        }
        Ok(ResolvedPhase {
            design,
            arrivals,
            writers: plan.writers,
            is_skewed: plan.is_skewed,
            query: plan.query,
            indexes: plan.indexes,
            disk: plan.disk,
            length: plan.length,
            has_warm_up: plan.has_warm_up,
        })
    }
}

impl PlayedPhases {
    /// Records the metrics of all phases.
    pub(super) fn record(&self, results: &mut Results) {
        for (subject, phase, measurement) in self.all() {
            measurement.record(subject, phase, results);
        }
    }

    /// Adds a table of phases: the name of each row, its subject and its phase.
    pub(super) fn table(
        &self,
        title: impl Into<String>,
        introduction: impl Into<String>,
        rows: &[(String, String, &str)],
        results: &mut Results,
    ) -> Result<()> {
        let mut cells = Vec::new();
        let mut has_merges = false;
        for (name, subject, phase) in rows {
            let measurement = self.get(subject, phase)?;
            let mut row = measurement.row(name);
            has_merges |= !measurement.merges.is_empty();
            if !measurement.merges.is_empty() {
                row.push(human::count(measurement.flushes));
                let merges: Vec<String> = measurement.merges.iter().map(u64::to_string).collect();
                row.push(merges.join(" "));
            }
            cells.push(row);
        }
        let counts = ["flushes", "merges"].into_iter().filter(|_| has_merges);
        let headers: Vec<&str> = HEADERS.into_iter().chain(counts).collect();
        results.table_with_introduction(title, introduction, &headers, cells);
        Ok(())
    }
}

/// Runs a plan stage by stage. Equal phases of a stage run once.
pub(super) fn play(plan: &[PhasePlan], player: &mut dyn PhasePlayer) -> Result<PlayedPhases> {
    let mut played = PlayedPhases::default();
    let mut stages: Vec<Stage> = plan.iter().map(|phase| phase.stage).collect();
    stages.sort_unstable();
    stages.dedup();
    for stage in stages {
        let mut phases: Vec<ResolvedPhase> = Vec::new();
        let mut at = Vec::new();
        let planned = || plan.iter().filter(|phase| phase.stage == stage);
        for plan in planned() {
            let phase = played.resolve(plan)?;
            let found = phases.iter().position(|other| *other == phase);
            at.push(found.unwrap_or(phases.len()));
            if found.is_none() {
                phases.push(phase);
            }
        }
        let measurements = player.play(stage, &phases)?;
        played.count += phases.len();
        for (plan, at) in planned().zip(at) {
            let measurement = measurements.get(at).context("a phase was not measured")?.clone();
            let name = (plan.subject.clone(), plan.phase.clone());
            played.names.push(name.clone());
            played.by_name.insert(name, measurement);
        }
    }
    Ok(played)
}

/// Phases and their tables, which show some figures.
pub(super) struct PlanPart<'a> {
    /// The figures: `Fig. 7 to 9, 11`. Empty if the paper has no figure of this part.
    pub(super) place: &'static str,
    pub(super) phases: Vec<PhasePlan>,
    pub(super) record: Record<'a>,
}

/// Records the metrics of a part beyond the metrics of every phase, and adds tables.
pub(super) type Record<'a> = Box<dyn Fn(&PlayedPhases, &mut Results) -> Result<()> + 'a>;

impl<'a> PlanPart<'a> {
    pub(super) fn new(
        place: &'static str,
        phases: Vec<PhasePlan>,
        record: impl Fn(&PlayedPhases, &mut Results) -> Result<()> + 'a,
    ) -> Self {
        Self { place, phases, record: Box::new(record) }
    }
}

/// Plays the parts with the requested figure together, and records their results.
pub(super) fn play_parts(
    options: &ExperimentOptions,
    parts: &[PlanPart<'_>],
    player: &mut dyn PhasePlayer,
    results: &mut Results,
) -> Result<usize> {
    let wanted = || parts.iter().filter(|part| options.wants(part.place));
    let mut plan: Vec<PhasePlan> = wanted().flat_map(|part| part.phases.clone()).collect();
    add_testing(&mut plan, parts);
    let played = play(&plan, player)?;
    played.record(results);
    wanted().try_for_each(|part| (part.record)(&played, results))?;
    Ok(played.count)
}

/// Adds the testing phases of other parts whose rates the phases of a plan depend on.
fn add_testing(plan: &mut Vec<PhasePlan>, parts: &[PlanPart<'_>]) {
    let all = parts.iter().flat_map(|part| &part.phases);
    for testing in all.filter(|phase| phase.stage == Stage::Testing) {
        let is_planned = plan
            .iter()
            .any(|phase| (&phase.subject, &phase.phase) == (&testing.subject, &testing.phase));
        if !is_planned && plan.iter().any(|phase| phase.rates_of().any(|of| *of == testing.subject))
        {
            plan.push(testing.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase::METRICS;
    use super::*;

    /// A player for tests: phases in a closed loop have a rate of 1000, and other phases have the
    /// rate at which writes arrive.
    struct Echo(Vec<usize>);

    impl PhasePlayer for Echo {
        fn play(&mut self, _: Stage, phases: &[ResolvedPhase]) -> Result<Vec<PhaseMeasurement>> {
            self.0.push(phases.len());
            let rate = |phase: &ResolvedPhase| match phase.arrivals {
                Arrivals::Closed => 1000.0,
                Arrivals::Constant(rate) => rate,
                Arrivals::Burst { high, .. } => high,
            };
            let measured = phases
                .iter()
                .map(|phase| PhaseMeasurement { rate: rate(phase), ..PhaseMeasurement::default() });
            Ok(measured.collect())
        }
    }

    #[test]
    fn a_figure_plays_its_phases_and_the_rates_that_they_depend_on() {
        let part = |place, phases| PlanPart::new(place, phases, |_, _| Ok(()));
        let parts = [
            part("Fig. 7", vec![PhasePlan::testing("a", "x"), PhasePlan::testing("b", "y")]),
            part("Fig. 13, 14", vec![PhasePlan::running("c", "z", "a")]),
            part("", vec![PhasePlan::testing("d", "x")]),
        ];
        let phases = |figure: Option<&str>| {
            let figure = figure.map(str::to_owned);
            let options = ExperimentOptions { figure, ..ExperimentOptions::default() };
            let mut player = Echo(Vec::new());
            let mut results = Results::new("test", &[&METRICS]);
            play_parts(&options, &parts, &mut player, &mut results).unwrap();
            player.0
        };
        // Equal designs run once.
        assert_eq!(phases(None), [2, 1]);
        assert_eq!(phases(Some("7")), [2]);
        assert_eq!(phases(Some("14")), [1, 1]);
    }

    #[test]
    fn running_phases_arrive_at_shares_of_the_testing_phases() {
        let burst = PlannedArrival::Burst {
            of: "a".to_owned(),
            low: 0.5,
            low_length: 0.1,
            high: 2.0,
            high_length: 0.1,
        };
        let plan = [
            PhasePlan::running("a", "x", "a"),
            PhasePlan { arrival: burst, ..PhasePlan::running("a burst", "x", "a") },
            PhasePlan::testing("a", "x"),
            PhasePlan::testing("b", "x"),
        ];
        let mut player = Echo(Vec::new());
        let played = play(&plan, &mut player).unwrap();
        assert_eq!(player.0, [1, 2]);
        assert_eq!(played.count, 3);
        assert_eq!(played.greatest_rate("b").unwrap(), 1000.0);
        assert_eq!(played.get("a", "running").unwrap().rate, 950.0);
        assert_eq!(played.get("a burst", "running").unwrap().rate, 2000.0);
        assert!(played.get("b", "running").is_err());
        let missing = [PhasePlan::running("a", "x", "c")];
        assert!(play(&missing, &mut player).is_err());
    }
}
