//! Reads counters from RocksDB's statistics text.
//!
//! The text gives sizes in gigabytes of 2^30 bytes with two decimals, so bytes are right to some
//! ten megabytes; the bytes written by the process are measured separately.

use terrane_workload::StoreCounters;

const GIBIBYTE: f64 = 1_073_741_824.0;
const MICROS_PER_SECOND: f64 = 1e6;

/// Returns the counters from the text of the property `rocksdb.stats`.
pub(super) fn counters(text: &str) -> StoreCounters {
    let compactions = cumulative(text, "compaction");
    let log = cumulative(text, "WAL");
    let tables = compactions.and_then(|line| number_before(line, " GB write"));
    let logged = log.and_then(|line| number_after(line, "written: "));
    let read = compactions.and_then(|line| number_before(line, " GB read"));
    StoreCounters {
        user_bytes_written: cumulative(text, "writes")
            .and_then(|line| number_after(line, "ingest: "))
            .map(bytes),
        storage_bytes_written: tables.zip(logged).map(|(tables, log)| bytes(tables + log)),
        storage_bytes_read: read.map(bytes),
        stall_micros: cumulative(text, "stall").and_then(stall_micros),
        ..StoreCounters::default()
    }
}

fn bytes(gibibytes: f64) -> u64 {
    (gibibytes * GIBIBYTE) as u64
}

/// Returns the rest of the line after `Cumulative WHAT:`.
fn cumulative<'a>(text: &'a str, what: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix("Cumulative ")?.strip_prefix(what)?.strip_prefix(": "))
}

fn number_before(line: &str, unit: &str) -> Option<f64> {
    line.split(unit).next()?.rsplit([' ', ',']).next()?.parse().ok()
}

fn number_after(line: &str, name: &str) -> Option<f64> {
    line.split_once(name)?.1.split([' ', ',']).next()?.parse().ok()
}

/// Converts `00:00:1.250 H:M:S, 3.1 percent` to microseconds.
fn stall_micros(line: &str) -> Option<u64> {
    let seconds = line
        .split(' ')
        .next()?
        .split(':')
        .try_fold(0.0, |sum, part| part.parse::<f64>().ok().map(|part| sum * 60.0 + part))?;
    Some((seconds * MICROS_PER_SECOND) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
** DB Stats **
Uptime(secs): 8.2 total, 8.2 interval
Cumulative writes: 2000K writes, 2000K keys, 2000K commit groups, 1.0 writes per commit group, ingest: 0.25 GB, 31.50 MB/s
Cumulative WAL: 2000K writes, 0 syncs, 2000000.00 writes per sync, written: 0.25 GB, 31.50 MB/s
Cumulative stall: 00:01:2.250 H:M:S, 3.1 percent
Interval writes: 0 writes, 0 keys, 0 commit groups, 0.0 writes per commit group, ingest: 9.00 GB, 0.00 MB/s

Cumulative compaction: 0.50 GB write, 62.1 MB/s write, 0.75 GB read, 40.2 MB/s read, 3.9 seconds
";

    #[test]
    fn counters_are_those_of_the_cumulative_lines() {
        let told = counters(TEXT);
        assert_eq!(told.user_bytes_written, Some(1 << 28));
        assert_eq!(told.storage_bytes_written, Some(3 << 28));
        assert_eq!(told.storage_bytes_read, Some(3 << 28));
        assert_eq!(told.stall_micros, Some(62_250_000));
        assert_eq!(told.write_amplification(), Some(3.0));
    }

    #[test]
    fn other_texts_count_nothing() {
        assert_eq!(counters("Uptime(secs): 1"), StoreCounters::default());
    }
}
