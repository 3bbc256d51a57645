//! Consistent views of a database.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use terrane::{Keyspace, Snapshot};

use crate::argument::{bytes, given};
use crate::database::terrane_db;
use crate::error::{produce, terrane_code, terrane_error};
use crate::keyspace::terrane_keyspace;
use crate::read::multi_get;
use crate::value::terrane_value;

/// A consistent view of all keyspaces of a database. Any thread may use it. Compactions keep the versions that
/// it sees, so one that lives long costs space.
#[derive(Debug)]
pub struct terrane_snapshot {
    pub(crate) snapshot: Snapshot,
    default: Keyspace,
}

impl terrane_snapshot {
    /// Returns a keyspace, the default one for NULL.
    fn keyspace<'a>(&'a self, keyspace: Option<&'a terrane_keyspace>) -> &'a Keyspace {
        keyspace.map_or(&self.default, |keyspace| &keyspace.keyspace)
    }
}

/// Stores a view of the present state, to be freed with terrane_snapshot_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_snapshot_new(
    db: Option<&terrane_db>,
    snapshot: Option<&mut MaybeUninit<Option<Box<terrane_snapshot>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(snapshot, None, error, || {
        let db = &given(db, "db")?.db;
        let (snapshot, default) = (db.snapshot(), db.default_keyspace().clone());
        Ok(Some(Box::new(terrane_snapshot { snapshot, default })))
    })
}

/// Frees a snapshot; NULL is ignored. Iterators over it go on.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_snapshot_free(snapshot: Option<Box<terrane_snapshot>>) {
    drop(snapshot);
}

/// Returns the sequence number of the newest write that a snapshot sees; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_snapshot_sequence_number(snapshot: Option<&terrane_snapshot>) -> u64 {
    snapshot.map_or(0, |snapshot| snapshot.snapshot.sequence_number())
}

/// Stores the value that a key has in a snapshot, to be freed with terrane_value_free; NULL if it has none. NULL
/// for `keyspace` is the default keyspace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_snapshot_get(
    snapshot: Option<&terrane_snapshot>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    value: Option<&mut MaybeUninit<Option<Box<terrane_value>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(value, None, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        let view = given(snapshot, "snapshot")?;
        Ok(terrane_value::handle(view.snapshot.get_in(view.keyspace(keyspace), key)?))
    })
}

/// Stores the values that keys have in a snapshot, as terrane_multi_get does. NULL for `keyspace` is the default
/// keyspace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_snapshot_multi_get(
    snapshot: Option<&terrane_snapshot>,
    keyspace: Option<&terrane_keyspace>,
    count: usize,
    key_data: *const *const c_void,
    key_lens: *const usize,
    found: *mut Option<Box<terrane_value>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    // SAFETY: the caller passes `count` keys and as many places for values.
    unsafe {
        multi_get(count, key_data, key_lens, found, error, |keys| {
            let view = given(snapshot, "snapshot")?;
            Ok(view.snapshot.multi_get_in(view.keyspace(keyspace), keys)?)
        })
    }
}
