//! Errors of the server as a whole. Errors of commands are answers to clients.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Why a server could not start, or stopped with an error.
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
    /// This build has no TLS, because the feature `tls` is off.
    TlsAbsent,
    /// Addresses for TLS without a certificate.
    NoCertificate,
    /// A TLS file cannot be used.
    Tls {
        /// The file.
        path: PathBuf,
        /// The problem with the file.
        problem: TlsProblem,
    },
    /// A line of the file of users is invalid.
    Users {
        /// The number of the line.
        line: usize,
        /// The problem with the line.
        what: &'static str,
    },
    /// The operating system refused something that the server needs.
    System {
        /// The operation that failed, in the infinitive.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A thread of the server panicked, so the server stopped.
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
                    "{} exists and is not a socket; remove it, or use another path",
                    path.display()
                )
            }
            Self::TlsAbsent => f.write_str(
                "this build cannot listen for TLS; build it with the feature 'tls', as \
                 'cargo install terrane-cli --features tls' does",
            ),
            Self::NoCertificate => {
                f.write_str("TLS needs a certificate and its key; give the files of both")
            }
            Self::Tls { path, problem } => {
                write!(f, "cannot use {} for TLS: {problem}", path.display())
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
            Self::Tls { problem: TlsProblem::Unreadable(source), .. } => Some(source),
            Self::Database(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a TLS file cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsProblem {
    /// It cannot be read.
    Unreadable(io::Error),
    /// It has no certificate.
    NoCertificate,
    /// It has no private key, or one with a passphrase.
    NoKey,
    /// A certificate has expired.
    Expired {
        /// The time since then.
        since: Duration,
    },
    /// A certificate is not valid yet.
    NotValidYet {
        /// The time until then.
        until: Duration,
    },
    /// The key does not belong to the certificate.
    KeyMismatch {
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// The TLS library rejects it.
    Refused(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = |time: &Duration| time.as_secs() / (24 * 60 * 60);
        match self {
            Self::Unreadable(source) => write!(f, "{source}"),
            Self::NoCertificate => f.write_str(
                "it has no certificate in the PEM format, which begins with '-----BEGIN CERTIFICATE-----'",
            ),
            Self::NoKey => f.write_str(
                "it has no private key without a passphrase in the PEM format; 'openssl pkey -in FILE' prints \
                 the key in this form",
            ),
            Self::Expired { since } => {
                write!(f, "a certificate expired {} days ago; renew it", days(since))
            }
            Self::NotValidYet { until } => write!(
                f,
                "a certificate is not valid before {} days from now; check the clock of this host",
                days(until)
            ),
            Self::KeyMismatch { certificate } => write!(
                f,
                "it is not the key of the certificate in {}; give the key that the certificate was made for",
                certificate.display()
            ),
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

impl From<terrane::Error> for ServerError {
    fn from(error: terrane::Error) -> Self {
        Self::Database(error)
    }
}
