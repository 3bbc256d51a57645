//! Accepts connections and hands them to workers.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[cfg(unix)]
use mio::net::UnixListener;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::stream::Stream;
use super::tls::TlsServer;
use super::worker::WorkerHandle;
use crate::base::error::ServerError;
use crate::call::shared::Shared;

const WAKE: Token = Token(usize::MAX);

/// How long the acceptor waits when the system has no more files for connections.
const PAUSE: Duration = Duration::from_millis(50);

/// The idle time after which the system probes whether a client's host is still alive.
#[cfg(unix)]
const SILENCE: Duration = Duration::from_secs(300);

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, PathBuf),
    Tls(TcpListener, Arc<TlsServer>),
}

impl Listener {
    /// Listens on an address.
    pub(crate) fn tcp(address: SocketAddr) -> Result<Self, ServerError> {
        bind(address).map(Self::Tcp)
    }

    /// Listens on an address for TLS.
    pub(crate) fn tls(address: SocketAddr, server: Arc<TlsServer>) -> Result<Self, ServerError> {
        bind(address).map(|listener| Self::Tls(listener, server))
    }

    /// Returns whether clients speak TLS.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(..))
    }

    /// Listens on a Unix socket with the permissions `mode`.
    #[cfg(unix)]
    pub(crate) fn unix(path: &Path, mode: u32) -> Result<Self, ServerError> {
        use std::os::unix::fs::FileTypeExt;
        let failed = |source| ServerError::Listen { address: path.display().to_string(), source };
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                return Err(ServerError::NotASocket { path: path.to_owned() });
            }
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(failed(io::ErrorKind::AddrInUse.into()));
            }
        }
        let listener = bind_privately(path, mode).map_err(failed)?;
        Ok(Self::Unix(listener, path.to_owned()))
    }

    /// Returns the address of a TCP listener.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) | Self::Tls(listener, _) => listener.local_addr().ok(),
            #[cfg(unix)]
            Self::Unix(..) => None,
        }
    }

    fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        match self {
            Self::Tcp(listener) | Self::Tls(listener, _) => {
                poll.registry().register(listener, token, Interest::READABLE)
            }
            #[cfg(unix)]
            Self::Unix(listener, _) => {
                poll.registry().register(listener, token, Interest::READABLE)
            }
        }
    }

    /// Accepts a connection; returns it with the addresses of both ends.
    fn accept(&self) -> io::Result<(Stream, String, String)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address, local) = accept(listener)?;
                Ok((Stream::Tcp(stream), address, local))
            }
            Self::Tls(listener, server) => {
                let (stream, address, local) = accept(listener)?;
                Ok((Stream::Tls(Box::new(server.accept(stream)?)), address, local))
            }
            #[cfg(unix)]
            Self::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                let name = format!("{}:0", path.display());
                Ok((Stream::Unix(stream), name.clone(), name))
            }
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener) => write_address(f, listener, "redis"),
            Self::Tls(listener, _) => write_address(f, listener, "rediss"),
            #[cfg(unix)]
            Self::Unix(_, path) => write!(f, "unix:{}", path.display()),
        }
    }
}

fn write_address(f: &mut fmt::Formatter<'_>, listener: &TcpListener, scheme: &str) -> fmt::Result {
    match listener.local_addr() {
        Ok(address) => write!(f, "{scheme}://{address}"),
        Err(error) => write!(f, "{scheme}: {error}"),
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, ServerError> {
    let failed = |source| ServerError::Listen { address: address.to_string(), source };
    TcpListener::bind(address).map_err(failed)
}

/// Accepts a connection over TCP; returns it with the addresses of both ends.
fn accept(listener: &TcpListener) -> io::Result<(TcpStream, String, String)> {
    let (stream, address) = listener.accept()?;
    // Replies are sent whole.
    let _ = stream.set_nodelay(true);
    #[cfg(unix)]
    let _ = keep_alive(&stream);
    let local = stream.local_addr().map_or(String::new(), |local| local.to_string());
    Ok((stream, address.to_string(), local))
}

/// Creates a socket in a directory that only this user may enter, and moves it to its place once its mode is
/// set, so that no client connects earlier. Replaces a socket that an earlier server left behind.
#[cfg(unix)]
fn bind_privately(path: &Path, mode: u32) -> io::Result<UnixListener> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    // Short, because the path of a socket has about a hundred bytes at most.
    let private = path.with_file_name(format!(".{:x}", std::process::id()));
    let socket = private.join("s");
    // Only a process that was killed at this point leaves the socket and its directory behind.
    let remove = || {
        let _ = std::fs::remove_file(&socket);
        let _ = std::fs::remove_dir(&private);
    };
    remove();
    std::fs::DirBuilder::new().mode(0o700).create(&private)?;
    let bind = || {
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(mode))?;
        std::fs::rename(&socket, path)?;
        Ok(listener)
    };
    let listener = bind();
    remove();
    listener
}

#[cfg(unix)]
impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // If the file remains, the next server removes it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Accepts connections until the server ends.
#[derive(Debug)]
pub(crate) struct Acceptor {
    poll: Poll,
    listeners: Vec<Listener>,
    workers: Vec<WorkerHandle>,
}

impl Acceptor {
    /// Creates an acceptor and its waker.
    pub(crate) fn new(
        mut listeners: Vec<Listener>,
        workers: Vec<WorkerHandle>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        for (index, listener) in listeners.iter_mut().enumerate() {
            listener.register(&poll, Token(index))?;
        }
        Ok((Self { poll, listeners, workers }, waker))
    }

    /// Accepts connections until the server ends.
    pub(crate) fn run(mut self, shared: &Arc<Shared>) {
        let mut events = Events::with_capacity(16);
        let mut is_short_of_files = false;
        while !shared.is_ending() {
            let timeout = is_short_of_files.then_some(PAUSE);
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => shared.end("the system reports no more connections"),
            }
            is_short_of_files = false;
            for listener in &self.listeners {
                is_short_of_files |= !self.accept_all(listener, shared);
            }
        }
    }

    /// Accepts the pending connections; returns false if the system refuses more.
    fn accept_all(&self, listener: &Listener, shared: &Arc<Shared>) -> bool {
        while !shared.is_ending() {
            match listener.accept() {
                Ok((stream, address, local)) => self.hand_over(shared, stream, address, local),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return true,
                    // The client is already gone.
                    io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::Interrupted => {}
                    _ => return false,
                },
            }
        }
        true
    }

    fn hand_over(&self, shared: &Arc<Shared>, stream: Stream, address: String, local: String) {
        shared.counts.connections.fetch_add(1, Ordering::Relaxed);
        if shared.clients.len() >= shared.settings.connections.load(Ordering::Relaxed) {
            shared.counts.rejected.fetch_add(1, Ordering::Relaxed);
            refuse(stream);
            return;
        }
        let load = |worker: &WorkerHandle| worker.connections.load(Ordering::Relaxed);
        let least = self.workers.iter().enumerate().min_by_key(|(_, worker)| load(worker));
        if let Some((index, worker)) = least {
            let client = shared.clients.add(index, address, local);
            worker.hand_over(shared, stream, client);
        }
    }
}

/// Lets the system close a connection whose peer host has vanished silently.
#[cfg(unix)]
fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle};
    set_socket_keepalive(stream, true)?;
    set_tcp_keepidle(stream, SILENCE)
}

fn refuse(stream: Stream) {
    let text = b"-ERR max number of clients reached\r\n";
    // The client may be gone.
    let _ = match stream {
        Stream::Tcp(mut stream) => stream.write(text),
        #[cfg(unix)]
        Stream::Unix(mut stream) => stream.write(text),
        // The text could be sent only after a handshake.
        Stream::Tls(_) => Ok(0),
    };
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::net::sockopt::{socket_keepalive, tcp_keepidle};

    use super::*;

    #[test]
    fn connections_to_hosts_that_are_gone_end() {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let _client = std::net::TcpStream::connect(listener.address().unwrap()).unwrap();
        let stream = loop {
            match listener.accept() {
                Ok((Stream::Tcp(stream), ..)) => break stream,
                other => assert_eq!(other.unwrap_err().kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert!(socket_keepalive(&stream).unwrap());
        assert_eq!(tcp_keepidle(&stream).unwrap(), SILENCE);
    }
}
