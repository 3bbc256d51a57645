//! The location of backups: named objects that are written whole and read whole.

use std::io::{self, Read};
use std::time::Duration;

/// An object in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The name, with `/` between folders.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// The location of backups: a directory, a bucket of an object store, or a program's own implementation.
///
/// Names consist of ASCII letters, digits, `.`, `-`, and `/` between folders. Implementations keep these
/// rules, on which backups depend:
///
/// 1. [`put`](Self::put) is atomic: before it returns, [`get`](Self::get) and [`list`](Self::list) find the
///    earlier object of this name or none; afterwards the new one, even after a power failure.
/// 2. `list` sees every `put` and [`delete`](Self::delete) that has returned, of any process.
pub trait Repository: Send + Sync {
    /// Returns the location as users name it, for messages.
    fn location(&self) -> String;

    /// Stores all bytes of `contents`. An object of the same name is replaced.
    ///
    /// # Errors
    /// Reading failed, in which case the error of `contents` is returned or wrapped, or storing failed.
    /// Nothing is stored then.
    fn put(&self, name: &str, contents: &mut dyn Read) -> io::Result<()>;

    /// Returns the contents of an object.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if the object does not exist, or the location cannot be read.
    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>>;

    /// Returns all objects whose names begin with `folder`, which ends in `/`, or all if it is empty, in
    /// any order.
    ///
    /// # Errors
    /// The location cannot be read. A folder without objects is not an error.
    fn list(&self, folder: &str) -> io::Result<Vec<Stored>>;

    /// Removes an object. It is not an error if there is none.
    ///
    /// # Errors
    /// The object cannot be removed.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Returns true if there is an object of this name.
    ///
    /// # Errors
    /// The location cannot be read.
    fn exists(&self, name: &str) -> io::Result<bool> {
        match self.get(name) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces an earlier object by a small one; returns false, and stores nothing, if the object does not
    /// exist. A location that can compare and store in one step does so; otherwise the call may store an
    /// object that another process is removing.
    ///
    /// # Errors
    /// The location cannot be read or written.
    fn replace(&self, name: &str, mut contents: &[u8]) -> io::Result<bool> {
        if !self.exists(name)? {
            return Ok(false);
        }
        self.put(name, &mut contents).map(|()| true)
    }

    /// Removes leftovers of interrupted calls of `put` that have not changed for this long. Returns their
    /// bytes.
    ///
    /// # Errors
    /// They cannot be listed or removed.
    fn sweep(&self, _unchanged_for: Duration) -> io::Result<u64> {
        Ok(0)
    }
}

impl<R: Repository + ?Sized> Repository for Box<R> {
    fn location(&self) -> String {
        (**self).location()
    }

    fn put(&self, name: &str, contents: &mut dyn Read) -> io::Result<()> {
        (**self).put(name, contents)
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        (**self).get(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Stored>> {
        (**self).list(folder)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        (**self).delete(name)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        (**self).exists(name)
    }

    fn replace(&self, name: &str, contents: &[u8]) -> io::Result<bool> {
        (**self).replace(name, contents)
    }

    fn sweep(&self, unchanged_for: Duration) -> io::Result<u64> {
        (**self).sweep(unchanged_for)
    }
}
