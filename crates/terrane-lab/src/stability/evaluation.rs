//! The results of an evaluation.

use terrane_workload::stability::{Criteria, PhaseReport, TwoPhaseReport, Verdict};

use super::advice::{self, Suggestion};
use super::cautions;
use super::counted::CountedRun;
use super::outlook::{Conclusion, Outlook};
use crate::input::named_design::NamedDesign;

/// The results of one design.
pub struct DesignEvaluation {
    /// The name of the design.
    pub name: String,
    /// The name of the design in file names.
    pub slug: String,
    /// The design of the running phase, as text.
    pub design: String,
    /// The design of the testing phase, as text.
    pub testing_design: String,
    /// The reports of both phases.
    pub report: TwoPhaseReport,
    /// Whether the rate is sustainable.
    pub verdict: Verdict,
    /// Stall time in the running phase by cause in microseconds, longest first, without causes that
    /// stalled no writer.
    pub stalls: Vec<(String, u64)>,
    /// Remedies for a rate that is not sustainable.
    pub advice: Vec<Suggestion>,
    /// Reasons to doubt the verdict.
    pub cautions: Vec<String>,
    /// The counters that the simulator was fitted to, if it can simulate such a run.
    pub(super) counted: Option<CountedRun>,
    /// The simulator's prediction for a longer run.
    pub outlook: Outlook,
}

/// The results of the in-memory map.
pub struct MapCalibration {
    /// The reports of both phases.
    pub report: TwoPhaseReport,
    /// Whether the map meets the criteria.
    pub verdict: Verdict,
}

/// Returns the stall time in a phase by cause in microseconds, longest first.
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
            counted: None,
            outlook: Outlook::Withheld("nothing was simulated".to_owned()),
        }
    }

    /// Returns whether the rate held in the measurement; `None` if it held and the testing phase ran
    /// no merge. Its maximum is then that of flushes, and a share of it says nothing about merges.
    pub fn is_sustained(&self) -> Option<bool> {
        let is_sustained = self.verdict.is_sustainable();
        let is_tested = self.report.testing.counters.compactions != Some(0);
        (is_tested || !is_sustained).then_some(is_sustained)
    }

    /// Returns the joint verdict of the measurement and the simulator.
    pub fn conclusion(&self) -> Conclusion {
        let Some(is_sustained) = self.is_sustained() else { return Conclusion::Unknown };
        match (is_sustained, &self.outlook) {
            (false, _) => Conclusion::Unsustainable,
            (true, Outlook::Withheld(_)) => Conclusion::Unknown,
            (true, Outlook::Played(played)) if played.holds() => Conclusion::Sustainable,
            (true, Outlook::Played(_)) => Conclusion::Unsustainable,
        }
    }

    /// Returns the number of wrong answers that readers and the operations of a mix received.
    pub fn wrong_answers(&self) -> u64 {
        let of_phase = |phase: &PhaseReport| {
            let readers = phase.readers.as_ref().map_or(0, |readers| readers.wrong_answers);
            phase.wrong_answers + readers
        };
        of_phase(&self.report.testing) + of_phase(&self.report.running)
    }
}
