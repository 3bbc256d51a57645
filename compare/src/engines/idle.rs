//! Waits until an engine's own threads have nothing left to do.
//!
//! For engines that do not say when they are done. While a compaction runs, it takes processor
//! time or waits for storage; a process whose threads do neither for a while is idle.

use std::time::Duration;

use crate::process::{cpu_seconds, storage_bytes_written};

/// Longer than any pause of a running compaction but one that waits for a device flush, and those
/// show in the bytes written.
const INTERVAL: Duration = Duration::from_millis(150);
/// Intervals that must have been quiet in a row.
const QUIET_INTERVALS: u32 = 3;
/// Below this the process only slept and woke: a thirtieth of the interval.
const QUIET_CPU_SECONDS: f64 = 0.005;

/// Waits until the process has been quiet for half a second. The caller must be its only client.
pub(super) fn wait_until_idle() {
    let mut quiet = 0;
    let mut last = (cpu_seconds(), storage_bytes_written());
    while quiet < QUIET_INTERVALS {
        std::thread::sleep(INTERVAL);
        let now = (cpu_seconds(), storage_bytes_written());
        let is_quiet = now.0 - last.0 < QUIET_CPU_SECONDS && now.1 == last.1;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        last = now;
    }
}
