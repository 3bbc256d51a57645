//! Iterators.

use std::ffi::c_char;

use terrane_c::argument::{bytes, given};
use terrane_c::cursor::Cursor;
use terrane_c::error::{Outcome, call, terrane_error};

use crate::database::leveldb_t;
use crate::options::leveldb_readoptions_t;
use crate::status::{allocate, leveldb_free, message};

/// An iterator over all keys, as of one moment. One thread at a time may use it.
#[derive(Debug)]
pub struct leveldb_iterator_t {
    /// `None` if it could not be created.
    cursor: Option<Cursor>,
    error: Option<Box<terrane_error>>,
}

impl leveldb_iterator_t {
    /// Moves, and remembers the error.
    fn go(iter: Option<&mut Self>, to: impl FnOnce(&mut Cursor) -> Outcome<bool>) {
        let Some(iter) = iter else { return };
        if let Some(cursor) = &mut iter.cursor {
            iter.error = call(|| to(cursor)).err();
        }
    }

    fn entry(&self) -> Option<&Cursor> {
        self.cursor.as_ref().filter(|cursor| cursor.is_valid())
    }
}

/// Returns an iterator without a position. If it cannot be created, the iterator holds the error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_iterator(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_readoptions_t>,
) -> Box<leveldb_iterator_t> {
    let cursor = call(|| {
        let db = &given(db, "db")?.db;
        let snapshot = given(options, "options")?.snapshot.clone();
        let snapshot = snapshot.unwrap_or_else(|| db.snapshot());
        Ok(Cursor::new(snapshot, db.default_keyspace().clone(), &[], None))
    });
    Box::new(match cursor {
        Ok(cursor) => leveldb_iterator_t { cursor: Some(cursor), error: None },
        Err(error) => leveldb_iterator_t { cursor: None, error: Some(error) },
    })
}

/// Frees an iterator.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_destroy(iter: Option<Box<leveldb_iterator_t>>) {
    drop(iter);
}

/// Returns whether an iterator is on an entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_valid(iter: Option<&leveldb_iterator_t>) -> u8 {
    u8::from(iter.and_then(leveldb_iterator_t::entry).is_some())
}

/// Moves to the first entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_first(iter: Option<&mut leveldb_iterator_t>) {
    leveldb_iterator_t::go(iter, |cursor| Ok(cursor.seek_to_first()?));
}

/// Moves to the last entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_last(iter: Option<&mut leveldb_iterator_t>) {
    leveldb_iterator_t::go(iter, |cursor| Ok(cursor.seek_to_last()?));
}

/// Moves to the first entry whose key is `k` or above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek(
    iter: Option<&mut leveldb_iterator_t>,
    k: *const c_char,
    klen: usize,
) {
    leveldb_iterator_t::go(iter, |cursor| {
        // SAFETY: the caller passes readable bytes.
        let key = unsafe { bytes(k.cast(), klen, "k") }?;
        Ok(cursor.seek(key)?)
    });
}

/// Moves to the next entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_next(iter: Option<&mut leveldb_iterator_t>) {
    leveldb_iterator_t::go(iter, |cursor| Ok(cursor.move_next()?));
}

/// Moves to the previous entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_prev(iter: Option<&mut leveldb_iterator_t>) {
    leveldb_iterator_t::go(iter, |cursor| Ok(cursor.move_prev()?));
}

/// Returns the key of the entry and stores its length. It is valid until the iterator moves. NULL if there is no entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_key(
    iter: Option<&leveldb_iterator_t>,
    klen: Option<&mut usize>,
) -> *const c_char {
    lent(iter.and_then(leveldb_iterator_t::entry).map(Cursor::key), klen)
}

/// Returns the value of the entry and stores its length, as leveldb_iter_key does.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_value(
    iter: Option<&leveldb_iterator_t>,
    vlen: Option<&mut usize>,
) -> *const c_char {
    lent(iter.and_then(leveldb_iterator_t::entry).map(Cursor::value), vlen)
}

fn lent(bytes: Option<&[u8]>, len: Option<&mut usize>) -> *const c_char {
    if let Some(len) = len {
        *len = bytes.map_or(0, <[u8]>::len);
    }
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// Stores the error of the last move, if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_get_error(
    iter: Option<&leveldb_iterator_t>,
    errptr: Option<&mut *mut c_char>,
) {
    if let (Some(error), Some(place)) = (iter.and_then(|iter| iter.error.as_ref()), errptr) {
        // SAFETY: the caller passes NULL or a string from `malloc`, and gives up its ownership.
        unsafe { leveldb_free((*place).cast()) };
        *place = allocate(message(error).as_bytes());
    }
}
