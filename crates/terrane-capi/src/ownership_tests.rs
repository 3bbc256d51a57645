//! Calls of the C functions from Rust, on a database in memory: who owns each result, and how long its bytes are
//! valid. Miri runs them, which cannot run the programs in C.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use terrane::storage::MemoryStorage;
use terrane::{Background, Options};

use super::*;
use crate::argument::Out;
use crate::error::{TERRANE_CONFLICT, TERRANE_INVALID, TERRANE_OK, terrane_code, terrane_error};
use crate::error::{terrane_error_code, terrane_error_free, terrane_error_message};

type Error<'a> = Out<'a, Option<Box<terrane_error>>>;

/// Calls a function that stores a result, and returns its code, the result and the error.
fn called<T>(
    function: impl FnOnce(Out<'_, T>, Error<'_>) -> terrane_code,
) -> (terrane_code, T, Option<Box<terrane_error>>) {
    let (mut out, mut error) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let code = function(Some(&mut out), Some(&mut error));
    // SAFETY: every function stores a result and an error or NULL.
    (code, unsafe { out.assume_init() }, unsafe { error.assume_init() })
}

/// Calls a function that must succeed, and returns what it stores.
fn made<T>(function: impl FnOnce(Out<'_, T>, Error<'_>) -> terrane_code) -> T {
    let (code, out, error) = called(function);
    assert_eq!(code, TERRANE_OK, "{:?}", error.map(|error| error.message().to_owned()));
    out
}

/// Calls a function without a result that must succeed.
fn done(function: impl FnOnce(Error<'_>) -> terrane_code) {
    made(|out: Out<'_, ()>, error| {
        out.map(|out| out.write(()));
        function(error)
    });
}

fn parts(bytes: &[u8]) -> (*const c_void, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}

/// Returns bytes that a function lends.
///
/// # Safety
/// The bytes are readable for `'a`.
unsafe fn lent<'a>(get: impl FnOnce(Out<'_, usize>) -> *const c_char) -> Option<&'a [u8]> {
    let mut len = MaybeUninit::uninit();
    let data = get(Some(&mut len));
    // SAFETY: every function that lends bytes stores their number.
    let len = unsafe { len.assume_init() };
    // SAFETY: the caller states that the bytes are readable.
    (!data.is_null()).then(|| unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

fn data(value: Option<&terrane_value>) -> Option<Vec<u8>> {
    // SAFETY: the bytes belong to the value, and are copied before it is freed.
    unsafe { lent(|len| terrane_value_data(value, len)) }.map(<[u8]>::to_vec)
}

fn open_with(change: impl FnOnce(Options) -> Options) -> Box<terrane_db> {
    let mut options = terrane_options_new();
    let storage = Arc::new(MemoryStorage::new(1));
    let of = std::mem::take(&mut options.options);
    let of = of.storage(storage).background(Background::Inline);
    options.options = change(of.memory_budget(4 << 20));
    // SAFETY: the path is a string.
    let db = made(|db, error| unsafe { terrane_open(c"db".as_ptr(), Some(&options), db, error) });
    terrane_options_free(Some(options));
    db.unwrap()
}

fn open() -> Box<terrane_db> {
    open_with(|options| options)
}

fn put(keyspace: Option<&terrane_keyspace>, key: &[u8], value: &[u8]) {
    let ((key, key_len), (value, value_len)) = (parts(key), parts(value));
    // SAFETY: the pointers are those of slices.
    done(|error| unsafe { terrane_put(keyspace, None, key, key_len, value, value_len, error) });
}

fn get(keyspace: Option<&terrane_keyspace>, key: &[u8]) -> Option<Box<terrane_value>> {
    let (key, len) = parts(key);
    // SAFETY: the pointer is that of a slice.
    made(|value, error| unsafe { terrane_get(keyspace, key, len, value, error) })
}

fn end(db: Box<terrane_db>) {
    done(|error| terrane_close(Some(&db), error));
    terrane_free(Some(db));
}

#[test]
fn values_outlive_the_writes_the_flush_and_the_database() {
    let db = open();
    let keyspace = terrane_default_keyspace(Some(&db));
    put(keyspace, b"a", b"of a memtable");
    put(keyspace, b"empty", b"");
    let of_memtable = get(keyspace, b"a");
    done(|error| terrane_flush(Some(&db), error));
    let of_table = get(keyspace, b"a");
    let empty = get(keyspace, b"empty");
    assert!(get(keyspace, b"b").is_none());
    put(keyspace, b"a", b"newer");
    end(db);
    assert_eq!(data(of_memtable.as_deref()).unwrap(), b"of a memtable");
    assert_eq!(data(of_table.as_deref()).unwrap(), b"of a memtable");
    assert_eq!(data(empty.as_deref()).unwrap(), b"");
    assert_eq!(data(None), None);
    [of_memtable, of_table, empty, None].into_iter().for_each(|value| terrane_value_free(value));
}

#[test]
fn a_value_is_copied_as_far_as_the_buffer_goes() {
    let db = open();
    let keyspace = terrane_default_keyspace(Some(&db));
    put(keyspace, b"a", b"0123456789");
    for capacity in [0, 4, 10, 16] {
        let mut buffer = vec![0xff_u8; capacity];
        let place: *mut c_void =
            if capacity == 0 { std::ptr::null_mut() } else { buffer.as_mut_ptr().cast() };
        let (key, key_len) = parts(b"a");
        let mut found = MaybeUninit::uninit();
        // SAFETY: the buffer has `capacity` bytes.
        let len: usize = made(|len, error| unsafe {
            terrane_get_into(keyspace, key, key_len, place, capacity, len, Some(&mut found), error)
        });
        // SAFETY: the function stores whether the key has a value.
        assert!(unsafe { found.assume_init() } && len == 10);
        let copied = capacity.min(10);
        assert_eq!(buffer[..copied], b"0123456789"[..copied]);
        assert!(buffer[copied..].iter().all(|byte| *byte == 0xff));
    }
    let keys: [&[u8]; 3] = [b"a", b"", b"missing"];
    let pointers = keys.map(|key| key.as_ptr().cast());
    let lens = keys.map(<[u8]>::len);
    let mut found = MaybeUninit::<[Option<Box<terrane_value>>; 3]>::uninit();
    // SAFETY: there are three keys, lengths and places.
    done(|error| unsafe {
        let places = found.as_mut_ptr().cast();
        terrane_multi_get(keyspace, 3, pointers.as_ptr(), lens.as_ptr(), places, error)
    });
    // SAFETY: the function stores a value or NULL at each place.
    let [first, second, third] = unsafe { found.assume_init() };
    assert_eq!(data(first.as_deref()).unwrap(), b"0123456789");
    assert!(second.is_none() && third.is_none());
    terrane_value_free(first);
    end(db);
}

#[test]
fn iterators_lend_their_entry_until_they_move_and_outlive_their_snapshot() {
    let db = open();
    let keyspace = terrane_default_keyspace(Some(&db));
    for key in [b"a", b"b", b"c", b"d"] {
        put(keyspace, key, key);
    }
    let snapshot = made(|snapshot, error| terrane_snapshot_new(Some(&db), snapshot, error));
    put(keyspace, b"bb", b"later");
    let ((start, start_len), (last, last_len)) = (parts(b"a"), parts(b"d"));
    // SAFETY: the pointers are those of slices.
    let mut iter = made(|iter, error| unsafe {
        let snapshot = snapshot.as_deref();
        terrane_iter_range(keyspace, snapshot, start, start_len, last, last_len, iter, error)
    });
    terrane_snapshot_free(snapshot);
    let entry = |iter: Option<&terrane_iter>| {
        // SAFETY: the key is copied before the iterator moves.
        let key = unsafe { lent(|len| terrane_iter_key(iter, len)) }?.to_vec();
        // SAFETY: as for the key.
        Some((key, unsafe { lent(|len| terrane_iter_value(iter, len)) }?.to_vec()))
    };
    let mut seen = Vec::new();
    while terrane_iter_next(iter.as_deref_mut(), None) {
        seen.push(entry(iter.as_deref()).unwrap().0);
    }
    assert_eq!(seen, [b"a", b"b", b"c"]);
    assert!(!terrane_iter_valid(iter.as_deref()) && entry(iter.as_deref()).is_none());
    assert!(terrane_iter_prev(iter.as_deref_mut(), None));
    assert!(terrane_iter_prev(iter.as_deref_mut(), None));
    assert_eq!(entry(iter.as_deref()).unwrap(), (b"b".to_vec(), b"b".to_vec()));
    let (key, len) = parts(b"bb");
    // SAFETY: the pointer is that of a slice.
    assert!(unsafe { terrane_iter_seek_for_prev(iter.as_deref_mut(), key, len, None) });
    assert_eq!(entry(iter.as_deref()).unwrap().0, b"b");
    done(|error| terrane_iter_leave_out_values(iter.as_deref_mut(), error));
    assert!(terrane_iter_seek_to_last(iter.as_deref_mut(), None));
    assert_eq!(entry(iter.as_deref()).unwrap(), (b"c".to_vec(), Vec::new()));
    terrane_free(Some(db));
    assert_eq!(entry(iter.as_deref()).unwrap().0, b"c");
    terrane_iter_free(iter);
}

#[test]
fn transactions_conflict_and_their_iterators_end_with_them() {
    let db = open();
    let keyspace = terrane_default_keyspace(Some(&db));
    put(keyspace, b"a", b"1");
    let begin = || {
        let isolation = TERRANE_SERIALIZABLE;
        made(|out, error| terrane_transaction_begin(Some(&db), isolation, None, out, error))
    };
    let (transaction, other) = (begin(), begin());
    let ((key, len), (value, value_len)) = (parts(b"a"), parts(b"2"));
    for transaction in [&transaction, &other] {
        // SAFETY: the pointers are those of slices.
        let old = made(|out, error| unsafe {
            terrane_transaction_get(transaction.as_deref(), None, key, len, out, error)
        });
        assert_eq!(data(old.as_deref()).unwrap(), b"1");
        terrane_value_free(old);
        // SAFETY: as above.
        done(|error| unsafe {
            let transaction = transaction.as_deref();
            terrane_transaction_put(transaction, None, key, len, value, value_len, error)
        });
    }
    // SAFETY: NULL is the first key, and no end.
    let mut iter = made(|iter, error| unsafe {
        let of = transaction.as_deref();
        terrane_transaction_iter_range(of, None, null(), 0, null(), 0, iter, error)
    });
    assert!(terrane_iter_next(iter.as_deref_mut(), None));
    done(|error| terrane_transaction_commit(transaction.as_deref(), error));
    let (moved, error) = {
        let mut error = MaybeUninit::uninit();
        let moved = terrane_iter_next(iter.as_deref_mut(), Some(&mut error));
        // SAFETY: the function stores an error or NULL.
        (moved, unsafe { error.assume_init() })
    };
    assert!(!moved && terrane_error_code(error.as_deref()) == TERRANE_INVALID);
    terrane_error_free(error);
    let (code, (), error) = called(|out, error| {
        out.map(|out: &mut MaybeUninit<()>| out.write(()));
        terrane_transaction_commit(other.as_deref(), error)
    });
    assert_eq!((code, terrane_error_code(error.as_deref())), (TERRANE_CONFLICT, TERRANE_CONFLICT));
    // SAFETY: the message belongs to the error.
    let message = unsafe { CStr::from_ptr(terrane_error_message(error.as_deref())) };
    assert!(!message.is_empty());
    terrane_error_free(error);
    terrane_transaction_free(transaction);
    terrane_iter_free(iter);
    terrane_transaction_free(other);
    end(db);
}

#[test]
fn batches_keyspaces_and_names_have_owners_of_their_own() {
    let db = open();
    // SAFETY: the name is a string, and NULL the default design.
    let keyspace = made(|out, error| unsafe {
        terrane_keyspace_open(Some(&db), c"words".as_ptr(), null(), out, error)
    });
    // SAFETY: the name is a string.
    done(|error| unsafe {
        terrane_keyspace_set_merge_operator(keyspace.as_deref(), c"append".as_ptr(), error)
    });
    let mut batch = terrane_batch_new();
    let ((key, len), (value, value_len)) = (parts(b"k"), parts(b"v"));
    for _ in 0..2 {
        let of = keyspace.as_deref();
        // SAFETY: the pointers are those of slices.
        done(|error| unsafe {
            terrane_batch_merge(Some(&mut batch), of, key, len, value, value_len, error)
        });
    }
    assert_eq!(terrane_batch_len(Some(&batch)), 2);
    done(|error| terrane_write(Some(&db), None, Some(&batch), error));
    terrane_batch_clear(Some(&mut batch));
    terrane_batch_free(Some(batch));
    let merged = get(keyspace.as_deref(), b"k");
    assert_eq!(data(merged.as_deref()).unwrap(), b"vv");
    terrane_value_free(merged);
    let names = made(|names, error| terrane_keyspace_names(Some(&db), names, error));
    let listed: Vec<_> = (0..terrane_names_len(names.as_deref()))
        // SAFETY: the names belong to the list.
        .map(|index| unsafe { CStr::from_ptr(terrane_names_get(names.as_deref(), index)) })
        .collect();
    assert_eq!(listed, [c"default", c"words"]);
    assert!(terrane_names_get(names.as_deref(), 2).is_null());
    terrane_names_free(names);
    let tree = made(|text, error| terrane_keyspace_tree(keyspace.as_deref(), text, error));
    // SAFETY: the string ends with NUL.
    assert!(unsafe { CStr::from_ptr(tree) }.to_bytes().starts_with(b"{"));
    // SAFETY: the string comes from the engine, and is freed once.
    unsafe { terrane_string_free(tree) };
    end(db);
    terrane_keyspace_free(keyspace);
}

#[test]
fn changes_and_ingests_are_freed_at_any_point() {
    let db = open_with(|options| options.keep_changes("1MiB".parse().unwrap()));
    let keyspace = terrane_default_keyspace(Some(&db));
    put(keyspace, b"k", b"v");
    let mut changes = made(|out, error| terrane_changes_new(Some(&db), 0, true, out, error));
    let count = made(|out, error| terrane_changes_next(changes.as_deref_mut(), out, error));
    assert_eq!(count, 1);
    let (mut key, mut key_len) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    done(|error| {
        let (key, len) = (Some(&mut key), Some(&mut key_len));
        terrane_changes_get(changes.as_deref(), 0, None, None, key, len, None, None, None, error)
    });
    // SAFETY: the function stores the key of the change.
    let key = unsafe { key.assume_init() };
    // SAFETY: the function stores its length.
    let len = unsafe { key_len.assume_init() };
    // SAFETY: the bytes belong to the feed, which is not freed yet.
    assert_eq!(unsafe { std::slice::from_raw_parts(key.cast::<u8>(), len) }, b"k");
    terrane_changes_free(changes);
    for is_committed in [false, true] {
        let mut ingest = made(|out, error| terrane_ingest_begin(keyspace, out, error));
        let ((key, len), (value, value_len)) = (parts(b"x"), parts(b"y"));
        // SAFETY: the pointers are those of slices.
        done(|error| unsafe {
            terrane_ingest_put(ingest.as_deref_mut(), key, len, value, value_len, error)
        });
        if is_committed {
            let entries: u64 =
                made(|out, error| terrane_ingest_commit(ingest.as_deref_mut(), out, error));
            assert_eq!(entries, 1);
        }
        terrane_ingest_free(ingest);
        let found = get(keyspace, b"x");
        assert_eq!(found.is_some(), is_committed);
        terrane_value_free(found);
    }
    end(db);
}

#[test]
fn the_context_of_a_listener_is_freed_once_after_its_last_call() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    static FREED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn listen(context: *mut c_void, json: *const c_char, len: usize) {
        // SAFETY: the context is a boxed string.
        let context = unsafe { &*context.cast::<String>() };
        // SAFETY: the text ends with NUL.
        let json = unsafe { CStr::from_ptr(json) };
        assert!(context == "context" && json.to_bytes().len() == len);
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    unsafe extern "C" fn free(context: *mut c_void) {
        // SAFETY: the context comes from `Box::into_raw`, and is freed once.
        drop(unsafe { Box::from_raw(context.cast::<String>()) });
        FREED.fetch_add(1, Ordering::Relaxed);
    }
    let db = open_with(|options| {
        let mut of = terrane_options { options };
        let context = Box::into_raw(Box::new("context".to_owned())).cast();
        // SAFETY: the listener and the function that frees fit the context.
        done(|error| unsafe {
            terrane_options_on_event(Some(&mut of), Some(listen), context, Some(free), error)
        });
        of.options
    });
    put(terrane_default_keyspace(Some(&db)), b"k", b"v");
    done(|error| terrane_flush(Some(&db), error));
    let calls = CALLS.load(Ordering::Relaxed);
    assert!(calls > 0 && FREED.load(Ordering::Relaxed) == 0, "{calls}");
    end(db);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
}
