//! Sorted data that becomes tables without passing through the log.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use terrane::Ingest;

use crate::argument::{given, pair, store};
use crate::error::{Outcome, check, invalid, produce, terrane_code, terrane_error};
use crate::keyspace::terrane_keyspace;

/// Sorted entries that are written to tables and become visible at once, with terrane_ingest_commit. Until then, and
/// after a crash before it, there is no trace of them. One thread at a time may use it.
#[derive(Debug)]
pub struct terrane_ingest {
    ingest: Option<Ingest>,
}

impl terrane_ingest {
    fn open(&mut self) -> Outcome<&mut Ingest> {
        self.ingest.as_mut().ok_or_else(ended)
    }
}

#[cold]
fn ended() -> Box<terrane_error> {
    invalid("the ingest has ended; begin another one".to_owned())
}

/// Begins an ingest into a keyspace. It is freed with terrane_ingest_free, also after a commit.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_ingest_begin(
    keyspace: Option<&terrane_keyspace>,
    ingest: Option<&mut MaybeUninit<Option<Box<terrane_ingest>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(ingest, None, error, || {
        let ingest = given(keyspace, "keyspace")?.keyspace.begin_ingest()?;
        Ok(Some(Box::new(terrane_ingest { ingest: Some(ingest) })))
    })
}

/// Frees an ingest, and discards its entries unless it was committed; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_ingest_free(ingest: Option<Box<terrane_ingest>>) {
    drop(ingest);
}

/// Adds an entry, whose key must be above the one before. After TERRANE_INVALID the ingest can go on without the
/// entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_ingest_put(
    ingest: Option<&mut terrane_ingest>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (key, value) = unsafe { pair(key, key_len, value, value_len, "value") }?;
        Ok(given(ingest, "ingest")?.open()?.put(key, value)?)
    })
}

/// Adds all entries to the keyspace, ends the ingest whether that succeeds or not, and stores the number of entries.
/// Returns once they are durable and visible.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_ingest_commit(
    ingest: Option<&mut terrane_ingest>,
    entries: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    let mut count = 0;
    let code = check(error, || {
        let ingest = given(ingest, "ingest")?.ingest.take().ok_or_else(ended)?;
        let len = ingest.len();
        ingest.commit()?;
        count = len;
        Ok(())
    });
    store(entries, count);
    code
}
