//! The threads that drain FloDB memtables.
//!
//! A write whose Membuffer bucket is full goes to the lower level, which takes longer. Drain threads
//! move entries from the Membuffer to the lower level in the background; designs set their number.
//! They are optional: flushes and scans drain the memtables that they need.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use terrane_memtable::FrontLevel;

use super::Jobs;
use crate::base::error::Result;
use crate::base::stats::Counter;
use crate::base::turns;
use crate::engine::tree::Tree;

/// How long a thread rests after it found only hot entries, which it does not move.
const REST: Duration = Duration::from_millis(1);

impl Jobs {
    /// Starts the drain threads that the designs require and that are not running yet.
    pub(super) fn start_drain_threads(self: &Arc<Self>) -> Result<()> {
        let trees = self.catalog.trees();
        self.start_drain_threads_of(trees.values())
    }

    /// Starts the drain threads that the design of one tree requires.
    pub(crate) fn start_drain_threads_for(self: &Arc<Self>, tree: &Arc<Tree>) -> Result<()> {
        self.start_drain_threads_of(std::iter::once(tree))
    }

    fn start_drain_threads_of<'a>(
        self: &Arc<Self>,
        trees: impl Iterator<Item = &'a Arc<Tree>>,
    ) -> Result<()> {
        if self.context.is_inline() {
            return Ok(());
        }
        let wanted = trees.map(|tree| tree.design().memtable.drain_threads());
        let wanted = wanted.max().unwrap_or(0);
        let mut threads = self.drain_threads.lock().unwrap_or_else(PoisonError::into_inner);
        while *threads < wanted {
            self.start_thread(format!("terrane-drain-{threads}"), Self::run_drain_thread)?;
            *threads += 1;
        }
        Ok(())
    }

    fn run_drain_thread(&self) {
        let signals = &self.context.signals;
        while !signals.is_stopping() {
            if self.drain_once() > 0 {
                continue;
            }
            if self.needs_drain() {
                std::thread::sleep(REST);
                continue;
            }
            signals.drains.wait(|| self.needs_drain() || signals.is_stopping());
        }
    }

    fn needs_drain(&self) -> bool {
        let trees = self.catalog.trees();
        trees.values().any(|tree| {
            let state = tree.state();
            state.active.memtable.front_level().is_some_and(FrontLevel::needs_drain)
        })
    }

    /// Drains the active memtables. Returns the number of versions moved.
    fn drain_once(&self) -> usize {
        let start = Instant::now();
        let mut moved = 0;
        for tree in self.catalog.trees().values() {
            // Keeps only the memtable, not the state of the tree.
            let memtable = Arc::clone(&tree.state().active.memtable);
            let Some(front) = memtable.front_level() else { continue };
            // A pass that begins meanwhile comes after other trees.
            for _ in 0..front.reclaiming_steps() {
                moved += front.reclaim_step(&self.pipeline.readers());
                turns::give_way();
            }
            moved += front.drain();
            let overwritten = front.take_overwritten() as u64;
            self.context.counters.add_some(Counter::UpdatesInPlace, overwritten);
        }
        if moved > 0 {
            let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.context.counters.add(Counter::DrainMicros, micros);
            self.context.counters.add(Counter::Drained, moved as u64);
        }
        moved
    }
}
