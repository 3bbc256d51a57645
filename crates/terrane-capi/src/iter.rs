//! Iterators over keyspaces, snapshots and transactions.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use crate::argument::{bytes, given, start_and_end, store};
use crate::cursor::{Cursor, end_of_prefix};
use crate::error::{Outcome, call, check, produce, terrane_code, terrane_error};
use crate::keyspace::terrane_keyspace;
use crate::snapshot::terrane_snapshot;
use crate::transaction::{Shared, terrane_transaction};
use crate::transaction_cursor::TransactionCursor;

/// An iterator over the keys and values of a range, in order, from one moment. It moves in both directions; a
/// change of direction costs a seek. One thread at a time may use it.
///
/// A new iterator has no position: terrane_iter_next moves to the first entry, and terrane_iter_prev to the last.
/// The functions that move it return true if it is then on an entry; false at the end, or after an error, which
/// they store. After an error it is on no entry until the next seek. It keeps the memory and the files that it
/// reads.
#[derive(Debug)]
pub struct terrane_iter {
    source: Source,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "an iterator is allocated once, and not moved")]
enum Source {
    Snapshot(Cursor),
    Transaction(Shared, TransactionCursor),
}

/// A move of an iterator.
#[derive(Clone, Copy)]
enum Move<'a> {
    First,
    Last,
    To(&'a [u8]),
    BackTo(&'a [u8]),
    Next,
    Previous,
}

impl terrane_iter {
    fn over(
        keyspace: &terrane_keyspace,
        snapshot: Option<&terrane_snapshot>,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> Outcome<Option<Box<Self>>> {
        let of = &keyspace.keyspace;
        let snapshot = match snapshot {
            Some(snapshot) => snapshot.snapshot.clone(),
            None => keyspace.db.snapshot(),
        };
        // Reports a database that was closed, and a keyspace of another database, at once.
        drop(snapshot.range_in(of, start..start)?);
        let source = Source::Snapshot(Cursor::new(snapshot, of.clone(), start, end));
        Ok(Some(Box::new(Self { source })))
    }

    fn over_transaction(
        transaction: &terrane_transaction,
        keyspace: Option<&terrane_keyspace>,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> Option<Box<Self>> {
        let keyspace = transaction.keyspace(keyspace).clone();
        let cursor = TransactionCursor::new(keyspace, start, end);
        Some(Box::new(Self { source: Source::Transaction(transaction.shared.clone(), cursor) }))
    }

    #[inline]
    fn go(&mut self, to: Move<'_>) -> Outcome<bool> {
        match &mut self.source {
            Source::Snapshot(cursor) => Ok(match to {
                Move::Next => cursor.move_next(),
                Move::Previous => cursor.move_prev(),
                Move::First => cursor.seek_to_first(),
                Move::Last => cursor.seek_to_last(),
                Move::To(key) => cursor.seek(key),
                Move::BackTo(key) => cursor.seek_for_prev(key),
            }?),
            Source::Transaction(shared, cursor) => shared.with(|transaction| {
                Ok(match to {
                    Move::Next => cursor.next(transaction),
                    Move::Previous => cursor.prev(transaction),
                    Move::First => cursor.seek(transaction, &[]),
                    Move::Last => cursor.seek_to_last(transaction),
                    Move::To(key) => cursor.seek(transaction, key),
                    Move::BackTo(key) => cursor.seek_for_prev(transaction, key),
                }?)
            }),
        }
    }

    /// Returns the entry, if there is one.
    fn entry(&self) -> Option<(&[u8], &[u8])> {
        match &self.source {
            Source::Snapshot(cursor) => cursor.is_valid().then(|| (cursor.key(), cursor.value())),
            Source::Transaction(_, cursor) => {
                cursor.is_valid().then(|| (cursor.key(), cursor.value()))
            }
        }
    }
}

/// Runs a move, and stores its error or NULL.
#[inline]
fn moved(
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
    function: impl FnOnce() -> Outcome<bool>,
) -> bool {
    let (is_there, failure) = match call(function) {
        Ok(is_there) => (is_there, None),
        Err(failure) => (false, Some(failure)),
    };
    store(error, failure);
    is_there
}

/// Stores an iterator over the keys from `start` to the exclusive `end`, to be freed with terrane_iter_free. It
/// reads `snapshot`, or the present state for NULL. NULL for `start` is the first key, NULL for `end` is no end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_iter_range(
    keyspace: Option<&terrane_keyspace>,
    snapshot: Option<&terrane_snapshot>,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    iter: Option<&mut MaybeUninit<Option<Box<terrane_iter>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(iter, None, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (start, end) = unsafe { start_and_end(start, start_len, end, end_len) }?;
        terrane_iter::over(given(keyspace, "keyspace")?, snapshot, start, end)
    })
}

/// Stores an iterator over the keys that begin with `prefix`, to be freed with terrane_iter_free. It reads
/// `snapshot`, or the present state for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_iter_prefix(
    keyspace: Option<&terrane_keyspace>,
    snapshot: Option<&terrane_snapshot>,
    prefix: *const c_void,
    prefix_len: usize,
    iter: Option<&mut MaybeUninit<Option<Box<terrane_iter>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(iter, None, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let prefix = unsafe { bytes(prefix, prefix_len, "prefix") }?;
        let end = end_of_prefix(prefix);
        terrane_iter::over(given(keyspace, "keyspace")?, snapshot, prefix, end.as_deref())
    })
}

/// Stores an iterator over the keys from `start` to the exclusive `end` as a transaction sees them, to be freed with
/// terrane_iter_free. NULL for `start` is the first key, NULL for `end` is no end, NULL for `keyspace` the default
/// keyspace.
///
/// It reads ahead, at most as many entries as it returned and 64, on which the transaction then depends. It may miss
/// writes of the transaction that follow its last seek. After the end of the transaction its moves return
/// TERRANE_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_transaction_iter_range(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    iter: Option<&mut MaybeUninit<Option<Box<terrane_iter>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(iter, None, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (start, end) = unsafe { start_and_end(start, start_len, end, end_len) }?;
        let transaction = given(transaction, "transaction")?;
        Ok(terrane_iter::over_transaction(transaction, keyspace, start, end))
    })
}

/// Stores an iterator over the keys that begin with `prefix` as a transaction sees them; see
/// terrane_transaction_iter_range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_transaction_iter_prefix(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    prefix: *const c_void,
    prefix_len: usize,
    iter: Option<&mut MaybeUninit<Option<Box<terrane_iter>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(iter, None, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let prefix = unsafe { bytes(prefix, prefix_len, "prefix") }?;
        let end = end_of_prefix(prefix);
        let transaction = given(transaction, "transaction")?;
        Ok(terrane_iter::over_transaction(transaction, keyspace, prefix, end.as_deref()))
    })
}

/// Frees an iterator; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_free(iter: Option<Box<terrane_iter>>) {
    drop(iter);
}

/// Leaves out the values from now on, which then are empty, and forgets the position. Such an iterator reads no
/// value that is stored apart from its key.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_leave_out_values(
    iter: Option<&mut terrane_iter>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        match &mut given(iter, "iter")?.source {
            Source::Snapshot(cursor) => cursor.leave_out_values(),
            Source::Transaction(_, cursor) => cursor.leave_out_values(),
        }
        Ok(())
    })
}

/// Moves to the next entry, or to the first one if there is no position.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_next(
    iter: Option<&mut terrane_iter>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> bool {
    moved(error, || given(iter, "iter")?.go(Move::Next))
}

/// Moves to the previous entry, or to the last one if there is no position.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_prev(
    iter: Option<&mut terrane_iter>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> bool {
    moved(error, || given(iter, "iter")?.go(Move::Previous))
}

/// Moves to the first entry.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_seek_to_first(
    iter: Option<&mut terrane_iter>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> bool {
    moved(error, || given(iter, "iter")?.go(Move::First))
}

/// Moves to the last entry.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_seek_to_last(
    iter: Option<&mut terrane_iter>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> bool {
    moved(error, || given(iter, "iter")?.go(Move::Last))
}

/// Moves to the first entry whose key is `key` or above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_iter_seek(
    iter: Option<&mut terrane_iter>,
    key: *const c_void,
    key_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> bool {
    moved(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        given(iter, "iter")?.go(Move::To(key))
    })
}

/// Moves to the last entry whose key is `key` or below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_iter_seek_for_prev(
    iter: Option<&mut terrane_iter>,
    key: *const c_void,
    key_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> bool {
    moved(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        given(iter, "iter")?.go(Move::BackTo(key))
    })
}

/// Returns whether the iterator is on an entry; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_valid(iter: Option<&terrane_iter>) -> bool {
    iter.is_some_and(|iter| iter.entry().is_some())
}

/// Returns the key of the entry and stores its length. The bytes are valid until the iterator moves or is freed, and
/// do not end with NUL. NULL and the length 0 if there is no entry.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_key(
    iter: Option<&terrane_iter>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    lent(iter.and_then(terrane_iter::entry).map(|(key, _)| key), len)
}

/// Returns the value of the entry and stores its length, as terrane_iter_key does.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_iter_value(
    iter: Option<&terrane_iter>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    lent(iter.and_then(terrane_iter::entry).map(|(_, value)| value), len)
}

fn lent(bytes: Option<&[u8]>, len: Option<&mut MaybeUninit<usize>>) -> *const c_char {
    store(len, bytes.map_or(0, <[u8]>::len));
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}
