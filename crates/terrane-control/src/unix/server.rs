//! Accepts the clients of a database.

use std::io::{self, ErrorKind};
use std::mem::ManuallyDrop;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use terrane::{Db, ErrorKind as DbErrorKind, Maintenance};

use super::address::{Bound, Directory, Identity, is_allowed, peer};
use super::connection::{Served, refuse, serve};
use crate::failure::Failure;
use crate::protocol::{Info, PROTOCOL};
use crate::sampler::now_micros;

/// The most concurrent clients.
const CLIENTS_MAX: usize = 16;

/// How long [`ControlSocket`] waits for clients to take their last message.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long the thread rests when clients cannot be accepted, for example because descriptors are
/// exhausted.
const REST: Duration = Duration::from_millis(100);

/// The directories whose sockets this process serves, each with the process that added it: a forked
/// process inherits the list, but serves none of them.
static SERVED: Mutex<Vec<(u32, Identity)>> = Mutex::new(Vec::new());

/// A socket in the directory of a database, through which other processes of the same user watch and
/// maintain it while this process has it open.
///
/// Dropping it ends the requests of all clients and removes the socket. It keeps a handle of the
/// database, so the database is released only after the socket is dropped. In a forked process, dropping
/// it does nothing: the socket belongs to the parent.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use terrane_control::{Client, ControlSocket, Reply, Request};
///
/// let db = terrane::Db::open(dir.path())?;
/// let _control = ControlSocket::serve(&db)?;
///
/// // In another process:
/// let mut client = Client::connect(dir.path())?.ok_or("nobody serves it")?;
/// let reply = client.ask(&Request::Keyspaces, &mut Vec::new())?;
/// assert!(matches!(reply, Reply::Keyspaces { keyspaces } if keyspaces[0].keyspace == "default"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ControlSocket {
    served: Arc<Served>,
    directory: Arc<Directory>,
    bound: Arc<Bound>,
    /// The process that serves the socket, and its directory.
    key: (u32, Identity),
    /// A byte on it wakes the thread.
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Begins to serve a database that this process has open for writing.
    ///
    /// # Errors
    /// - The database is open read-only, was closed, or is already served.
    /// - Its directory cannot have a socket: it is not on a disk, or its path is longer than about
    ///   a hundred bytes and the platform is not Linux.
    pub fn serve(db: &Db) -> io::Result<Self> {
        let refused = |text: String| io::Error::new(ErrorKind::InvalidInput, text);
        if let Err(error) = Maintenance::of(db).check_writable() {
            match error.kind() {
                DbErrorKind::Invalid => {
                    let text = "a database that is open read-only has no control socket";
                    return Err(refused(text.to_owned()));
                }
                DbErrorKind::Closed => return Err(refused(error.to_string())),
                // A failed database can be watched.
                _ => {}
            }
        }
        let named = |error: io::Error| {
            let path = db.path().join(super::address::SOCKET);
            io::Error::new(error.kind(), format!("cannot serve {}: {error}", path.display()))
        };
        let directory = Directory::of(db).map_err(named)?;
        let key = (std::process::id(), directory.identity().map_err(named)?);
        {
            let mut served = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
            if served.contains(&key) {
                let text = format!("this process already serves {}", db.path().display());
                return Err(io::Error::new(ErrorKind::AddrInUse, text));
            }
            served.push(key);
        }
        let begun = Self::begin(db, directory, key).map_err(named);
        begun.inspect_err(|_| forget(key))
    }

    fn begin(db: &Db, directory: Directory, key: (u32, Identity)) -> io::Result<Self> {
        let directory = Arc::new(directory);
        let bound = Arc::new(directory.bind()?);
        bound.listener.set_nonblocking(true)?;
        let (wake, woken) = UnixStream::pair()?;
        let info = info(db);
        let served = Arc::new(Served { db: db.clone(), info, is_stopping: AtomicBool::new(false) });
        let thread = {
            let (served, bound) = (Arc::clone(&served), Arc::clone(&bound));
            let named = thread::Builder::new().name("terrane-control".into());
            named.spawn(move || accept_all(&bound.listener, &woken, &served))?
        };
        Ok(Self { served, directory, bound, key, wake, thread: Some(thread) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if self.key.0 != std::process::id() {
            // The thread does not exist here, and must not be joined or detached.
            let _ = ManuallyDrop::new(self.thread.take());
            return;
        }
        self.directory.remove(&self.bound);
        self.served.is_stopping.store(true, Ordering::Release);
        // Closing the other end wakes the thread.
        let _ = self.wake.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
        forget(self.key);
    }
}

fn forget(key: (u32, Identity)) {
    SERVED.lock().unwrap_or_else(PoisonError::into_inner).retain(|served| *served != key);
}

fn info(db: &Db) -> Info {
    let program = std::env::args_os().next().map(PathBuf::from);
    let name = program.as_deref().and_then(|path| path.file_name());
    Info {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        program: name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        database: db.path().display().to_string(),
        since_micros: now_micros(),
    }
}

/// A client, and the thread that serves it.
struct Client {
    thread: JoinHandle<()>,
    stream: UnixStream,
}

/// Ends a connection when dropped, although [`Client`] keeps a copy until the next one connects.
struct HangUp(UnixStream);

impl Drop for HangUp {
    fn drop(&mut self) {
        // A client that is gone cannot be shut down.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Accepts clients until the socket is dropped, and then ends them.
fn accept_all(listener: &UnixListener, woken: &UnixStream, served: &Arc<Served>) {
    let mut clients: Vec<Client> = Vec::new();
    while !served.is_stopping.load(Ordering::Acquire) {
        let mut waits = [
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(woken.as_fd(), PollFlags::POLLIN),
        ];
        // An interrupted wait is repeated.
        let _ = poll(&mut waits, PollTimeout::NONE);
        match listener.accept() {
            Ok((stream, _)) => {
                clients.retain(|client| !client.thread.is_finished());
                clients.extend(begin(stream, clients.len(), served));
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                _ => thread::sleep(REST),
            },
        }
    }
    // Each has a moment to take its last message.
    let begun = Instant::now();
    while begun.elapsed() < FAREWELL && clients.iter().any(|one| !one.thread.is_finished()) {
        thread::sleep(Duration::from_millis(5));
    }
    for client in clients {
        // A client that is gone cannot be shut down.
        let _ = client.stream.shutdown(Shutdown::Both);
        let _ = client.thread.join();
    }
}

/// Begins to serve a client, unless it may not connect or there are too many clients.
fn begin(stream: UnixStream, others: usize, served: &Arc<Served>) -> Option<Client> {
    match peer(&stream) {
        Ok(uid) if is_allowed(uid) => {}
        _ => {
            let text = "the control socket is for the user of the process that serves it";
            refuse(stream, Failure::invalid(text));
            return None;
        }
    }
    if others >= CLIENTS_MAX {
        let text = format!("{others} clients are already connected; try again when one has left");
        refuse(stream, Failure::new(DbErrorKind::Busy, text));
        return None;
    }
    let (kept, copy) = (stream.try_clone().ok()?, stream.try_clone().ok()?);
    let served = Arc::clone(served);
    let named = thread::Builder::new().name("terrane-control".into());
    let serve = move || {
        let _end = HangUp(copy);
        serve(stream, &served);
    };
    let thread = named.spawn(serve).ok()?;
    Some(Client { thread, stream: kept })
}
