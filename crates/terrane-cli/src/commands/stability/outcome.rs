//! What came out of the evaluation of one design.

use terrane_workload::stability::{Criteria, PhaseReport, TwoPhaseReport, Verdict};

use super::advice::{self, Advice};
use super::cautions;
use super::plan::Candidate;

/// What came out of one design.
pub(super) struct Outcome {
    /// What it is called.
    pub(super) name: String,
    /// A name for its files.
    pub(super) slug: String,
    /// Its design in the running phase, as text.
    pub(super) design: String,
    /// Its design in the testing phase, as text.
    pub(super) testing_design: String,
    /// Both phases.
    pub(super) report: TwoPhaseReport,
    /// Whether its rate is sustainable.
    pub(super) verdict: Verdict,
    /// How long writers waited in the running phase, by cause, longest first; only causes that
    /// made someone wait. In microseconds.
    pub(super) stalls: Vec<(String, u64)>,
    /// What would help.
    pub(super) advice: Vec<Advice>,
    /// Why the verdict may be worth less than it seems.
    pub(super) cautions: Vec<String>,
}

/// What came out of the map in memory.
pub(super) struct Calibration {
    /// Both phases.
    pub(super) report: TwoPhaseReport,
    /// What the criteria say of it.
    pub(super) verdict: Verdict,
}

/// How long writers waited in a phase by cause, longest first, in microseconds.
pub(super) fn stalls_by_cause(phase: &PhaseReport) -> Vec<(String, u64)> {
    let counted = phase.counters.stalls.iter().filter(|stall| stall.micros > 0);
    let mut stalls: Vec<_> = counted.map(|stall| (stall.cause.clone(), stall.micros)).collect();
    stalls.sort_by_key(|(_, micros)| std::cmp::Reverse(*micros));
    stalls
}

impl Calibration {
    pub(super) fn of(report: TwoPhaseReport, criteria: &Criteria) -> Self {
        Self { verdict: Verdict::of(&report.running, criteria), report }
    }
}

impl Outcome {
    pub(super) fn of(candidate: &Candidate, report: TwoPhaseReport, criteria: &Criteria) -> Self {
        let verdict = Verdict::of(&report.running, criteria);
        let stalls = stalls_by_cause(&report.running);
        let advice = advice::of(&report, &verdict, &stalls);
        let cautions = cautions::of(&report);
        Self {
            name: candidate.name.clone(),
            slug: candidate.slug.clone(),
            design: candidate.design.to_string(),
            testing_design: terrane_workload::testing_design(&candidate.design).to_string(),
            report,
            verdict,
            stalls,
            advice,
            cautions,
        }
    }

    /// Answers of readers that were not the right ones.
    pub(super) fn wrong_answers(&self) -> u64 {
        let phases = [&self.report.testing, &self.report.running];
        let readers = phases.iter().filter_map(|phase| phase.readers.as_ref());
        readers.map(|readers| readers.wrong_answers).sum()
    }
}
