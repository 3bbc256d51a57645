//! Terrane.
#![deny(unsafe_code)]

mod batch;
mod block_ref;
mod cache;
mod checksum;
mod clock;
mod codec;
mod error;
mod memory;
mod stats;
pub mod storage;
mod table;
mod types;
mod value;
mod wal;

pub use error::{Corruption, Error, ErrorKind, Invalid, IoFailure, Result};
