//! Errors of the server as a whole. Errors of commands are answers to clients.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server could not start, or ended with an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// An address could not be listened on.
    Listen {
        /// The address or the path.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// An address is not one of this host, and the server has no users.
    Unprotected {
        /// The address.
        address: SocketAddr,
    },
    /// There is nothing to listen on.
    NoAddress,
    /// The path of the Unix socket is a file of another kind.
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// A line of the file of users is invalid.
    Users {
        /// The number of the line.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The operating system refused something that the server needs.
    System {
        /// What it is needed for.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A thread of the server panicked, and the server ended for it.
    Panicked {
        /// The name of the thread.
        thread: String,
    },
    /// The database reported an error.
    Database(terrane::Error),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, source } => write!(f, "cannot listen on {address}: {source}"),
            Self::Unprotected { address } => write!(
                f,
                "{address} can be reached from other hosts, and there is no password; set a password or \
                 users, or allow everybody with --insecure"
            ),
            Self::NoAddress => f.write_str("no address to listen on; give a port or a Unix socket"),
            Self::NotASocket { path } => {
                write!(
                    f,
                    "{} exists and is no socket; remove it, or use another path",
                    path.display()
                )
            }
            Self::Users { line, what } => write!(f, "file of users, line {line}: {what}"),
            Self::System { what, source } => write!(f, "cannot {what}: {source}"),
            Self::Panicked { thread } => {
                write!(
                    f,
                    "the server ended because its thread '{thread}' panicked; please report it"
                )
            }
            Self::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { source, .. } | Self::System { source, .. } => Some(source),
            Self::Database(error) => Some(error),
            _ => None,
        }
    }
}

impl From<terrane::Error> for ServerError {
    fn from(error: terrane::Error) -> Self {
        Self::Database(error)
    }
}
