//! Runs the engine on the workload of a comparison with the simulator.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, Durability, ManualClock, Options, Stats, WriteOptions};
use terrane_policy::TreeShape;
use terrane_policy::random::SplitMix64;
use terrane_sim::{Skew, WriteMix};

use super::plan::ValidationPlan;
use crate::simulation::calibrate::{KEY_BYTES, LOG_SEGMENT_BYTES, key, scattered};

/// The number of writes between two samples of the tree's shape.
const LOOK_EVERY: u64 = 512;

/// Writes per second of the clock, in the engine and in the simulator. At this rate all due work completes
/// before the next memtable is full.
pub(super) const WRITES_PER_SECOND: f64 = 1000.0;

/// Enough memory that the budget never limits the engine.
const MEMORY: u64 = 1 << 30;

/// The amplification and the shape of a tree during its writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeMeasurement {
    /// Bytes written to tables and value files per user byte. It is the mean over time, which hardly
    /// depends on whether the last merge of a large level is just before or just after the end.
    pub amplification: f64,
    pub mean_runs: f64,
    pub most_runs: usize,
    pub levels: usize,
    /// The mean bytes of all tables.
    pub mean_bytes: f64,
}

/// Chooses records to update.
pub(super) struct RecordChooser {
    random: SplitMix64,
    records: u64,
    /// The cumulative probability of each rank; empty for uniform keys.
    upto: Vec<f64>,
}

impl RecordChooser {
    pub(super) fn new(records: u64, skew: Skew, seed: u64) -> Self {
        let mut upto = Vec::new();
        if let Skew::Zipf(theta) = skew {
            let mut sum = 0.0;
            upto.extend((1..=records).map(|rank| {
                sum += (rank as f64).powf(-theta);
                sum
            }));
            upto.iter_mut().for_each(|part| *part /= sum);
        }
        Self { random: SplitMix64::new(seed), records, upto }
    }

    pub(super) fn next(&mut self) -> u64 {
        if self.upto.is_empty() {
            return self.random.bits() % self.records;
        }
        let chance = self.random.unit();
        let rank = self.upto.partition_point(|upto| *upto <= chance) as u64;
        scattered(rank.min(self.records - 1), self.records)
    }
}

/// Writes of several kinds in the proportions of a mix.
struct MixedWriter {
    chooser: RecordChooser,
    mix: WriteMix,
    /// The number of keys that the load spread over the key space.
    records: u64,
    /// The existing keys, if deleted keys do not return.
    live: Option<Vec<u64>>,
    /// The number of the next inserted key.
    next: u64,
}

impl MixedWriter {
    fn new(plan: &ValidationPlan) -> Self {
        let keeps_live = plan.mix.inserts > 0.0 || !plan.mix.deleted_return;
        Self {
            chooser: RecordChooser::new(plan.records, plan.skew, plan.seed),
            mix: plan.mix,
            records: plan.records,
            live: keeps_live.then(|| (0..plan.records).collect()),
            next: plan.records,
        }
    }

    fn chance(&mut self) -> f64 {
        self.chooser.random.unit()
    }

    /// Returns the key of a record. Inserted keys are between the loaded ones.
    fn key(&self, number: u64) -> [u8; KEY_BYTES] {
        if number < self.records {
            return key(number, self.records);
        }
        let mut new = [b'+'; KEY_BYTES];
        new[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        new
    }

    fn write(&mut self, db: &Db, value: &[u8]) -> Result<()> {
        let kind = if self.mix == WriteMix::default() { 1.0 } else { self.chance() };
        let WriteMix { inserts, deletes, range_deletes, range_width, .. } = self.mix;
        if kind < range_deletes {
            let width = (range_width * 2f64.powi(64)) as u64;
            let start = self.chooser.random.bits() % (u64::MAX - width);
            let ends = [start, start + width].map(u64::to_be_bytes);
            return Ok(db.delete_range(ends[0]..ends[1])?);
        }
        let is_insert = kind < range_deletes + inserts;
        if is_insert || self.live.as_ref().is_some_and(Vec::is_empty) {
            let new = self.next;
            self.next += 1;
            self.live.iter_mut().for_each(|live| live.push(new));
            return self.put(db, self.key(new), value);
        }
        let at = self.chooser.next();
        let at = match &self.live {
            Some(live) => (self.chooser.random.bits() % live.len() as u64) as usize,
            None => at as usize,
        };
        let number = self.live.as_ref().map_or(at as u64, |live| live[at]);
        if kind < range_deletes + inserts + deletes {
            if let Some(live) = self.live.as_mut().filter(|_| !self.mix.deleted_return) {
                live.swap_remove(at);
            }
            return Ok(db.delete(self.key(number))?);
        }
        self.put(db, self.key(number), value)
    }

    fn put(&mut self, db: &Db, key: [u8; KEY_BYTES], value: &[u8]) -> Result<()> {
        if self.mix.expiring > 0.0 && self.chance() < self.mix.expiring {
            let ttl = Duration::from_secs_f64(self.mix.ttl_seconds);
            return Ok(db.put_with(key, value, WriteOptions::new().ttl(ttl))?);
        }
        Ok(db.put(key, value)?)
    }
}

/// Loads a tree and updates it; all due work completes before the next write.
pub(super) fn at_once(plan: &ValidationPlan, design: &Design) -> Result<TreeMeasurement> {
    // With a log, flushes leave large values in it, and the bytes of tables and value files would not
    // include them.
    let clock = Arc::new(ManualClock::new(1));
    let db = Options::new()
        .design(design.clone())
        .memory_budget(MEMORY)
        .durability(Durability::None)
        .background(Background::Inline)
        .log_segment_bytes(LOG_SEGMENT_BYTES)
        .storage(Arc::new(MemoryStorage::new(1)))
        .clock(Arc::clone(&clock) as Arc<dyn terrane::Clock>)
        .open("/simulated")?;
    let value = value(plan);
    load(plan, |key| Ok(db.put(key, &value)?), || Ok(db.run_background_job()?))?;
    db.flush()?;
    while db.run_background_job()? {}
    let before = db.stats();
    let mut writer = MixedWriter::new(plan);
    let (mut runs, mut bytes, mut looks, mut most_runs) = (0, 0, 0, 0);
    let (mut written, mut user) = (0, 0);
    for number in 0..plan.writes {
        writer.write(&db, &value)?;
        clock.advance(Duration::from_secs_f64(1.0 / WRITES_PER_SECOND));
        if number % 32 == 31 {
            while db.run_background_job()? {}
        }
        if number % LOOK_EVERY == 0 {
            let shape = db.tree().shape;
            let now = shape.run_count();
            bytes += shape.size_bytes();
            (runs, looks, most_runs) = (runs + now, looks + 1, most_runs.max(now));
            let stats = db.stats();
            written += written_bytes(&stats) - written_bytes(&before);
            user += stats.user_bytes_written - before.user_bytes_written;
        }
    }
    let levels = levels(&db.tree().shape);
    db.close()?;
    let looks = f64::max(looks as f64, 1.0);
    Ok(TreeMeasurement {
        amplification: written as f64 / user.max(1) as f64,
        mean_runs: runs as f64 / looks,
        most_runs,
        levels,
        mean_bytes: bytes as f64 / looks,
    })
}

fn written_bytes(stats: &Stats) -> u64 {
    stats.flush_bytes_written + stats.compaction_bytes_written
}

/// Returns the number of levels with tables.
pub(super) fn levels(shape: &TreeShape) -> usize {
    shape.levels.iter().filter(|level| !level.runs.is_empty()).count()
}

/// Writes every record once in random order. All due work completes before the next writes.
pub(super) fn load(
    plan: &ValidationPlan,
    mut put: impl FnMut([u8; KEY_BYTES]) -> Result<()>,
    mut run_job: impl FnMut() -> Result<bool>,
) -> Result<()> {
    for number in 0..plan.records {
        put(key(scattered(number, plan.records), plan.records))?;
        if number % 32 == 31 {
            while run_job()? {}
        }
    }
    Ok(())
}

pub(super) fn value(plan: &ValidationPlan) -> Vec<u8> {
    vec![b'v'; plan.record_bytes.saturating_sub(KEY_BYTES)]
}
