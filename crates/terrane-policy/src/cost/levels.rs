//! Level by level: the data that enters a level, the rewriting that it causes, and the data that stays.
//!
//! All data enters level 0 in flushes. A level receives data from the level above in *chunks*, the
//! amounts that the level above gives up at once. The cost depends on the level:
//!
//! - One run, moved as a whole: the level merges each chunk with its contents until it exceeds its
//!   capacity, and then gives up everything. n chunks of a bytes cause a·(1 + 2 + … + n) bytes of
//!   writes, less the first chunk, which moves into the empty level if it is a single run itself.
//! - One run, moved file by file: the level stays full. Each incoming byte rewrites x bytes if the
//!   level is x times larger than the range from which the chunk was cut.
//! - Several runs: a chunk becomes a run, written once, until there are too many runs.
//! - Several runs with room for more than one chunk each (Dostoevsky's fluid tree): each run behaves
//!   as in the first case.
//!
//! - Level 0 with merging flushes: one run. Each flush rewrites the run together with its own data
//!   until the result would be too large. That flush then becomes a second run and leaves with the
//!   first.
//!
//! The last level is the first that does not have to give up any data.

use super::{DataProfile, blocked_false_positive_rate};
use crate::design::{Design, FlushMode};
use crate::strategy::Scope;

/// The deepest level that the model considers.
const LEVELS_MAX: usize = 40;

/// The contents and the costs of a level, averaged over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelCosts {
    /// The index of the level.
    pub level: usize,
    /// The bytes that the level holds.
    pub bytes: f64,
    /// The maximum number of bytes that the level holds before it gives up data.
    pub bytes_max: f64,
    /// The number of runs that the level holds.
    pub runs: f64,
    /// The maximum number of runs that the level holds.
    pub runs_max: f64,
    /// Bytes that entered the level from the level above or from memtables.
    pub arrived_bytes: f64,
    /// Bytes that compactions wrote to the level.
    pub written_bytes: f64,
    /// The maximum number of bytes that one compaction into the level writes.
    pub merge_bytes_max: f64,
    /// Filter bits per key.
    pub filter_bits: f64,
    /// The fraction of missing keys that one filter of the level lets through.
    pub false_positive_rate: f64,
}

impl LevelCosts {
    /// Returns the blocks of the level that a lookup reads because of false positives.
    pub fn false_positives(&self) -> f64 {
        self.runs * self.false_positive_rate
    }
}

/// The data that a level gives up at once.
#[derive(Debug, Clone, Copy)]
struct DataChunk {
    /// All bytes that ever arrive in the level below.
    arriving: f64,
    /// The bytes of one chunk. It spans all keys and thus rewrites a whole run below.
    bytes: f64,
    /// True if a level that stays full gives up the data file by file.
    is_partial: bool,
    /// True if the data is one run, which moves without a rewrite if it overlaps nothing.
    is_single: bool,
}

/// The contents of a level, and the data that leaves it.
struct LevelFlow {
    bytes: f64,
    bytes_max: f64,
    runs: f64,
    runs_max: f64,
    written: f64,
    merge_max: f64,
    leaves: Option<DataChunk>,
}

/// Returns the levels of a tree after all data is written.
pub(super) fn levels(design: &Design, data: &DataProfile) -> Vec<LevelCosts> {
    let depths = (0..=LEVELS_MAX).map(|last| attempt(design, data, last));
    let Some((mut levels, _)) = depths.into_iter().find(|(_, overflows)| !overflows) else {
        return Vec::new();
    };
    let last = levels.len() - 1;
    // Different rules may have applied to a level while it was the last.
    let changes = |level: usize| {
        let strategy = &design.strategy;
        strategy.runs_allowed(level, level) != strategy.runs_allowed(level, last)
            || design.capacity_bytes(level, level) != design.capacity_bytes(level, last)
    };
    if (1..last).any(changes) {
        let written = written_by_depth(design, data, last);
        for (level, written) in levels.iter_mut().zip(written) {
            level.written_bytes = written;
        }
    }
    for level in &mut levels {
        level.filter_bits = design.filter_bits_at(level.level, last);
        level.false_positive_rate =
            blocked_false_positive_rate(level.filter_bits, design.filter_probes);
    }
    levels
}

/// Returns the bytes written to each level, summed over the depths through which the tree grew.
fn written_by_depth(design: &Design, data: &DataProfile, deepest: usize) -> Vec<f64> {
    let mut written = vec![0.0; deepest + 1];
    let mut begun = 0.0;
    for last in 0..=deepest {
        let is_deepest = last == deepest;
        let ended = if is_deepest { data.records } else { most_records(design, data, last, begun) };
        let at = |records: f64| attempt(design, &DataProfile { records, ..*data }, last).0;
        // A shallower tree wrote the records before `begun`.
        for (sum, level) in written.iter_mut().zip(at(ended)) {
            *sum += level.written_bytes;
        }
        for (sum, level) in written.iter_mut().zip(at(begun)) {
            *sum -= level.written_bytes;
        }
        begun = ended;
    }
    written.iter().map(|bytes| bytes.max(0.0)).collect()
}

/// Returns the number of records that fit a tree of this depth: at least `least`, which a shallower
/// tree held.
fn most_records(design: &Design, data: &DataProfile, last: usize, least: f64) -> f64 {
    let (mut fits, mut overflows) = (least, data.records);
    for _ in 0..60 {
        let records = f64::midpoint(fits, overflows);
        if attempt(design, &DataProfile { records, ..*data }, last).1 {
            overflows = records;
        } else {
            fits = records;
        }
    }
    fits
}

/// The levels of a tree whose last level is `last`, without filters, and whether the last level
/// overflows.
fn attempt(design: &Design, data: &DataProfile, last: usize) -> (Vec<LevelCosts>, bool) {
    let stored = data.stored_bytes(design);
    let all = data.records * stored;
    let in_memtable = data.record_bytes + data.memtable_entry_bytes;
    let flush = design.buffer_bytes as f64 * stored / in_memtable.max(1.0);
    let flush = flush.min(all).max(1.0);
    let mut chunk = DataChunk { arriving: all, bytes: flush, is_partial: false, is_single: true };
    let mut levels = Vec::with_capacity(last + 1);
    for level in 0..=last {
        let at = LevelModel { design, level, last };
        let filled = if level == 0 { at.level0(chunk) } else { at.fill(chunk) };
        levels.push(LevelCosts {
            level,
            bytes: filled.bytes,
            bytes_max: filled.bytes_max,
            runs: filled.runs,
            runs_max: filled.runs_max,
            arrived_bytes: chunk.arriving,
            written_bytes: filled.written,
            merge_bytes_max: filled.merge_max,
            filter_bits: 0.0,
            false_positive_rate: 1.0,
        });
        match filled.leaves {
            Some(leaves) => chunk = leaves,
            None => return (levels, false),
        }
    }
    (levels, true)
}

/// A level of a design.
struct LevelModel<'a> {
    design: &'a Design,
    level: usize,
    last: usize,
}

impl LevelModel<'_> {
    fn capacity(&self) -> f64 {
        self.design.capacity_bytes(self.level, self.last) as f64
    }

    /// Returns true if the level's size decides when it acts, although it gathers runs.
    fn goes_by_size(&self) -> bool {
        !self
            .design
            .strategy
            .triggers
            .at(self.level)
            .iter()
            .any(|one| one.has_scope(Scope::LevelRuns))
    }

    fn level0(&self, from: DataChunk) -> LevelFlow {
        if self.design.flush == FlushMode::Merge {
            return flushed_together(from, self.capacity());
        }
        let by_runs = f64::from(self.design.strategy.level0_runs.max(1));
        let gathers =
            if self.goes_by_size() { (self.capacity() / from.bytes).ceil() } else { by_runs };
        LevelFlow { written: 0.0, merge_max: 0.0, ..gathered(from, gathers.max(1.0)) }
    }

    fn fill(&self, from: DataChunk) -> LevelFlow {
        let strategy = &self.design.strategy;
        let allowed = f64::from(strategy.runs_allowed(self.level, self.last).max(1));
        let is_partial = strategy.granularity.at(self.level).tables().is_some();
        let room = self.capacity();
        if allowed <= 1.0 {
            return if is_partial { self.one_full_run(from, room) } else { one_run(from, room) };
        }
        if strategy.fills_runs(self.level, self.last) {
            return filling(from, room, allowed);
        }
        let by_size = (room / from.bytes).ceil().max(1.0);
        gathered(from, if self.goes_by_size() { by_size } else { allowed + 1.0 })
    }

    /// A level of one run that gives up single files.
    fn one_full_run(&self, from: DataChunk, room: f64) -> LevelFlow {
        let stays = from.arriving.min(room);
        let spread = from.bytes.max(1.0);
        // While the level grows, it has on average half of its final size when a byte arrives.
        let growing = if from.is_partial {
            stays * (1.0 + stays / spread / 2.0)
        } else {
            merged(from, stays)
        };
        let full = (from.arriving - stays) * (1.0 + stays / spread);
        let arriving = from.arriving - stays;
        let table = self.design.table_bytes as f64;
        let moving = if from.is_partial { table } else { from.bytes };
        LevelFlow {
            bytes: stays,
            bytes_max: room.min(from.arriving),
            runs: f64::from(u8::from(stays > 0.0)),
            runs_max: 1.0,
            written: growing + full,
            merge_max: (moving * (1.0 + stays / spread)).min(stays + moving),
            leaves: (arriving > 0.0).then_some(DataChunk {
                arriving,
                bytes: stays,
                is_partial: true,
                is_single: true,
            }),
        }
    }
}

/// Returns the bytes that need not be rewritten because the first chunk moves into an empty level.
fn moved(from: DataChunk, room: f64) -> f64 {
    let is_moved = from.is_single && !from.is_partial;
    if is_moved { from.bytes.min(room).min(from.arriving) } else { 0.0 }
}

/// Returns the bytes written while chunks are merged into one run until the run holds `bytes`.
fn merged(from: DataChunk, bytes: f64) -> f64 {
    let chunks = bytes / from.bytes.max(1.0);
    (bytes * (chunks + 1.0) / 2.0 - moved(from, bytes)).max(0.0)
}

/// A level of one run that gives up everything when it exceeds its capacity.
fn one_run(from: DataChunk, room: f64) -> LevelFlow {
    let whole = ((room / from.bytes).floor() + 1.0).max(1.0) * from.bytes;
    if from.arriving <= room {
        let bytes = from.arriving;
        return LevelFlow {
            bytes,
            bytes_max: bytes,
            runs: f64::from(u8::from(bytes > 0.0)),
            runs_max: 1.0,
            written: merged(from, bytes),
            merge_max: bytes,
            leaves: None,
        };
    }
    let chunks = whole / from.bytes;
    let bytes = ((whole - from.bytes) / 2.0).min(from.arriving);
    LevelFlow {
        bytes,
        bytes_max: whole - from.bytes,
        runs: 1.0 - 1.0 / chunks,
        runs_max: 1.0,
        written: merged(from, whole) * from.arriving / whole,
        merge_max: whole,
        leaves: Some(DataChunk {
            arriving: from.arriving - bytes,
            bytes: whole,
            is_partial: false,
            is_single: true,
        }),
    }
}

/// One run, with which flushes merge while it has room, and a second run once the first is full.
fn flushed_together(from: DataChunk, room: f64) -> LevelFlow {
    let fit = ((room / from.bytes).ceil() - 1.0).max(1.0);
    let all = (fit + 1.0) * from.bytes;
    // Each chunk rewrites the chunks before it; its own bytes count as flushed.
    let rewritten = |chunks: f64| from.bytes * (chunks * (chunks - 1.0) / 2.0).max(0.0);
    if from.arriving < all {
        let chunks = from.arriving / from.bytes;
        return LevelFlow {
            bytes: from.arriving,
            bytes_max: from.arriving,
            runs: chunks.min(1.0),
            runs_max: chunks.ceil().min(1.0),
            written: rewritten(chunks.min(fit)),
            merge_max: from.arriving,
            leaves: None,
        };
    }
    let bytes = fit / 2.0 * from.bytes;
    LevelFlow {
        bytes,
        bytes_max: fit * from.bytes,
        runs: fit / (fit + 1.0),
        runs_max: 1.0,
        written: rewritten(fit) * from.arriving / all,
        merge_max: fit * from.bytes,
        leaves: Some(DataChunk {
            arriving: from.arriving - bytes,
            bytes: all,
            is_partial: false,
            is_single: false,
        }),
    }
}

/// Runs of one chunk each; when there are `most` runs, all of them leave.
fn gathered(from: DataChunk, most: f64) -> LevelFlow {
    let written = if from.is_single { 0.0 } else { from.arriving };
    let all = most * from.bytes;
    let is_last = from.arriving < all;
    let (bytes, runs) = if is_last {
        (from.arriving, from.arriving / from.bytes)
    } else {
        let runs = (most - 1.0) / 2.0;
        (runs * from.bytes, runs)
    };
    LevelFlow {
        bytes,
        bytes_max: (all - from.bytes).max(bytes),
        runs,
        runs_max: if is_last { runs.ceil() } else { most - 1.0 },
        written,
        merge_max: if from.is_single { 0.0 } else { from.bytes },
        leaves: (!is_last).then_some(DataChunk {
            arriving: from.arriving - bytes,
            bytes: all,
            is_partial: false,
            is_single: most <= 1.0,
        }),
    }
}

/// A level of runs that have room for several chunks each.
fn filling(from: DataChunk, room: f64, allowed: f64) -> LevelFlow {
    let run = ((room / allowed / from.bytes).floor()).max(1.0) * from.bytes;
    let all = run * allowed + from.bytes;
    let is_last = from.arriving < all;
    let bytes = if is_last { from.arriving } else { all / 2.0 };
    let runs = (bytes / run).min(allowed);
    LevelFlow {
        bytes,
        bytes_max: all.min(from.arriving),
        runs,
        runs_max: if is_last { runs.ceil() } else { allowed },
        written: merged(from, run) * (from.arriving / run),
        merge_max: run,
        leaves: (!is_last).then_some(DataChunk {
            arriving: from.arriving - bytes,
            bytes: all,
            is_partial: false,
            is_single: false,
        }),
    }
}
