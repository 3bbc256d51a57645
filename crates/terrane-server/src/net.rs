//! Connections: accepting them, and the event loops that serve them.
//!
//! | module | one line |
//! |---|---|
//! | `tls` | sockets with TLS |
//! | `stream` | sockets of each kind |
//! | `connection` | a connection: its buffers and its session |
//! | `worker` | an event loop, which serves its connections |
//! | `metrics` | metrics over HTTP |
//! | `accept` | accepts connections and hands them to workers |

mod accept;
mod connection;
pub(crate) mod metrics;
mod stream;
mod tls;
mod worker;

pub(crate) use accept::{Acceptor, Listener};
pub(crate) use tls::TlsServer;
pub(crate) use worker::Worker;
