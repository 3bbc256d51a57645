//! Runs the engine's own code in virtual time.
//!
//! The database has no threads of its own: the threads here run its jobs, as many as the engine would
//! start. Its gate divides the I/O budget and lets merges wait for each other, its admission stops the
//! writer, and its policy picks; only the waits are virtual ([`VirtualTime`]). Processors take no time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, anyhow};
use terrane::storage::MemoryStorage;
use terrane::{
    Background, Db, Design, Event, IoBudget, Keyspace, KeyspaceOptions, Options, StallEffect,
};

use super::measured::{RecordChooser, load, value};
use super::plan::ValidationPlan;
use super::virtual_time::VirtualTime;
use crate::simulation::calibrate::{LOG_SEGMENT_BYTES, key};

/// The threads that run jobs: one for flushes, and as many as the engine starts for compactions.
const JOB_THREADS: usize = 9;

/// Enough memory that the budget never limits the engine.
const MEMORY: u64 = 256 << 20;

/// After this share of a memtable's usual writes, the writer checks whether the memtable was
/// replaced.
const LOOK_FROM: f64 = 0.9;

/// A tree of a run.
pub(super) struct PlayedTree {
    pub(super) design: Design,
    /// Its share of the writes.
    pub(super) share: f64,
}

/// The machine of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlayedMachine {
    /// The I/O budget in bytes per second.
    pub(super) budget: u64,
    /// Concurrent merges.
    pub(super) slots: usize,
    /// The time of a write.
    pub(super) write_seconds: f64,
}

/// The throughput and the delays of a writer between two times.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PlayedWrites {
    /// Completed writes per second.
    pub(super) rate: f64,
    /// The share of the time in which the writer was stopped.
    pub(super) stalled: f64,
    /// The longest time from arrival to completion, in seconds.
    pub(super) longest_seconds: f64,
}

/// A run of the engine.
pub(super) struct PlayedRun {
    pub(super) writes: PlayedWrites,
    /// Merges of each tree that rewrote tables.
    pub(super) merges: Vec<u64>,
}

/// The events that the engine's listener records.
#[derive(Debug, Default)]
struct Recorded {
    /// The keyspace that stops the writer.
    stopped_by: Option<String>,
    /// The intervals in which the writer was stopped, in nanoseconds.
    stalls: Vec<(u64, u64)>,
    /// The keyspaces of completed merges.
    merged: Vec<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one writer on trees. Each tree is loaded with the records of `plan` and settles first. `rate` is the
/// arrival rate of all writes; `None` for a closed loop. Writes and stalls before `from` do not count.
pub(super) fn play(
    plan: &ValidationPlan,
    trees: &[PlayedTree],
    machine: PlayedMachine,
    rate: Option<f64>,
    (from, until): (f64, f64),
) -> Result<PlayedRun> {
    let time = Arc::new(VirtualTime::new(1 + JOB_THREADS));
    let recorded = Arc::new(Mutex::new(Recorded::default()));
    let (db, spaces) = open(trees, machine.slots, &time, &recorded)?;
    let value = value(plan);
    for space in &spaces {
        load(plan, |key| Ok(space.put(key, &value)?), || Ok(db.run_background_job()?))?;
    }
    db.flush()?;
    while db.run_background_job()? {}
    *lock(&recorded) = Recorded::default();
    db.set_io_budget(IoBudget::Total(machine.budget))?;
    let begin = time.nanos();
    let has_failed = &AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let jobs: Vec<_> = (1..=JOB_THREADS)
            .map(|thread| {
                let (time, db) = (&time, &db);
                scope.spawn(move || {
                    let result = run_jobs(time, db, thread);
                    has_failed.fetch_or(result.is_err(), Ordering::SeqCst);
                    result
                })
            })
            .collect();
        let writer = PlayedWriter { time: &time, plan, trees, spaces: &spaces, machine, begin };
        let writer = scope.spawn(move || writer.run(rate, (from, until), has_failed));
        let panicked = |_| Err(anyhow!("a thread of the run panicked"));
        let writes = writer.join().unwrap_or_else(panicked);
        for job in jobs {
            job.join().unwrap_or_else(|_| Err(anyhow!("a job panicked")))?;
        }
        writes
    });
    let (completed, longest) = outcome?;
    let recorded = std::mem::take(&mut *lock(&recorded));
    let nanos = |seconds: f64| begin + (seconds * 1e9) as u64;
    let within = |(began, ended): &(u64, u64)| {
        (*ended).min(nanos(until)).saturating_sub((*began).max(nanos(from)))
    };
    let stalled: u64 = recorded.stalls.iter().map(within).sum();
    let merges_of = |space: &Keyspace| {
        recorded.merged.iter().filter(|name| *name == space.name()).count() as u64
    };
    let writes = PlayedWrites {
        rate: completed as f64 / (until - from),
        stalled: stalled as f64 / 1e9 / (until - from),
        longest_seconds: longest as f64 / 1e9,
    };
    let merges = spaces.iter().map(merges_of).collect();
    drop(spaces);
    db.close()?;
    Ok(PlayedRun { writes, merges })
}

/// Opens a database with a keyspace for each tree. A writer that the engine stops waits in the listener.
fn open(
    trees: &[PlayedTree],
    slots: usize,
    time: &Arc<VirtualTime>,
    recorded: &Arc<Mutex<Recorded>>,
) -> Result<(Db, Vec<Keyspace>)> {
    let (clock, list) = (Arc::clone(time), Arc::clone(recorded));
    let db = Options::new()
        .memory_budget(MEMORY)
        .compaction_threads(slots)
        .background(Background::Inline)
        .log_segment_bytes(LOG_SEGMENT_BYTES)
        .storage(Arc::new(MemoryStorage::new(1)))
        .clock(Arc::clone(time) as Arc<dyn terrane::Clock>)
        .on_event(move |event| match &event.event {
            Event::WritesStalled(stall) if stall.effect == StallEffect::Stopped => {
                lock(&list).stopped_by = Some(stall.keyspace.clone());
                let began = clock.nanos();
                clock.wait_for_resume();
                lock(&list).stalls.push((began, clock.nanos()));
            }
            // The writer then checks again, and stalls again if there is another cause.
            Event::WritesResumed { keyspace, .. }
                if lock(&list)
                    .stopped_by
                    .take_if(|stopped_by| stopped_by == keyspace)
                    .is_some() =>
            {
                clock.resume();
            }
            Event::JobEnded { keyspace, tables_rewritten: 1.., .. } => {
                lock(&list).merged.push(keyspace.clone());
            }
            _ => {}
        })
        .open("/played")?;
    let spaces = trees.iter().enumerate().map(|(number, tree)| {
        let options = KeyspaceOptions::new().design(tree.design.clone());
        Ok(db.keyspace(&format!("tree-{number}"), options)?)
    });
    let spaces = spaces.collect::<Result<_>>()?;
    Ok((db, spaces))
}

/// Runs jobs until the run is over.
fn run_jobs(time: &VirtualTime, db: &Db, thread: usize) -> Result<()> {
    let _turns = time.enter(thread);
    while !time.is_over() {
        if db.run_background_job()? {
            // A completed job may have made several others due.
            time.note_work();
        } else {
            time.wait_for_work();
        }
    }
    Ok(())
}

/// The writer of a run.
struct PlayedWriter<'a> {
    time: &'a VirtualTime,
    plan: &'a ValidationPlan,
    trees: &'a [PlayedTree],
    spaces: &'a [Keyspace],
    machine: PlayedMachine,
    /// The beginning of the run in nanoseconds.
    begin: u64,
}

impl PlayedWriter<'_> {
    /// Writes until the end. Returns the number of writes completed after `from`, and the longest time from
    /// the arrival of a write to its completion, in nanoseconds.
    fn run(
        &self,
        rate: Option<f64>,
        (from, until): (f64, f64),
        has_failed: &AtomicBool,
    ) -> Result<(u64, u64)> {
        let _turns = self.time.enter(0);
        let value = value(self.plan);
        let cost = (self.machine.write_seconds * 1e9) as u64;
        let nanos = |seconds: f64| self.begin + (seconds * 1e9) as u64;
        let mut targets: Vec<WriteTarget> = (1..)
            .zip(self.spaces)
            .map(|(number, space)| {
                let seed = self.plan.seed.wrapping_mul(number);
                let chooser = RecordChooser::new(self.plan.records, self.plan.skew, seed);
                WriteTarget { space: space.clone(), chooser, replaced: Replacements::default() }
            })
            .collect();
        let mut trees = RecordChooser::new(1 << 32, terrane_sim::Skew::Uniform, self.plan.seed);
        let (mut completed, mut longest) = (0, 0);
        for number in 0u64.. {
            let now = self.time.nanos();
            let arrived = rate.map_or(now, |rate| nanos(number as f64 / rate));
            let starts = arrived.max(now);
            let is_over = starts >= nanos(until) || has_failed.load(Ordering::SeqCst);
            if is_over {
                break;
            }
            self.time.sleep_until(starts);
            let at = self.choose(trees.next() as f64 / 2f64.powi(32));
            let Some(target) = targets.get_mut(at) else { break };
            let record = target.chooser.next();
            target.space.put(key(record, self.plan.records), &value)?;
            if target.replaced.note_write(&target.space) {
                self.time.note_work();
            }
            let ends = self.time.nanos() + cost;
            self.time.sleep_until(ends);
            if ends > nanos(from) && ends <= nanos(until) {
                completed += 1;
            }
            longest = longest.max(ends - arrived);
        }
        Ok((completed, longest))
    }

    /// Returns the tree that a random number in 0..1 selects, by the trees' shares.
    fn choose(&self, chance: f64) -> usize {
        let all: f64 = self.trees.iter().map(|tree| tree.share).sum();
        let mut upto = 0.0;
        let is_next = |tree: &PlayedTree| {
            upto += tree.share / all;
            chance < upto
        };
        self.trees.iter().position(is_next).unwrap_or(self.trees.len() - 1)
    }
}

/// A tree that the writer writes to.
struct WriteTarget {
    space: Keyspace,
    chooser: RecordChooser,
    replaced: Replacements,
}

/// Notices when a full memtable is replaced, which makes a flush due.
#[derive(Debug, Default)]
struct Replacements {
    writes: u64,
    /// The smallest number of writes that filled a memtable so far.
    least: u64,
}

impl Replacements {
    /// Counts a write. Returns true if it was the first one in a new memtable.
    fn note_write(&mut self, space: &Keyspace) -> bool {
        self.writes += 1;
        if (self.writes as f64) < self.least as f64 * LOOK_FROM {
            return false;
        }
        let is_first = space.tree().memtable_entries == 1;
        if is_first && self.writes > 1 {
            let filled = self.writes - 1;
            self.least = if self.least == 0 { filled } else { self.least.min(filled) };
            self.writes = 1;
        }
        is_first
    }
}
