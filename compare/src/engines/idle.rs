//! Waits until the threads of an engine have no work left.
//!
//! This is for engines that do not report when they are done. A running compaction takes processor
//! time or waits for storage, so a process whose threads do neither for a while is idle.

use std::time::Duration;

use crate::process::{cpu_seconds, storage_bytes_written};

/// Longer than any pause of a running compaction, except a pause that waits for a device flush,
/// which the number of written bytes reveals.
const INTERVAL: Duration = Duration::from_millis(150);
/// The number of successive quiet intervals after which the process counts as idle.
const QUIET_INTERVALS: u32 = 3;
/// With less processor time than this, a thirtieth of the interval, the process only slept and
/// woke.
const QUIET_CPU_SECONDS: f64 = 0.005;

/// Waits until the process has been quiet for half a second. No other client may use the engine
/// meanwhile.
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
