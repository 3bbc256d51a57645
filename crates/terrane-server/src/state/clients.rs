//! The connected clients, for `CLIENT LIST`, `CLIENT KILL` and `INFO`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The state of a client that other threads see.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    /// The worker that serves the connection.
    pub(crate) worker: usize,
    pub(crate) address: Box<str>,
    pub(crate) local_address: Box<str>,
    pub(crate) connected: Instant,
    /// The time from `connected` to the last request.
    pub(crate) last_request_millis: AtomicU64,
    pub(crate) database: AtomicUsize,
    /// The number of queued commands; -1 outside of a transaction.
    pub(crate) queued: AtomicI64,
    pub(crate) is_resp3: AtomicBool,
    /// The numbers of channels and patterns that the client subscribes to.
    pub(crate) channels: AtomicUsize,
    pub(crate) patterns: AtomicUsize,
    /// Set by another client; the worker then closes the connection.
    pub(crate) is_killed: AtomicBool,
    texts: Mutex<ClientTexts>,
}

/// The texts that a client reports about itself.
#[derive(Debug, Default, Clone)]
pub(crate) struct ClientTexts {
    pub(crate) name: Box<str>,
    pub(crate) library: Box<str>,
    pub(crate) library_version: Box<str>,
    pub(crate) user: Box<str>,
    /// The last command that the client has sent; empty before the first one.
    pub(crate) last_command: &'static str,
}

impl Client {
    pub(crate) fn texts(&self) -> MutexGuard<'_, ClientTexts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the last request.
    pub(crate) fn idle(&self, now: Instant) -> Duration {
        let last = Duration::from_millis(self.last_request_millis.load(Ordering::Relaxed));
        now.saturating_duration_since(self.connected).saturating_sub(last)
    }

    /// Returns the line of `CLIENT LIST`.
    pub(crate) fn line(&self) -> String {
        let texts = self.texts().clone();
        let (age, idle) = (self.connected.elapsed().as_secs(), self.idle(Instant::now()).as_secs());
        let queued = self.queued.load(Ordering::Relaxed);
        let channels = self.channels.load(Ordering::Relaxed);
        let patterns = self.patterns.load(Ordering::Relaxed);
        let flags = match queued {
            0.. => "x",
            _ if channels + patterns > 0 => "P",
            _ => "N",
        };
        let resp = if self.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 };
        format!(
            "id={} addr={} laddr={} fd=-1 name={} age={age} idle={idle} flags={flags} db={} sub={channels} \
             psub={patterns} ssub=0 multi={queued} cmd={} user={} resp={resp} lib-name={} lib-ver={}",
            self.id,
            self.address,
            self.local_address,
            texts.name,
            self.database.load(Ordering::Relaxed),
            if texts.last_command.is_empty() { "NULL" } else { texts.last_command },
            if texts.user.is_empty() { "default" } else { &texts.user },
            texts.library,
            texts.library_version,
        )
    }
}

/// The connected clients by number.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    next: AtomicU64,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client.
    pub(crate) fn add(&self, worker: usize, address: String, local_address: String) -> Arc<Client> {
        let client = Arc::new(Client {
            id: self.next.fetch_add(1, Ordering::Relaxed) + 1,
            worker,
            address: address.into(),
            local_address: local_address.into(),
            connected: Instant::now(),
            last_request_millis: AtomicU64::new(0),
            database: AtomicUsize::new(0),
            queued: AtomicI64::new(-1),
            is_resp3: AtomicBool::new(false),
            channels: AtomicUsize::new(0),
            patterns: AtomicUsize::new(0),
            is_killed: AtomicBool::new(false),
            texts: Mutex::default(),
        });
        self.lock().insert(client.id, Arc::clone(&client));
        client
    }

    pub(crate) fn remove(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// Returns the number of clients.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns all clients, in the order of their numbers.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.lock().values().cloned().collect()
    }
}
