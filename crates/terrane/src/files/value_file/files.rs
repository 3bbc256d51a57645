//! The value files of a version of a tree.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LoggedFiles, ValueFile};
use crate::base::error::{Error, Result};
use crate::base::types::SeqNo;
use crate::files::value::Value;
use crate::files::value_pointer::ValuePointer;

/// All value files to which the tables of a version may refer, which exist as long as the version
/// does, and the log segments to which memtables of the tree refer.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueFiles {
    dir: PathBuf,
    files: BTreeMap<u64, Arc<ValueFile>>,
    /// The same for all versions of a tree.
    logged: Arc<LoggedFiles>,
}

/// The file of a value.
pub(super) enum FoundFile<'a> {
    /// A file of the version. Lookups do not count references to it, because all threads would change the count.
    Listed(&'a Arc<ValueFile>),
    /// A segment of the log.
    Segment(Arc<ValueFile>),
}

impl FoundFile<'_> {
    pub(super) fn share(&self) -> Arc<ValueFile> {
        match self {
            Self::Listed(file) => Arc::clone(file),
            Self::Segment(segment) => Arc::clone(segment),
        }
    }
}

impl Deref for FoundFile<'_> {
    type Target = ValueFile;

    fn deref(&self) -> &ValueFile {
        match self {
            Self::Listed(file) => file,
            Self::Segment(segment) => segment,
        }
    }
}

impl ValueFiles {
    pub(crate) fn new(dir: &Path, files: BTreeMap<u64, Arc<ValueFile>>) -> Self {
        Self { dir: dir.to_owned(), files, logged: Arc::default() }
    }

    /// Returns the value files of the next version of the tree.
    pub(crate) fn replaced(&self, dir: &Path, files: BTreeMap<u64, Arc<ValueFile>>) -> Self {
        Self { dir: dir.to_owned(), files, logged: Arc::clone(&self.logged) }
    }

    /// The log segments to which memtables refer.
    #[inline]
    pub(crate) fn logged(&self) -> &LoggedFiles {
        &self.logged
    }

    /// Returns true if no entry of a table or a memtable is a pointer.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.logged.may_be_used()
    }

    pub(crate) fn files(&self) -> &BTreeMap<u64, Arc<ValueFile>> {
        &self.files
    }

    /// Returns true if the file is a log segment that is not a value file of the version.
    pub(crate) fn is_logged(&self, number: u64) -> bool {
        !self.files.contains_key(&number) && self.logged.find(number).is_some()
    }

    /// Reads the value to which the encoded `pointer` of the entry `(key, seq)` refers.
    ///
    /// # Errors
    /// The pointer is damaged, or its value cannot be read.
    pub(crate) fn read(&self, key: &[u8], seq: SeqNo, pointer: &[u8]) -> Result<Value> {
        self.with(key, seq, pointer, ValueFile::read)
    }

    /// Reads a value as [`Self::read`] does, for a scan.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub(crate) fn read_scanned(&self, key: &[u8], seq: SeqNo, pointer: &[u8]) -> Result<Value> {
        self.with(key, seq, pointer, ValueFile::read_scanned)
    }

    /// Reads a value as [`Self::read`] does, for a job that reads each value once.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub(crate) fn read_once(&self, key: &[u8], seq: SeqNo, pointer: &[u8]) -> Result<Value> {
        self.with(key, seq, pointer, ValueFile::read_once)
    }

    /// Reads the value to which `pointer` refers, in its file, with `read`.
    fn with(
        &self,
        key: &[u8],
        seq: SeqNo,
        pointer: &[u8],
        read: impl FnOnce(&ValueFile, &ValuePointer) -> Result<Value>,
    ) -> Result<Value> {
        let (file, pointer) = self.find(key, seq, pointer)?;
        read(&file, &pointer)
    }

    /// Returns the file of the value to which the encoded `pointer` of an entry refers, and the pointer.
    pub(super) fn find(
        &self,
        key: &[u8],
        seq: SeqNo,
        pointer: &[u8],
    ) -> Result<(FoundFile<'_>, ValuePointer)> {
        let bad = |detail: &str| {
            let detail =
                format!("the entry of '{}' with number {seq}: {detail}", key.escape_ascii());
            Error::corruption(&self.dir, None, "value pointer", detail)
        };
        let pointer = ValuePointer::decode(pointer).map_err(|error| bad(&error.to_string()))?;
        // A segment that is still written is read as a segment, through the page cache.
        if let Some(segment) = self.logged.find(pointer.file) {
            return Ok((FoundFile::Segment(segment), pointer));
        }
        let missing = || bad(&format!("value file {} is not part of the tree", pointer.file));
        let file = self.files.get(&pointer.file).ok_or_else(missing)?;
        Ok((FoundFile::Listed(file), pointer))
    }
}
