//! The results as Markdown: rows down, engines across.

mod figure;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::job::Measurement;
use crate::record::Record;
use crate::statistics::{median, range, ratios};
use figure::{count, decimals, factor};

/// The engine compared with its peers, and the engines that are not its peers.
pub(crate) struct Comparison<'a> {
    /// Rows, in the order of the tables.
    pub(crate) rows: Vec<&'a str>,
    /// Engines, in the order of the tables.
    pub(crate) engines: Vec<&'a str>,
    /// The engine whose ratios to its peers are shown.
    pub(crate) baseline: Option<&'a str>,
}

/// The calibration engine: shown with the others, but excluded from comparisons.
const CALIBRATION: &str = "mem";

/// Formats all results of `records` for people.
pub(crate) fn markdown(comparison: &Comparison<'_>, records: &[Record]) -> String {
    let tables = Tables { comparison, cells: cells(records) };
    let mut text = head(records);
    tables.throughput(&mut text);
    if let Some(baseline) = comparison.baseline {
        tables.against_peers(&mut text, baseline);
    }
    for cost in COSTS {
        tables.medians(&mut text, cost);
    }
    text
}

/// A measurement other than throughput.
struct Cost {
    title: &'static str,
    of: fn(&Measurement) -> Option<f64>,
    show: fn(f64) -> String,
}

/// All costs that have a table, in the order of the tables.
const COSTS: &[Cost] = &[
    Cost { title: "Latency, 99 % below, us", of: |m| Some(m.p99_micros), show: decimals },
    Cost { title: "Longest latency, us", of: |m| Some(m.max_micros), show: decimals },
    Cost {
        title: "Slowest second over the mean second",
        of: |m| m.slowest_second_share,
        show: decimals,
    },
    Cost {
        title: "Processor time of all threads per operation, settling included, us",
        of: Measurement::cpu_micros_per_operation,
        show: decimals,
    },
    Cost {
        title: "Write amplification, settling included",
        of: Measurement::write_amplification,
        show: decimals,
    },
    Cost {
        title: "Anonymous memory at its peak, MiB",
        of: |m| Some(m.peak_anonymous_bytes as f64 / f64::from(1 << 20)),
        show: decimals,
    },
    Cost {
        title: "Disk over live bytes after settling",
        of: Measurement::space_ratio,
        show: decimals,
    },
    Cost {
        title: "Writes per second during the reads",
        of: |m| m.writer_operations_per_second,
        show: count,
    },
];

/// Formats the circumstances that all records share.
fn head(records: &[Record]) -> String {
    let Some(first) = records.first() else {
        return "Nothing was measured.\n".into();
    };
    let settings = &first.settings;
    let repetitions = records.iter().map(|record| record.repetition).max().unwrap_or(0);
    let mut text = format!(
        "{}\n\nTerrane checkout {}. `{}`\n\nMemtable {} MiB, cache {} MiB, blocks of {} B, {} filter \
         bits per key, {} background threads, log on; {} client threads, seed {}; {repetitions} \
         repetitions, interleaved.{} A plain write promises to survive the death of the process, \
         `fillsync` syncs each write.\n\n",
        first.machine.summary(),
        first.machine.commit.as_deref().unwrap_or("unknown"),
        first.command.join(" "),
        settings.memtable_bytes >> 20,
        settings.cache_bytes >> 20,
        settings.block_bytes,
        settings.filter_bits_per_key,
        settings.background_threads,
        first.threads,
        first.seed,
        memory(first),
    );
    let rows = too_short(records);
    if !rows.is_empty() {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            text,
            "**Little data**: in {} it is less than four memtables, so that hardly anything had to \
             be compacted.\n",
            rows.join(", ")
        );
    }
    let engines: BTreeMap<&str, &Record> =
        records.iter().map(|record| (record.engine.as_str(), record)).collect();
    for (engine, record) in engines {
        let _ = writeln!(
            text,
            "- {engine}: {}; compression {}; {}",
            record.engine_version, record.settings.compression, record.engine_promise
        );
    }
    text
}

/// Describes the limit for memory, if there is one.
fn memory(record: &Record) -> String {
    let direct = match record.settings.is_direct {
        true => " Tables bypass the page cache.",
        false => "",
    };
    record.settings.memory_limit_bytes.map_or(direct.into(), |bytes| {
        format!(" All memory, page cache included, is limited to {} MiB.{direct}", bytes >> 20)
    })
}

/// Returns the rows with so little data that they do not show what an LSM engine's compactions
/// cost.
fn too_short(records: &[Record]) -> Vec<&str> {
    const MEMTABLES: u64 = 4;
    let mut rows = Vec::new();
    for record in records {
        let Measurement { num, key_bytes, value_bytes, .. } = record.measurement;
        let data_bytes = num * (key_bytes + value_bytes) as u64;
        let is_short = data_bytes < MEMTABLES * record.settings.memtable_bytes;
        if is_short && !rows.contains(&record.row.as_str()) {
            rows.push(record.row.as_str());
        }
    }
    rows
}

/// Groups records by row, then by engine.
type Cells<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<&'a Record>>>;

fn cells(records: &[Record]) -> Cells<'_> {
    let mut cells = Cells::new();
    for record in records {
        cells.entry(&record.row).or_default().entry(&record.engine).or_default().push(record);
    }
    cells
}

struct Tables<'a> {
    comparison: &'a Comparison<'a>,
    cells: Cells<'a>,
}

impl Tables<'_> {
    fn of(&self, row: &str, engine: &str) -> &[&Record] {
        self.cells.get(row).and_then(|engines| engines.get(engine)).map_or(&[], Vec::as_slice)
    }

    fn rates(&self, row: &str, engine: &str) -> Vec<(u32, f64)> {
        let records = self.of(row, engine).iter();
        records.map(|r| (r.repetition, r.measurement.operations_per_second)).collect()
    }

    /// Formats the operations per second, and the spread between repetitions.
    fn throughput(&self, text: &mut String) {
        self.table(
            text,
            "Operations per second, medians (slowest to fastest repetition)",
            |row, engine| {
                let rates: Vec<f64> =
                    self.rates(row, engine).iter().map(|(_, rate)| *rate).collect();
                let (slowest, fastest) = range(&rates)?;
                let repetitions = rates.len();
                let middle = median(rates)?;
                let failures: u64 =
                    self.of(row, engine).iter().map(|r| r.measurement.failures).sum();
                let wrong = if failures > 0 { " **WRONG**" } else { "" };
                if repetitions == 1 {
                    return Some(format!("{}{wrong}", count(middle)));
                }
                Some(format!("{} ({}–{}){wrong}", count(middle), count(slowest), count(fastest)))
            },
        );
    }

    /// Formats the baseline's rate divided by the rate of each peer: the median of the ratios
    /// within repetitions.
    fn against_peers(&self, text: &mut String, baseline: &str) {
        let peers: Vec<&str> = self
            .comparison
            .engines
            .iter()
            .copied()
            .filter(|engine| *engine != baseline && *engine != CALIBRATION)
            .collect();
        if peers.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "\n### {baseline} over its peers, medians of the ratios within repetitions\n"
        );
        let _ = writeln!(text, "| workload | best peer | over the best | {} |", peers.join(" | "));
        let _ = writeln!(text, "|---|---|---:|{}", "---:|".repeat(peers.len()));
        for row in &self.comparison.rows {
            let ours = self.rates(row, baseline);
            let all = |peer: &str| ratios(&ours, &self.rates(row, peer));
            let shown = |peer: &str| {
                let ratios = all(peer);
                let (low, high) = range(&ratios)?;
                let spread = if ratios.len() > 1 {
                    format!(" ({}–{})", factor(low), factor(high))
                } else {
                    String::new()
                };
                Some(format!("{}{spread}", factor(median(ratios)?)))
            };
            let best = peers.iter().copied().filter_map(|peer| Some((peer, median(all(peer))?)));
            let Some((best, _)) = best.min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            let each = peers.iter().map(|peer| shown(peer).unwrap_or_else(|| "–".into()));
            let each = each.collect::<Vec<_>>().join(" | ");
            let over_best = shown(best).unwrap_or_default();
            let _ = writeln!(text, "| {row} | {best} | {over_best} | {each} |");
        }
    }

    /// Formats the medians of a cost, for rows in which at least one engine has the cost.
    fn medians(&self, text: &mut String, cost: &Cost) {
        self.table(text, cost.title, |row, engine| {
            let records = self.of(row, engine).iter();
            median(records.filter_map(|record| (cost.of)(&record.measurement)).collect())
                .map(cost.show)
        });
    }

    fn table(&self, text: &mut String, title: &str, cell: impl Fn(&str, &str) -> Option<String>) {
        let Comparison { rows, engines, .. } = self.comparison;
        let lines: Vec<(&str, Vec<Option<String>>)> = rows
            .iter()
            .map(|row| (*row, engines.iter().map(|engine| cell(row, engine)).collect()))
            .filter(|(_, cells): &(_, Vec<_>)| cells.iter().any(Option::is_some))
            .collect();
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n### {title}\n\n| workload | {} |", engines.join(" | "));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(engines.len()));
        for (row, cells) in lines {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".into()));
            let _ = writeln!(text, "| {row} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
}

#[cfg(test)]
mod tests;
