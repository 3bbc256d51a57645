//! The thread that gives memory of the cache back when the system has little left.

use std::time::Duration;

use super::Jobs;
use crate::base::event::Event;
use crate::engine::context::{Context, MemoryReading, Scarcity};
use crate::options::{FreeMemory, MemoryGauge};

/// The time until the next reading after one that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Jobs {
    /// Reads how much memory is free until the threads are stopped.
    pub(super) fn run_memory_thread(&self) {
        let gauge = MemoryGauge::of_process();
        let mut interval = Duration::ZERO;
        while self.context.memory_pressure.wait(interval) {
            // What the last reading found holds until another one succeeds.
            interval = gauge.read().map_or(RETRY_AFTER, |free| self.follow_memory(free));
        }
    }

    /// Resizes the cache after a reading, and reports a shortage that begins or ends. Returns the time until
    /// the next reading.
    fn follow_memory(&self, free: Vec<FreeMemory>) -> Duration {
        let Context { memory_pressure, memory_plan, tables, events, .. } = &*self.context;
        let blocks = tables.buffer.bytes();
        let taken = (blocks.allocated as u64, memory_plan.cache_bytes_min as u64);
        let MemoryReading { cache_bytes, change, interval } = memory_pressure.update(taken, free);
        // The sum over the memtables of all trees is not needed for most readings.
        if cache_bytes != blocks.capacity as u64 {
            self.catalog.resize_cache();
        }
        if let Some(change) = change {
            events.emit(match change {
                Some(Scarcity { free, cache_bytes }) => Event::MemoryShort {
                    cache_bytes,
                    free_bytes: free.bytes,
                    limit_bytes: free.limit,
                    limit: free.source,
                },
                None => Event::MemoryRecovered {},
            });
        }
        interval
    }
}
