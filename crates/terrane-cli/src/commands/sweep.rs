//! `terrane sweep`: many experiments from a plan, each a line of a file when it is done, so that a
//! sweep that was stopped goes on where it was.
//!
//! An experiment is what `terrane bench` runs on one design, or what the simulator says of it. The
//! compaction paper rests on more than two thousand of them (§1); no machine is left alone for so
//! long.
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags |
//! | [`plan`] | from a plan to experiments |
//! | [`experiment`] | one of them: its parameters, key and run |
//! | [`results`] | the file of lines |
//! | [`place`] | where databases are made, and what a killed sweep left there |
//! | [`show`] | tables and pictures of what there is |

mod arguments;
mod experiment;
mod place;
mod plan;
mod results;
mod show;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

pub(crate) use arguments::SweepArgs;
use arguments::SweepCommand;
use experiment::{Experiment, Player};
use results::{Line, Results};

use crate::exit::{Exit, usage};
use crate::human;
use crate::{interrupt, progress};

/// Operations a second of a sweep of which nothing is done yet.
const OPERATIONS_PER_SECOND: f64 = 200_000.0;

/// Seconds of a simulated experiment of a sweep of which nothing is done yet.
const SIMULATED_SECONDS: f64 = 1.0;

/// An experiment in one round.
type Due<'a> = (u32, &'a Experiment);

impl SweepArgs {
    /// Runs what is left of a sweep, or shows what there is.
    pub(crate) fn run(&self) -> Result<Exit> {
        if let Some(SweepCommand::Show(args)) = &self.command {
            return args.run();
        }
        let player = if self.simulate { Player::Simulator } else { Player::Engine };
        let dir = self.out.as_deref().ok_or_else(|| {
            usage("--out DIR is missing, where results are kept; see `terrane sweep --help`")
        })?;
        let experiments = plan::experiments(&self.tables()?, player)?;
        if self.dry_run {
            return self.list(&experiments, &results::read(dir)?, player);
        }
        let mut results = Results::open(dir)?;
        let due = self.due(&experiments, results.lines());
        let all = experiments.len() * self.rounds as usize;
        let left = estimate(&due, results.lines(), player) / f64::from(self.jobs);
        progress::line(&format!(
            "{} of {} left, about {}",
            due.len(),
            human::counted(all as u64, "experiment"),
            time(left)
        ));
        // Gone before the results are given up: the next sweep has the same.
        let place = match player {
            Player::Engine => Some(place::of(dir, self.dir.as_deref())?),
            Player::Simulator => None,
        };
        let wrong =
            self.carry_out(&due, &mut results, place.as_ref().map_or(dir, place::Place::path))?;
        if wrong > 0 {
            let _ = writeln!(io::stderr(), "error: {wrong} wrong answers; please report it");
            return Ok(Exit::Failed);
        }
        Ok(Exit::Done)
    }

    /// What is left: round by round, each the other way round than the one before, so that what
    /// changes with time is no one's advantage.
    fn due<'a>(&self, experiments: &'a [Experiment], done: &[Line]) -> Vec<Due<'a>> {
        let is_done = |round: u32, one: &Experiment| {
            let key = one.key(round);
            done.iter().any(|line| line.key == key)
        };
        let mut due = Vec::new();
        for round in 1..=self.rounds {
            let mut of_round: Vec<Due<'a>> = experiments.iter().map(|one| (round, one)).collect();
            if round % 2 == 0 {
                of_round.reverse();
            }
            due.extend(of_round.into_iter().filter(|(round, one)| !is_done(*round, one)));
        }
        due
    }

    fn list(&self, experiments: &[Experiment], done: &[Line], player: Player) -> Result<Exit> {
        let mut out = io::stdout().lock();
        let due = self.due(experiments, done);
        for (round, one) in &due {
            writeln!(out, "{} round {round}: {}", one.key(*round), one.name())?;
        }
        writeln!(
            out,
            "{} to run, about {}; {} done",
            human::counted(due.len() as u64, "experiment"),
            time(estimate(&due, done, player) / f64::from(self.jobs)),
            experiments.len() * self.rounds as usize - due.len()
        )?;
        Ok(Exit::Done)
    }

    /// Runs what is left, each experiment in a database of its own below `place`. How many answers
    /// were wrong.
    fn carry_out(&self, due: &[Due<'_>], results: &mut Results, place: &Path) -> Result<u64> {
        let (next, wrong) = (AtomicUsize::new(0), AtomicU64::new(0));
        let shared = Mutex::new((results, None));
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((round, experiment)) = due.get(at) else { return };
                let begun = Instant::now();
                let dir = place.join(at.to_string());
                let ran = experiment.run(dir.clone());
                interrupt::wait_if_ending();
                interrupt::remove(&dir);
                let mut shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let (results, failed) = &mut *shared;
                let kept = ran.and_then(|(rows, wrong_answers)| {
                    wrong.fetch_add(wrong_answers, Ordering::Relaxed);
                    results.append(experiment.line(*round, begun.elapsed(), rows))
                });
                match kept {
                    Ok(()) => progress::line(&format!(
                        "{}/{} {} round {round}: {}",
                        at + 1,
                        due.len(),
                        time(begun.elapsed().as_secs_f64()),
                        experiment.name()
                    )),
                    Err(error) => {
                        failed.get_or_insert(error.context(experiment.name()));
                        // No one begins another one.
                        next.store(due.len(), Ordering::Relaxed);
                        return;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            (1..self.jobs).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        let (_, failed) = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.map_or(Ok(wrong.into_inner()), Err)
    }
}

/// How long it takes, in seconds, as what is done already did.
fn estimate(due: &[Due<'_>], done: &[Line], player: Player) -> f64 {
    let of_player = || done.iter().filter(|line| line.by == player.name());
    let seconds: f64 = of_player().map(|line| line.seconds).sum();
    let operations: u64 = due.iter().map(|(_, one)| one.operations()).sum();
    match player {
        Player::Simulator if of_player().next().is_none() => SIMULATED_SECONDS * due.len() as f64,
        Player::Simulator => seconds / of_player().count() as f64 * due.len() as f64,
        Player::Engine => {
            let did: u64 = of_player().map(|line| line.operations).sum();
            let rate = if did > 0 { did as f64 / seconds.max(1e-3) } else { OPERATIONS_PER_SECOND };
            operations as f64 / rate
        }
    }
}

fn time(seconds: f64) -> String {
    let whole = if seconds >= 10.0 { seconds.round() } else { (seconds * 100.0).round() / 100.0 };
    humantime::format_duration(Duration::from_secs_f64(whole.clamp(0.0, 1e10))).to_string()
}
