//! Runs the random tests of the engine at length, on all cores and with fresh seeds.
//!
//! Each worker runs one suite at a time, in a process that is killed if it hangs. The suite that has
//! used the smallest part of its share of the time is next, so that the campaigns keep their proportions
//! however long the soak is. If a suite fails, its output is printed with the command that repeats the
//! run. At the end the soak prints the counts of its suites.
//!
//! | module | one line |
//! |---|---|
//! | `plan` | which suite is next, and with which seed |
//! | `program` | builds the suites, and runs one of them |
//! | `suite` | the suites and their shares of the time |
//! | `summary` | adds up the counts of the suites |

mod plan;
mod program;
mod suite;
mod summary;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::flags::{are_flags, number_after};
use crate::step::StepResult;
use plan::{Plan, Run};
use program::Outcome;
use suite::SUITES;
use summary::Summary;

/// The duration of the soak, and its first seed.
pub(crate) struct SoakArguments {
    minutes: u64,
    seed: u64,
}

impl SoakArguments {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let minutes = number_after(words, "--minutes", 10)?;
        let seed = number_after(words, "--seed", now)?;
        are_flags(words, &["--minutes", "--seed"]).then_some(Self { minutes, seed })
    }
}

/// The state that the workers share.
struct Soak {
    programs: Vec<PathBuf>,
    end: Instant,
    state: Mutex<(Plan, Summary)>,
}

/// Runs suites until the time is over. Continues after a failure, and reports all failures at the
/// end.
pub(crate) fn run(arguments: &SoakArguments) -> StepResult {
    let programs = program::build(SUITES)?;
    let workers = available_parallelism().map_or(1, usize::from);
    let (minutes, seed) = (arguments.minutes, arguments.seed);
    println!("==> soak for {minutes} minutes on {workers} cores, seed {seed}");
    let start = Instant::now();
    let soak = Soak {
        programs,
        end: start + Duration::from_secs(minutes * 60),
        state: Mutex::new((Plan::new(SUITES, seed), Summary::new(SUITES))),
    };
    let results: Vec<StepResult> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| soak.work())).collect();
        let ended = |worker: std::thread::ScopedJoinHandle<'_, StepResult>| {
            worker.join().unwrap_or_else(|_| Err("a worker of the soak panicked".into()))
        };
        workers.into_iter().map(ended).collect()
    });
    results.into_iter().collect::<StepResult>()?;
    let (_, summary) = &*soak.lock();
    println!("{}", summary.table(start.elapsed(), workers));
    if summary.failures.is_empty() {
        return Ok(());
    }
    let (count, repeats) = (summary.failures.len(), summary.failures.join("\n"));
    Err(format!("{count} failures; repeat with\n{repeats}"))
}

impl Soak {
    /// Runs suites, one after the other, until the time is over and every suite has run once.
    fn work(&self) -> StepResult {
        loop {
            let next = {
                let (plan, _) = &mut *self.lock();
                if Instant::now() >= self.end { plan.next_unused() } else { Some(plan.next()) }
            };
            let Some(run) = next else { return Ok(()) };
            let suite = &SUITES[run.suite];
            let start = Instant::now();
            let outcome = program::run(suite, &self.programs[run.suite], run.seed)?;
            self.end_run(&run, start.elapsed(), &outcome);
        }
    }

    fn end_run(&self, run: &Run, time: Duration, outcome: &Outcome) {
        let (plan, summary) = &mut *self.lock();
        let suite = &SUITES[run.suite];
        plan.end(run, time);
        summary.add(run.suite, time, outcome);
        let (word, seconds) = (outcome.verdict, time.as_secs_f64());
        println!("{} seed {}: {word} {seconds:.1} s", suite.name, run.seed);
        if !outcome.is_success() {
            let repeat = program::repeat(suite, run.seed);
            println!("{}\n    repeat: {repeat}", outcome.output);
            summary.failures.push(repeat);
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Plan, Summary)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
