//! Options of databases, reads and writes.
//!
//! The options that shape a tree (sizes, filters, compression) set the design of a new database; an existing
//! database keeps its design. The cache and the number of open files apply to each opening.

use std::ffi::c_int;
use std::path::Path;

use terrane::{Design, Durability, OpenMode, Options, Snapshot, WriteOptions};
use terrane_c::error::{Outcome, invalid};

use crate::database::leveldb_snapshot_t;
use crate::objects::{
    leveldb_cache_t, leveldb_comparator_t, leveldb_env_t, leveldb_filterpolicy_t, leveldb_logger_t,
};
use crate::predecessor::has_only_leftovers;

/// The name of the only order of keys.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// Options of a database.
#[derive(Debug, Default)]
pub struct leveldb_options_t {
    comparator: Option<String>,
    filter_bits: Option<c_int>,
    creates_if_missing: bool,
    fails_if_exists: bool,
    write_buffer_bytes: Option<usize>,
    open_files: Option<c_int>,
    cache_bytes: Option<usize>,
    block_bytes: Option<usize>,
    table_bytes: Option<usize>,
    compresses: Option<bool>,
}

impl leveldb_options_t {
    /// Returns the options of the engine.
    pub(crate) fn options(&self, dir: &Path) -> Outcome<Options> {
        if let Some(name) = self.comparator.as_ref().filter(|name| *name != BYTEWISE) {
            return Err(invalid(format!(
                "comparator '{name}' is not supported; keys are in the order of bytes, which is that of \
                 '{BYTEWISE}'"
            )));
        }
        let mode = match (self.creates_if_missing, self.fails_if_exists) {
            (true, true) => OpenMode::MustBeNew,
            (true, false) => OpenMode::CreateIfMissing,
            (false, fails) => {
                if fails && dir.join("CURRENT").exists() {
                    let dir = dir.display();
                    return Err(invalid(format!("'{dir}' exists (error_if_exists is true)")));
                }
                OpenMode::MustExist
            }
        };
        let mut options = Options::new().open_mode(mode);
        if has_only_leftovers(dir) {
            options = options.among_other_files();
        }
        options = options.design_if_new(self.design()?);
        if let Some(bytes) = self.cache_bytes {
            options = options.cache_bytes((bytes as u64).clamp(64 << 10, 1 << 40));
        }
        if let Some(count) = self.open_files {
            options = options.open_files(usize::try_from(count).unwrap_or(0).clamp(1, 1_000_000));
        }
        Ok(options)
    }

    /// Returns the design of a database that is created.
    fn design(&self) -> Outcome<Design> {
        let mut text = terrane::policy::catalogue::DEFAULT.to_owned();
        let mut set = |name: &str, value: Option<String>| {
            text.extend(value.map(|value| format!("; {name}={value}")));
        };
        let bytes = |bytes: Option<usize>, least: usize, most: usize| {
            bytes.map(|bytes| bytes.clamp(least, most).to_string())
        };
        set("buffer", bytes(self.write_buffer_bytes, 64 << 10, 1 << 40));
        set("table", bytes(self.table_bytes, 1 << 20, 1 << 40));
        set("block", bytes(self.block_bytes, 1 << 10, 4 << 20));
        set("filter", self.filter_bits.map(|bits| bits.clamp(0, 64).to_string()));
        let compression = |compresses| if compresses { "lz4" } else { "none" };
        set("compression", self.compresses.map(|compresses| compression(compresses).to_owned()));
        Ok(text.parse().map_err(terrane::Error::from)?)
    }
}

/// Returns new options with the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> Box<leveldb_options_t> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_destroy(options: Option<Box<leveldb_options_t>>) {
    drop(options);
}

/// Sets the order of keys. Only an order whose name is "leveldb.BytewiseComparator" can be opened.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_comparator(
    options: Option<&mut leveldb_options_t>,
    comparator: Option<&leveldb_comparator_t>,
) {
    if let Some(options) = options {
        options.comparator = comparator.map(|comparator| comparator.name.clone());
    }
}

/// Sets the bits per key of the filters of a database that is created. A policy of the application is accepted but
/// never called: tables have the filters of this engine, which give the same answers.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_filter_policy(
    options: Option<&mut leveldb_options_t>,
    policy: Option<&leveldb_filterpolicy_t>,
) {
    if let Some(options) = options {
        options.filter_bits = policy.and_then(|policy| policy.bits);
    }
}

/// Sets whether a database that does not exist is created; it is not, unless this is set.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_create_if_missing(
    options: Option<&mut leveldb_options_t>,
    value: u8,
) {
    if let Some(options) = options {
        options.creates_if_missing = value != 0;
    }
}

/// Sets whether opening a database that exists is an error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_error_if_exists(
    options: Option<&mut leveldb_options_t>,
    value: u8,
) {
    if let Some(options) = options {
        options.fails_if_exists = value != 0;
    }
}

/// Does nothing: every read is checked.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_paranoid_checks(
    _options: Option<&mut leveldb_options_t>,
    _value: u8,
) {
}

/// Does nothing: there is one environment.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_env(
    _options: Option<&mut leveldb_options_t>,
    _env: Option<&leveldb_env_t>,
) {
}

/// Does nothing: terrane.h has a listener for events.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_info_log(
    _options: Option<&mut leveldb_options_t>,
    _logger: Option<&leveldb_logger_t>,
) {
}

/// Sets the size of memtables of a database that is created, at least 64 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_write_buffer_size(
    options: Option<&mut leveldb_options_t>,
    bytes: usize,
) {
    if let Some(options) = options {
        options.write_buffer_bytes = Some(bytes);
    }
}

/// Sets how many files of tables stay open.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_open_files(
    options: Option<&mut leveldb_options_t>,
    count: c_int,
) {
    if let Some(options) = options {
        options.open_files = Some(count);
    }
}

/// Sets the size of the cache, at least 64 KiB. Each database has a cache of its own.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_cache(
    options: Option<&mut leveldb_options_t>,
    cache: Option<&leveldb_cache_t>,
) {
    if let Some(options) = options {
        options.cache_bytes = cache.map(|cache| cache.capacity);
    }
}

/// Sets the size of blocks of a database that is created, 1 KiB to 4 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_size(
    options: Option<&mut leveldb_options_t>,
    bytes: usize,
) {
    if let Some(options) = options {
        options.block_bytes = Some(bytes);
    }
}

/// Does nothing: blocks have another structure.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_restart_interval(
    _options: Option<&mut leveldb_options_t>,
    _keys: c_int,
) {
}

/// Sets the size of tables of a database that is created, at least 1 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_file_size(
    options: Option<&mut leveldb_options_t>,
    bytes: usize,
) {
    if let Some(options) = options {
        options.table_bytes = Some(bytes);
    }
}

/// Blocks are not compressed.
pub const leveldb_no_compression: c_int = 0;
/// Blocks are compressed, here with LZ4.
pub const leveldb_snappy_compression: c_int = 1;

/// Sets whether blocks of a database that is created are compressed. They are not, unless this is set.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_compression(
    options: Option<&mut leveldb_options_t>,
    compression: c_int,
) {
    if let Some(options) = options {
        options.compresses = Some(compression != leveldb_no_compression);
    }
}

/// Options of a read.
#[derive(Debug, Default)]
pub struct leveldb_readoptions_t {
    pub(crate) snapshot: Option<Snapshot>,
}

/// Returns new options of a read.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> Box<leveldb_readoptions_t> {
    Box::default()
}

/// Frees options of a read.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_destroy(options: Option<Box<leveldb_readoptions_t>>) {
    drop(options);
}

/// Does nothing: every read is checked.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_verify_checksums(
    _options: Option<&mut leveldb_readoptions_t>,
    _value: u8,
) {
}

/// Does nothing: the engine decides which blocks stay in memory.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(
    _options: Option<&mut leveldb_readoptions_t>,
    _value: u8,
) {
}

/// Sets the snapshot that reads see; NULL is the present state. The options keep it until they are freed or get
/// another one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_snapshot(
    options: Option<&mut leveldb_readoptions_t>,
    snapshot: Option<&leveldb_snapshot_t>,
) {
    if let Some(options) = options {
        options.snapshot = snapshot.map(|snapshot| snapshot.snapshot.clone());
    }
}

/// Options of a write.
#[derive(Debug, Default)]
pub struct leveldb_writeoptions_t {
    is_synced: bool,
}

impl leveldb_writeoptions_t {
    pub(crate) fn options(&self) -> WriteOptions {
        let durability = if self.is_synced { Durability::Sync } else { Durability::Process };
        WriteOptions::new().durability(durability)
    }
}

/// Returns new options for a write that survives the death of the process.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> Box<leveldb_writeoptions_t> {
    Box::default()
}

/// Frees options of a write.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_destroy(options: Option<Box<leveldb_writeoptions_t>>) {
    drop(options);
}

/// Sets whether the write survives a power failure.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_set_sync(
    options: Option<&mut leveldb_writeoptions_t>,
    value: u8,
) {
    if let Some(options) = options {
        options.is_synced = value != 0;
    }
}
