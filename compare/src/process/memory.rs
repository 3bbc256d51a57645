//! The peak memory of the process.
//!
//! Anonymous memory is what an engine allocated. It is sampled, because the kernel does not record
//! its peak. The peak of all resident memory also includes mapped files, which the kernel may
//! reclaim.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::field;

/// Reading the file takes about 20 us, a thousandth of this interval.
const INTERVAL: Duration = Duration::from_millis(20);
const BYTES_PER_KILOBYTE: u64 = 1024;

/// Samples the memory of the process until the peak is requested.
pub(crate) struct MemorySampler {
    stopped: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl MemorySampler {
    /// Starts sampling, and resets the kernel's peak.
    pub(crate) fn start() -> Self {
        // Not every system permits the reset; the peak then includes earlier allocations.
        let _ = fs::write("/proc/self/clear_refs", "5");
        let stopped = Arc::new(AtomicBool::new(false));
        let peak = Arc::new(AtomicU64::new(0));
        let sampled = (Arc::clone(&stopped), Arc::clone(&peak));
        let thread = std::thread::spawn(move || {
            let (stopped, peak) = sampled;
            loop {
                peak.fetch_max(status_bytes("RssAnon"), Ordering::Relaxed);
                // Relaxed: the flag orders no other memory access.
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(INTERVAL);
            }
        });
        Self { stopped, peak, thread }
    }

    /// Returns the peaks since the start: anonymous bytes, and all resident bytes.
    pub(crate) fn stop(self) -> (u64, u64) {
        self.stopped.store(true, Ordering::Relaxed);
        // The thread cannot panic; even if it did, the earlier samples would be right.
        let _ = self.thread.join();
        (self.peak.load(Ordering::Relaxed), status_bytes("VmHWM"))
    }
}

fn status_bytes(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&text, name).unwrap_or(0) * BYTES_PER_KILOBYTE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_remembers_memory_that_is_gone() {
        let sampler = MemorySampler::start();
        let held = vec![1u8; 64 << 20];
        while sampler.peak.load(Ordering::Relaxed) < 64 << 20 {
            std::thread::sleep(INTERVAL);
        }
        drop(std::hint::black_box(held));
        std::thread::sleep(3 * INTERVAL);
        let (anonymous, resident) = sampler.stop();
        assert!(anonymous >= 64 << 20, "{anonymous}");
        assert!(resident >= anonymous, "{resident}");
    }
}
