//! Sweeps: many experiments from a plan. Each result is appended to a file when its experiment
//! completes, so that an interrupted sweep resumes where it stopped.
//!
//! An experiment is a benchmark of one design, or a run of the simulator.
//!
//! | module | one line |
//! |---|---|
//! | `plan` | expands a plan into experiments |
//! | `experiment` | one experiment: its parameters, key and run |
//! | `results` | the file of lines |
//! | `dir` | the directory of the databases, and leftovers of a killed sweep |
//! | [`pivot`] | one metric of the results over one parameter |

mod dir;
mod experiment;
pub mod pivot;
mod plan;
mod results;

pub use experiment::{Player, SweepExperiment};
pub use plan::{experiments, tables, tables_of};
pub use results::{ResultLine, ResultsFile, read};

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Result;

use crate::host::{interrupt, program, progress};
use crate::output::human;

/// Operations per second that are assumed until an experiment of the sweep has completed.
const OPERATIONS_PER_SECOND: f64 = 200_000.0;

/// Seconds that a simulated experiment is assumed to take until one has completed.
const SIMULATED_SECONDS: f64 = 1.0;

/// An experiment in one round.
pub type RoundExperiment<'a> = (u32, &'a SweepExperiment);

/// The options of a sweep.
#[derive(Debug, Clone, Copy)]
pub struct SweepOptions<'a> {
    /// The directory of the results.
    pub out: &'a Path,
    /// The directory of the databases; `None` for one in `out`.
    pub dir: Option<&'a Path>,
    /// Rounds over all experiments.
    pub rounds: u32,
    /// Experiments that run concurrently.
    pub jobs: u32,
    /// The system that runs the experiments.
    pub player: Player,
}

impl SweepOptions<'_> {
    /// Runs the experiments that have no result yet, and returns the number of wrong answers.
    ///
    /// # Errors
    ///
    /// If an experiment fails, or a result cannot be written.
    pub fn run(&self, experiments: &[SweepExperiment]) -> Result<u64> {
        let mut results = ResultsFile::open(self.out)?;
        let due = self.due(experiments, results.lines());
        let all = experiments.len() * self.rounds as usize;
        if let Some(of_others) = of_other_programs(results.lines()) {
            progress::line(&of_others);
        }
        if let Some(note) = note_of_sizes(experiments) {
            progress::line(&note);
        }
        progress::line(&format!(
            "{} of {} left, about {}",
            due.len(),
            human::counted(all as u64, "experiment"),
            human::seconds(self.estimate(&due, results.lines()))
        ));
        // Dropped before the results, because the next sweep uses the same directory.
        let databases = match self.player {
            Player::Engine => Some(dir::of(self.out, self.dir)?),
            Player::Simulator => None,
        };
        let path = databases.as_ref().map_or(self.out, dir::SweepDir::path);
        carry_out(&due, self.jobs, &mut results, path)
    }

    /// Returns the experiments without a result, round by round. Rounds alternate direction, so
    /// that a machine that slows down over time favours no experiment.
    pub fn due<'a>(
        &self,
        experiments: &'a [SweepExperiment],
        done: &[ResultLine],
    ) -> Vec<RoundExperiment<'a>> {
        let is_done = |round: u32, one: &SweepExperiment| {
            let key = one.key(round);
            done.iter().any(|line| line.key == key)
        };
        let mut due = Vec::new();
        for round in 1..=self.rounds {
            let mut of_round: Vec<RoundExperiment<'a>> =
                experiments.iter().map(|one| (round, one)).collect();
            if round % 2 == 0 {
                of_round.reverse();
            }
            due.extend(of_round.into_iter().filter(|(round, one)| !is_done(*round, one)));
        }
        due
    }

    /// Estimates the seconds that experiments take, from the completed ones.
    pub fn estimate(&self, due: &[RoundExperiment<'_>], done: &[ResultLine]) -> f64 {
        estimate(due, done, self.player) / f64::from(self.jobs)
    }
}

/// Returns the results of the program that measured last, and the number of other results.
pub fn of_last_program(mut done: Vec<ResultLine>) -> (Vec<ResultLine>, usize) {
    let all = done.len();
    let last = done.last().map(|line| line.program.clone());
    done.retain(|line| Some(&line.program) == last.as_ref());
    let others = all - done.len();
    (done, others)
}

/// Says how many results another program measured, if any.
pub fn of_other_programs(done: &[ResultLine]) -> Option<String> {
    let others = done.iter().filter(|line| line.program != program::hash()).count();
    (others > 0).then(|| {
        format!(
            "{} of another program are kept, and measured again with this one ({})",
            human::counted(others as u64, "result"),
            program::hash()
        )
    })
}

/// Says that the sizes of some designs are divided, if any are.
fn note_of_sizes(experiments: &[SweepExperiment]) -> Option<String> {
    let divided = experiments.iter().filter(|one| one.divided_by() > 1).count();
    (divided > 0).then(|| {
        format!(
            "the sizes of the designs of {} are divided so that their data fill several levels; a \
             design or parameter that gives a size, such as buffer=64MiB, is run as given",
            human::counted(divided as u64, "experiment")
        )
    })
}

/// Runs experiments, each in its own database below `path`, and returns the number of wrong answers.
fn carry_out(
    due: &[RoundExperiment<'_>],
    jobs: u32,
    results: &mut ResultsFile,
    path: &Path,
) -> Result<u64> {
    let (next, wrong) = (AtomicUsize::new(0), AtomicU64::new(0));
    let shared = Mutex::new((results, None));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((round, experiment)) = due.get(at) else { return };
            let begun = Instant::now();
            let dir = path.join(at.to_string());
            let ran = experiment.run(dir.clone());
            interrupt::wait_if_ending();
            interrupt::remove(&dir);
            let mut shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (results, failed) = &mut *shared;
            let kept = ran.and_then(|(rows, wrong_answers)| {
                wrong.fetch_add(wrong_answers, Ordering::Relaxed);
                results.append(experiment.line(*round, begun.elapsed(), rows, path))
            });
            match kept {
                Ok(()) => progress::line(&format!(
                    "{}/{} {} round {round}: {}",
                    at + 1,
                    due.len(),
                    human::seconds(begun.elapsed().as_secs_f64()),
                    experiment.name()
                )),
                Err(error) => {
                    failed.get_or_insert(error.context(experiment.name()));
                    // The other threads stop after their current experiment.
                    next.store(due.len(), Ordering::Relaxed);
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        (1..jobs).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    let (_, failed) = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    failed.map_or(Ok(wrong.into_inner()), Err)
}

fn estimate(due: &[RoundExperiment<'_>], done: &[ResultLine], player: Player) -> f64 {
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
