//! Options for opening a database, and listeners for its events.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use terrane::{OpenMode, Options};

use crate::argument::{given, text};
use crate::error::{Outcome, check, invalid, terrane_code, terrane_error};
use crate::text::{json, produce_text};

/// Open the database, or create it: the default.
pub const TERRANE_CREATE_IF_MISSING: i32 = 0;
/// Open the database; fail if it does not exist.
pub const TERRANE_MUST_EXIST: i32 = 1;
/// Create the database; fail if it exists.
pub const TERRANE_MUST_BE_NEW: i32 = 2;

/// Options for opening databases. One thread at a time may change them.
#[derive(Debug)]
pub struct terrane_options {
    pub(crate) options: Options,
}

impl terrane_options {
    /// Changes the options by a builder method.
    fn change(&mut self, change: impl FnOnce(Options) -> Options) {
        self.options = change(std::mem::take(&mut self.options));
    }
}

/// Returns new options with the defaults, to be freed with terrane_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_options_new() -> Box<terrane_options> {
    Box::new(terrane_options { options: Options::new() })
}

/// Frees options; NULL is ignored. Databases that were opened with them do not need them.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_options_free(options: Option<Box<terrane_options>>) {
    drop(options);
}

/// Sets an option by its name and the text of its value, for example "memory_budget" to "256MiB", "design" to
/// "tiering T=4", or "durability" to "sync". terrane_options_reference lists all. Opening an existing database
/// with another "design" is an error; see terrane_options_set_if_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_options_set(
    options: Option<&mut terrane_options>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: as above.
        let value = unsafe { text(value, "value") }?;
        given(options, "options")?.options.set(name, value)?;
        Ok(())
    })
}

/// Sets an option as terrane_options_set does, for the case that the opening creates the database. An existing
/// database keeps the value that is stored with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_options_set_if_new(
    options: Option<&mut terrane_options>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: as above.
        let value = unsafe { text(value, "value") }?;
        let mut if_new = Options::new();
        if_new.set(name, value)?;
        given(options, "options")?.change(|options| options.if_new(if_new));
        Ok(())
    })
}

/// Sets the design of the default keyspace, and changes the design of an existing database that differs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_options_change_design(
    options: Option<&mut terrane_options>,
    design: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let design = unsafe { text(design, "design") }?;
        let design = design.parse().map_err(terrane::Error::from)?;
        given(options, "options")?.change(|options| options.design_or_change(design));
        Ok(())
    })
}

/// Sets whether the database must exist: TERRANE_CREATE_IF_MISSING, TERRANE_MUST_EXIST or
/// TERRANE_MUST_BE_NEW.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_options_set_open_mode(
    options: Option<&mut terrane_options>,
    mode: i32,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        let mode = match mode {
            TERRANE_CREATE_IF_MISSING => OpenMode::CreateIfMissing,
            TERRANE_MUST_EXIST => OpenMode::MustExist,
            TERRANE_MUST_BE_NEW => OpenMode::MustBeNew,
            _ => return Err(unknown_mode(mode)),
        };
        given(options, "options")?.change(|options| options.open_mode(mode));
        Ok(())
    })
}

#[cold]
fn unknown_mode(mode: i32) -> Box<terrane_error> {
    invalid(format!(
        "unknown open mode {mode}; pass one of the constants TERRANE_CREATE_IF_MISSING, …"
    ))
}

/// Allows creating a database in a directory that has other files, which is refused otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_options_among_other_files(
    options: Option<&mut terrane_options>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        given(options, "options")?.change(Options::among_other_files);
        Ok(())
    })
}

/// Opens files that a loss of power may have left, although the machine has run without interruption since:
/// a snapshot of a volume, taken while the database was in use. The option is not stored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_options_after_power_loss(
    options: Option<&mut terrane_options>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        given(options, "options")?.change(Options::after_power_loss);
        Ok(())
    })
}

/// Opens databases also if their keyspaces have merge operators or compaction filters of an application in
/// Rust. Their operands are then stored but not combined, and reading a key that has some fails.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_options_unknown_functions(
    options: Option<&mut terrane_options>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        given(options, "options")?.change(Options::unknown_functions);
        Ok(())
    })
}

/// Receives an event as a JSON object of `len` bytes, which also end with NUL, and are valid during the call:
/// {"number":7,"at_micros":1700000000000000,"event":"flush-ended","keyspace":"default",...}.
pub type terrane_event_listener =
    Option<unsafe extern "C" fn(context: *mut c_void, json: *const c_char, len: usize)>;

/// Frees the context of a listener.
pub type terrane_context_free = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// A context of a caller, which ends with the last user of the options.
struct Context {
    pointer: *mut c_void,
    free: terrane_context_free,
}

// SAFETY: the header demands a context that may be used and freed from any thread.
unsafe impl Send for Context {}
// SAFETY: as above; several threads may call the listener concurrently.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            // SAFETY: the header states that `free` receives the context, once, after the last call.
            unsafe { free(self.pointer) };
        }
    }
}

/// Sets a listener for the events of the database: flushes and compactions with their reasons, changes of
/// designs, stalls, background errors. NULL removes it.
///
/// The thread that emits an event calls the listener and waits for it: mostly a background thread of the
/// database, and sometimes one of the caller. Several threads may call it concurrently, so `context` must be
/// usable from any thread. It must not block. It may read and write; terrane_flush, terrane_close and other
/// calls that wait for background work fail in it. It must not unwind.
///
/// `free_context`, unless it is NULL, receives `context` once nothing can call the listener any more: after the
/// options were freed and the databases that were opened with them were closed and all their handles freed. If
/// this function fails, the caller keeps `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_options_on_event(
    options: Option<&mut terrane_options>,
    listener: terrane_event_listener,
    context: *mut c_void,
    free_context: terrane_context_free,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        let options = given(options, "options")?;
        let context = Context { pointer: context, free: free_context };
        options.change(|options| {
            options.on_event(move |event| {
                let context = &context;
                let Some(listener) = listener else { return };
                let Ok(mut json) = serde_json::to_string(event) else { return };
                let len = json.len();
                json.push('\0');
                // SAFETY: the header states the contract of a listener, which the caller passed with its
                // context; the text ends with NUL.
                unsafe { listener(context.pointer, json.as_ptr().cast(), len) };
            })
        });
        Ok(())
    })
}

/// Stores the reference of all options as a JSON array of objects: "name", "about", "default", "accepted",
/// "trade_off", "takes_effect". The string is freed with terrane_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_options_reference(
    reference: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce_text(reference, error, reference_json)
}

fn reference_json() -> Outcome<String> {
    let entries: Vec<_> = Options::table()
        .iter()
        .map(|option| {
            serde_json::json!({
                "name": option.name,
                "about": option.about,
                "default": option.default,
                "accepted": option.accepted,
                "trade_off": option.trade_off,
                "takes_effect": option.takes_effect,
            })
        })
        .collect();
    json(serde_json::to_string(&entries))
}
