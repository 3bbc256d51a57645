//! Binding and connecting a socket in the directory of a database.
//!
//! An address is a path of about a hundred bytes. Linux has a short path for an open directory, which
//! leads there even if the directory was moved. Elsewhere the path of the directory is used, if it
//! still leads to the open directory.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use terrane::{Db, Maintenance};

/// The name of the socket, and its name before clients may connect.
pub(super) const SOCKET: &str = "control.sock";
const UNFINISHED: &str = "control.sock.new";

/// Only the user of the process may connect.
const MODE: u32 = 0o600;

/// Paths up to this length fit into an address on all platforms (macOS has 104 bytes with the zero).
const PATH_BYTES_MAX: usize = 100;

/// Pending connections.
const BACKLOG: i32 = 8;

/// The device and number of a file.
pub(super) type Identity = (u64, u64);

/// The directory of a database, held open.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    file: File,
}

impl Directory {
    /// Opens the directory to which a path leads now.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self { path: std::path::absolute(path)?, file })
    }

    /// Returns the directory in which a database was opened.
    pub(super) fn of(db: &Db) -> io::Result<Self> {
        match Maintenance::of(db).directory() {
            Some(open) => {
                Ok(Self { path: db.path().to_owned(), file: open.try_clone_to_owned()?.into() })
            }
            None => Self::open(db.path()),
        }
    }

    pub(super) fn identity(&self) -> io::Result<Identity> {
        Ok(identity_in(&self.file.metadata()?))
    }

    /// Returns a path, short enough for an address, of a file in the directory.
    fn short(&self, name: &str) -> io::Result<PathBuf> {
        let open = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        if cfg!(any(target_os = "linux", target_os = "android")) && open.exists() {
            return Ok(open.join(name));
        }
        if identity_in(&fs::metadata(&self.path)?) != self.identity()? {
            let text = "the directory has been moved since the database was opened";
            return Err(io::Error::new(ErrorKind::NotFound, text));
        }
        let path = self.path.join(name);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(path);
        }
        let text = format!(
            "the path of the socket '{}' is longer than {PATH_BYTES_MAX} bytes, which only Linux with /proc \
             allows; open the database by a shorter path",
            path.display()
        );
        Err(io::Error::new(ErrorKind::InvalidInput, text))
    }

    /// Binds the socket. Replaces the socket of a killed process: the caller holds the lock of the
    /// database, so no other process serves it.
    pub(super) fn bind(&self) -> io::Result<Bound> {
        let unfinished = self.short(UNFINISHED)?;
        remove_if_any(&unfinished)?;
        let fd = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None)?;
        fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        bind(fd.as_raw_fd(), &UnixAddr::new(&unfinished)?)?;
        // No client can connect before `listen`, so none connects before the mode is set.
        let listener = finish(fd, &unfinished, &self.short(SOCKET)?);
        listener.inspect_err(|_| drop(fs::remove_file(&unfinished)))
    }

    /// Connects to the process that serves the database; `None` if no process does.
    pub(super) fn connect(&self) -> io::Result<Option<UnixStream>> {
        match UnixStream::connect(self.short(SOCKET)?) {
            Ok(stream) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Removes the socket, unless another process has replaced it.
    pub(super) fn remove(&self, bound: &Bound) {
        let Ok(path) = self.short(SOCKET) else { return };
        if identity(&path).is_ok_and(|identity| identity == bound.identity) {
            // The next process that serves the database replaces a socket that remains.
            let _ = fs::remove_file(path);
        }
    }
}

/// A socket to which clients connect.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) listener: UnixListener,
    identity: Identity,
}

fn finish(fd: OwnedFd, unfinished: &Path, path: &Path) -> io::Result<Bound> {
    fs::set_permissions(unfinished, fs::Permissions::from_mode(MODE))?;
    listen(&fd, Backlog::new(BACKLOG)?)?;
    let identity = identity(unfinished)?;
    fs::rename(unfinished, path)?;
    Ok(Bound { listener: UnixListener::from(fd), identity })
}

fn identity(path: &Path) -> io::Result<Identity> {
    Ok(identity_in(&fs::symlink_metadata(path)?))
}

fn identity_in(metadata: &fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

fn remove_if_any(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the user at the other end.
pub(super) fn peer(stream: &UnixStream) -> io::Result<u32> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let uid = {
        use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
        getsockopt(stream, PeerCredentials)?.uid()
    };
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let uid = nix::unistd::getpeereid(stream)?.0.as_raw();
    Ok(uid)
}

/// Returns true if a user may use the socket: the user of this process, or root.
pub(super) fn is_allowed(uid: u32) -> bool {
    uid == 0 || uid == nix::unistd::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_user_of_the_process_and_root_are_allowed() {
        let own = nix::unistd::geteuid().as_raw();
        assert!(is_allowed(own) && is_allowed(0));
        assert!(!is_allowed(own + 1) && !is_allowed(65_534));
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(peer(&one).unwrap(), own);
    }

    #[test]
    fn a_socket_is_for_its_user_only_from_the_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path()).unwrap();
        let bound = directory.bind().unwrap();
        let mode = fs::metadata(dir.path().join(SOCKET)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!dir.path().join(UNFINISHED).exists());
        assert!(directory.connect().unwrap().is_some());
        drop(bound);
        // The file remains, as after a crash, but no process serves it.
        assert!(directory.connect().unwrap().is_none());
        let (first, second) = (directory.bind().unwrap(), directory.bind().unwrap());
        directory.remove(&first);
        assert!(directory.connect().unwrap().is_some());
        directory.remove(&second);
        assert!(!dir.path().join(SOCKET).exists());
    }

    #[test]
    fn a_long_path_is_reached_through_the_open_directory() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("d".repeat(80)).join("e".repeat(80));
        fs::create_dir_all(&dir).unwrap();
        let directory = Directory::open(&dir).unwrap();
        if cfg!(target_os = "linux") {
            let _bound = directory.bind().unwrap();
            assert!(dir.join(SOCKET).exists());
            assert!(directory.connect().unwrap().is_some());
        } else {
            let error = directory.bind().unwrap_err().to_string();
            assert!(error.contains("shorter path"), "{error}");
        }
    }
}
