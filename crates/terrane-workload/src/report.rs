//! What came out of a run.

use std::fmt;

use crate::distribution::Distribution;
use crate::latency::Latency;
use crate::operation_mix::OperationKind;
use crate::store::StoreCounters;
use crate::workload::Workload;

const BYTES_PER_MEBIBYTE: f64 = 1_048_576.0;
const MICROS_PER_SECOND: f64 = 1e6;

/// What came out of a run of one workload.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was run.
    pub workload: Workload,
    /// How keys were chosen; `None` where they were not chosen.
    pub distribution: Option<Distribution>,
    /// Client threads, without the writer of `readwhilewriting`.
    pub threads: u32,
    /// Operations of all clients, counted as [`Workload::operations`] says.
    pub operations: u64,
    /// From the first client's start to the last one's end.
    pub seconds: f64,
    /// How long samples took.
    pub latency: Latency,
    /// Operations that a latency sample covers: 1 unless the workload is one of batches or scans.
    pub operations_per_sample: u32,
    /// Keys that were asked for and were there, and entries of scans.
    pub found: u64,
    /// Keys that were asked for because they never existed, and did not.
    pub missing: u64,
    /// Keys and entries that the run assumes to be there and that were not: a wrong engine, or a
    /// store that was not loaded in full or deleted from.
    pub not_found: u64,
    /// Keys that never existed and were found.
    pub phantoms: u64,
    /// Values that do not belong to their key.
    pub wrong_values: u64,
    /// Entries of scans that did not come after the one before.
    pub out_of_order: u64,
    /// Bytes of keys and values that the clients wrote, the writer of `readwhilewriting` included.
    pub user_bytes_written: u64,
    /// Bytes of keys and values that the clients were shown.
    pub user_bytes_read: u64,
    /// Operations of the slowest full second over those of the mean second; `None` for runs of
    /// less than two seconds.
    pub slowest_second_share: Option<f64>,
    /// Each kind of operation of `mix`, in the order of its text; empty for other workloads.
    pub kinds: Vec<KindReport>,
    /// The thread that writes beside the clients of `readwhilewriting`.
    pub writer: Option<WriterReport>,
    /// What the engine counted during the run. Background work that the run left is not in it.
    pub counters: StoreCounters,
}

/// What became of one kind of operation of `mix`.
#[derive(Debug, Clone)]
pub struct KindReport {
    /// The kind, as in the text of the mix.
    pub kind: OperationKind,
    /// How many there were.
    pub operations: u64,
    /// How long they took.
    pub latency: Latency,
}

/// What the writer of `readwhilewriting` did while the clients read.
#[derive(Debug, Clone)]
pub struct WriterReport {
    /// Keys overwritten.
    pub operations: u64,
    /// How long it wrote.
    pub seconds: f64,
    /// How long writes took.
    pub latency: Latency,
}

impl WriterReport {
    /// Writes per second.
    pub fn operations_per_second(&self) -> f64 {
        per_second(self.operations as f64, self.seconds)
    }
}

impl Report {
    /// Operations per second of all clients.
    pub fn operations_per_second(&self) -> f64 {
        per_second(self.operations as f64, self.seconds)
    }

    /// How long a client took for an operation, in microseconds.
    pub fn micros_per_operation(&self) -> f64 {
        let client_micros = self.seconds * MICROS_PER_SECOND * f64::from(self.threads);
        client_micros / self.operations.max(1) as f64
    }

    /// Bytes of keys and values written and read, in MiB per second.
    pub fn mebibytes_per_second(&self) -> f64 {
        let bytes = self.user_bytes_written + self.user_bytes_read;
        per_second(bytes as f64 / BYTES_PER_MEBIBYTE, self.seconds)
    }

    /// How often the engine's answer was not the right one, given a store that was loaded in full
    /// and not deleted from.
    pub fn failures(&self) -> u64 {
        self.not_found + self.phantoms + self.wrong_values + self.out_of_order
    }
}

fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

impl fmt::Display for Report {
    /// The result line of db_bench, for the scripts that read it; what is wrong follows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<12} : {:11.3} micros/op {:.0} ops/sec {:.3} seconds {} operations;",
            self.workload.to_string(),
            self.micros_per_operation(),
            self.operations_per_second(),
            self.seconds,
            self.operations
        )?;
        if self.user_bytes_written + self.user_bytes_read > 0 {
            write!(f, " {:6.1} MB/s", self.mebibytes_per_second())?;
        }
        let asked = self.found + self.missing + self.not_found + self.phantoms;
        if asked > 0 {
            write!(f, " ({} of {asked} found)", self.found + self.phantoms)?;
        }
        for (count, what) in [
            (self.not_found, "not found"),
            (self.phantoms, "found that never existed"),
            (self.wrong_values, "with another's value"),
            (self.out_of_order, "out of order"),
        ] {
            if count > 0 {
                write!(f, " WRONG: {count} {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            workload: Workload::FillRandom,
            distribution: None,
            threads: 2,
            operations: 10_000_000,
            seconds: 20.0,
            latency: Latency::new(),
            operations_per_sample: 1,
            found: 0,
            missing: 0,
            not_found: 0,
            phantoms: 0,
            wrong_values: 0,
            out_of_order: 0,
            user_bytes_written: 10_000_000 * 116,
            user_bytes_read: 0,
            slowest_second_share: None,
            kinds: Vec::new(),
            writer: None,
            counters: StoreCounters::default(),
        }
    }

    #[test]
    fn rates_follow_from_operations_seconds_and_threads() {
        let report = report();
        assert_eq!(report.operations_per_second(), 500_000.0);
        assert_eq!(report.micros_per_operation(), 4.0);
        assert!((report.mebibytes_per_second() - 55.3).abs() < 0.05);
        assert_eq!(Report { seconds: 0.0, ..report }.operations_per_second(), 0.0);
    }

    #[test]
    fn the_line_has_the_fields_of_db_bench_in_their_places() {
        let line = report().to_string();
        let expected = "fillrandom   :       4.000 micros/op 500000 ops/sec 20.000 seconds \
                        10000000 operations;   55.3 MB/s";
        assert_eq!(line, expected);
        assert_eq!(line.split_whitespace().nth(4), Some("500000"), "scripts print field 5");
    }

    #[test]
    fn wrong_answers_are_counted_and_shown() {
        let report = Report { found: 7, not_found: 2, wrong_values: 1, ..report() };
        assert_eq!(report.failures(), 3);
        let line = report.to_string();
        assert!(line.ends_with("(7 of 9 found) WRONG: 2 not found WRONG: 1 with another's value"));
    }
}
