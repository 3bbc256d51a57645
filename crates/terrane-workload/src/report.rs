//! The report of a run.

use std::fmt;

use crate::distribution::Distribution;
use crate::latency::Latency;
use crate::operation_mix::OperationKind;
use crate::store::StoreCounters;
use crate::workload::Workload;

const BYTES_PER_MEBIBYTE: f64 = 1_048_576.0;
const MICROS_PER_SECOND: f64 = 1e6;

/// The results of one run of a workload.
#[derive(Debug, Clone)]
pub struct Report {
    /// The workload.
    pub workload: Workload,
    /// The distribution of key choices; `None` if the workload does not choose keys.
    pub distribution: Option<Distribution>,
    /// The number of client threads, without the writer of `readwhilewriting`.
    pub threads: u32,
    /// The operations of all clients, as defined by [`Workload::operations`].
    pub operations: u64,
    /// The time from the start of the first client to the end of the last client, in seconds.
    pub seconds: f64,
    /// The latencies of the samples.
    pub latency: Latency,
    /// The number of operations per latency sample: 1, except for batches and full scans.
    pub operations_per_sample: u32,
    /// The number of lookups that found their key, and of entries that scans returned.
    pub found: u64,
    /// The number of lookups that, as expected, did not find a key known to be absent.
    pub missing: u64,
    /// Expected keys and entries that were missing: the engine is wrong, or the store was not fully
    /// loaded, or keys were deleted from it.
    pub not_found: u64,
    /// The number of lookups that found a value for a key known to be absent.
    pub phantoms: u64,
    /// The number of values with the tag of another key.
    pub wrong_values: u64,
    /// Entries that scans returned out of key order.
    pub out_of_order: u64,
    /// Bytes of keys and values written, including the writer of `readwhilewriting`.
    pub user_bytes_written: u64,
    /// Bytes of keys and values read.
    pub user_bytes_read: u64,
    /// The throughput of the slowest full second relative to the mean; `None` for runs of less than
    /// two seconds.
    pub slowest_second_share: Option<f64>,
    /// The kinds of operation of `mix`, in the order of its text; empty for other workloads.
    pub kinds: Vec<KindReport>,
    /// The writer thread of `readwhilewriting`.
    pub writer: Option<WriterReport>,
    /// The engine's counters over the run, without background work left at its end.
    pub counters: StoreCounters,
}

/// The results of one kind of operation of `mix`.
#[derive(Debug, Clone)]
pub struct KindReport {
    /// The kind, as in the text of the mix.
    pub kind: OperationKind,
    /// The number of operations.
    pub operations: u64,
    /// The latencies of these operations.
    pub latency: Latency,
}

/// The results of the writer of `readwhilewriting`.
#[derive(Debug, Clone)]
pub struct WriterReport {
    /// The number of overwritten keys.
    pub operations: u64,
    /// The time for which the writer ran, in seconds.
    pub seconds: f64,
    /// The latencies of its writes.
    pub latency: Latency,
}

impl WriterReport {
    /// Returns the writes per second.
    pub fn operations_per_second(&self) -> f64 {
        per_second(self.operations as f64, self.seconds)
    }
}

impl Report {
    /// Returns the operations per second of all clients together.
    pub fn operations_per_second(&self) -> f64 {
        per_second(self.operations as f64, self.seconds)
    }

    /// Returns the mean time that one client takes for an operation, in microseconds.
    pub fn micros_per_operation(&self) -> f64 {
        let client_micros = self.seconds * MICROS_PER_SECOND * f64::from(self.threads);
        client_micros / self.operations.max(1) as f64
    }

    /// Returns the bytes of keys and values written and read, in MiB per second.
    pub fn mebibytes_per_second(&self) -> f64 {
        let bytes = self.user_bytes_written + self.user_bytes_read;
        per_second(bytes as f64 / BYTES_PER_MEBIBYTE, self.seconds)
    }

    /// Returns the number of wrong answers, assuming that the store was fully loaded and nothing
    /// was deleted.
    pub fn failures(&self) -> u64 {
        self.not_found + self.phantoms + self.wrong_values + self.out_of_order
    }
}

fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

impl fmt::Display for Report {
    /// Formats the result line of db_bench, for scripts that parse it, followed by counts of wrong answers.
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
            (self.phantoms, "found but never written"),
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
    fn rates_are_computed_from_operations_seconds_and_threads() {
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
