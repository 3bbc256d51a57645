//! Options of a write.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::time::Duration;

use terrane::{Durability, WriteOptions};

use crate::argument::{given, text};
use crate::error::{check, terrane_code, terrane_error};

/// Options of a write. Once they are set, any number of threads may write with them.
#[derive(Debug)]
pub struct terrane_write_options {
    pub(crate) options: WriteOptions,
    /// The durability among them, for transactions.
    pub(crate) durability: Option<Durability>,
}

/// Returns the options, or the defaults for NULL.
pub(crate) fn options_of(options: Option<&terrane_write_options>) -> WriteOptions {
    options.map_or_else(WriteOptions::new, |options| options.options)
}

/// Returns options with the durability of the database, to be freed with terrane_write_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_write_options_new() -> Box<terrane_write_options> {
    Box::new(terrane_write_options { options: WriteOptions::new(), durability: None })
}

/// Frees options of a write; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_write_options_free(options: Option<Box<terrane_write_options>>) {
    drop(options);
}

/// Sets which failures the write survives once the call returns: "none"; "process", the death of the process;
/// "interval(100ms)", a power failure after at most this time as well; or "sync", a power failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_write_options_set_durability(
    options: Option<&mut terrane_write_options>,
    durability: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let durability = unsafe { text(durability, "durability") }?;
        let options = given(options, "options")?;
        let durability = durability.parse()?;
        options.options = options.options.durability(durability);
        options.durability = Some(durability);
        Ok(())
    })
}

/// Lets the value expire after this time, counted from the write; UINT64_MAX means no expiry, also in a keyspace
/// with a time to live. Only for terrane_put.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_write_options_set_ttl(
    options: Option<&mut terrane_write_options>,
    ttl_micros: u64,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        let options = given(options, "options")?;
        options.options = options.options.ttl(ttl(ttl_micros));
        Ok(())
    })
}

/// Returns a time to live; `u64::MAX` means no expiry.
pub(crate) fn ttl(micros: u64) -> Duration {
    if micros == u64::MAX { Duration::MAX } else { Duration::from_micros(micros) }
}
