//! Decides whether changing the design pays for itself.

use std::time::Duration;

use anyhow::Result;
use terrane::{Design, Keyspace};
use terrane_policy::advice::{RankedDesign, payback_operations, summary};
use terrane_policy::{Forecast, advice};

use super::case::AdviceCase;
use super::search::SearchResult;
use crate::output::human;

/// The conditions under which a change is worthwhile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangeTerms {
    /// The minimum gain: a share of the mean time per operation.
    pub gain: f64,
    /// The time within which the change must pay for itself.
    pub within: Duration,
}

/// A change to the best design, its cost, and whether to make it.
#[derive(Debug, Clone)]
pub struct ChangeDecision {
    /// The new design.
    pub design: Design,
    /// The data that the change would rewrite.
    pub forecast: Forecast,
    /// The gain as a share of the mean time per operation.
    pub gain: f64,
    /// The time that rewriting takes, in seconds.
    pub seconds: f64,
    /// The number of operations after which the change has paid for itself; `None` if it never
    /// does.
    pub payback: Option<f64>,
    /// The time that these operations take, in seconds, if known.
    pub payback_seconds: Option<f64>,
    /// Whether the change is worthwhile.
    pub is_worth: bool,
    /// The reason, in a sentence.
    pub reason: String,
}

impl ChangeDecision {
    /// Decides on the best design found.
    pub fn of(
        case: &AdviceCase,
        found: &SearchResult,
        keyspace: &Keyspace,
        terms: ChangeTerms,
    ) -> Result<Self> {
        let now = &found.now;
        let best = found.best.first().unwrap_or(now);
        let design = best.candidate.design.clone();
        let forecast = keyspace.forecast(&design)?;
        let prices = case.question().prices;
        let byte = 2.0 * prices.byte + prices.merge_entry / case.records.bytes;
        let seconds = forecast.bytes_rewritten as f64 * byte;
        let saved = now.score - best.score;
        let gain = if now.score > 0.0 { saved / now.score } else { 0.0 };
        let payback = payback_operations(seconds, saved);
        let payback_seconds =
            payback.zip(case.operations.rate).map(|(operations, rate)| operations / rate);
        let (is_worth, reason) = judge(now, best, (gain, seconds, payback_seconds), terms);
        Ok(Self { design, forecast, gain, seconds, payback, payback_seconds, is_worth, reason })
    }

    /// Makes the change if it is worthwhile.
    pub fn apply(&self, keyspace: &Keyspace) -> Result<()> {
        if self.is_worth {
            keyspace.set_design(self.design.clone())?;
        }
        Ok(())
    }
}

fn judge(
    now: &RankedDesign,
    best: &RankedDesign,
    (gain, seconds, payback_seconds): (f64, f64, Option<f64>),
    terms: ChangeTerms,
) -> (bool, String) {
    if best.candidate.design == now.candidate.design {
        return (false, "the present design is the best one found".into());
    }
    if !now.exceeds.is_empty() && best.exceeds.is_empty() {
        return (true, format!("the present design exceeds a limit: {}", now.exceeds.join(", ")));
    }
    let name = summary(&best.candidate.design);
    let percent = format!("{:.0} %", gain * 100.0);
    if gain < terms.gain {
        let least = terms.gain * 100.0;
        return (false, format!("{name} would gain {percent}, less than {least:.0} %"));
    }
    if seconds <= 0.0 {
        return (true, format!("{name} gains {percent} without rewriting"));
    }
    let Some(payback) = payback_seconds else {
        return (
            false,
            format!(
                "{name} would gain {percent}; without --rate the time to pay for itself is unknown"
            ),
        );
    };
    let time = |seconds: f64| human::duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)));
    let paid = format!("pays for itself in {}", time(payback));
    if payback > terms.within.as_secs_f64() {
        let within = time(terms.within.as_secs_f64());
        return (false, format!("{name} would gain {percent}, but {paid}, more than {within}"));
    }
    (true, format!("{name} gains {percent} and {paid}"))
}

/// Describes the differences between two designs.
pub fn difference(case: &AdviceCase, one: &RankedDesign, other: &RankedDesign) -> String {
    advice::difference(&one.candidate.costs, &other.candidate.costs, &case.operations.shares)
}

#[cfg(test)]
mod tests {
    use super::super::tests::ranked;
    use super::*;

    #[test]
    fn a_change_is_made_if_it_gains_enough_and_pays_in_time() {
        let terms = ChangeTerms { gain: 0.1, within: Duration::from_secs(60) };
        let (now, best) = (ranked("leveling", 1.0), ranked("tiering", 0.5));
        let is_worth = |best: &RankedDesign, figures| judge(&now, best, figures, terms).0;
        assert!(is_worth(&best, (0.5, 10.0, Some(20.0))));
        assert!(is_worth(&best, (0.5, 0.0, None)));
        assert!(!is_worth(&best, (0.05, 10.0, Some(20.0))));
        assert!(!is_worth(&best, (0.5, 10.0, Some(61.0))));
        assert!(!is_worth(&best, (0.5, 10.0, None)));
        assert!(!is_worth(&now, (0.0, 0.0, None)));
        let over = RankedDesign { exceeds: vec!["space".into()], ..now.clone() };
        assert!(judge(&over, &best, (0.0, 10.0, None), terms).0);
    }
}
