//! What the thresholds say: schedulers against `greedy`, and limits against each other.
//!
//! Trees are compared in pairs: the same cell but for the scheduler or the limit, and the same fill.

use super::axes::{LEVELS, LIMITS, RATIOS, SCHEDULERS};
use super::cell::{CellRuns, MapCell, StabilityMap};

/// The scheduler with which the others are compared.
pub(super) const REFERENCE: &str = "greedy";

/// Rates within this factor of the best limit's rate count as equal to it.
const EQUAL: f64 = 0.99;

/// How many trees sustain less, the same and more than with [`REFERENCE`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) lower: usize,
    pub(super) equal: usize,
    pub(super) higher: usize,
}

/// How a limit compares with the best one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct LimitRank {
    /// The mean over trees of the sustained rate, relative to that of the best limit.
    pub(super) mean: f64,
    /// The share of trees in which no limit sustains more.
    pub(super) best: f64,
}

impl Tally {
    pub(super) fn trees(&self) -> usize {
        self.lower + self.equal + self.higher
    }
}

/// Compares a scheduler with [`REFERENCE`] in the cells that `is_wanted` selects.
pub(super) fn tally(
    map: &StabilityMap,
    scheduler: &'static str,
    phase: usize,
    is_wanted: impl Fn(&MapCell) -> bool,
) -> Tally {
    let mut tally = Tally::default();
    for (cell, runs) in &map.cells {
        if cell.scheduler != scheduler || !is_wanted(cell) {
            continue;
        }
        let Some(other) = map.find(MapCell { scheduler: REFERENCE, ..*cell }) else { continue };
        for tree in 0..runs.thresholds.len().min(other.thresholds.len()) {
            let (this, other) = (runs.share(tree, phase), other.share(tree, phase));
            match this.total_cmp(&other) {
                std::cmp::Ordering::Less => tally.lower += 1,
                std::cmp::Ordering::Equal => tally.equal += 1,
                std::cmp::Ordering::Greater => tally.higher += 1,
            }
        }
    }
    tally
}

/// Compares the limits by the rates that they sustain under one scheduler.
pub(super) fn limits(
    map: &StabilityMap,
    eagerness: &'static str,
    scheduler: &'static str,
    phase: usize,
) -> [LimitRank; LIMITS.len()] {
    let mut ranks = [LimitRank::default(); LIMITS.len()];
    let mut trees = 0;
    for (ratio, levels) in RATIOS.iter().flat_map(|ratio| LEVELS.map(|levels| (*ratio, levels))) {
        let cells =
            LIMITS.map(|limit| map.find(MapCell { eagerness, ratio, levels, scheduler, limit }));
        let [Some(first), Some(second), Some(third)] = cells else { continue };
        let cells: [&CellRuns; LIMITS.len()] = [first, second, third];
        for tree in 0..first.thresholds.len() {
            let rates = cells.map(|runs| runs.maximum * runs.share(tree, phase));
            let best = rates.into_iter().fold(0.0, f64::max);
            if best <= 0.0 {
                continue;
            }
            trees += 1;
            for (rank, rate) in ranks.iter_mut().zip(rates) {
                rank.mean += rate / best;
                rank.best += f64::from(u8::from(rate >= best * EQUAL));
            }
        }
    }
    for rank in &mut ranks {
        rank.mean /= f64::from(trees.max(1));
        rank.best /= f64::from(trees.max(1));
    }
    ranks
}

/// Returns the schedulers that are compared with [`REFERENCE`].
pub(super) fn compared() -> impl Iterator<Item = &'static str> {
    SCHEDULERS.into_iter().filter(|scheduler| *scheduler != REFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::map::MapOptions;

    fn map(shares: impl Fn(&MapCell) -> (f64, Vec<usize>)) -> StabilityMap {
        let options = MapOptions { hours: vec![1.0], trees: 2, complete: 0, step: 1, threads: 1 };
        let cells = MapCell::all().into_iter().map(|cell| {
            let (maximum, thresholds) = shares(&cell);
            let thresholds = thresholds.into_iter().map(|one| vec![one]).collect();
            (cell, CellRuns { maximum, thresholds, ..CellRuns::default() })
        });
        StabilityMap { options, cells: cells.collect() }
    }

    #[test]
    fn schedulers_are_compared_tree_by_tree() {
        let map = map(|cell| match (cell.scheduler, cell.ratio) {
            ("fair", 6) => (1.0, vec![3, 15]),
            ("fair", 8) => (1.0, vec![15, 9]),
            _ => (1.0, vec![9, 9]),
        });
        let found = tally(&map, "fair", 0, |cell| cell.ratio == 6 && cell.eagerness == "tiering");
        assert_eq!(found, Tally { lower: 9, equal: 0, higher: 9 });
        let found = tally(&map, "fair", 0, |cell| cell.ratio == 8);
        assert_eq!(found, Tally { lower: 0, equal: 18, higher: 18 });
        assert_eq!(found.trees(), 36);
        assert_eq!(tally(&map, "gear", 0, |_| true).equal, 2 * 108);
    }

    #[test]
    fn limits_are_compared_by_rates_not_shares() {
        let map = map(|cell| match cell.limit {
            // All of 800 is more than half of 1000, and as much as 80 % of 1000.
            "level0" => (800.0, vec![11, 11]),
            "local(2x)" => (1000.0, vec![1, 5]),
            _ => (1000.0, vec![0, 0]),
        });
        let [level0, local, global] = limits(&map, "tiering", "greedy", 0);
        assert_eq!((level0.mean, level0.best), (1.0, 1.0));
        assert!((local.mean - (0.625 + 1.0) / 2.0).abs() < 1e-9 && local.best == 0.5);
        assert_eq!((global.mean, global.best), (0.0, 0.0));
    }
}
