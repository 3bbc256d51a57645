//! Reports stalls: once when the first writer is stopped or delayed, and once when writers resume.

use std::sync::atomic::Ordering;

use terrane_policy::{Admission, Pressure, StallCause};

use super::Catalog;
use crate::base::event::{Event, StallEffect, WriteStall};
use crate::engine::tree::{Tree, is_stall, pressure_of};

impl Catalog {
    /// Emits an event about a tree's stall, unless it was already reported. Must be called without
    /// locks, because a listener may write.
    pub(crate) fn report_stalled(&self, tree: &Tree, effect: StallEffect, pressure: &Pressure) {
        report(self, (tree, effect, pressure), pressure.until());
    }

    /// Emits an event for each tree whose reported stall is over.
    fn report_resumed(&self) {
        // Relaxed: the lock of a tree orders its report before the check that follows its job.
        let is_none_reported = self.stalls_reported.load(Ordering::Relaxed) == 0;
        if is_none_reported || std::thread::panicking() {
            return;
        }
        for tree in self.trees().values() {
            let mut reported = tree.reported_stall();
            let admission: Admission = tree.state().admission;
            let is_over = |stall: &mut WriteStall| {
                if stall.cause == StallCause::MemoryBudget {
                    return !self.context.memtables.is_short();
                }
                pressure_of(&admission).is_none_or(|pressure| pressure.cause != stall.cause)
            };
            let Some(stall) = reported.take_if(is_over) else { continue };
            drop(reported);
            end_stall(self, stall);
        }
    }

    /// Makes stalled writers check again whether they may continue, after a job that may have made
    /// space. Gives the memory that the job released to the cache.
    pub(crate) fn notify_stalled_writers(&self) {
        self.resize_cache_after_job();
        self.report_resumed();
        self.pipeline.notify_space();
    }
}

/// Emits an event about writers of a tree that spread the room before a stop, unless it was already reported.
/// Must be called without locks.
pub(crate) fn report_spread(catalog: &Catalog, tree: &Tree, pressure: &Pressure) {
    report(catalog, (tree, StallEffect::Delayed, pressure), pressure.relief());
}

fn report(
    catalog: &Catalog,
    (tree, effect, pressure): (&Tree, StallEffect, &Pressure),
    until: String,
) {
    let mut reported = tree.reported_stall();
    if is_stall(&reported, effect, pressure) || tree.is_dropped() {
        return;
    }
    let now = catalog.context.clock.now_micros();
    let stalled_since = match pressure.cause {
        StallCause::MemoryBudget => catalog.context.memtables.short_since(),
        _ => tree.state().stalled_since,
    };
    let lasted = stalled_since.map(|since| since.elapsed().as_micros()).unwrap_or_default();
    let stall = WriteStall {
        keyspace: tree.name().to_string(),
        effect,
        cause: pressure.cause,
        measured: pressure.measured.into(),
        threshold: pressure.threshold.into(),
        since_micros: now.saturating_sub(u64::try_from(lasted).unwrap_or(u64::MAX)),
        until,
    };
    if reported.replace(stall.clone()).is_none() {
        catalog.stalls_reported.fetch_add(1, Ordering::Relaxed);
    }
    drop(reported);
    catalog.context.events.emit(Event::WritesStalled(stall));
}

/// Ends the reported stall of a tree that was marked as dropped. Must be called without locks.
pub(super) fn report_dropped(catalog: &Catalog, tree: &Tree) {
    let reported = tree.reported_stall().take();
    if let Some(stall) = reported {
        end_stall(catalog, stall);
    }
}

fn end_stall(catalog: &Catalog, stall: WriteStall) {
    catalog.stalls_reported.fetch_sub(1, Ordering::Relaxed);
    let now = catalog.context.clock.now_micros();
    let lasted_micros = now.saturating_sub(stall.since_micros);
    let WriteStall { keyspace, cause, .. } = stall;
    catalog.context.events.emit(Event::WritesResumed { keyspace, cause, lasted_micros });
}

#[cfg(test)]
mod tests;
