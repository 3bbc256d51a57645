//! The values of options and their text forms.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use terrane_policy::units;

use crate::files::storage::Access;
use crate::files::table::CacheWarming;

/// Whether to open an existing database, create one, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenMode {
    /// Opens the database, or creates it.
    CreateIfMissing,
    /// Opens the database; fails if it does not exist.
    MustExist,
    /// Creates the database; fails if it exists.
    MustBeNew,
}

/// How tables are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadMode {
    /// Through the page cache of the operating system. Blocks that are not in the database's memory
    /// may be in that cache.
    Cached,
    /// Bypassing the page cache. Blocks are in memory only once, and the database takes no memory
    /// beyond its budget.
    Direct,
}

impl ReadMode {
    pub(crate) fn access(self) -> Access {
        match self {
            Self::Cached => Access::Buffered,
            Self::Direct => Access::Direct,
        }
    }
}

/// How concurrent writers proceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WritePath {
    /// Writers insert into memtables concurrently; only the assignment of sequence numbers and the
    /// append to the log are serialized.
    Concurrent,
    /// One leader at a time writes for all waiting writers, as in LevelDB.
    Queue,
}

/// How flushes and compactions write tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteMode {
    /// Through the page cache.
    Buffered,
    /// Bypassing the page cache. New tables are then not in memory unless
    /// [`Options::cache_warming`](crate::Options::cache_warming) inserts them into the block cache.
    Direct,
}

impl WriteMode {
    pub(crate) fn access(self) -> Access {
        match self {
            Self::Buffered => Access::Buffered,
            Self::Direct => Access::Direct,
        }
    }
}

/// How records are written to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogMode {
    /// Through a memory map, on file systems where that needs no space.
    Mapped,
    /// With a system call for each record.
    Calls,
}

/// Who runs flushes and compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Background {
    /// Background threads of the database.
    Threads,
    /// The caller. A job runs when a write has to wait for it, when the caller requests a flush or a
    /// compaction, or in [`Db::run_background_job`](crate::Db::run_background_job). With a seeded
    /// storage and a manual clock, every run behaves the same.
    Inline,
}

/// A number of bytes, printed with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(super) u64);

/// The delete persistence time in microseconds; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Persistence(pub(super) Option<u64>);

impl From<Duration> for Persistence {
    fn from(time: Duration) -> Self {
        Self(Some(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl FromStr for Persistence {
    type Err = terrane_policy::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" { Ok(Self(None)) } else { units::parse_micros(text).map(Some).map(Self) }
    }
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map_or("never".into(), units::format_micros))
    }
}

/// The directory of the log; `None` for the database's own directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogDir(pub(crate) Option<PathBuf>);

/// The text for the directory of the database.
const BESIDE_TABLES: &str = "database";

impl LogDir {
    /// Returns true if the path can be written as a line of a file.
    pub(crate) fn is_valid(&self) -> bool {
        let is_line = |text: &str| !text.is_empty() && !text.contains('\n');
        self.0.as_ref().is_none_or(|path| path.to_str().is_some_and(is_line))
    }
}

impl From<PathBuf> for LogDir {
    fn from(path: PathBuf) -> Self {
        Self((path.as_os_str() != BESIDE_TABLES).then_some(path))
    }
}

impl FromStr for LogDir {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(PathBuf::from(text).into())
    }
}

impl fmt::Display for LogDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str(BESIDE_TABLES),
            Some(path) => path.display().fmt(f),
        }
    }
}

impl From<u64> for Bytes {
    fn from(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl FromStr for Bytes {
    type Err = terrane_policy::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        units::parse_bytes(text).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::format_bytes(self.0))
    }
}

impl FromStr for ReadMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            // Databases that were created with memory maps, the default of earlier versions.
            "cached" | "mapped" => Ok(Self::Cached),
            "direct" => Ok(Self::Direct),
            _ => Err(()),
        }
    }
}

impl fmt::Display for ReadMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cached => "cached",
            Self::Direct => "direct",
        })
    }
}

impl FromStr for WriteMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "buffered" => Ok(Self::Buffered),
            "direct" => Ok(Self::Direct),
            _ => Err(()),
        }
    }
}

impl fmt::Display for WriteMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffered => "buffered",
            Self::Direct => "direct",
        })
    }
}

impl FromStr for LogMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "mapped" => Ok(Self::Mapped),
            "calls" => Ok(Self::Calls),
            _ => Err(()),
        }
    }
}

impl fmt::Display for LogMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mapped => "mapped",
            Self::Calls => "calls",
        })
    }
}

impl FromStr for WritePath {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "concurrent" => Ok(Self::Concurrent),
            "queue" => Ok(Self::Queue),
            _ => Err(()),
        }
    }
}

impl fmt::Display for WritePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Concurrent => "concurrent",
            Self::Queue => "queue",
        })
    }
}

impl FromStr for CacheWarming {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "none" => Ok(Self::None),
            "meta" => Ok(Self::Meta),
            "all" => Ok(Self::All),
            "read" => Ok(Self::Read),
            _ => Err(()),
        }
    }
}

impl fmt::Display for CacheWarming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Meta => "meta",
            Self::All => "all",
            Self::Read => "read",
        })
    }
}
