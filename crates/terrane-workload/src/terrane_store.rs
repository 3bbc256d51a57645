//! A Terrane database as an engine, for the benchmark command and the comparison.

use std::ops::Bound;

use crate::error::StoreError;
use crate::store::{
    Direction, Glance, RunLimit, STALL_CAUSES_MAX, StallTime, Store, StoreCounters,
};
use terrane::policy::{Intake, Scheduler, StallCause, Violation};
use terrane::{Db, Design, Durability, Stats, TreeView, WriteBatch, WriteOptions};

/// A database under test.
#[derive(Debug, Clone)]
pub struct TerraneStore {
    /// The database. [`Db::stats`] has more counters than [`StoreCounters`].
    pub db: Db,
}

/// Returns the design for measuring the maximum rate: a fair scheduler, because one that starves
/// large merges reaches a rate that it cannot sustain (performance-stability §5.1.4), and exact
/// merges, because a tree that takes in more runs than its shape allows loses that shape (§6.2).
pub fn testing_design(design: &Design) -> Design {
    let mut design = design.clone();
    design.scheduler = Scheduler::Fair;
    design.strategy.intake = Intake::Exact;
    design
}

impl Store for TerraneStore {
    fn set_testing(&self, is_on: bool) -> Result<(), StoreError> {
        let design = match is_on {
            true => testing_design(&self.db.design()),
            false => self.db.default_keyspace().design_before().unwrap_or_else(|| self.db.design()),
        };
        self.db.set_design(design).map_err(StoreError::during("change the design"))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.db.put(key, value).map_err(StoreError::during("put"))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let options = WriteOptions::new().durability(Durability::Sync);
        self.db.put_with(key, value, options).map_err(StoreError::during("put"))
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        let mut batch = WriteBatch::new();
        for (key, value) in puts {
            batch.put(key, value);
        }
        self.db.write(&batch).map_err(StoreError::during("write a batch"))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.db.delete(key).map_err(StoreError::during("delete"))
    }

    fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<(), StoreError> {
        self.db.delete_range(start..end).map_err(StoreError::during("delete a range"))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let value = self.db.get(key).map_err(StoreError::during("get"))?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(
        &self,
        keys: &[Vec<u8>],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<usize, StoreError> {
        let values = self.db.multi_get(keys).map_err(StoreError::during("get several"))?;
        let mut found = 0;
        for (position, value) in values.iter().enumerate() {
            if let Some(value) = value {
                visit(position, value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let failed = StoreError::during("scan");
        let scanned = match direction {
            Direction::Forward => self.scan_forward(start, limit, visit),
            Direction::Backward => self.scan_backward(start, limit, visit),
        };
        scanned.map_err(failed)
    }

    fn settle(&self) -> Result<(), StoreError> {
        let settled = self.db.flush().and_then(|()| self.db.wait_for_compactions());
        settled.map_err(StoreError::during("settle"))
    }

    fn counters(&self) -> StoreCounters {
        let stats = self.db.stats();
        StoreCounters {
            user_bytes_written: Some(stats.user_bytes_written),
            storage_bytes_written: Some(stats.storage_bytes_written()),
            storage_bytes_read: Some(stats.storage_bytes_read()),
            flushes: Some(stats.flushes),
            compactions: Some(stats.compactions),
            compactions_by_level: stats.by_level.iter().map(|level| level.compactions).collect(),
            trivial_moves: Some(stats.trivial_moves),
            stall_micros: Some(stats.stalls.total_micros()),
            stalls: stalls_of(&stats),
            point_lookups: Some(stats.gets),
            blocks_looked_into: Some(stats.get_blocks),
            ..StoreCounters::default()
        }
    }

    fn glance(&self) -> Glance {
        let (stats, tree) = (self.db.stats(), self.db.tree());
        let mut stalls_micros = [0; STALL_CAUSES_MAX];
        for (micros, one) in stalls_micros.iter_mut().zip(stalls_of(&stats)) {
            *micros = one.micros;
        }
        let has_runs = |level: &&terrane::policy::Level| !level.runs.is_empty();
        Glance {
            components: Some(tree.shape.run_count() as u64),
            storage_bytes_written: Some(stats.storage_bytes_written()),
            table_bytes_written: Some(stats.flush_bytes_written + stats.compaction_bytes_written),
            user_bytes_written: Some(stats.user_bytes_written),
            stall_micros: Some(stats.stalls.total_micros()),
            stalls_micros,
            levels: Some(tree.shape.levels.iter().filter(has_runs).count() as u64),
            limit: limit_of(&tree),
            running_merges: Some(tree.compactions.len() as u64),
        }
    }
}

/// Returns the limit on runs, unless the design has none.
fn limit_of(tree: &TreeView) -> Option<RunLimit> {
    let (limited, violation) = (tree.limited, tree.design.constraint.violation);
    let is_limited = violation != Violation::None && limited.stop_at < u32::MAX;
    is_limited.then(|| RunLimit {
        runs: limited.measured,
        delay: (violation == Violation::SlowDown && limited.threshold < limited.stop_at)
            .then_some(limited.threshold),
        stop: limited.stop_at,
    })
}

/// Returns the time that writers were stalled for each cause.
fn stalls_of(stats: &Stats) -> Vec<StallTime> {
    let stall = |cause, micros| StallTime { cause, count: 0, micros };
    let causes = StallCause::ALL.iter();
    let mut stalls: Vec<_> =
        causes.map(|cause| stall(cause.to_string(), stats.stalls.micros(*cause))).collect();
    stalls.push(stall("delay".into(), stats.stalls.delay_micros));
    stalls
}

impl TerraneStore {
    fn scan_forward(
        &self,
        start: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> terrane::Result<usize> {
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        let mut entries = self.db.range((start, Bound::Unbounded))?;
        let mut seen = 0;
        while seen < limit && entries.advance()? {
            visit(entries.key(), entries.value());
            seen += 1;
        }
        Ok(seen)
    }

    fn scan_backward(
        &self,
        start: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> terrane::Result<usize> {
        let end = start.map_or(Bound::Unbounded, Bound::Included);
        let entries = self.db.range((Bound::Unbounded, end))?;
        let mut seen = 0;
        for entry in entries.rev().take(limit) {
            let (key, value) = entry?;
            visit(&key, &value);
            seen += 1;
        }
        Ok(seen)
    }
}
