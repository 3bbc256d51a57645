//! Connections over TLS. In a build without the feature `tls`, the types have no values, so nothing else depends
//! on the feature.
//!
//! | module | one line |
//! |---|---|
//! | `files` | certificates and keys, read and checked |
//! | `session` | a socket with a TLS session |
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

/// The most record bytes that wait for a client to read them. A larger value saves system calls for long
/// replies.
pub(super) const UNSENT_BYTES: usize = 64 << 10;

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) bytes: usize,
    /// Whether more may be readable now. If not, an event reports later bytes.
    pub(super) has_more: bool,
}

/// The result of sending a stream's pending bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flushed {
    pub(super) bytes: usize,
    /// Whether all of them were sent.
    pub(super) is_done: bool,
}
