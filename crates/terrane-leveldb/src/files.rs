//! Databases that are not open: removal and repair.

use std::ffi::{OsString, c_char};
use std::path::{Path, PathBuf};

use terrane::{Error, OpenMode, Options, inspect};
use terrane_c::argument::path;
use terrane_c::error::{Outcome, invalid};

use crate::options::leveldb_options_t;
use crate::predecessor::check_format;
use crate::status::report;

/// Removes the database in the directory `name`, and the directory if nothing else is in it. A missing database is
/// not an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_destroy_db(
    _options: Option<&leveldb_options_t>,
    name: *const c_char,
    errptr: Option<&mut *mut c_char>,
) {
    report(errptr, (), || {
        // SAFETY: the caller passes a path that ends with NUL.
        let dir = unsafe { path(name, "name") }?;
        check_format(dir)?;
        destroy(dir)
    });
}

fn destroy(dir: &Path) -> Outcome<()> {
    match Options::new().destroy(dir) {
        Ok(()) | Err(Error::NoDatabase { .. }) => {
            // The directory may contain other files.
            let _ = std::fs::remove_dir(dir);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Repairs the database in the directory `name`. A sound one stays as it is. A damaged one is replaced by what can be
/// read of it, and is kept in a directory next to it whose name ends in ".damaged".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_repair_db(
    _options: Option<&leveldb_options_t>,
    name: *const c_char,
    errptr: Option<&mut *mut c_char>,
) {
    report(errptr, (), || {
        // SAFETY: the caller passes a path that ends with NUL.
        let dir = unsafe { path(name, "name") }?;
        check_format(dir)?;
        repair(dir)
    });
}

fn repair(dir: &Path) -> Outcome<()> {
    match Options::new().open_mode(OpenMode::MustExist).open(dir) {
        Ok(db) => {
            let problems = inspect::verify(dir, &mut |_| {})?.problems;
            db.close()?;
            if problems.is_empty() {
                return Ok(());
            }
        }
        // Repair is for databases that opening refuses.
        Err(Error::Corruption(_) | Error::NoDatabase { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let repaired = beside(dir, ".repairing");
    destroy(&repaired)?;
    inspect::repair(dir, &repaired)?;
    let damaged = free_name(dir)?;
    rename(dir, &damaged)?;
    rename(&repaired, dir)
}

/// Returns a path with an ending after its last name.
fn beside(dir: &Path, ending: &str) -> PathBuf {
    let dir: PathBuf = dir.components().collect();
    let mut name: OsString = dir.into_os_string();
    name.push(ending);
    name.into()
}

/// Returns an unused path for a damaged database.
fn free_name(dir: &Path) -> Outcome<PathBuf> {
    let first = beside(dir, ".damaged");
    let others = (2..1000).map(|number| beside(dir, &format!(".damaged-{number}")));
    let mut names = std::iter::once(first).chain(others);
    names.find(|name| !name.exists()).ok_or_else(|| {
        invalid(format!("'{}' has 999 damaged databases beside it; remove some", dir.display()))
    })
}

fn rename(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::rename(from, to).map_err(|error| {
        invalid(format!("cannot rename '{}' to '{}': {error}", from.display(), to.display()))
    })
}
