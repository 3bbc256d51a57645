//! The value files of a version of a tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ValueFile;
use crate::base::error::{Error, Result};
use crate::base::types::SeqNo;
use crate::files::value::Value;
use crate::files::value_pointer::ValuePointer;

/// All value files to which the tables of a version may refer. They exist as long as the version
/// does.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueFiles {
    dir: PathBuf,
    files: BTreeMap<u64, Arc<ValueFile>>,
}

impl ValueFiles {
    pub(crate) fn new(dir: &Path, files: BTreeMap<u64, Arc<ValueFile>>) -> Self {
        Self { dir: dir.to_owned(), files }
    }

    pub(crate) fn files(&self) -> &BTreeMap<u64, Arc<ValueFile>> {
        &self.files
    }

    /// Reads the value to which the encoded `pointer` of the entry `(key, seq)` refers.
    ///
    /// # Errors
    /// The pointer is damaged, or its value cannot be read.
    pub(crate) fn read(&self, key: &[u8], seq: SeqNo, pointer: &[u8]) -> Result<Value> {
        let (file, pointer) = self.find(key, seq, pointer)?;
        file.read(&pointer)
    }

    /// Reads a value as [`Self::read`] does, for a job that reads each value once.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub(crate) fn read_once(&self, key: &[u8], seq: SeqNo, pointer: &[u8]) -> Result<Value> {
        let (file, pointer) = self.find(key, seq, pointer)?;
        file.read_once(&pointer)
    }

    fn find(&self, key: &[u8], seq: SeqNo, pointer: &[u8]) -> Result<(&ValueFile, ValuePointer)> {
        let bad = |detail: &str| {
            let detail =
                format!("the entry of '{}' with number {seq}: {detail}", key.escape_ascii());
            Error::corruption(&self.dir, None, "value pointer", detail)
        };
        let pointer = ValuePointer::decode(pointer).map_err(|error| bad(&error.to_string()))?;
        let missing = || bad(&format!("value file {} is not part of the tree", pointer.file));
        let file = self.files.get(&pointer.file).ok_or_else(missing)?;
        Ok((file, pointer))
    }
}
