//! The system calls of systems other than Unix, by absolute path.
//!
//! A directory with open files cannot be renamed on Windows, so a path keeps its meaning while a
//! database is open.
#![allow(clippy::disallowed_methods, reason = "this module makes the file system calls")]
#![allow(clippy::disallowed_types, reason = "this module makes the file system calls")]

use std::fs::{self, File, OpenOptions};
use std::io;

use super::Opening;
use crate::files::storage::place::Place;

/// The identity of a file is unknown here, so a replaced lock file goes unnoticed.
pub(in super::super) type Identity = ();

pub(in super::super) fn open(place: Place<'_>, opening: Opening) -> io::Result<File> {
    let options = &mut OpenOptions::new();
    match opening {
        Opening::Read | Opening::SharedLock => options.read(true),
        Opening::CreateForAppend => options.append(true).create_new(true),
        Opening::Create => options.read(true).write(true).create_new(true),
        Opening::Overwrite => options.read(true).write(true),
        Opening::Lock => options.read(true).write(true).create(true).truncate(false),
    };
    options.open(place.path())
}

pub(in super::super) fn create_dir_all(place: Place<'_>) -> io::Result<()> {
    fs::create_dir_all(place.path())
}

pub(in super::super) fn list(place: Place<'_>) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(place.path())? {
        let entry = entry?;
        // The engine's own file names are UTF-8; other files are ignored.
        if let (true, Ok(name)) = (entry.file_type()?.is_file(), entry.file_name().into_string()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

pub(in super::super) fn len(place: Place<'_>) -> io::Result<u64> {
    Ok(fs::metadata(place.path())?.len())
}

/// The free space is unknown here.
pub(in super::super) fn free_bytes(_dir: Place<'_>) -> Option<u64> {
    None
}

pub(in super::super) fn identity(place: Place<'_>) -> io::Result<Identity> {
    fs::metadata(place.path()).map(|_| ())
}

pub(in super::super) fn identity_of(_file: &File) -> io::Result<Identity> {
    Ok(())
}

/// Returns true if the file has other names.
pub(in super::super) fn has_other_names(_file: &File) -> io::Result<bool> {
    Ok(false)
}

/// Returns true if the file was in a held directory that has since been removed.
pub(in super::super) fn is_dir_removed(_place: Place<'_>) -> bool {
    false
}

pub(in super::super) fn rename(from: Place<'_>, to: Place<'_>) -> io::Result<()> {
    fs::rename(from.path(), to.path())
}

pub(in super::super) fn hard_link(from: Place<'_>, to: Place<'_>) -> io::Result<()> {
    fs::hard_link(from.path(), to.path())
}

pub(in super::super) fn remove(place: Place<'_>) -> io::Result<()> {
    fs::remove_file(place.path())
}

/// Names are durable together with their files.
pub(in super::super) fn sync_dir(_place: Place<'_>) -> io::Result<Option<io::Error>> {
    Ok(None)
}
