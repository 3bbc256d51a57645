//! Copies of files that are not read through the engine.

use std::path::Path;

use crate::base::cancel::{self, Cancel};
use crate::base::error::{Error, Result};
use crate::files::storage::{Access, Storage};
use crate::files::wal::state_copy;

/// Copies a file, or its first `bytes` followed by zeros, and makes the copy durable.
pub(super) fn copy_file(
    storage: &dyn Storage,
    (from, to): (&Path, &Path),
    bytes: Option<u64>,
    cancel: Option<&Cancel>,
) -> Result<()> {
    const CHUNK_BYTES: u64 = 1 << 20;
    let read = |error| Error::io("read", from, error);
    let write = |error| Error::io("write", to, error);
    let len = match bytes {
        Some(bytes) => bytes,
        None => storage.len(from).map_err(read)?,
    };
    let source = storage.open(from, Access::Buffered).map_err(read)?;
    let mut copy = storage.create(to, Access::Buffered).map_err(write)?;
    let mut at = 0;
    while at < len {
        cancel::check(cancel)?;
        let mut chunk = vec![0; CHUNK_BYTES.min(len - at) as usize];
        source.read_at(at, &mut chunk).map_err(read)?;
        if let (0, Some(bytes)) = (at, bytes) {
            state_copy(&mut chunk, bytes, from)?;
        }
        copy.append(&chunk).map_err(write)?;
        at += chunk.len() as u64;
        if let Some(cancel) = cancel {
            cancel.add_done(chunk.len() as u64);
        }
    }
    if bytes.is_some() {
        // Zeros mark the end of a log.
        copy.append(&[0; 64]).map_err(write)?;
    }
    copy.sync().map_err(write)
}
