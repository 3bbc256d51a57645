//! Atomic writes.

use std::ffi::{c_char, c_void};

use terrane::WriteBatch;
use terrane_c::argument::bytes;

/// Puts and deletes that are applied at once, kept as they were added, so that a program can read them back.
#[derive(Debug, Default)]
pub struct leveldb_writebatch_t {
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    operations: Vec<Operation>,
}

/// The lengths of an operation.
#[derive(Debug, Clone, Copy)]
struct Operation {
    key_len: usize,
    /// `None` for a delete.
    value_len: Option<usize>,
}

impl leveldb_writebatch_t {
    fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        let operation = Operation { key_len: key.len(), value_len: value.map(<[u8]>::len) };
        self.operations.push(operation);
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut rest = &self.bytes[..];
        self.operations.iter().map(move |operation| {
            let (key, after) = rest.split_at(operation.key_len);
            let (value, after) = after.split_at(operation.value_len.unwrap_or(0));
            rest = after;
            (key, operation.value_len.map(|_| value))
        })
    }

    /// Returns the batch of the engine.
    pub(crate) fn to_batch(&self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for (key, value) in self.iter() {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            };
        }
        batch
    }
}

/// Returns an empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> Box<leveldb_writebatch_t> {
    Box::default()
}

/// Frees a batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_destroy(batch: Option<Box<leveldb_writebatch_t>>) {
    drop(batch);
}

/// Removes all operations of a batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_clear(batch: Option<&mut leveldb_writebatch_t>) {
    if let Some(batch) = batch {
        batch.bytes.clear();
        batch.operations.clear();
    }
}

/// Adds a put to a batch. NULL with a nonzero length adds nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_put(
    batch: Option<&mut leveldb_writebatch_t>,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    // SAFETY: the caller passes readable bytes.
    let key = unsafe { bytes(key.cast(), klen, "key") };
    // SAFETY: as above.
    let value = unsafe { bytes(val.cast(), vlen, "val") };
    if let (Some(batch), Ok(key), Ok(value)) = (batch, key, value) {
        batch.add(key, Some(value));
    }
}

/// Adds a delete to a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_delete(
    batch: Option<&mut leveldb_writebatch_t>,
    key: *const c_char,
    klen: usize,
) {
    // SAFETY: the caller passes readable bytes.
    let key = unsafe { bytes(key.cast(), klen, "key") };
    if let (Some(batch), Ok(key)) = (batch, key) {
        batch.add(key, None);
    }
}

/// Calls a function for each operation of a batch, in order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_iterate(
    batch: Option<&leveldb_writebatch_t>,
    state: *mut c_void,
    put: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>,
    deleted: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>,
) {
    for (key, value) in batch.into_iter().flat_map(leveldb_writebatch_t::iter) {
        let (pointer, len) = (key.as_ptr().cast(), key.len());
        match (value, put, deleted) {
            (Some(value), Some(put), _) => {
                // SAFETY: the application passed the function with its state; the bytes are readable.
                unsafe { put(state, pointer, len, value.as_ptr().cast(), value.len()) };
            }
            // SAFETY: as above.
            (None, _, Some(deleted)) => unsafe { deleted(state, pointer, len) },
            _ => {}
        }
    }
}

/// Adds the operations of another batch to a batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_append(
    destination: Option<&mut leveldb_writebatch_t>,
    source: Option<&leveldb_writebatch_t>,
) {
    if let (Some(destination), Some(source)) = (destination, source) {
        destination.bytes.extend_from_slice(&source.bytes);
        destination.operations.extend_from_slice(&source.operations);
    }
}
