//! The functions of LevelDB's C interface (`leveldb/c.h`, 1.23) that are used here.
//!
//! A function that takes `errptr` sets it to a text allocated by `malloc` when it fails; the
//! pointer must be null before the call.

use std::ffi::{c_char, c_int, c_uchar, c_void};

/// Declares types that are only used through pointers.
macro_rules! opaque {
    ($($name:ident),*) => {
        $(
            #[repr(C)]
            pub(super) struct $name {
                _private: [u8; 0],
            }
        )*
    };
}

opaque!(
    leveldb_t,
    leveldb_cache_t,
    leveldb_filterpolicy_t,
    leveldb_iterator_t,
    leveldb_options_t,
    leveldb_readoptions_t,
    leveldb_writebatch_t,
    leveldb_writeoptions_t
);

/// The value of `leveldb_no_compression`.
pub(super) const NO_COMPRESSION: c_int = 0;

#[link(name = "leveldb")]
unsafe extern "C" {
    pub(super) fn leveldb_open(
        options: *const leveldb_options_t,
        name: *const c_char,
        errptr: *mut *mut c_char,
    ) -> *mut leveldb_t;
    pub(super) fn leveldb_close(db: *mut leveldb_t);
    pub(super) fn leveldb_put(
        db: *mut leveldb_t,
        options: *const leveldb_writeoptions_t,
        key: *const c_char,
        keylen: usize,
        val: *const c_char,
        vallen: usize,
        errptr: *mut *mut c_char,
    );
    pub(super) fn leveldb_delete(
        db: *mut leveldb_t,
        options: *const leveldb_writeoptions_t,
        key: *const c_char,
        keylen: usize,
        errptr: *mut *mut c_char,
    );
    pub(super) fn leveldb_write(
        db: *mut leveldb_t,
        options: *const leveldb_writeoptions_t,
        batch: *mut leveldb_writebatch_t,
        errptr: *mut *mut c_char,
    );
    pub(super) fn leveldb_get(
        db: *mut leveldb_t,
        options: *const leveldb_readoptions_t,
        key: *const c_char,
        keylen: usize,
        vallen: *mut usize,
        errptr: *mut *mut c_char,
    ) -> *mut c_char;
    pub(super) fn leveldb_property_value(
        db: *mut leveldb_t,
        propname: *const c_char,
    ) -> *mut c_char;
    pub(super) fn leveldb_compact_range(
        db: *mut leveldb_t,
        start_key: *const c_char,
        start_key_len: usize,
        limit_key: *const c_char,
        limit_key_len: usize,
    );

    pub(super) fn leveldb_create_iterator(
        db: *mut leveldb_t,
        options: *const leveldb_readoptions_t,
    ) -> *mut leveldb_iterator_t;
    pub(super) fn leveldb_iter_destroy(iter: *mut leveldb_iterator_t);
    pub(super) fn leveldb_iter_valid(iter: *const leveldb_iterator_t) -> c_uchar;
    pub(super) fn leveldb_iter_seek_to_first(iter: *mut leveldb_iterator_t);
    pub(super) fn leveldb_iter_seek_to_last(iter: *mut leveldb_iterator_t);
    pub(super) fn leveldb_iter_seek(iter: *mut leveldb_iterator_t, k: *const c_char, klen: usize);
    pub(super) fn leveldb_iter_next(iter: *mut leveldb_iterator_t);
    pub(super) fn leveldb_iter_prev(iter: *mut leveldb_iterator_t);
    pub(super) fn leveldb_iter_key(
        iter: *const leveldb_iterator_t,
        klen: *mut usize,
    ) -> *const c_char;
    pub(super) fn leveldb_iter_value(
        iter: *const leveldb_iterator_t,
        vlen: *mut usize,
    ) -> *const c_char;
    pub(super) fn leveldb_iter_get_error(iter: *const leveldb_iterator_t, errptr: *mut *mut c_char);

    pub(super) fn leveldb_writebatch_create() -> *mut leveldb_writebatch_t;
    pub(super) fn leveldb_writebatch_destroy(batch: *mut leveldb_writebatch_t);
    pub(super) fn leveldb_writebatch_put(
        batch: *mut leveldb_writebatch_t,
        key: *const c_char,
        klen: usize,
        val: *const c_char,
        vlen: usize,
    );

    pub(super) fn leveldb_options_create() -> *mut leveldb_options_t;
    pub(super) fn leveldb_options_destroy(options: *mut leveldb_options_t);
    pub(super) fn leveldb_options_set_filter_policy(
        options: *mut leveldb_options_t,
        policy: *mut leveldb_filterpolicy_t,
    );
    pub(super) fn leveldb_options_set_create_if_missing(
        options: *mut leveldb_options_t,
        create: c_uchar,
    );
    pub(super) fn leveldb_options_set_write_buffer_size(
        options: *mut leveldb_options_t,
        bytes: usize,
    );
    pub(super) fn leveldb_options_set_cache(
        options: *mut leveldb_options_t,
        cache: *mut leveldb_cache_t,
    );
    pub(super) fn leveldb_options_set_block_size(options: *mut leveldb_options_t, bytes: usize);
    pub(super) fn leveldb_options_set_max_file_size(options: *mut leveldb_options_t, bytes: usize);
    pub(super) fn leveldb_options_set_compression(options: *mut leveldb_options_t, kind: c_int);

    pub(super) fn leveldb_filterpolicy_create_bloom(
        bits_per_key: c_int,
    ) -> *mut leveldb_filterpolicy_t;
    pub(super) fn leveldb_filterpolicy_destroy(policy: *mut leveldb_filterpolicy_t);

    pub(super) fn leveldb_readoptions_create() -> *mut leveldb_readoptions_t;
    pub(super) fn leveldb_readoptions_destroy(options: *mut leveldb_readoptions_t);
    pub(super) fn leveldb_writeoptions_create() -> *mut leveldb_writeoptions_t;
    pub(super) fn leveldb_writeoptions_destroy(options: *mut leveldb_writeoptions_t);
    pub(super) fn leveldb_writeoptions_set_sync(
        options: *mut leveldb_writeoptions_t,
        sync: c_uchar,
    );

    pub(super) fn leveldb_cache_create_lru(capacity: usize) -> *mut leveldb_cache_t;
    pub(super) fn leveldb_cache_destroy(cache: *mut leveldb_cache_t);

    pub(super) fn leveldb_free(pointer: *mut c_void);
    pub(super) fn leveldb_major_version() -> c_int;
    pub(super) fn leveldb_minor_version() -> c_int;
}
