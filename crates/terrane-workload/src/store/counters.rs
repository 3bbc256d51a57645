//! Counters that an engine may report about itself.
//!
//! Every field is optional, because engines count different things; `None` is "not counted",
//! which is not zero.

/// The time that writers were stalled by one cause.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StallTime {
    /// The engine's name for the cause, for example `level-0 runs`.
    pub cause: String,
    /// The number of stalls.
    pub count: u64,
    /// The stalled time, in microseconds, summed over writers.
    pub micros: u64,
}

/// Counters of an engine since it was opened, and its two current sizes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreCounters {
    /// Bytes of keys and values that the user wrote.
    pub user_bytes_written: Option<u64>,
    /// Bytes written to files, logs included.
    pub storage_bytes_written: Option<u64>,
    /// Bytes read from files.
    pub storage_bytes_read: Option<u64>,
    /// Memtables written to tables.
    pub flushes: Option<u64>,
    /// Compactions that merged tables and wrote new ones.
    pub compactions: Option<u64>,
    /// Compactions by source level; empty if the engine does not report them.
    pub compactions_by_level: Vec<u64>,
    /// Tables moved down a level without being rewritten.
    pub trivial_moves: Option<u64>,
    /// The time that writers were stalled by any cause, in microseconds.
    pub stall_micros: Option<u64>,
    /// Stalls by cause; empty if the engine does not report them.
    pub stalls: Vec<StallTime>,
    /// Lookups of single keys.
    pub point_lookups: Option<u64>,
    /// Blocks or pages that those lookups read.
    pub blocks_looked_into: Option<u64>,
    /// The current bytes of all files.
    pub disk_bytes: Option<u64>,
    /// The current bytes of the keys and values that can be read.
    pub live_bytes: Option<u64>,
}

impl StoreCounters {
    /// Returns the growth of the counters since `earlier`, and the current sizes.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let stalls = self.stalls.iter().map(|stall| stall.since(&earlier.stalls)).collect();
        Self {
            user_bytes_written: grown(self.user_bytes_written, earlier.user_bytes_written),
            storage_bytes_written: grown(self.storage_bytes_written, earlier.storage_bytes_written),
            storage_bytes_read: grown(self.storage_bytes_read, earlier.storage_bytes_read),
            flushes: grown(self.flushes, earlier.flushes),
            compactions: grown(self.compactions, earlier.compactions),
            compactions_by_level: self.levels_since(earlier),
            trivial_moves: grown(self.trivial_moves, earlier.trivial_moves),
            stall_micros: grown(self.stall_micros, earlier.stall_micros),
            stalls,
            point_lookups: grown(self.point_lookups, earlier.point_lookups),
            blocks_looked_into: grown(self.blocks_looked_into, earlier.blocks_looked_into),
            disk_bytes: self.disk_bytes,
            live_bytes: self.live_bytes,
        }
    }

    fn levels_since(&self, earlier: &Self) -> Vec<u64> {
        let before = |level: usize| earlier.compactions_by_level.get(level).copied().unwrap_or(0);
        let levels = self.compactions_by_level.iter().enumerate();
        levels.map(|(level, count)| count.saturating_sub(before(level))).collect()
    }

    /// Returns the bytes written to storage per byte that the user wrote.
    pub fn write_amplification(&self) -> Option<f64> {
        ratio(self.storage_bytes_written?, self.user_bytes_written?)
    }

    /// Returns the blocks read per lookup of a key.
    pub fn read_amplification(&self) -> Option<f64> {
        ratio(self.blocks_looked_into?, self.point_lookups?)
    }

    /// Returns the bytes on disk per live byte: 1.1 is a tenth more than needed.
    pub fn space_amplification(&self) -> Option<f64> {
        ratio(self.disk_bytes?, self.live_bytes?)
    }
}

impl StallTime {
    fn since(&self, earlier: &[Self]) -> Self {
        let before = earlier.iter().find(|stall| stall.cause == self.cause);
        let (count, micros) = before.map_or((0, 0), |stall| (stall.count, stall.micros));
        Self {
            cause: self.cause.clone(),
            count: self.count.saturating_sub(count),
            micros: self.micros.saturating_sub(micros),
        }
    }
}

/// Returns the growth of a counter, which was zero if it was not counted before.
fn grown(now: Option<u64>, earlier: Option<u64>) -> Option<u64> {
    now.map(|now| now.saturating_sub(earlier.unwrap_or(0)))
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_since_subtract_counts_and_keep_sizes() {
        let stall = |count, micros| StallTime { cause: "memtables".into(), count, micros };
        let earlier = StoreCounters {
            flushes: Some(3),
            disk_bytes: Some(900),
            compactions_by_level: vec![2],
            stalls: vec![stall(1, 10)],
            ..StoreCounters::default()
        };
        let now = StoreCounters {
            flushes: Some(5),
            compactions: Some(7),
            compactions_by_level: vec![5, 3],
            disk_bytes: Some(400),
            stalls: vec![stall(4, 25)],
            ..StoreCounters::default()
        };
        let since = now.since(&earlier);
        assert_eq!(since.flushes, Some(2));
        assert_eq!(since.compactions, Some(7));
        assert_eq!(since.compactions_by_level, [3, 3]);
        assert_eq!(since.trivial_moves, None);
        assert_eq!(since.disk_bytes, Some(400));
        assert_eq!(since.stalls, vec![stall(3, 15)]);
    }

    #[test]
    fn amplification_needs_both_of_its_counters() {
        let counters = StoreCounters {
            user_bytes_written: Some(100),
            storage_bytes_written: Some(330),
            point_lookups: Some(0),
            blocks_looked_into: Some(5),
            disk_bytes: Some(110),
            live_bytes: Some(100),
            ..StoreCounters::default()
        };
        assert_eq!(counters.write_amplification(), Some(3.3));
        assert_eq!(counters.read_amplification(), None);
        assert_eq!(counters.space_amplification(), Some(1.1));
        assert_eq!(StoreCounters::default().write_amplification(), None);
    }
}
