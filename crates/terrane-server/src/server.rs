//! A server: its listeners and threads.

mod lifecycle;
mod monitor;
mod sweeper;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use terrane::Db;

use crate::base::error::ServerError;
use crate::call::shared::Shared;
use crate::commands::FAMILIES;
use crate::net::metrics::Metrics;
use crate::net::{Acceptor, Listener, TlsServer, Worker};
use crate::server::monitor::Monitor;
use crate::server::sweeper::Sweeper;
use crate::state::config::Config;

/// A server that listens, and does not accept connections yet.
#[derive(Debug)]
pub struct Server {
    db: Db,
    config: Config,
    listeners: Vec<Listener>,
    metrics: Option<Metrics>,
    handle: Handle,
}

/// Ends a server from another thread.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// What a server did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of connections that were accepted.
    pub connections: u64,
    /// The number of commands.
    pub commands: u64,
    /// How long it ran.
    pub uptime: Duration,
}

impl Server {
    /// Listens on the addresses of `config`.
    ///
    /// # Errors
    /// An address is in use, not one of this host, or reachable from other hosts without a password. A TLS
    /// file cannot be used, or this build has no TLS.
    pub fn bind(db: Db, config: Config) -> Result<Self, ServerError> {
        let mut listeners = Vec::new();
        let is_open = config.users.is_empty() && !config.insecure;
        if let Some(address) = config
            .listen
            .iter()
            .chain(&config.tls_listen)
            .chain(&config.metrics)
            .find(|address| is_open && !address.ip().is_loopback())
        {
            return Err(ServerError::Unprotected { address: *address });
        }
        for address in &config.listen {
            listeners.push(Listener::tcp(*address)?);
        }
        if !config.tls_listen.is_empty() {
            let files = config.tls.as_ref().ok_or(ServerError::NoCertificate)?;
            let tls = Arc::new(TlsServer::open(files)?);
            for address in &config.tls_listen {
                listeners.push(Listener::tls(*address, Arc::clone(&tls))?);
            }
        }
        #[cfg(unix)]
        if let Some(path) = &config.unix_socket {
            listeners.push(Listener::unix(path, config.unix_socket_mode)?);
        }
        if listeners.is_empty() {
            return Err(ServerError::NoAddress);
        }
        let metrics = config.metrics.map(Metrics::listen).transpose()?;
        let port = listeners.iter().find_map(Listener::address).map_or(0, |address| address.port());
        let shared = Shared::new(db.clone(), config.clone(), port, FAMILIES)?;
        Ok(Self { db, config, listeners, metrics, handle: Handle { shared: Arc::new(shared) } })
    }

    /// Returns the TCP addresses that the server listens on without TLS, with their ports.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let plain = self.listeners.iter().filter(|listener| !listener.is_tls());
        plain.filter_map(Listener::address).collect()
    }

    /// Returns the TCP addresses that the server listens on for TLS, with their ports.
    pub fn tls_addresses(&self) -> Vec<SocketAddr> {
        let tls = self.listeners.iter().filter(|listener| listener.is_tls());
        tls.filter_map(Listener::address).collect()
    }

    /// Returns the address of metrics and health over HTTP.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(Metrics::address)
    }

    /// Returns how many connections the server accepts: the limit in [`Limits`](crate::Limits), or fewer if
    /// the process may not open enough files.
    pub fn connections_max(&self) -> usize {
        self.handle.shared.settings.connections.load(Ordering::Relaxed)
    }

    /// Returns the database.
    pub fn database(&self) -> &Db {
        &self.db
    }

    /// Returns a handle that ends the server.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves clients until [`Handle::end`], or a client's `SHUTDOWN`. Then it finishes the commands that
    /// have arrived, sends their replies, and closes all connections. The database stays open.
    ///
    /// # Errors
    /// The system has no resources for the threads of the server, or one of them panicked.
    pub fn run(self) -> Result<Report, ServerError> {
        let Self { config, listeners, metrics, handle: Handle { shared }, .. } = self;
        let failed =
            |source| ServerError::System { what: "start the threads of the server", source };
        let (mut parts, mut handles, mut wakers) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..config.worker_count() {
            let (worker, handle, waker) = Worker::parts(index).map_err(failed)?;
            parts.push(worker);
            handles.push(handle);
            wakers.push(waker);
        }
        let listeners_text: Vec<String> = listeners.iter().map(Listener::to_string).collect();
        let (acceptor, waker) = Acceptor::new(listeners, handles).map_err(failed)?;
        shared.set_wakers(wakers, waker);
        let sweeper = Sweeper::start(&shared).map_err(failed)?;
        let monitor = Monitor::start(&shared).map_err(failed)?;
        lifecycle::note_start(&shared, &listeners_text);
        let mut threads = Vec::new();
        if let Some(metrics) = metrics {
            let (name, shared_by_it) = ("terrane-metrics".to_owned(), Arc::clone(&shared));
            let thread = spawn(&shared, name, move || metrics.run(&shared_by_it));
            threads.push(thread.map_err(failed)?);
        }
        for (index, worker) in parts.into_iter().enumerate() {
            let worker = worker.with(&shared);
            match spawn(&shared, format!("terrane-serve-{index}"), move || worker.run()) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    shared.end("a thread could not start");
                    threads.into_iter().for_each(|thread| drop(thread.join()));
                    return Err(failed(source));
                }
            }
        }
        acceptor.run(&shared);
        lifecycle::note_end(&shared);
        let mut panicked = None;
        for thread in threads {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if thread.join().is_err() {
                panicked.get_or_insert(name);
            }
        }
        drop(sweeper);
        drop(monitor);
        shared.helpers.join();
        shared.long.join();
        if let Some(thread) = panicked {
            return Err(ServerError::Panicked { thread });
        }
        let counts = &shared.counts;
        Ok(Report {
            connections: counts.connections.load(Ordering::Relaxed),
            commands: counts.commands.load(Ordering::Relaxed),
            uptime: shared.started.elapsed(),
        })
    }
}

/// Starts a thread that ends the server if it panics, because its connections are no longer served.
fn spawn(
    shared: &Arc<Shared>,
    name: String,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let end = EndOnPanic(Arc::clone(shared));
    std::thread::Builder::new().name(name).spawn(move || {
        let _end = end;
        work();
    })
}

/// Ends the server when it is dropped by a panic.
struct EndOnPanic(Arc<Shared>);

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end("a thread panicked");
        }
    }
}

impl Handle {
    /// Ends the server. Returns at once; [`Server::run`] returns once it has ended.
    pub fn end(&self) {
        self.end_because("the program ends it");
    }

    /// Ends the server like [`Self::end`], for a reason that the log states.
    pub fn end_because(&self, reason: &'static str) {
        self.shared.end(reason);
    }
}
