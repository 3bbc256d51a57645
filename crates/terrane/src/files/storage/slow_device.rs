//! A simulated device whose reads and syncs take time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

// Relaxed, as everywhere here: no other memory access depends on the settings or the counts.
#[derive(Debug, Default)]
pub(super) struct SlowDevice {
    read_micros: AtomicU64,
    sync_micros: AtomicU64,
    reading: AtomicUsize,
    most_reading: AtomicUsize,
}

impl SlowDevice {
    pub(super) fn set_read_delay(&self, delay: Duration) {
        self.read_micros.store(micros(delay), Ordering::Relaxed);
    }

    pub(super) fn set_sync_delay(&self, delay: Duration) {
        self.sync_micros.store(micros(delay), Ordering::Relaxed);
    }

    /// Returns the largest number of reads that waited concurrently since the last call.
    pub(super) fn take_most_reads_at_once(&self) -> usize {
        self.most_reading.swap(0, Ordering::Relaxed)
    }

    /// Waits as long as a read takes.
    pub(super) fn read(&self) {
        let micros = self.read_micros.load(Ordering::Relaxed);
        if micros > 0 {
            let reading = self.reading.fetch_add(1, Ordering::Relaxed) + 1;
            self.most_reading.fetch_max(reading, Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(micros));
            self.reading.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits as long as a sync takes.
    pub(super) fn sync(&self) {
        let micros = self.sync_micros.load(Ordering::Relaxed);
        if micros > 0 {
            std::thread::sleep(Duration::from_micros(micros));
        }
    }
}

fn micros(delay: Duration) -> u64 {
    u64::try_from(delay.as_micros()).unwrap_or(u64::MAX)
}
