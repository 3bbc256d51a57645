//! Databases that are not open: verification, repair, removal.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use terrane::{Options, inspect};

use crate::argument::path;
use crate::error::{check, terrane_code, terrane_error};
use crate::text::{json, produce_text};

/// Reads every block of the database in `dir`, which may be open, and stores what it found as a JSON object with the
/// array "problems", which is empty for a sound database. The string is freed with terrane_string_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_verify(
    dir: *const c_char,
    report: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce_text(report, error, || {
        // SAFETY: the caller passes a path; see "Pointers" in the documentation of the crate.
        let dir = unsafe { path(dir, "dir") }?;
        let found = inspect::verify(dir, &mut |_| {})?;
        let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
        let report = serde_json::json!({ "tables": found.tables, "problems": problems });
        json(serde_json::to_string(&report))
    })
}

/// Salvages the readable part of the database in `dir`, which must not be open for writing, into a new database in
/// `target`, and stores what it read and lost as a JSON object. The string is freed with terrane_string_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_repair(
    dir: *const c_char,
    target: *const c_char,
    report: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce_text(report, error, || {
        // SAFETY: the caller passes a path; see "Pointers" in the documentation of the crate.
        let dir = unsafe { path(dir, "dir") }?;
        // SAFETY: as above.
        let target = unsafe { path(target, "target") }?;
        let done = inspect::repair(dir, target)?;
        let problems: Vec<String> = done.problems.iter().map(ToString::to_string).collect();
        let report = serde_json::json!({
            "tables": done.tables,
            "log_operations": done.log_operations,
            "keys": done.keys,
            "problems": problems,
        });
        json(serde_json::to_string(&report))
    })
}

/// Removes the database in `dir`, which must not be open: its files, its log, and the directory if nothing else is in
/// it. Fails with TERRANE_INVALID if there is no database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_destroy(
    dir: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes a path; see "Pointers" in the documentation of the crate.
        let dir = unsafe { path(dir, "dir") }?;
        Ok(Options::new().destroy(dir)?)
    })
}
