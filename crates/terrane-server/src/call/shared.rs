//! The state that all threads of a server share.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mio::Waker;
use terrane::{Db, Durability};

use crate::base::error::ServerError;
use crate::base::file_limit::connections_max;
use crate::call::catalogue::{Catalogue, Family};
use crate::state::channels::Channels;
use crate::state::clients::Clients;
use crate::state::config::Config;
use crate::state::helpers::Helpers;
use crate::state::latency::{self, LatencyMonitor};
use crate::state::slow_log::SlowLog;
use crate::store::{Cursors, Databases, Durable, KeyLocks};

/// The state that all threads of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) catalogue: Catalogue,
    pub(crate) databases: Databases,
    pub(crate) locks: KeyLocks,
    pub(crate) cursors: Cursors,
    pub(crate) durable: Durable,
    pub(crate) durability: Durability,
    pub(crate) clients: Clients,
    pub(crate) channels: Channels,
    pub(crate) slow_log: SlowLog,
    pub(crate) latency: LatencyMonitor,
    /// The maintenance threads.
    pub(crate) helpers: Helpers,
    /// The threads for commands that read or write much.
    pub(crate) long: Helpers,
    pub(crate) settings: Settings,
    pub(crate) counts: Counts,
    /// The bytes in the buffers of all connections.
    pub(crate) buffered: AtomicUsize,
    pub(crate) started: Instant,
    pub(crate) run_id: String,
    is_ending: AtomicBool,
    reason: OnceLock<&'static str>,
    wakers: OnceLock<Wakers>,
    /// The port of the first TCP listener, and its address, for reports.
    pub(crate) port: u16,
}

/// The settings that `CONFIG SET` changes.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Seconds; 0 for never.
    pub(crate) idle_seconds: AtomicU64,
    /// Microseconds; negative for none.
    pub(crate) slow_micros: AtomicI64,
    pub(crate) slow_log_len: AtomicUsize,
    /// The shortest pause that `LATENCY` reports, in milliseconds; 0 for none.
    pub(crate) latency_millis: AtomicU64,
    pub(crate) connections: AtomicUsize,
    /// The bits of [`KeyspaceEvents`](crate::KeyspaceEvents).
    pub(crate) keyspace_events: AtomicU16,
}

/// Numbers for `INFO`.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commands: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) slow_clients: AtomicU64,
    /// The connections that ended during the TLS handshake.
    pub(crate) failed_handshakes: AtomicU64,
    /// The HTTP connections that were closed to make room for others.
    pub(crate) evicted_scrapers: AtomicU64,
    pub(crate) last_save_seconds: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        db: Db,
        config: Config,
        port: u16,
        families: &'static [Family],
    ) -> Result<Self, ServerError> {
        let now = SystemTime::now();
        let nanos = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let durability = db.durability();
        let slow = config
            .slow_command
            .map_or(-1, |slow| i64::try_from(slow.as_micros()).unwrap_or(i64::MAX));
        let limits = config.limits;
        Ok(Self {
            catalogue: Catalogue::new(families),
            databases: Databases::open(db, config.databases)?,
            locks: KeyLocks::new(),
            // Microseconds, so that two runs rarely share numbers.
            cursors: Cursors::new((nanos / 1000) as u64 & (u64::MAX >> 8)),
            durable: Durable::new(durability, config.worker_count()),
            durability,
            clients: Clients::default(),
            channels: Channels::default(),
            slow_log: SlowLog::default(),
            latency: LatencyMonitor::default(),
            helpers: Helpers::default(),
            long: Helpers::default(),
            settings: Settings {
                idle_seconds: AtomicU64::new(limits.idle.map_or(0, |idle| idle.as_secs())),
                slow_micros: AtomicI64::new(slow),
                slow_log_len: AtomicUsize::new(config.slow_log_len),
                latency_millis: AtomicU64::new(0),
                connections: AtomicUsize::new(limits.connections.min(connections_max())),
                keyspace_events: AtomicU16::new(config.keyspace_events.bits()),
            },
            counts: Counts::default(),
            buffered: AtomicUsize::new(0),
            started: Instant::now(),
            run_id: format!("{nanos:032x}{:08x}", std::process::id()),
            is_ending: AtomicBool::new(false),
            reason: OnceLock::new(),
            wakers: OnceLock::new(),
            config,
            port,
        })
    }

    /// Returns the time after which an idle connection is closed.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let seconds = self.settings.idle_seconds.load(Ordering::Relaxed);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// Makes a worker's writes and the data it has read durable, if the durability demands it.
    pub(crate) fn sync(&self, worker: usize) -> terrane::Result<()> {
        let began = Instant::now();
        let synced = self.durable.sync(self.databases.db(), worker);
        self.note_pause(latency::SYNC, began.elapsed());
        synced
    }

    /// Records a pause for `LATENCY` if it reaches the threshold.
    #[inline]
    pub(crate) fn note_pause(&self, event: &'static str, took: Duration) {
        let threshold = self.settings.latency_millis.load(Ordering::Relaxed);
        if threshold > 0 && took >= Duration::from_millis(threshold) {
            self.latency.add(event, took);
        }
    }

    /// Sets the wakers of the threads.
    pub(crate) fn set_wakers(&self, workers: Vec<Waker>, acceptor: Waker) {
        // Set once, before the threads start.
        let workers = workers.into_iter().map(Arc::new).collect();
        let _ = self.wakers.set(Wakers { workers, acceptor });
    }

    /// Returns the waker of a worker.
    pub(crate) fn waker(&self, worker: usize) -> Option<Arc<Waker>> {
        self.wakers.get().and_then(|wakers| wakers.workers.get(worker)).cloned()
    }

    /// Wakes a worker.
    pub(crate) fn wake(&self, worker: usize) {
        let waker = self.waker(worker);
        // A thread that cannot be woken notices the change after its next event.
        waker.into_iter().for_each(|waker| drop(waker.wake()));
    }

    /// Ends the server for a reason: every thread still answers the requests that it has read. The first
    /// reason is kept.
    pub(crate) fn end(&self, reason: &'static str) {
        let _ = self.reason.set(reason);
        self.is_ending.store(true, Ordering::SeqCst);
        if let Some(Wakers { workers, acceptor }) = self.wakers.get() {
            workers
                .iter()
                .map(|waker| &**waker)
                .chain([acceptor])
                .for_each(|waker| drop(waker.wake()));
        }
    }

    /// Returns why the server ends.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.reason.get().copied()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }
}

/// Wakes the threads of the server.
#[derive(Debug)]
struct Wakers {
    workers: Vec<Arc<Waker>>,
    acceptor: Waker,
}
