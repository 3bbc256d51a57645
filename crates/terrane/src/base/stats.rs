//! Counters of a running database, and the report built from them.
//!
//! | module | one line |
//! |---|---|
//! | `metrics` | every metric, declared once; the struct [`Stats`] |
//! | `metric` | the type of metrics, and the macro behind the declaration |
//! | `counters` | counting in many threads |
//! | `stripe` | groups of threads that count separately |
//! | `times` | a histogram of durations |
//! | `latencies` | durations by kind of work, declared once; which operations are measured |
//! | `values` | reports by level, and of a current stall |
//! | `operations` | operations by kind |
//! | `show`, `open_metrics` | a report as text, for people and for monitoring |
//!
//! A database fills a [`Stats`] in `api/gather_stats.rs`.

mod counters;
mod latencies;
mod metric;
mod metrics;
mod open_metrics;
mod operations;
mod show;
mod stripe;
#[cfg(test)]
mod tests;
mod times;
mod values;

use terrane_policy::StallCause;

pub(crate) use counters::{BlockKind, Counters, LEVELS_COUNTED};
#[cfg(feature = "micro")]
pub(crate) use latencies::DurationCounters;
pub use latencies::{Latencies, LatencyMetric};
pub(crate) use latencies::{Sample, Timed};
pub(crate) use metric::MetricGroup;
pub use metric::{Metric, MetricKind, MetricUnit};
pub(crate) use metrics::Counter;
pub use metrics::{CacheStats, MembufferStats, MemoryStats, StallStats, Stats};
pub use operations::OperationCounts;
pub(crate) use stripe::stripe_of_thread;
pub use times::Times;
pub use values::{CurrentStall, Failure, FailureCause, LevelStats};

impl StallStats {
    /// Returns the time that writers lost to stalls of all causes, in microseconds.
    pub fn total_micros(&self) -> u64 {
        self.runs_micros()
            + self.immutable_memtables_micros
            + self.compactions_due_micros
            + self.value_space_micros
            + self.memory_budget_micros
            + self.delay_micros
    }

    /// Returns the time that writers were stopped because there were too many runs in level 0, in
    /// some level, or in total, in microseconds.
    pub fn runs_micros(&self) -> u64 {
        self.level0_runs_micros + self.level_runs_micros + self.total_runs_micros
    }

    /// Returns the time that writers were stopped for `cause`, in microseconds.
    pub fn micros(&self, cause: StallCause) -> u64 {
        match cause {
            StallCause::Level0Runs => self.level0_runs_micros,
            StallCause::LevelRuns => self.level_runs_micros,
            StallCause::TotalRuns => self.total_runs_micros,
            StallCause::ImmutableMemtables => self.immutable_memtables_micros,
            StallCause::CompactionsDue => self.compactions_due_micros,
            StallCause::ValueSpace => self.value_space_micros,
            StallCause::MemoryBudget => self.memory_budget_micros,
        }
    }
}

impl MemoryStats {
    /// Returns the memory that all holders use together, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.memtable_bytes
            + self.kept_memtable_bytes
            + self.cache_bytes
            + self.pinned_bytes
            + self.open_table_bytes
            + self.job_bytes
            + self.transaction_bytes
    }
}

impl Stats {
    /// Returns the bytes written to storage: log, tables and manifests.
    pub fn storage_bytes_written(&self) -> u64 {
        self.log_bytes_written
            + self.flush_bytes_written
            + self.ingest_bytes_written
            + self.compaction_bytes_written
            + self.manifest_bytes_written
    }

    /// Returns the bytes of tables read from storage or the page cache.
    pub fn storage_bytes_read(&self) -> u64 {
        self.table_bytes_read + self.compaction_bytes_read
    }

    /// Returns the bytes written to tables, flushes and ingests included, per user byte written. The log is
    /// not counted. `None` if no user byte was written.
    pub fn write_amplification(&self) -> Option<f64> {
        let flushed_or_merged = self.flush_bytes_written + self.compaction_bytes_written;
        let user_bytes = self.user_bytes_written + self.ingested_bytes;
        ratio(flushed_or_merged + self.ingest_bytes_written, user_bytes)
    }

    /// Returns the bytes written by compactions per user byte written. The compaction paper calls
    /// this write amplification (§4.2). `None` if no user byte was written.
    pub fn rewrite_amplification(&self) -> Option<f64> {
        ratio(self.compaction_bytes_written, self.user_bytes_written + self.ingested_bytes)
    }

    /// Returns the data blocks searched per point lookup, cached or not; `None` without lookups. The
    /// compaction paper's read amplification (§4.2) counts pages read instead: `table_bytes_read` over
    /// lookups.
    pub fn read_amplification(&self) -> Option<f64> {
        ratio(self.get_blocks, self.gets)
    }
}

/// Returns a quotient, which does not exist if `whole` is 0: 0 would read as a measurement.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
