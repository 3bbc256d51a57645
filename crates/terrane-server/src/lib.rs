//! A server for Terrane databases that speaks the Redis protocol, RESP2 and RESP3.
//!
//! Clients and tools of Redis work unchanged for strings, hashes, keys, expiry, bits, transactions and
//! administration. Keys and strings are stored as they are: a key of database 0 is a key of the keyspace
//! `default`, and a key of database 3 one of the keyspace `db3`. Hashes are in `default.hashes` and
//! `db3.hashes`.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! use terrane_server::{Config, Server};
//!
//! let db = terrane::Db::open(dir.path())?;
//! let listen = vec!["127.0.0.1:0".parse()?];
//! let server = Server::bind(db.clone(), Config { listen, ..Config::default() })?;
//! let (address, handle) = (server.addresses()[0], server.handle());
//! let thread = std::thread::spawn(move || server.run());
//!
//! use std::io::{Read, Write};
//! let mut client = std::net::TcpStream::connect(address)?;
//! client.write_all(b"SET apple red\r\n")?;
//! let mut reply = [0; 5];
//! client.read_exact(&mut reply)?;
//! assert_eq!(&reply, b"+OK\r\n");
//! assert_eq!(db.get("apple")?.unwrap(), "red");
//!
//! handle.end();
//! thread.join().unwrap()?;
//! db.close()?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod base;
mod call;
mod commands;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod net;
mod protocol;
mod server;
mod state;
mod store;

pub use base::error::{ServerError, TlsProblem};
pub use base::file_limit::raise_file_limit;
pub use base::keyspace_events::KeyspaceEvents;
pub use base::log::EngineLog;
pub use server::{Handle, Report, Server};
pub use state::config::{Advisor, Config, Limits, TlsFiles};
pub use state::users::{User, Users};
