//! Searches the catalogue, then the designs near the best designs for as long as the results
//! improve.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use terrane::Design;
use terrane_policy::advice::{self, AdviceQuestion, DesignCandidate, RankedDesign, neighbours};

use super::predict::{self, PlayedDesign, Scenario};

/// The number of best designs whose neighbours are tried.
const BEAM: usize = 3;

/// The number of designs whose stalls are simulated.
const SHORTLIST: usize = 8;

/// The maximum number of reported designs with the same layout; more would be redundant.
const ALIKE_MAX: usize = 2;

/// The number of worst designs to report.
const WORST: usize = 3;

/// If no rate is given, stalls are simulated at this share of the present design's maximum rate.
const PART_OF_GREATEST: f64 = 0.8;

/// The designs found.
#[derive(Debug, Clone)]
pub struct SearchResult {
    /// The present design.
    pub now: RankedDesign,
    /// The best designs, in order; they may include `now`.
    pub best: Vec<RankedDesign>,
    /// The worst designs, the worst first.
    pub worst: Vec<RankedDesign>,
    /// The number of simulated designs.
    pub tried: usize,
    /// Writes per second at which stalls were simulated; `None` without writes.
    pub rate: Option<f64>,
}

/// A search.
#[derive(Debug, Clone, Copy)]
pub struct DesignSearch<'a> {
    /// The question that designs are ranked by.
    pub question: &'a AdviceQuestion,
    /// The workload and the machine.
    pub world: &'a Scenario,
    /// Filter bits per key, on average.
    pub filter_bits: f64,
    /// Writes per second; `None` for a share of the present design's maximum rate.
    pub rate: Option<f64>,
    /// The maximum number of designs to simulate.
    pub effort: usize,
}

/// A simulated candidate.
struct PlayedCandidate {
    candidate: DesignCandidate,
    played: PlayedDesign,
}

impl DesignSearch<'_> {
    fn value_bytes(&self) -> u64 {
        (self.world.record_bytes - self.world.key_bytes).max(0.0) as u64
    }

    /// Searches for designs better than `now`; `None` if `now` cannot be simulated.
    pub fn run(
        &self,
        now: (&str, &Design),
        on_tried: &(dyn Fn(usize) + Sync),
    ) -> Option<SearchResult> {
        let (name, design) = now;
        let mut tried: Vec<PlayedCandidate> = Vec::new();
        let mut first = vec![(name.to_owned(), design.clone())];
        let catalogue = advice::catalogue_on(design, self.filter_bits, self.value_bytes());
        first.extend(catalogue.into_iter().filter(|(_, known)| known != design));
        let mut seen: Vec<Design> = Vec::new();
        self.play(first, &mut seen, &mut tried, on_tried);
        tried.iter().find(|one| one.candidate.design == *design)?;
        while seen.len() < self.effort {
            let best = self.order(&tried);
            let before = best.first().map_or(f64::INFINITY, |one| one.score);
            let mut next: Vec<(String, Design)> = Vec::new();
            for one in best.iter().take(BEAM) {
                for (name, near) in neighbours(&one.candidate.design, self.value_bytes()) {
                    if !seen.contains(&near) && next.iter().all(|(_, other)| *other != near) {
                        next.push((name, near));
                    }
                }
            }
            next.truncate(self.effort - seen.len());
            if next.is_empty() {
                break;
            }
            self.play(next, &mut seen, &mut tried, on_tried);
            if self.order(&tried).first().is_none_or(|one| one.score >= before) {
                break;
            }
        }
        Some(self.finish(design, &tried, seen.len()))
    }

    /// Simulates designs, one per core at a time, and appends the results in the given order.
    fn play(
        &self,
        designs: Vec<(String, Design)>,
        seen: &mut Vec<Design>,
        tried: &mut Vec<PlayedCandidate>,
        on_tried: &(dyn Fn(usize) + Sync),
    ) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..cores.min(designs.len()) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some((_, design)) = designs.get(at) else { return };
                        let played = predict::costs(design, self.world);
                        let mut done =
                            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        done.push((at, played));
                        on_tried(seen.len() + done.len());
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        for ((name, design), (_, played)) in designs.into_iter().zip(done) {
            seen.push(design.clone());
            if let Some(played) = played {
                let candidate = DesignCandidate { name, design, costs: played.costs };
                tried.push(PlayedCandidate { candidate, played });
            }
        }
    }

    fn order(&self, tried: &[PlayedCandidate]) -> Vec<RankedDesign> {
        advice::rank(self.question, tried.iter().map(|one| one.candidate.clone()).collect())
    }

    /// Selects the best designs and simulates the stalls of each.
    fn finish(&self, now: &Design, tried: &[PlayedCandidate], count: usize) -> SearchResult {
        let order = self.order(tried);
        let mut short: Vec<RankedDesign> = Vec::new();
        for one in &order {
            let layout = |ranked: &RankedDesign| {
                let strategy = &ranked.candidate.design.strategy;
                (strategy.eagerness.clone(), strategy.granularity.clone())
            };
            // Designs with equal costs are reported once.
            if short.iter().any(|known| known.candidate.costs == one.candidate.costs) {
                continue;
            }
            let alike = short.iter().filter(|known| layout(known) == layout(one)).count();
            if short.len() < SHORTLIST && alike < ALIKE_MAX {
                short.push(one.clone());
            }
        }
        if short.iter().all(|one| one.candidate.design != *now) {
            short.extend(order.iter().find(|one| one.candidate.design == *now).cloned());
        }
        let find = |design: &Design| tried.iter().find(|one| one.candidate.design == *design);
        let rate = self.world.writes.then(|| {
            let most = || {
                let one = find(now)?;
                Some(PART_OF_GREATEST * predict::greatest_rate(now, self.world, &one.played))
            };
            self.rate.or_else(most).unwrap_or(1.0).max(1.0)
        });
        if let Some(rate) = rate {
            for one in &mut short {
                let Some(tried) = find(&one.candidate.design) else { continue };
                let (part, p99) =
                    predict::held_up(&one.candidate.design, self.world, &tried.played, rate);
                let costs = &mut one.candidate.costs;
                (costs.stalled, costs.p99_seconds) = (Some(part), Some(p99));
            }
        }
        let best =
            advice::rank(self.question, short.into_iter().map(|one| one.candidate).collect());
        let now = best.iter().find(|one| one.candidate.design == *now).or(best.first());
        let mut worst: Vec<RankedDesign> = Vec::new();
        for one in order.iter().rev() {
            if worst.len() < WORST && worst.iter().all(|known| known.score != one.score) {
                worst.push(one.clone());
            }
        }
        SearchResult {
            now: now.cloned().unwrap_or_else(|| order[0].clone()),
            worst,
            best,
            tried: count,
            rate,
        }
    }
}
