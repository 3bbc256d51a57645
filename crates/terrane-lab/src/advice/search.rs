//! The catalogue, then designs near the best ones for as long as they get better.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use terrane::Design;
use terrane_policy::advice::{self, AdviceQuestion, DesignCandidate, RankedDesign, neighbours};

use super::predict::{self, PlayedDesign, Scenario};

/// How many of the best ones are gone on from.
const BEAM: usize = 3;

/// How many are played on the machine, to see who is held up.
const SHORTLIST: usize = 8;

/// Designs of the same layout that are told of: more would say the same.
const ALIKE_MAX: usize = 2;

/// How many of the worst are told of.
const WORST: usize = 3;

/// Without a rate, who is held up is looked at with this part of the writes that the present design
/// takes.
const PART_OF_GREATEST: f64 = 0.8;

/// What was found.
#[derive(Debug, Clone)]
pub struct SearchResult {
    /// The design that there is.
    pub now: RankedDesign,
    /// The best, in order; `now` is among them if it is one of them.
    pub best: Vec<RankedDesign>,
    /// The worst, the worst one first.
    pub worst: Vec<RankedDesign>,
    /// Designs that were played.
    pub tried: usize,
    /// Writes a second at which it was looked at who is held up; `None` if nothing is written.
    pub rate: Option<f64>,
}

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub struct DesignSearch<'a> {
    /// The question that designs are ranked by.
    pub question: &'a AdviceQuestion,
    /// The workload and the machine.
    pub world: &'a Scenario,
    /// Filter bits a key, on average.
    pub filter_bits: f64,
    /// Writes a second; `None` for most of what the present design takes.
    pub rate: Option<f64>,
    /// The most designs that are played.
    pub effort: usize,
}

/// A candidate with the tree that it was played on.
struct PlayedCandidate {
    candidate: DesignCandidate,
    played: PlayedDesign,
}

impl DesignSearch<'_> {
    /// Looks for designs that are better than `now`; `None` if that one cannot be played.
    pub fn run(
        &self,
        now: (&str, &Design),
        on_tried: &(dyn Fn(usize) + Sync),
    ) -> Option<SearchResult> {
        let (name, design) = now;
        let mut tried: Vec<PlayedCandidate> = Vec::new();
        let mut first = vec![(name.to_owned(), design.clone())];
        let catalogue = advice::catalogue_on(design, self.filter_bits);
        first.extend(catalogue.into_iter().filter(|(_, known)| known != design));
        let mut seen: Vec<Design> = Vec::new();
        self.play(first, &mut seen, &mut tried, on_tried);
        tried.iter().find(|one| one.candidate.design == *design)?;
        while seen.len() < self.effort {
            let best = self.order(&tried);
            let before = best.first().map_or(f64::INFINITY, |one| one.score);
            let mut next: Vec<(String, Design)> = Vec::new();
            for one in best.iter().take(BEAM) {
                for (name, near) in neighbours(&one.candidate.design) {
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

    /// Plays designs, as many at a time as there are cores; in the order given in the end.
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

    /// The best ones, with who is held up.
    fn finish(&self, now: &Design, tried: &[PlayedCandidate], count: usize) -> SearchResult {
        let order = self.order(tried);
        let mut short: Vec<RankedDesign> = Vec::new();
        for one in &order {
            let layout = |ranked: &RankedDesign| {
                let strategy = &ranked.candidate.design.strategy;
                (strategy.eagerness.clone(), strategy.granularity.clone())
            };
            // What differs in nothing that was played is not worth two lines.
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
