//! A thread that reports in the log what no event of the engine reports: damage that reads met, and
//! clients that were refused or disconnected.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use terrane::FailureCause;

use crate::call::shared::{Counts, Shared};

/// The time between two looks at the counts.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time between two lines about the same count.
const PAUSE: Duration = Duration::from_secs(10);

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Monitor {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (end, ends) = channel();
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("terrane-serve-log".to_owned());
        let thread = thread.spawn(move || {
            let mut seen = Seen::default();
            while ends.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                seen.report(&shared);
            }
            seen.report(&shared);
        })?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, only lines of the log are missing.
            let _ = thread.join();
        }
    }
}

/// A count of the server, and the sentence about its growth.
type Watched = (&'static str, fn(&Counts) -> &AtomicU64, &'static str);

const WATCHED: [Watched; 4] = [
    (
        "clients-refused",
        |counts| &counts.rejected,
        "connections were refused, because there are as many as the limit allows; raise \
         --max-connections and `ulimit -n`",
    ),
    (
        "slow-clients",
        |counts| &counts.slow_clients,
        "clients were disconnected, because they did not read their replies or filled the buffers",
    ),
    (
        "failed-handshakes",
        |counts| &counts.failed_handshakes,
        "connections ended in the TLS handshake",
    ),
    (
        "evicted-scrapers",
        |counts| &counts.evicted_scrapers,
        "HTTP connections were closed to make room for others; find the host that leaves requests incomplete",
    ),
];

/// A count when it was last reported.
#[derive(Debug, Default, Clone, Copy)]
struct Reported {
    count: u64,
    at: Option<Instant>,
}

impl Reported {
    /// Returns the growth, if it is to be reported now.
    fn growth(&mut self, count: u64, now: Instant) -> Option<u64> {
        // `CONFIG RESETSTAT` sets counts to 0.
        self.count = self.count.min(count);
        let is_due = self.at.is_none_or(|at| now.saturating_duration_since(at) >= PAUSE);
        if count <= self.count || !is_due {
            return None;
        }
        let growth = count - self.count;
        *self = Self { count, at: Some(now) };
        Some(growth)
    }
}

/// The counts that were reported.
#[derive(Debug, Default)]
struct Seen {
    counts: [Reported; WATCHED.len()],
    damaged_reads: Reported,
}

impl Seen {
    fn report(&mut self, shared: &Shared) {
        let now = Instant::now();
        for (seen, (kind, count, text)) in self.counts.iter_mut().zip(WATCHED) {
            let count = count(&shared.counts).load(Ordering::Relaxed);
            if let Some(times) = seen.growth(count, now) {
                tracing::warn!(target: "terrane_server", kind, times, "{times} {text}");
            }
        }
        let stats = shared.databases.db().stats();
        if let Some(times) = self.damaged_reads.growth(stats.damaged_reads, now) {
            let damage =
                stats.failures.iter().find(|failure| failure.cause == FailureCause::Damage);
            let last = damage.map(|damage| damage.error.to_string()).unwrap_or_default();
            tracing::error!(
                target: "terrane_server",
                kind = "damaged-read",
                times,
                "reads found damage: {last}; 'terrane verify' lists all of it"
            );
        }
        shared.config.log.print_due();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_growth_of_a_count_is_reported_once_in_ten_seconds() {
        let (mut reported, start) = (Reported::default(), Instant::now());
        assert_eq!(reported.growth(0, start), None);
        assert_eq!(reported.growth(3, start), Some(3));
        assert_eq!(reported.growth(5, start + Duration::from_secs(9)), None);
        assert_eq!(reported.growth(6, start + PAUSE), Some(3));
        assert_eq!(reported.growth(6, start + 3 * PAUSE), None);
    }
}
