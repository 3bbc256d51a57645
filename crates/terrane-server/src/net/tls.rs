//! Connections over TLS. In a build without the feature `tls`, the types have no values, so nothing else depends
//! on the feature.
//!
//! | module | one line |
//! |---|---|
//! | `files` | certificates and keys, read and checked |
//! | `session` | a socket with a session of TLS |
//! | `absent` | the same without the feature |

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod files;
#[cfg(feature = "tls")]
mod session;

#[cfg(not(feature = "tls"))]
pub(crate) use absent::{TlsServer, TlsStream};
#[cfg(feature = "tls")]
pub(crate) use session::{TlsServer, TlsStream};

/// The bytes of records that may wait for a client to read them. More need fewer system calls for long replies.
pub(super) const UNSENT_BYTES: usize = 64 << 10;

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) bytes: usize,
    /// Whether there may be more to read now. Otherwise, an event tells what arrives later.
    pub(super) has_more: bool,
}

/// How far what waits in a stream was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flushed {
    pub(super) bytes: usize,
    /// Whether nothing waits any longer.
    pub(super) is_done: bool,
}
