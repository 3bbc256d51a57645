//! Optimistic transactions.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use terrane::{Isolation, Keyspace, Transaction, TransactionOptions};

use crate::argument::{bytes, given, pair, range, start_and_end};
use crate::database::terrane_db;
use crate::error::{Outcome, check, invalid, produce, terrane_code, terrane_error};
use crate::keyspace::terrane_keyspace;
use crate::value::terrane_value;
use crate::write_options::{terrane_write_options, ttl};

/// The transaction happens as if no other write happened meanwhile: it conflicts with every write since its
/// beginning to a key that it read, or to a range in which it searched.
pub const TERRANE_SERIALIZABLE: i32 = 0;
/// The transaction reads from a snapshot, and conflicts only with writes to keys that it writes itself.
pub const TERRANE_SNAPSHOT_ISOLATION: i32 = 1;

/// A transaction until its end, which its iterators share.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Option<Transaction>>>);

impl Shared {
    /// Calls a function with the transaction, unless it has ended.
    pub(crate) fn with<T>(
        &self,
        function: impl FnOnce(&mut Transaction) -> Outcome<T>,
    ) -> Outcome<T> {
        let mut transaction = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        function(transaction.as_mut().ok_or_else(ended)?)
    }

    /// Ends the transaction, and returns it.
    fn end(&self) -> Outcome<Transaction> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(ended)
    }
}

#[cold]
fn ended() -> Box<terrane_error> {
    invalid("the transaction has ended; begin another one".to_owned())
}

/// Reads and writes that happen as one, or not at all. Reads return the state when the transaction began, with
/// its own writes. Nobody else sees the writes before terrane_transaction_commit. Any thread may use it; calls
/// wait for each other.
#[derive(Debug)]
pub struct terrane_transaction {
    pub(crate) shared: Shared,
    default: Keyspace,
}

impl terrane_transaction {
    /// Returns a keyspace, the default one for NULL.
    pub(crate) fn keyspace<'a>(&'a self, keyspace: Option<&'a terrane_keyspace>) -> &'a Keyspace {
        keyspace.map_or(&self.default, |keyspace| &keyspace.keyspace)
    }
}

/// Calls a function with a transaction, unless it has ended, and a keyspace, the default one for NULL.
fn with<T>(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    function: impl FnOnce(&mut Transaction, &Keyspace) -> terrane::Result<T>,
) -> Outcome<T> {
    let transaction = given(transaction, "transaction")?;
    let keyspace = transaction.keyspace(keyspace);
    transaction.shared.with(|tx| Ok(function(tx, keyspace)?))
}

/// Begins a transaction with an isolation, TERRANE_SERIALIZABLE or TERRANE_SNAPSHOT_ISOLATION, and the durability of
/// `durability`, or that of the database for NULL. It is freed with terrane_transaction_free, also after a commit.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_transaction_begin(
    db: Option<&terrane_db>,
    isolation: i32,
    durability: Option<&terrane_write_options>,
    transaction: Option<&mut MaybeUninit<Option<Box<terrane_transaction>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(transaction, None, error, || {
        let db = &given(db, "db")?.db;
        let isolation = match isolation {
            TERRANE_SERIALIZABLE => Isolation::Serializable,
            TERRANE_SNAPSHOT_ISOLATION => Isolation::Snapshot,
            _ => return Err(unknown_isolation(isolation)),
        };
        let mut options = TransactionOptions::new().isolation(isolation);
        if let Some(chosen) = durability.and_then(|options| options.durability) {
            options = options.durability(chosen);
        }
        let shared = Shared(Arc::new(Mutex::new(Some(db.begin_with(options)))));
        let default = db.default_keyspace().clone();
        Ok(Some(Box::new(terrane_transaction { shared, default })))
    })
}

#[cold]
fn unknown_isolation(isolation: i32) -> Box<terrane_error> {
    invalid(format!(
        "unknown isolation {isolation}; pass TERRANE_SERIALIZABLE or TERRANE_SNAPSHOT_ISOLATION"
    ))
}

/// Frees a transaction, and rolls it back unless it was committed; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_transaction_free(transaction: Option<Box<terrane_transaction>>) {
    if let Some(transaction) = transaction {
        // Iterators may keep the transaction, which has an end nevertheless.
        drop(transaction.shared.end());
    }
}

/// Stores the value of a key, to be freed with terrane_value_free; NULL if it has none. NULL for `keyspace` is the
/// default keyspace, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_transaction_get(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    value: Option<&mut MaybeUninit<Option<Box<terrane_value>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(value, None, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        let value = with(transaction, keyspace, |tx, keyspace| tx.get_in(keyspace, key))?;
        Ok(terrane_value::handle(value))
    })
}

/// Sets the value of a key at the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_transaction_put(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (key, value) = unsafe { pair(key, key_len, value, value_len, "value") }?;
        with(transaction, keyspace, |tx, keyspace| tx.put_in(keyspace, key, value))
    })
}

/// Sets the value of a key at the commit. It expires after a time that begins then; UINT64_MAX means no expiry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_transaction_put_with_ttl(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    ttl_micros: u64,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (key, value) = unsafe { pair(key, key_len, value, value_len, "value") }?;
        let ttl = ttl(ttl_micros);
        with(transaction, keyspace, |tx, keyspace| tx.put_with_ttl_in(keyspace, key, value, ttl))
    })
}

/// Removes a key at the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_transaction_delete(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        with(transaction, keyspace, |tx, keyspace| tx.delete_in(keyspace, key))
    })
}

/// Removes the keys from `start` to the exclusive `end` at the commit. NULL for `start` is the first key, NULL for
/// `end` is no end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_transaction_delete_range(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (start, end) = unsafe { start_and_end(start, start_len, end, end_len) }?;
        with(transaction, keyspace, |tx, keyspace| tx.delete_range_in(keyspace, range(start, end)))
    })
}

/// Combines the value of a key with an operand at the commit; see terrane_merge. In a transaction this reads the
/// key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_transaction_merge(
    transaction: Option<&terrane_transaction>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    operand: *const c_void,
    operand_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (key, operand) = unsafe { pair(key, key_len, operand, operand_len, "operand") }?;
        with(transaction, keyspace, |tx, keyspace| tx.merge_in(keyspace, key, operand))
    })
}

/// Marks the present writes of a transaction, for terrane_transaction_roll_back_to_savepoint. Savepoints nest.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_transaction_savepoint(
    transaction: Option<&terrane_transaction>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        given(transaction, "transaction")?.shared.with(|tx| {
            tx.savepoint();
            Ok(())
        })
    })
}

/// Undoes the writes of a transaction since its last savepoint, and removes the savepoint.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_transaction_roll_back_to_savepoint(
    transaction: Option<&terrane_transaction>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        let rolled_back = |tx: &mut Transaction| Ok(tx.roll_back_to_savepoint());
        if given(transaction, "transaction")?.shared.with(rolled_back)? {
            return Ok(());
        }
        Err(invalid("the transaction has no savepoint; set one first".to_owned()))
    })
}

/// Performs the writes of a transaction, and ends it whether it succeeds or not. TERRANE_CONFLICT if another write
/// changed what it depends on: nothing was written, and the whole transaction has to be run again.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_transaction_commit(
    transaction: Option<&terrane_transaction>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || Ok(given(transaction, "transaction")?.shared.end()?.commit()?))
}

/// Discards the writes of a transaction and ends it.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_transaction_roll_back(
    transaction: Option<&terrane_transaction>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        given(transaction, "transaction")?.shared.end()?.roll_back();
        Ok(())
    })
}
