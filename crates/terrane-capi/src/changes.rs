//! The change feed.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::time::Duration;

use terrane::{Change, ChangeBatch, Changes};

use crate::argument::{given, store};
use crate::database::terrane_db;
use crate::error::{check, produce, terrane_code, terrane_error};

/// A key was given a value.
pub const TERRANE_CHANGE_PUT: i32 = 0;
/// A key was deleted.
pub const TERRANE_CHANGE_DELETE: i32 = 1;
/// The keys from the key of the change to the exclusive end, its value, were deleted; without an end if the value is
/// NULL.
pub const TERRANE_CHANGE_DELETE_RANGE: i32 = 2;
/// The value of a key was combined with an operand, the value of the change.
pub const TERRANE_CHANGE_MERGE: i32 = 3;
/// Writes that are not in the log: an ingest, or writes with the durability "none". A follower has to begin with a
/// copy. The change has neither a keyspace nor a key.
pub const TERRANE_CHANGE_NOT_LOGGED: i32 = 4;

/// The writes of a database after a position, in the order in which they were committed, by batches that were
/// applied at once. One thread at a time may use it.
#[derive(Debug)]
pub struct terrane_changes {
    changes: Changes,
    batch: Vec<OwnedChange>,
    position: u64,
}

/// A change of the present batch.
#[derive(Debug)]
struct OwnedChange {
    kind: i32,
    keyspace: Option<CString>,
    key: Option<Box<[u8]>>,
    value: Option<Box<[u8]>>,
    expires_at_micros: u64,
}

impl OwnedChange {
    fn new(change: &Change<'_>) -> Self {
        let (kind, key, value, expires_at_micros) = match *change {
            Change::Put { key, value, expires_at_micros, .. } => {
                (TERRANE_CHANGE_PUT, Some(key), Some(value), expires_at_micros)
            }
            Change::Delete { key, .. } => (TERRANE_CHANGE_DELETE, Some(key), None, None),
            Change::DeleteRange { start, end, .. } => {
                (TERRANE_CHANGE_DELETE_RANGE, Some(start), end, None)
            }
            Change::Merge { key, operand, .. } => {
                (TERRANE_CHANGE_MERGE, Some(key), Some(operand), None)
            }
            // A kind that this version does not know cannot be followed either.
            _ => (TERRANE_CHANGE_NOT_LOGGED, None, None, None),
        };
        let name = change.keyspace().and_then(|keyspace| keyspace.name());
        Self {
            kind,
            keyspace: name.and_then(|name| CString::new(name).ok()),
            key: key.map(Into::into),
            value: value.map(Into::into),
            expires_at_micros: expires_at_micros.unwrap_or(u64::MAX),
        }
    }
}

impl terrane_changes {
    fn take(&mut self, batch: &ChangeBatch) {
        self.batch = batch.iter().map(|change| OwnedChange::new(&change)).collect();
        self.position = batch.position();
    }
}

/// Stores a feed of the writes after the position `since`, to be freed with terrane_changes_free. 0 is the beginning.
/// The database has to keep them: the option "keep_changes". With `include_unsynced` the feed also has writes that a
/// power failure may still undo.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_changes_new(
    db: Option<&terrane_db>,
    since: u64,
    include_unsynced: bool,
    changes: Option<&mut MaybeUninit<Option<Box<terrane_changes>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(changes, None, error, || {
        let mut changes = given(db, "db")?.db.changes(since)?;
        if include_unsynced {
            changes = changes.include_unsynced();
        }
        Ok(Some(Box::new(terrane_changes { changes, batch: Vec::new(), position: since })))
    })
}

/// Frees a feed; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_changes_free(changes: Option<Box<terrane_changes>>) {
    drop(changes);
}

/// Moves to the next batch, and stores the number of its changes: 0 if there is no further batch now. It does not
/// wait; call it again after terrane_changes_wait.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_changes_next(
    changes: Option<&mut terrane_changes>,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(count, 0, error, || {
        let changes = given(changes, "changes")?;
        changes.batch.clear();
        // A batch of which no operation is known has no changes.
        while changes.batch.is_empty() {
            let Some(batch) = changes.changes.next().transpose()? else { break };
            changes.take(&batch);
        }
        Ok(changes.batch.len())
    })
}

/// Waits until there is another write, but at most for a time, and stores whether there is one.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_changes_wait(
    changes: Option<&terrane_changes>,
    timeout_micros: u64,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(found, false, error, || {
        Ok(given(changes, "changes")?.changes.wait(Duration::from_micros(timeout_micros))?)
    })
}

/// Returns the position after the present batch, with which terrane_changes_new continues; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_changes_position(changes: Option<&terrane_changes>) -> u64 {
    changes.map_or(0, |changes| changes.position)
}

/// Stores the parts of a change of the present batch, counted from 0: its kind, TERRANE_CHANGE_PUT and so on; the name
/// of its keyspace, NULL if it has since been dropped; its key and its value, NULL if it has none; and when the value
/// expires, in microseconds since 1970, UINT64_MAX for never. Each result may be NULL. Strings and bytes belong to the
/// feed until it moves or is freed.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_changes_get(
    changes: Option<&terrane_changes>,
    index: usize,
    kind: Option<&mut MaybeUninit<i32>>,
    keyspace: Option<&mut MaybeUninit<*const c_char>>,
    key: Option<&mut MaybeUninit<*const c_char>>,
    key_len: Option<&mut MaybeUninit<usize>>,
    value: Option<&mut MaybeUninit<*const c_char>>,
    value_len: Option<&mut MaybeUninit<usize>>,
    expires_at_micros: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        let batch = &given(changes, "changes")?.batch;
        let change = given(batch.get(index), "change of this index")?;
        let pointer = |bytes: &Option<Box<[u8]>>| match bytes {
            Some(bytes) => (bytes.as_ptr().cast(), bytes.len()),
            None => (std::ptr::null(), 0),
        };
        store(kind, change.kind);
        store(keyspace, change.keyspace.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()));
        let (data, len) = pointer(&change.key);
        store(key, data);
        store(key_len, len);
        let (data, len) = pointer(&change.value);
        store(value, data);
        store(value_len, len);
        store(expires_at_micros, change.expires_at_micros);
        Ok(())
    })
}
