//! A safe interface to LevelDB's C interface.
//!
//! The comments on unsafe blocks refer to these invariants:
//!
//! 1. Every pointer in a [`Database`], [`Cursor`] or [`Batch`] came from the library function that
//!    creates this type, is not null, and is freed once, when its owner is dropped.
//! 2. A slice is passed as its address and length, and the library copies the bytes that it keeps.
//! 3. Options do not change once the database is open.
//! 4. The memory that a cursor points to is valid until the cursor moves, and every method that
//!    moves it takes `&mut self`.

use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

use terrane_workload::StoreError;

use super::ffi;
use crate::settings::Settings;

/// Whether a write waits for storage.
#[derive(Debug, Clone, Copy)]
pub(super) enum WriteMode {
    Plain,
    Synced,
}

/// An open database, and the options with which it was opened.
pub(super) struct Database {
    db: NonNull<ffi::leveldb_t>,
    read: NonNull<ffi::leveldb_readoptions_t>,
    plain: NonNull<ffi::leveldb_writeoptions_t>,
    synced: NonNull<ffi::leveldb_writeoptions_t>,
    /// Dropped last, because the database uses the cache and the filter policy.
    _options: Options,
}

// SAFETY: the library's header says that a database may be used by several threads without
// external synchronisation; the options are only read (invariant 3).
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// Creates a database in `dir`.
    pub(super) fn open(dir: &Path, settings: &Settings) -> Result<Self, StoreError> {
        Self::open_with(dir, settings, None)
    }

    /// Creates a database in `dir`, with tables of another size than LevelDB's default.
    pub(super) fn open_with(
        dir: &Path,
        settings: &Settings,
        table_bytes: Option<usize>,
    ) -> Result<Self, StoreError> {
        let name = CString::new(dir.as_os_str().as_bytes()).map_err(StoreError::during("open"))?;
        let options = Options::new(settings)?;
        if let Some(bytes) = table_bytes {
            // SAFETY: invariant 1.
            unsafe { ffi::leveldb_options_set_max_file_size(options.options.as_ptr(), bytes) };
        }
        let mut error = null_mut();
        // SAFETY: invariant 1 for the options; the name ends in a zero byte; the error is null.
        let db = unsafe { ffi::leveldb_open(options.options.as_ptr(), name.as_ptr(), &mut error) };
        taken(error).map_err(StoreError::during("open"))?;
        // SAFETY: creates options, needs nothing.
        let read = created(unsafe { ffi::leveldb_readoptions_create() })?;
        // SAFETY: as above.
        let plain = created(unsafe { ffi::leveldb_writeoptions_create() })?;
        // SAFETY: as above.
        let synced = created(unsafe { ffi::leveldb_writeoptions_create() })?;
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_writeoptions_set_sync(synced.as_ptr(), 1) };
        Ok(Self { db: created(db)?, read, plain, synced, _options: options })
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<(), String> {
        let options = match mode {
            WriteMode::Plain => self.plain,
            WriteMode::Synced => self.synced,
        };
        let mut error = null_mut();
        // SAFETY: invariants 1 and 2; the error is null.
        unsafe {
            ffi::leveldb_put(
                self.db.as_ptr(),
                options.as_ptr(),
                address(key),
                key.len(),
                address(value),
                value.len(),
                &mut error,
            );
        }
        taken(error)
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<(), String> {
        let (db, options) = (self.db.as_ptr(), self.plain.as_ptr());
        let mut error = null_mut();
        // SAFETY: invariants 1 and 2; the error is null.
        unsafe { ffi::leveldb_delete(db, options, address(key), key.len(), &mut error) };
        taken(error)
    }

    pub(super) fn write(&self, batch: &Batch) -> Result<(), String> {
        let (db, options) = (self.db.as_ptr(), self.plain.as_ptr());
        let mut error = null_mut();
        // SAFETY: invariant 1; the library does not change the batch; the error is null.
        unsafe { ffi::leveldb_write(db, options, batch.batch.as_ptr(), &mut error) };
        taken(error)
    }

    /// Passes the value of `key` to `visit`, and returns whether the key exists.
    pub(super) fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, String> {
        let (db, options) = (self.db.as_ptr(), self.read.as_ptr());
        let (mut length, mut error) = (0, null_mut());
        // SAFETY: invariants 1 and 2; the error is null.
        let value = unsafe {
            ffi::leveldb_get(db, options, address(key), key.len(), &mut length, &mut error)
        };
        taken(error)?;
        let Some(value) = NonNull::new(value) else {
            return Ok(false);
        };
        let value = Allocated(value);
        // SAFETY: the library returned `length` bytes, which remain valid until the drop below.
        visit(unsafe { std::slice::from_raw_parts(value.0.as_ptr().cast::<u8>(), length) });
        Ok(true)
    }

    pub(super) fn cursor(&self) -> Cursor<'_> {
        // SAFETY: invariant 1.
        let cursor = unsafe { ffi::leveldb_create_iterator(self.db.as_ptr(), self.read.as_ptr()) };
        Cursor { cursor, database: PhantomData }
    }

    /// Returns the library's list of its tables, for people.
    pub(super) fn tables(&self) -> String {
        let name = c"leveldb.sstables".as_ptr();
        // SAFETY: invariant 1; the name ends in a zero byte.
        let text = unsafe { ffi::leveldb_property_value(self.db.as_ptr(), name) };
        let Some(text) = NonNull::new(text).map(Allocated) else { return String::new() };
        // SAFETY: the library returned a text that ends in a zero byte, valid until the drop below.
        let text = unsafe { std::ffi::CStr::from_ptr(text.0.as_ptr()) };
        text.to_string_lossy().into_owned()
    }

    /// Flushes the memtable. The library has no call for this, but compacting a range without keys
    /// does exactly this.
    pub(super) fn flush(&self) {
        let beyond = [u8::MAX; 64];
        let (start, length) = (address(&beyond), beyond.len());
        // SAFETY: invariants 1 and 2.
        unsafe { ffi::leveldb_compact_range(self.db.as_ptr(), start, length, start, length) };
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the pointer is valid (invariant 1), and no cursor exists, because cursors borrow
        // the database. The database is closed before the options that it uses are freed.
        unsafe { ffi::leveldb_close(self.db.as_ptr()) };
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_readoptions_destroy(self.read.as_ptr()) };
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_writeoptions_destroy(self.plain.as_ptr()) };
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_writeoptions_destroy(self.synced.as_ptr()) };
    }
}

/// The options of a database and the objects that it uses until it is closed.
struct Options {
    options: NonNull<ffi::leveldb_options_t>,
    cache: NonNull<ffi::leveldb_cache_t>,
    filter: NonNull<ffi::leveldb_filterpolicy_t>,
}

impl Options {
    fn new(settings: &Settings) -> Result<Self, StoreError> {
        let bits = settings.filter_bits_per_key.cast_signed();
        // SAFETY: creates options, needs nothing.
        let options = created(unsafe { ffi::leveldb_options_create() })?;
        // SAFETY: creates a cache, needs nothing.
        let cache = unsafe { ffi::leveldb_cache_create_lru(settings.cache_bytes as usize) };
        // SAFETY: creates a filter policy, needs nothing.
        let filter = created(unsafe { ffi::leveldb_filterpolicy_create_bloom(bits) })?;
        let made = Self { options, cache: created(cache)?, filter };
        let options = options.as_ptr();
        // SAFETY: invariant 1, here and in the calls below.
        unsafe { ffi::leveldb_options_set_create_if_missing(options, 1) };
        // SAFETY: invariant 1; `made` keeps the cache longer than the database.
        unsafe { ffi::leveldb_options_set_cache(options, made.cache.as_ptr()) };
        // SAFETY: invariant 1; `made` keeps the filter longer than the database.
        unsafe { ffi::leveldb_options_set_filter_policy(options, made.filter.as_ptr()) };
        let memtable_bytes = settings.memtable_bytes as usize;
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_options_set_write_buffer_size(options, memtable_bytes) };
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_options_set_block_size(options, settings.block_bytes as usize) };
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_options_set_compression(options, ffi::NO_COMPRESSION) };
        Ok(made)
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: invariant 1; the database was closed before.
        unsafe { ffi::leveldb_options_destroy(self.options.as_ptr()) };
        // SAFETY: as above.
        unsafe { ffi::leveldb_cache_destroy(self.cache.as_ptr()) };
        // SAFETY: as above.
        unsafe { ffi::leveldb_filterpolicy_destroy(self.filter.as_ptr()) };
    }
}

/// A place in a database's key order.
pub(super) struct Cursor<'db> {
    cursor: *mut ffi::leveldb_iterator_t,
    database: PhantomData<&'db Database>,
}

impl Cursor<'_> {
    pub(super) fn seek_to_first(&mut self) {
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_iter_seek_to_first(self.cursor) };
    }

    pub(super) fn seek_to_last(&mut self) {
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_iter_seek_to_last(self.cursor) };
    }

    /// Moves to the first key >= `key`.
    pub(super) fn seek(&mut self, key: &[u8]) {
        // SAFETY: invariants 1 and 2.
        unsafe { ffi::leveldb_iter_seek(self.cursor, address(key), key.len()) };
    }

    /// Moves to the next key; the cursor must be at an entry.
    pub(super) fn next(&mut self) {
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_iter_next(self.cursor) };
    }

    /// Moves to the previous key; the cursor must be at an entry.
    pub(super) fn previous(&mut self) {
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_iter_prev(self.cursor) };
    }

    /// Returns the key and the value at the cursor.
    pub(super) fn entry(&self) -> Option<(&[u8], &[u8])> {
        // SAFETY: invariant 1.
        if unsafe { ffi::leveldb_iter_valid(self.cursor) } == 0 {
            return None;
        }
        let (mut key_length, mut value_length) = (0, 0);
        // SAFETY: invariant 1, and the cursor is at an entry.
        let key = unsafe { ffi::leveldb_iter_key(self.cursor, &mut key_length) };
        // SAFETY: as above.
        let value = unsafe { ffi::leveldb_iter_value(self.cursor, &mut value_length) };
        // SAFETY: the library returned this length, and the bytes remain valid by invariant 4.
        let key = unsafe { std::slice::from_raw_parts(key.cast::<u8>(), key_length) };
        // SAFETY: as above.
        let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), value_length) };
        Some((key, value))
    }

    /// Returns an error if the cursor failed to move to an entry.
    pub(super) fn status(&self) -> Result<(), String> {
        let mut error = null_mut();
        // SAFETY: invariant 1; the error is null.
        unsafe { ffi::leveldb_iter_get_error(self.cursor, &mut error) };
        taken(error)
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_iter_destroy(self.cursor) };
    }
}

/// Writes that take effect atomically.
pub(super) struct Batch {
    batch: NonNull<ffi::leveldb_writebatch_t>,
}

impl Batch {
    /// Returns an empty batch, or an error if no memory is left.
    pub(super) fn new() -> Result<Self, StoreError> {
        // SAFETY: creates a batch, needs nothing.
        Ok(Self { batch: created(unsafe { ffi::leveldb_writebatch_create() })? })
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        let batch = self.batch.as_ptr();
        let (key, key_length) = (address(key), key.len());
        // SAFETY: invariants 1 and 2.
        unsafe {
            ffi::leveldb_writebatch_put(batch, key, key_length, address(value), value.len());
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: invariant 1.
        unsafe { ffi::leveldb_writebatch_destroy(self.batch.as_ptr()) };
    }
}

/// Returns the version of the loaded library.
pub(super) fn version() -> String {
    // SAFETY: needs nothing.
    let major: c_int = unsafe { ffi::leveldb_major_version() };
    // SAFETY: needs nothing.
    let minor: c_int = unsafe { ffi::leveldb_minor_version() };
    format!("{major}.{minor}")
}

/// Memory that the library allocated, and that its caller must free.
struct Allocated(NonNull<c_char>);

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: the library allocated this memory, and requires that this function frees it.
        unsafe { ffi::leveldb_free(self.0.as_ptr().cast()) };
    }
}

fn address(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// Checks the pointer that a constructor returned; null means that no memory is left.
fn created<T>(pointer: *mut T) -> Result<NonNull<T>, StoreError> {
    NonNull::new(pointer).ok_or_else(|| StoreError::new("allocate", "LevelDB answered null"))
}

/// Returns the error of a call, as a text that we own.
fn taken(error: *mut c_char) -> Result<(), String> {
    let Some(error) = NonNull::new(error) else {
        return Ok(());
    };
    let error = Allocated(error);
    // SAFETY: an error of the library ends in a zero byte, and this one is valid until the drop
    // below.
    let text = unsafe { std::ffi::CStr::from_ptr(error.0.as_ptr()) };
    Err(text.to_string_lossy().into_owned())
}
