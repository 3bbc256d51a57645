//! Which designs suit a workload: candidates, their expected costs, a ranking, and the reasons in
//! words.
//!
//! The compaction paper asks how to choose a strategy, how a tree adapts when the workload changes,
//! and what lies beyond the strategies of existing systems (§1, §6). This module is the part of the
//! answer that needs no tree: the caller predicts or measures [`DesignCosts`] for each [`DesignCandidate`],
//! and [`rank`] orders them. The same costs always give the same ranking.
//!
//! | module | one line |
//! |---|---|
//! | [`candidates`] | the catalogue with given sizes, and neighbours of a good design |
//! | [`costs`] | what a design costs, and how long an operation takes at these costs |
//! | [`objective`] | weights of the costs, and limits on them |
//! | [`words`] | differences in words, and the shortest text of a design |

pub mod candidates;
pub mod costs;
pub mod objective;
#[cfg(test)]
mod tests;
pub mod words;

use crate::design::Design;

pub use candidates::{catalogue_on, neighbours};
pub use costs::{DesignCosts, OperationShares, OperationTimes, Prices};
pub use objective::{Limits, Objective};
pub use words::{difference, summary};

/// A design and its expected costs.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignCandidate {
    /// The name in the catalogue, or the text form of the design.
    pub name: String,
    /// The design.
    pub design: Design,
    /// The expected costs.
    pub costs: DesignCosts,
}

/// A candidate with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedDesign {
    /// The candidate.
    pub candidate: DesignCandidate,
    /// The weighted average time that an operation of the workload takes, in seconds; a lower score
    /// is better.
    pub score: f64,
    /// The limits that the candidate exceeds; candidates that exceed no limit rank first.
    pub exceeds: Vec<String>,
}

/// A workload and the objective for which to rank designs.
#[derive(Debug, Clone, PartialEq)]
pub struct AdviceQuestion {
    /// The fractions of operations in the workload.
    pub shares: OperationShares,
    /// The size of a key and its value together, in bytes.
    pub record_bytes: f64,
    /// The time that each single step takes.
    pub prices: Prices,
    /// How much each cost counts.
    pub objective: Objective,
    /// The limits that the costs must not exceed.
    pub limits: Limits,
}

impl AdviceQuestion {
    /// Returns the weighted average time of an operation, in seconds.
    pub fn score(&self, costs: &DesignCosts) -> f64 {
        let times = OperationTimes::of(costs, &self.shares, self.record_bytes, &self.prices);
        self.objective.score(costs, &self.shares, &times)
    }

    /// Scores a candidate and lists the limits that it exceeds.
    pub fn judge(&self, candidate: DesignCandidate) -> RankedDesign {
        let score = self.score(&candidate.costs);
        let exceeds = self.limits.exceeded(&candidate.costs, &self.shares);
        RankedDesign { candidate, score, exceeds }
    }
}

/// Ranks candidates: those within all limits first, best first. Ties are broken by name, so the
/// result does not depend on the order of the candidates.
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

/// Returns the number of operations after which a change of design pays off, if the change takes
/// `change_seconds` and saves `saved_seconds` per operation; `None` if it never pays off.
pub fn payback_operations(change_seconds: f64, saved_seconds: f64) -> Option<f64> {
    (saved_seconds > 0.0).then(|| change_seconds / saved_seconds)
}
