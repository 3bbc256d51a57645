//! Objects that options refer to: comparators, filter policies, caches and environments.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::status::allocate;

/// The destructor of an application's state.
type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

/// State of the application, destroyed together with the object that holds it.
#[derive(Debug)]
struct State {
    state: *mut c_void,
    destructor: Destructor,
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the application passed both for this call.
            unsafe { destructor(self.state) };
        }
    }
}

/// Returns the name of an object of the application.
fn name_of(
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
    state: *mut c_void,
) -> String {
    // SAFETY: the application passed both for this call.
    let name = name.map_or(std::ptr::null(), |name| unsafe { name(state) });
    if name.is_null() {
        return String::new();
    }
    // SAFETY: a name ends with NUL.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

/// An order of keys.
#[derive(Debug)]
pub struct leveldb_comparator_t {
    pub(crate) name: String,
    _state: State,
}

/// Returns an order of keys defined by the application; see leveldb_options_set_comparator. `compare` is never called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    _compare: Option<
        unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int,
    >,
    name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> Box<leveldb_comparator_t> {
    let name = name_of(name, state);
    Box::new(leveldb_comparator_t { name, _state: State { state, destructor } })
}

/// Frees an order of keys.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_destroy(comparator: Option<Box<leveldb_comparator_t>>) {
    drop(comparator);
}

/// A policy for filters.
#[derive(Debug)]
pub struct leveldb_filterpolicy_t {
    /// `None` for a policy of the application.
    pub(crate) bits: Option<c_int>,
    _state: Option<State>,
}

/// Returns a policy of the application, which is accepted but never called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    _create_filter: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *const *const c_char,
            *const usize,
            c_int,
            *mut usize,
        ) -> *mut c_char,
    >,
    _key_may_match: Option<
        unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8,
    >,
    _name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> Box<leveldb_filterpolicy_t> {
    Box::new(leveldb_filterpolicy_t { bits: None, _state: Some(State { state, destructor }) })
}

/// Returns a policy with this many bits per key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(
    bits_per_key: c_int,
) -> Box<leveldb_filterpolicy_t> {
    Box::new(leveldb_filterpolicy_t { bits: Some(bits_per_key), _state: None })
}

/// Frees a policy.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_destroy(policy: Option<Box<leveldb_filterpolicy_t>>) {
    drop(policy);
}

/// The size of a cache.
#[derive(Debug)]
pub struct leveldb_cache_t {
    pub(crate) capacity: usize,
}

/// Returns the size of a cache, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> Box<leveldb_cache_t> {
    Box::new(leveldb_cache_t { capacity })
}

/// Frees the size of a cache.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_destroy(cache: Option<Box<leveldb_cache_t>>) {
    drop(cache);
}

/// The operating system.
#[derive(Debug)]
pub struct leveldb_env_t;

/// A log for messages; there are none.
#[derive(Debug)]
pub struct leveldb_logger_t;

/// Returns the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> *mut leveldb_env_t {
    // Without a size it takes no memory, and a program compares the pointer with NULL at most.
    Box::into_raw(Box::new(leveldb_env_t))
}

/// Frees the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_destroy(_env: *mut leveldb_env_t) {}

/// Returns a directory for tests, to be freed with leveldb_free, and creates it: that of the variable TEST_TMPDIR,
/// or one in the directory for temporary files. NULL if it cannot be created.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_get_test_directory(_env: *mut leveldb_env_t) -> *mut c_char {
    let dir = std::env::var_os("TEST_TMPDIR").map_or_else(
        || std::env::temp_dir().join(format!("terranetest-{}", std::process::id())),
        Into::into,
    );
    match std::fs::create_dir_all(&dir) {
        Ok(()) => allocate(dir.as_os_str().as_encoded_bytes()),
        Err(_) => std::ptr::null_mut(),
    }
}
