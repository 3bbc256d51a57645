//! Which designs suit a workload: what is tried, what each is expected to cost, in which order that
//! puts them, and why, in words.
//!
//! The compaction paper asks how strategies are to be chosen, how a tree adapts when the workload
//! does, and what lies beyond the strategies that systems have (§1, §6). Here is the part of the
//! answer that needs no tree: whoever predicts or measures fills in [`Costs`] for each
//! [`DesignCandidate`], and [`rank`] does the rest. The same costs give the same ranking.
//!
//! | module | one line |
//! |---|---|
//! | [`candidates`] | the catalogue on given sizes, and designs near a good one |
//! | [`costs`] | what a design costs, and the time that an operation takes by that |
//! | [`objective`] | what counts how much, and what must not be exceeded |
//! | [`words`] | differences in words, and designs in few of them |

pub mod candidates;
pub mod costs;
pub mod objective;
#[cfg(test)]
mod tests;
pub mod words;

use crate::design::Design;

pub use candidates::{catalogue_on, neighbours};
pub use costs::{Costs, Prices, Shares, Times};
pub use objective::{Limits, Objective};
pub use words::{brief, difference};

/// A design, and what it is expected to cost.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignCandidate {
    /// What it is called: a name of the catalogue, or its text.
    pub name: String,
    /// The design.
    pub design: Design,
    /// What it costs.
    pub costs: Costs,
}

/// A candidate in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedDesign {
    /// The candidate.
    pub candidate: DesignCandidate,
    /// What an operation of the workload takes by the objective, in seconds; less is better.
    pub score: f64,
    /// Limits that it exceeds; it stands after all that exceed none.
    pub exceeds: Vec<String>,
}

/// What is asked of candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct AdviceQuestion {
    /// What operations there are.
    pub shares: Shares,
    /// Bytes of a key and its value.
    pub record_bytes: f64,
    /// What things take.
    pub prices: Prices,
    /// What counts how much.
    pub objective: Objective,
    /// What must not be exceeded.
    pub limits: Limits,
}

impl AdviceQuestion {
    /// What an operation takes on average by the objective, in seconds.
    pub fn score(&self, costs: &Costs) -> f64 {
        let times = Times::of(costs, &self.shares, self.record_bytes, &self.prices);
        self.objective.score(costs, &self.shares, &times)
    }

    /// A candidate with its score and the limits that it exceeds.
    pub fn judge(&self, candidate: DesignCandidate) -> RankedDesign {
        let score = self.score(&candidate.costs);
        let exceeds = self.limits.exceeded(&candidate.costs, &self.shares);
        RankedDesign { candidate, score, exceeds }
    }
}

/// Candidates in order: those within all limits first, and of each kind the best first. What is
/// alike is ordered by name, so that the order never depends on that of the candidates.
pub fn rank(question: &AdviceQuestion, candidates: Vec<DesignCandidate>) -> Vec<RankedDesign> {
    let mut ranked: Vec<RankedDesign> =
        candidates.into_iter().map(|candidate| question.judge(candidate)).collect();
    ranked.sort_by(|a, b| {
        let by_limits = a.exceeds.is_empty().cmp(&b.exceeds.is_empty()).reverse();
        let by_score = a.score.total_cmp(&b.score);
        by_limits.then(by_score).then_with(|| a.candidate.name.cmp(&b.candidate.name))
    });
    ranked
}

/// How many operations it takes until a change of design has paid for itself, where it takes so many
/// seconds and saves so many in each operation; `None` if it never does.
pub fn payback_operations(change_seconds: f64, saved_seconds: f64) -> Option<f64> {
    (saved_seconds > 0.0).then(|| change_seconds / saved_seconds)
}
