//! A report as text: a summary, and every metric that is not zero.

use std::fmt;

use terrane_policy::units::short_bytes as human;

use super::{CurrentStall, Latencies, LatencyMetric, LevelStats, Metric, MetricUnit, Stats, ratio};

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
        let (read, written) =
            (human(self.compaction_bytes_read), human(self.compaction_bytes_written));
        writeln!(f, "compactions         {} ({read} read, {written} written)", self.compactions)?;
        self.write_processor_share(f)?;
        writeln!(
            f,
            "  only moved        {} ({} tables); {} tables dropped unread",
            self.move_compactions, self.trivial_moves, self.tables_dropped
        )?;
        writeln!(
            f,
            "tables              {} in {}, {} levels, {} runs",
            human(self.table_bytes),
            self.tables,
            self.levels,
            self.sorted_runs
        )?;
        writeln!(
            f,
            "  entries           {}, {} tombstones, {} range tombstones",
            self.table_entries, self.table_tombstones, self.table_range_tombstones
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
                     gets\n  not in the cache  {data_misses} data, {index_misses} index, \
                     {filter_misses} filter"
                )?;
            }
        }
        Ok(())
    }

    fn write_cache(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cache.record_hits > 0 {
            let bytes = human(self.cache.record_bytes);
            writeln!(f, "hot records         {bytes}, {} lookups", self.cache.record_hits)?;
        }
        if self.cache.warmed > 0 {
            let bytes = human(self.cache.warmed_bytes);
            writeln!(f, "put into the cache  {} blocks ({bytes}) by jobs", self.cache.warmed)?;
        }
        Ok(())
    }

    fn write_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = &self.memory;
        writeln!(
            f,
            "memory              {} of {}: memtables {}, cache {}\n  \
             other             pinned {}, open tables {}, jobs {}, transactions {}\n  \
             kept by readers   memtables {}",
            human(memory.total_bytes()),
            human(memory.budget_bytes),
            human(memory.memtable_bytes),
            human(memory.cache_bytes),
            human(memory.pinned_bytes),
            human(memory.open_table_bytes),
            human(memory.job_bytes),
            human(memory.transaction_bytes),
            human(memory.kept_memtable_bytes)
        )
    }

    /// The part of their time that compactions spent on a processor, unless none rewrote data.
    fn write_processor_share(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = &self.latencies.compaction;
        if times.count() == 0 {
            return Ok(());
        }
        let around = self.compaction_planning_cpu_micros + self.compaction_installing_cpu_micros;
        writeln!(
            f,
            "  on a processor    {} % of the time, {} % of that before and after merges",
            percent(ratio(self.compaction_cpu_micros, times.sum_micros()), 0),
            percent(ratio(around, self.compaction_cpu_micros), 1)
        )
    }
}

impl fmt::Display for Latencies {
    /// A table of the kinds of work that were measured; nothing if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all();
        let mut measured = all.iter().filter(|latency| latency.times.count() > 0).peekable();
        if measured.peek().is_none() {
            return Ok(());
        }
        writeln!(
            f,
            "{:<14}{:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "durations", "measured", "mean", "p50", "p90", "p99", "p99.9", "max"
        )?;
        measured.try_for_each(|LatencyMetric { name, times, .. }| {
            let at = |percent| times.percentile_micros(percent).map_or("-".to_owned(), short);
            writeln!(
                f,
                "  {name:<12}{:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
                times.count(),
                times.mean_micros().map_or("-".to_owned(), short),
                at(50.0),
                at(90.0),
                at(99.0),
                at(99.9),
                times.max_micros().map_or("-".to_owned(), short)
            )
        })
    }
}

/// Formats a number with `decimals` digits after the point, and a number that does not exist as `-`.
fn or_dash(number: Option<f64>, decimals: usize) -> String {
    number.map_or("-".to_owned(), |number| format!("{number:.decimals$}"))
}

/// Formats a share as a number of percent.
fn percent(share: Option<f64>, decimals: usize) -> String {
    or_dash(share.map(|share| 100.0 * share), decimals)
}

/// Formats a time in microseconds with three digits.
fn short(micros: f64) -> String {
    let (number, unit) = match micros {
        micros if micros < 1.0 => return format!("{:.0} ns", micros * 1e3),
        micros if micros < 999.5 => (micros, "µs"),
        micros if micros < 999.5e3 => (micros / 1e3, "ms"),
        micros => (micros / 1e6, "s"),
    };
    let decimals = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.decimals$} {unit}")
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
            "write amplification {}, {} of it by compactions",
            or_dash(self.write_amplification(), 2),
            or_dash(self.rewrite_amplification(), 2)
        )?;
        let blocks = or_dash(self.read_amplification(), 2);
        writeln!(f, "read amplification  {blocks} blocks per get")?;
        writeln!(
            f,
            "log                 {} written, {} syncs",
            human(self.log_bytes_written),
            self.log_syncs
        )?;
        if self.log_wait_micros > 0 {
            let waited = short(self.log_wait_micros as f64);
            writeln!(f, "log waits           {waited} of writers for a file")?;
        }
        self.write_flushes(f)?;
        self.write_tables(f)?;
        self.write_memory(f)?;
        self.write_cache(f)?;
        if self.direct_refused > 0 {
            writeln!(
                f,
                "direct              refused by the file system for {} tables",
                self.direct_refused
            )?;
        }
        let membuffer = &self.membuffer;
        if membuffer.writes > 0 {
            writeln!(
                f,
                "membuffer           {} writes ({} %), {} in place, {} drained in {} ms",
                membuffer.writes,
                percent(ratio(membuffer.writes, self.writes), 1),
                membuffer.updates_in_place,
                membuffer.drained,
                membuffer.drain_micros / 1000
            )?;
        }
        let stalls = &self.stalls;
        self.latencies.fmt(f)?;
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
