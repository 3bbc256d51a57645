//! The settings of a server.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use terrane::Keyspace;

use crate::base::keyspace_events::KeyspaceEvents;
use crate::base::log::EngineLog;
use crate::protocol::RequestLimits;
use crate::state::users::Users;

/// Settings of a server.
///
/// ```
/// use terrane_server::Config;
/// let config = Config { databases: 4, ..Config::default() };
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    /// The addresses of TCP listeners. A port of 0 is any free one.
    pub listen: Vec<SocketAddr>,
    /// The addresses of TCP listeners that speak TLS, which the feature `tls` of this crate provides.
    pub tls_listen: Vec<SocketAddr>,
    /// The certificate and the key for `tls_listen`.
    pub tls: Option<TlsFiles>,
    /// The path of a Unix socket.
    pub unix_socket: Option<PathBuf>,
    /// The permissions of the Unix socket; `0o770` also lets the group of the process use it.
    pub unix_socket_mode: u32,
    /// The address of metrics and health over HTTP.
    pub metrics: Option<SocketAddr>,
    /// The threads that serve connections; 0 for one per core, at most four.
    pub workers: usize,
    /// The number of databases that `SELECT` accepts.
    pub databases: usize,
    /// The users who may connect. Without users, everybody may do everything.
    pub users: Users,
    /// Allows addresses that other hosts can reach, even without users.
    pub insecure: bool,
    /// The limits that protect the server from its clients.
    pub limits: Limits,
    /// A command that takes at least this time enters the slow log; `None` for no command.
    pub slow_command: Option<Duration>,
    /// The number of commands that the slow log keeps.
    pub slow_log_len: usize,
    /// Which changes of keys are announced on channels.
    pub keyspace_events: KeyspaceEvents,
    /// Answers `TERRANE.ADVISE`.
    pub advisor: Option<Advisor>,
    /// The log of the database's events, if its options have [`EngineLog::listener`].
    pub log: EngineLog,
}

/// The TLS files, in the PEM format. They are read when the server binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by those of the authorities between it and one that clients
    /// trust.
    pub certificate: PathBuf,
    /// The private key of the certificate, without a passphrase.
    pub key: PathBuf,
    /// The certificates of authorities. If given, a client needs a certificate of one of them.
    pub client_authorities: Option<PathBuf>,
}

/// Advises on the design of a keyspace, from its observed operations: the answer to `TERRANE.ADVISE`.
///
/// ```
/// use terrane_server::{Advisor, Config};
/// let advisor = Advisor::new(|keyspace| Ok(format!("keep {}", keyspace.design())));
/// let config = Config { advisor: Some(advisor), ..Config::default() };
/// ```
#[derive(Clone)]
pub struct Advisor(Arc<Advise>);

type Advise = dyn Fn(&Keyspace) -> Result<String, String> + Send + Sync;

impl Advisor {
    /// Returns an advisor that answers with the text of `advise`, or its error. It runs in its own thread,
    /// which the server waits for when it ends.
    pub fn new(
        advise: impl Fn(&Keyspace) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(advise))
    }

    pub(crate) fn advise(&self, keyspace: &Keyspace) -> Result<String, String> {
        (self.0)(keyspace)
    }
}

impl fmt::Debug for Advisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Advisor").finish_non_exhaustive()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            tls_listen: Vec::new(),
            tls: None,
            unix_socket: None,
            unix_socket_mode: 0o700,
            metrics: None,
            workers: 0,
            databases: 16,
            users: Users::default(),
            insecure: false,
            limits: Limits::default(),
            slow_command: Some(Duration::from_millis(10)),
            slow_log_len: 128,
            keyspace_events: KeyspaceEvents::default(),
            advisor: None,
            log: EngineLog::default(),
        }
    }
}

impl Config {
    /// Returns the number of threads that serve connections.
    pub(crate) fn worker_count(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.workers == 0 { cores.min(4) } else { self.workers }
    }
}

/// Limits that protect the server from its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The number of connections. Fewer are accepted if the process may not open enough files; see
    /// [`raise_file_limit`](crate::raise_file_limit).
    pub connections: usize,
    /// The bytes of a request. By default half of `buffer_bytes`, at most 256 MiB.
    pub request_bytes: usize,
    /// The bytes of one argument of a request. By default a quarter of `buffer_bytes`, at most 128 MiB.
    pub bulk_bytes: usize,
    /// The arguments of a request, including the name of the command.
    pub arguments: usize,
    /// The bytes of replies that wait for a client to read them, and of one reply. By default half of
    /// `buffer_bytes`, at most 256 MiB.
    pub output_bytes: usize,
    /// The bytes of the buffers of all connections: incomplete requests, queued commands of
    /// transactions, and replies that wait. By default a quarter of the memory of the process, at most 1 GiB; see
    /// [`terrane::memory_limit`].
    pub buffer_bytes: usize,
    /// The time after which a connection without requests is closed; `None` for never.
    pub idle: Option<Duration>,
    /// The time after which a client that reads none of its replies is disconnected.
    pub slow_client: Duration,
    /// The time in which a client has to finish the TLS handshake.
    pub tls_handshake: Duration,
}

/// The largest and the smallest default of [`Limits::buffer_bytes`].
const BUFFER_BYTES_MAX: u64 = 1 << 30;
const BUFFER_BYTES_MIN: u64 = 1 << 20;

/// Returns the default of [`Limits::buffer_bytes`] for a process with this limit on its memory. The engine
/// takes half of the limit by default, and threads, code and the page cache need the rest.
fn buffers_within(memory_limit: Option<u64>) -> usize {
    let quarter = memory_limit.map_or(BUFFER_BYTES_MAX, |bytes| bytes / 4);
    quarter.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX) as usize
}

impl Default for Limits {
    fn default() -> Self {
        Self::within(terrane::memory_limit())
    }
}

impl Limits {
    /// Returns the defaults for a process with this limit on its memory.
    fn within(memory_limit: Option<u64>) -> Self {
        let buffer_bytes = buffers_within(memory_limit);
        Self {
            connections: 10_000,
            request_bytes: (buffer_bytes / 2).min(256 << 20),
            bulk_bytes: (buffer_bytes / 4).min(128 << 20),
            arguments: 1 << 20,
            output_bytes: (buffer_bytes / 2).min(256 << 20),
            buffer_bytes,
            idle: None,
            slow_client: Duration::from_secs(60),
            tls_handshake: Duration::from_secs(10),
        }
    }

    pub(crate) fn request(&self) -> RequestLimits {
        RequestLimits {
            arguments: self.arguments,
            bulk_bytes: self.bulk_bytes,
            // Positions in a request are 32 bits wide.
            request_bytes: self.request_bytes.min((u32::MAX - 2) as usize),
        }
    }

    /// Returns the limits of requests before a client has authenticated.
    pub(crate) fn request_before_auth(&self) -> RequestLimits {
        let RequestLimits { arguments, bulk_bytes, request_bytes } = self.request();
        RequestLimits {
            arguments: arguments.min(10),
            bulk_bytes: bulk_bytes.min(16 << 10),
            request_bytes: request_bytes.min(64 << 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_take_a_quarter_of_the_memory_and_at_most_1_gib() {
        assert_eq!(buffers_within(None), 1 << 30);
        assert_eq!(buffers_within(Some(24 << 30)), 1 << 30);
        assert_eq!(buffers_within(Some(256 << 20)), 64 << 20);
        assert_eq!(buffers_within(Some(0)), 1 << 20);
        let bytes = |limits: Limits| (limits.request_bytes, limits.bulk_bytes, limits.output_bytes);
        assert_eq!(bytes(Limits::within(None)), (256 << 20, 128 << 20, 256 << 20));
        assert_eq!(bytes(Limits::within(Some(256 << 20))), (32 << 20, 16 << 20, 32 << 20));
    }
}
