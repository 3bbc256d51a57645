//! The socket itself.
//!
//! | module | one line |
//! |---|---|
//! | `address` | binding and connecting, also below a path that is too long for a socket |
//! | `lines` | lines of JSON of bounded length, with time-outs |
//! | `connection` | the requests of one client |
//! | `server` | accepts clients |
//! | `client` | the other end |

mod address;
mod client;
mod connection;
mod lines;
mod server;

pub use client::Client;
pub use server::ControlSocket;
