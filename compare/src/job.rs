//! One measurement: the parent's request to a child process, and the child's answer.

use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// The request to a child process, as JSON on its command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The name of the engine.
    pub(crate) engine: String,
    /// The name of the row.
    pub(crate) row: String,
    /// An empty folder for the database.
    pub(crate) dir: std::path::PathBuf,
    /// The number of keys, before the row divides it.
    pub(crate) num: u64,
    /// The number of operations of a row that reads, before the row divides it; `None` means the
    /// number of keys.
    pub(crate) reads: Option<u64>,
    /// The number of client threads.
    pub(crate) threads: u32,
    /// The seed of all random choices.
    pub(crate) seed: u64,
    /// The distribution of key choices, in its text form; `None` for the default of the row.
    pub(crate) distribution: Option<String>,
    /// The entrance of the control group that limits the memory of the child process, if there is one.
    pub(crate) memory_group: Option<std::path::PathBuf>,
    /// The settings with which the engine is opened.
    pub(crate) settings: Settings,
}

/// The answer of a child process, as JSON on its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// The job and its measurements.
    pub(crate) workload: String,
    /// The distribution of key choices, if keys were chosen.
    pub(crate) distribution: Option<String>,
    /// The number of loaded keys, and the sizes of a key and a value in bytes.
    pub(crate) num: u64,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
    /// The number of timed operations, and the time that they took.
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    pub(crate) operations_per_second: f64,
    /// Latencies; each sample covers `operations_per_sample` operations.
    pub(crate) operations_per_sample: u32,
    pub(crate) mean_micros: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p90_micros: f64,
    pub(crate) p99_micros: f64,
    pub(crate) p99_9_micros: f64,
    pub(crate) max_micros: f64,
    /// The throughput of the slowest full second, relative to the mean.
    pub(crate) slowest_second_share: Option<f64>,
    /// The results of the writer of `readwhilewriting`.
    pub(crate) writer_operations_per_second: Option<f64>,
    /// The number of wrong answers.
    pub(crate) failures: u64,
    /// Bytes of keys and values that the clients wrote.
    pub(crate) user_bytes_written: u64,
    /// The time of loading before the measurement, and of settling after it.
    pub(crate) load_seconds: f64,
    pub(crate) settle_seconds: f64,
    /// Processor time of all threads, during the timed part and during settling.
    pub(crate) cpu_seconds: f64,
    pub(crate) settle_cpu_seconds: f64,
    /// Bytes from the start of the timed part to the end of settling: bytes of dirtied pages and
    /// direct writes; bytes passed to system calls; bytes read from storage.
    pub(crate) storage_bytes_written: u64,
    pub(crate) system_call_bytes_written: u64,
    pub(crate) storage_bytes_read: u64,
    /// The same amounts as counted by the engine, if it counts them.
    pub(crate) engine_bytes_written: Option<u64>,
    pub(crate) engine_stall_micros: Option<u64>,
    /// Peak memory between the start of the timed part and the end of settling.
    pub(crate) peak_anonymous_bytes: u64,
    pub(crate) peak_resident_bytes: u64,
    /// After settling: the blocks of all files, and the bytes of all live keys and values.
    pub(crate) disk_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) live_entries: u64,
}

impl Measurement {
    /// Returns the bytes written to storage per byte that the user wrote.
    pub(crate) fn write_amplification(&self) -> Option<f64> {
        ratio(self.storage_bytes_written as f64, self.user_bytes_written as f64)
    }

    /// Bytes on disk per byte of live keys and values.
    pub(crate) fn space_ratio(&self) -> Option<f64> {
        ratio(self.disk_bytes as f64, self.live_bytes as f64)
    }

    /// Returns the processor time of all threads per operation, including the settling afterwards.
    pub(crate) fn cpu_micros_per_operation(&self) -> Option<f64> {
        ratio((self.cpu_seconds + self.settle_cpu_seconds) * 1e6, self.operations as f64)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
