//! One measurement: what the parent asks a child process for, and what the child answers.

use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// What a child process is asked for, as JSON on its command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The engine, by name.
    pub(crate) engine: String,
    /// The row, by name.
    pub(crate) row: String,
    /// An empty folder for the database.
    pub(crate) dir: std::path::PathBuf,
    /// Keys of a row whose numbers are not divided.
    pub(crate) num: u64,
    /// Operations of such a row that reads; as many as there are keys if `None`.
    pub(crate) reads: Option<u64>,
    /// Client threads.
    pub(crate) threads: u32,
    /// Where all choices come from.
    pub(crate) seed: u64,
    /// What the engine is opened with.
    pub(crate) settings: Settings,
}

/// What a child process measured, as JSON on its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// The job and its measurements.
    pub(crate) workload: String,
    /// How keys were chosen, where they were chosen.
    pub(crate) distribution: Option<String>,
    /// Keys loaded, bytes of each and of each value.
    pub(crate) num: u64,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
    /// Operations that were timed, and for how long.
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    pub(crate) operations_per_second: f64,
    /// Latencies of samples of `operations_per_sample` operations.
    pub(crate) operations_per_sample: u32,
    pub(crate) mean_micros: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p90_micros: f64,
    pub(crate) p99_micros: f64,
    pub(crate) p99_9_micros: f64,
    pub(crate) max_micros: f64,
    /// The slowest full second over the mean one.
    pub(crate) slowest_second_share: Option<f64>,
    /// The writer of `readwhilewriting`.
    pub(crate) writer_operations_per_second: Option<f64>,
    /// Answers that were not the right ones.
    pub(crate) failures: u64,
    /// Bytes of keys and values that the clients wrote.
    pub(crate) user_bytes_written: u64,
    /// Loading before the measurement, and settling after it.
    pub(crate) load_seconds: f64,
    pub(crate) settle_seconds: f64,
    /// Processor time of all threads, while timed and while settling.
    pub(crate) cpu_seconds: f64,
    pub(crate) settle_cpu_seconds: f64,
    /// Bytes from the start of the timed part to the end of settling: made dirty or written
    /// directly; passed to system calls; read from storage.
    pub(crate) storage_bytes_written: u64,
    pub(crate) system_call_bytes_written: u64,
    pub(crate) storage_bytes_read: u64,
    /// The same by the engine's own count, where it has one.
    pub(crate) engine_bytes_written: Option<u64>,
    pub(crate) engine_stall_micros: Option<u64>,
    /// Peaks from the start of the timed part to the end of settling.
    pub(crate) peak_anonymous_bytes: u64,
    pub(crate) peak_resident_bytes: u64,
    /// After settling: the blocks of all files, and the bytes of all live keys and values.
    pub(crate) disk_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) live_entries: u64,
}

impl Measurement {
    /// Bytes written to storage for each byte that the user wrote.
    pub(crate) fn write_amplification(&self) -> Option<f64> {
        ratio(self.storage_bytes_written as f64, self.user_bytes_written as f64)
    }

    /// Bytes on disk per byte of live keys and values.
    pub(crate) fn space_ratio(&self) -> Option<f64> {
        ratio(self.disk_bytes as f64, self.live_bytes as f64)
    }

    /// Processor time of all threads for each operation, the settling that it caused included.
    pub(crate) fn cpu_micros_per_operation(&self) -> Option<f64> {
        ratio((self.cpu_seconds + self.settle_cpu_seconds) * 1e6, self.operations as f64)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
