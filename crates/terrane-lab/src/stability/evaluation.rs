//! What came out of the evaluation of one design.

use terrane_workload::stability::{Criteria, PhaseReport, TwoPhaseReport, Verdict};

use super::advice::{self, Suggestion};
use super::cautions;
use crate::named_design::NamedDesign;

/// What came out of one design.
pub struct DesignEvaluation {
    /// What it is called.
    pub name: String,
    /// A name for its files.
    pub slug: String,
    /// Its design in the running phase, as text.
    pub design: String,
    /// Its design in the testing phase, as text.
    pub testing_design: String,
    /// Both phases.
    pub report: TwoPhaseReport,
    /// Whether its rate is sustainable.
    pub verdict: Verdict,
    /// How long writers waited in the running phase, by cause, longest first; only causes that
    /// made someone wait. In microseconds.
    pub stalls: Vec<(String, u64)>,
    /// What would help.
    pub advice: Vec<Suggestion>,
    /// Why the verdict may be worth less than it seems.
    pub cautions: Vec<String>,
}

/// What came out of the map in memory.
pub struct MapCalibration {
    /// Both phases.
    pub report: TwoPhaseReport,
    /// What the criteria say of it.
    pub verdict: Verdict,
}

/// How long writers waited in a phase by cause, longest first, in microseconds.
pub fn stalls_by_cause(phase: &PhaseReport) -> Vec<(String, u64)> {
    let counted = phase.counters.stalls.iter().filter(|stall| stall.micros > 0);
    let mut stalls: Vec<_> = counted.map(|stall| (stall.cause.clone(), stall.micros)).collect();
    stalls.sort_by_key(|(_, micros)| std::cmp::Reverse(*micros));
    stalls
}

impl MapCalibration {
    /// Judges the report of the map.
    pub fn of(report: TwoPhaseReport, criteria: &Criteria) -> Self {
        Self { verdict: Verdict::of(&report.running, criteria), report }
    }
}

impl DesignEvaluation {
    /// Judges the report of a design.
    pub fn of(design: &NamedDesign, report: TwoPhaseReport, criteria: &Criteria) -> Self {
        let verdict = Verdict::of(&report.running, criteria);
        let stalls = stalls_by_cause(&report.running);
        let advice = advice::of(&report, &verdict, &stalls);
        let cautions = cautions::of(&report);
        Self {
            name: design.name.clone(),
            slug: design.slug.clone(),
            design: design.design.to_string(),
            testing_design: terrane_workload::testing_design(&design.design).to_string(),
            report,
            verdict,
            stalls,
            advice,
            cautions,
        }
    }

    /// Answers of readers that were not the right ones.
    pub fn wrong_answers(&self) -> u64 {
        let phases = [&self.report.testing, &self.report.running];
        let readers = phases.iter().filter_map(|phase| phase.readers.as_ref());
        readers.map(|readers| readers.wrong_answers).sum()
    }
}
