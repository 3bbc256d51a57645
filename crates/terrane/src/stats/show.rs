//! A report as text: a summary, and every metric that is not zero.

use std::fmt;

use super::{CurrentStall, LevelStats, Metric, MetricUnit, Stats, ratio};
use crate::human::human;

impl fmt::Display for CurrentStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyspace, stops, pressure, since } = self;
        let how = if *stops { "stopped" } else { "delayed" };
        let seconds = since.as_secs_f64();
        write!(f, "{keyspace}: {how} by {pressure} for {seconds:.1} s; ")?;
        write!(f, "until {}", pressure.until())
    }
}

impl Stats {
    fn write_flushes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flushes             {} ({})", self.flushes, human(self.flush_bytes_written))?;
        if self.flushes_merged + self.flushes_apart > 0 {
            let (merged, apart) = (self.flushes_merged, self.flushes_apart);
            write!(f, ", {merged} merged with level 0, {apart} made a new run instead")?;
        }
        writeln!(f)
    }

    /// Compactions, tables and levels.
    fn write_tables(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "compactions         {} ({} read, {} written), {} that only moved ({} tables), {} dropped \
             unread",
            self.compactions,
            human(self.compaction_bytes_read),
            human(self.compaction_bytes_written),
            self.move_compactions,
            self.trivial_moves,
            self.tables_dropped
        )?;
        self.write_times(f)?;
        writeln!(
            f,
            "tables              {} in {}, {} levels, {} runs, {} entries, {} tombstones, {} range \
             tombstones",
            human(self.table_bytes),
            self.tables,
            self.levels,
            self.sorted_runs,
            self.table_entries,
            self.table_tombstones,
            self.table_range_tombstones
        )?;
        if let Some(micros) = self.oldest_tombstone_micros {
            writeln!(f, "oldest tombstone    {:.1} s", micros as f64 / 1e6)?;
        }
        for (number, level) in self.by_level.iter().enumerate() {
            let LevelStats { get_blocks, data_misses, index_misses, filter_misses, compactions } =
                level;
            if *level != LevelStats::default() {
                writeln!(
                    f,
                    "level {number:<13} {compactions} compactions out of it; {get_blocks} blocks for \
                     gets; not in the cache: {data_misses} data, {index_misses} index, \
                     {filter_misses} filter"
                )?;
            }
        }
        Ok(())
    }

    fn write_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = &self.memory;
        writeln!(
            f,
            "memory              {} of {}: memtables {}, cache {}, pinned {}, open tables {}, jobs {}",
            human(memory.total_bytes()),
            human(memory.budget_bytes),
            human(memory.memtable_bytes),
            human(memory.cache_bytes),
            human(memory.pinned_bytes),
            human(memory.open_table_bytes),
            human(memory.job_bytes)
        )
    }

    /// The distribution of compaction times, unless no compaction rewrote data.
    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = &self.compaction_times;
        if times.count() == 0 {
            return Ok(());
        }
        let millis = |micros: f64| micros / 1e3;
        let at = |percent| millis(times.percentile_micros(percent) as f64);
        writeln!(
            f,
            "  each took         {:.1} ms in the mean, p50 {:.1}, p90 {:.1}, p99 {:.1}, max {:.1}; \
             {:.0} % of it on a processor, {:.1} % of that before and after merges",
            millis(times.mean_micros()),
            at(50.0),
            at(90.0),
            at(99.0),
            millis(times.max_micros() as f64),
            100.0 * ratio(self.compaction_cpu_micros, times.sum_micros()),
            100.0
                * ratio(
                    self.compaction_planning_cpu_micros + self.compaction_installing_cpu_micros,
                    self.compaction_cpu_micros
                )
        )
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "durability          {}", self.durability)?;
        writeln!(f, "writes              {} ({})", self.writes, human(self.user_bytes_written))?;
        writeln!(f, "gets                {} ({} found)", self.gets, self.gets_found)?;
        let dead = self.scan_dead_keys;
        writeln!(f, "scans               {} ({dead} deleted keys stepped over)", self.scans)?;
        writeln!(
            f,
            "write amplification {:.2}, {:.2} of it by compactions",
            self.write_amplification(),
            self.rewrite_amplification()
        )?;
        writeln!(f, "read amplification  {:.2} blocks per get", self.read_amplification())?;
        writeln!(
            f,
            "log                 {} written, {} syncs",
            human(self.log_bytes_written),
            self.log_syncs
        )?;
        self.write_flushes(f)?;
        self.write_tables(f)?;
        self.write_memory(f)?;
        if self.cache.warmed > 0 {
            let bytes = human(self.cache.warmed_bytes);
            writeln!(f, "put into the cache  {} blocks ({bytes}) by jobs", self.cache.warmed)?;
        }
        if self.direct_refused > 0 {
            writeln!(
                f,
                "direct              refused by the file system for {} tables, which went through \
                 the page cache",
                self.direct_refused
            )?;
        }
        let membuffer = &self.membuffer;
        if membuffer.writes > 0 {
            writeln!(
                f,
                "membuffer           {} writes ({:.1} %), {} in place, {} drained in {} ms",
                membuffer.writes,
                100.0 * ratio(membuffer.writes, self.writes),
                membuffer.updates_in_place,
                membuffer.drained,
                membuffer.drain_micros / 1000
            )?;
        }
        let stalls = &self.stalls;
        write!(
            f,
            "stalls              {} writes, {} ms (runs {}, memtables {}, delays {})",
            stalls.writes,
            stalls.total_micros() / 1000,
            stalls.runs_micros() / 1000,
            stalls.immutable_memtables_micros / 1000,
            stalls.delay_micros / 1000
        )?;
        for cause in &stalls.now {
            write!(f, "\nnow                 {cause}")?;
        }
        if let Some(error) = &self.error {
            write!(f, "\nerror               {error}")?;
        }
        self.metrics().iter().try_for_each(|metric| write_metric(f, metric))
    }
}

/// A line for a metric that is not zero.
fn write_metric(f: &mut fmt::Formatter<'_>, metric: &Metric) -> fmt::Result {
    let name = metric.name;
    match (metric.value, metric.unit) {
        (None | Some(0), _) => Ok(()),
        (Some(value), MetricUnit::Bytes) => write!(f, "\n{name:<32} {value} ({})", human(value)),
        (Some(value), _) => write!(f, "\n{name:<32} {value}"),
    }
}
