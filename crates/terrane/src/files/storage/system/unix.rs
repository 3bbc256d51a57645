//! The system calls of Unix, relative to a held directory.
#![allow(clippy::disallowed_types, reason = "this module makes the file system calls")]

use std::fs::File;
use std::io;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::Opening;
use crate::base::error::WrongFileType;
use crate::files::storage::place::Place;

/// The device and number of a file, which together identify it while it is open.
pub(in super::super) type Identity = (u64, u64);

/// The permissions of new files and directories, before the umask.
const FILE_MODE: RawMode = 0o666;
const DIR_MODE: RawMode = 0o777;

impl Opening {
    fn flags(self) -> OFlags {
        match self {
            Self::Read => OFlags::RDONLY,
            Self::CreateForAppend => {
                OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL
            }
            Self::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Self::Overwrite => OFlags::RDWR | OFlags::NOFOLLOW,
            Self::Lock => OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW,
            Self::SharedLock => OFlags::RDONLY | OFlags::NOFOLLOW,
        }
    }
}

/// Opens a regular file. Anything else is an error that says what it is, and is not waited for.
pub(in super::super) fn open(place: Place<'_>, opening: Opening) -> io::Result<File> {
    // A new file is regular.
    if opening.flags().contains(OFlags::EXCL) {
        return Ok(open_with(place, opening.flags())?.into());
    }
    // With `NONBLOCK`, a FIFO is opened without a process at its other end.
    let flags = opening.flags() | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match open_with(place, flags) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Err(Errno::NOENT.into()),
        Err(error) => {
            let follows = !flags.contains(OFlags::NOFOLLOW);
            check_regular(&stat(place, follows)?)?;
            if error != Errno::AGAIN {
                return Err(error.into());
            }
            // Another process has a lease on the file, and releases it on request.
            return Ok(open_with(place, opening.flags())?.into());
        }
    };
    check_regular(&rustix::fs::fstat(&file)?)?;
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file.into())
}

fn open_with(place: Place<'_>, flags: OFlags) -> rustix::io::Result<rustix::fd::OwnedFd> {
    let (flags, mode) = (flags | OFlags::CLOEXEC, Mode::from_raw_mode(FILE_MODE));
    retry_on_intr(|| rustix::fs::openat(place.dir(), place.path(), flags, mode))
}

/// Opens a directory, to hold it or to list it.
pub(in super::super) fn open_dir(place: Place<'_>) -> io::Result<File> {
    Ok(open_with(place, OFlags::RDONLY | OFlags::DIRECTORY)?.into())
}

fn stat(place: Place<'_>, follows: bool) -> rustix::io::Result<Stat> {
    let flags = if follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    rustix::fs::statat(place.dir(), place.path(), flags)
}

fn type_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn check_regular(stat: &Stat) -> io::Result<()> {
    let found = match type_of(stat) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => WrongFileType::Directory,
        FileType::Symlink => WrongFileType::SymbolicLink,
        FileType::Fifo => WrongFileType::Fifo,
        FileType::Socket => WrongFileType::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => WrongFileType::Device,
        _ => WrongFileType::Unknown,
    };
    Err(found.into())
}

pub(in super::super) fn create_dir_all(place: Place<'_>) -> io::Result<()> {
    if stat(place, true).is_ok_and(|found| type_of(&found) == FileType::Directory) {
        return Ok(());
    }
    let mut ancestors: Vec<_> = place.path().ancestors().collect();
    // The last one is the empty path, or `/`.
    ancestors.pop();
    for ancestor in ancestors.iter().rev() {
        match rustix::fs::mkdirat(place.dir(), *ancestor, Mode::from_raw_mode(DIR_MODE)) {
            Ok(()) => {}
            Err(error) => {
                let found = rustix::fs::statat(place.dir(), *ancestor, AtFlags::empty());
                if !found.is_ok_and(|found| type_of(&found) == FileType::Directory) {
                    return Err(error.into());
                }
            }
        }
    }
    Ok(())
}

pub(in super::super) fn list(place: Place<'_>) -> io::Result<Vec<String>> {
    let dir = open_dir(place)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        // The engine's own file names are UTF-8; other files are ignored.
        let Ok(name) = entry.file_name().to_str() else { continue };
        let kind = match entry.file_type() {
            // Some file systems do not list types. The file may have been removed since.
            FileType::Unknown => {
                let found = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
                found.map_or(FileType::Unknown, |found| type_of(&found))
            }
            listed => listed,
        };
        if kind == FileType::RegularFile {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

pub(in super::super) fn len(place: Place<'_>) -> io::Result<u64> {
    Ok(u64::try_from(stat(place, true)?.st_size).unwrap_or(0))
}

/// Returns how many bytes new files of this process can take on the file system of a directory; `None` if
/// that is unknown.
#[cfg(any(target_os = "android", target_os = "freebsd", target_os = "linux"))]
pub(in super::super) fn free_bytes(dir: Place<'_>) -> Option<u64> {
    let found = rustix::fs::fstatvfs(open_dir(dir).ok()?).ok()?;
    // File systems in memory may have no limit, and some in user space do not count.
    if found.f_blocks == 0 {
        return None;
    }
    let is_root = rustix::process::geteuid().is_root();
    let blocks = if is_root { found.f_bfree } else { found.f_bavail };
    Some(blocks.saturating_mul(found.f_frsize))
}

/// The counts of other systems are unknown, or wrap around on a large volume (macOS).
#[cfg(not(any(target_os = "android", target_os = "freebsd", target_os = "linux")))]
pub(in super::super) fn free_bytes(_dir: Place<'_>) -> Option<u64> {
    None
}

/// Returns the identity of the file that has this name now.
pub(in super::super) fn identity(place: Place<'_>) -> io::Result<Identity> {
    Ok(identity_in(&stat(place, false)?))
}

pub(in super::super) fn identity_of(file: &File) -> io::Result<Identity> {
    Ok(identity_in(&rustix::fs::fstat(file)?))
}

#[allow(clippy::unnecessary_cast, reason = "the types of the fields depend on the platform")]
fn identity_in(stat: &Stat) -> Identity {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Returns true if the file has other names.
pub(in super::super) fn has_other_names(file: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstat(file)?.st_nlink > 1)
}

/// Returns true if the file was in a held directory that has since been removed.
pub(in super::super) fn is_dir_removed(place: Place<'_>) -> bool {
    let found = place.held_dir().map(|dir| rustix::fs::fstat(&dir.file));
    found.is_some_and(|found| found.is_ok_and(|found| found.st_nlink == 0))
}

pub(in super::super) fn rename(from: Place<'_>, to: Place<'_>) -> io::Result<()> {
    Ok(rustix::fs::renameat(from.dir(), from.path(), to.dir(), to.path())?)
}

pub(in super::super) fn hard_link(from: Place<'_>, to: Place<'_>) -> io::Result<()> {
    let flags = AtFlags::empty();
    Ok(rustix::fs::linkat(from.dir(), from.path(), to.dir(), to.path(), flags)?)
}

pub(in super::super) fn remove(place: Place<'_>) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(place.dir(), place.path(), AtFlags::empty())?)
}

/// Makes the names in a directory durable. If the file system refuses that for directories, there is
/// nothing to be done about it, and the refusal is returned.
pub(in super::super) fn sync_dir(place: Place<'_>) -> io::Result<Option<io::Error>> {
    let synced = match place.as_held_dir() {
        Some(dir) => dir.file.sync_all(),
        None => open_dir(place)?.sync_all(),
    };
    match synced {
        Err(error) if is_refusal(&error) => Ok(Some(error)),
        synced => synced.map(|()| None),
    }
}

/// Returns true if the file system does not sync directories, as some network and shared file systems
/// do not, and false if it tried to and failed.
fn is_refusal(error: &io::Error) -> bool {
    const REFUSALS: [Errno; 7] = [
        Errno::INVAL,
        Errno::BADF,
        Errno::NOTSUP,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::ACCESS,
        Errno::PERM,
    ];
    Errno::from_io_error(error).is_some_and(|errno| REFUSALS.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_does_not_sync_directories_is_not_a_failed_sync() {
        for errno in [Errno::INVAL, Errno::BADF, Errno::OPNOTSUPP, Errno::ACCESS] {
            assert!(is_refusal(&errno.into()), "{errno}");
        }
        for errno in [Errno::IO, Errno::NOSPC, Errno::DQUOT] {
            assert!(!is_refusal(&errno.into()), "{errno}");
        }
    }
}
