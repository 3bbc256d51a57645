//! Decides where a merge stores values, and writes value files.
//!
//! A value at or above the threshold of the design moves from a table to a value file, and a separated
//! value below the threshold, or under a design that stores all values inline, moves back. Other
//! separated values stay where they are, and their pointers are copied, except for the values of files
//! that the merge relocates.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use terrane_policy::{ValueFileId, Values};

use super::logged_values::LoggedValues;
use crate::base::error::{Error, Result};
use crate::base::types::{EntryKind, SeqNo};
use crate::files::storage::{Access, Storage};
use crate::files::value::Value;
use crate::files::value_file::{FinishedValueFile, ValueFileHeader, ValueFileWriter, ValueFiles};
use crate::files::value_pointer::{ValueFileName, ValuePointer};

/// Returns the name and the path of the next value file.
pub(crate) type NextValueFile<'a> = Box<dyn FnMut() -> (ValueFileName, PathBuf) + Send + 'a>;

/// Parameters of a [`ValueOutput`].
pub(crate) struct ValueOutputConfig<'a> {
    /// Where the design stores values.
    pub(crate) values: Values,
    /// The value files of the inputs.
    pub(crate) source: Arc<ValueFiles>,
    /// The files whose values move to new files.
    pub(crate) relocated: Vec<ValueFileId>,
    /// The values of the inputs that need not be written, because they are in the log.
    pub(crate) logged: LoggedValues,
    pub(crate) next_file: NextValueFile<'a>,
    pub(crate) keyspace: u32,
    pub(crate) access: Access,
    pub(crate) sync_bytes: u64,
    pub(crate) now_micros: u64,
}

#[cfg(any(test, feature = "micro"))]
impl ValueOutputConfig<'_> {
    /// Stores all values in tables.
    pub(crate) fn inline() -> Self {
        Self {
            values: Values::Inline,
            source: Arc::default(),
            relocated: Vec::new(),
            logged: LoggedValues::default(),
            next_file: Box::new(|| {
                (ValueFileName { number: 1, writer: 1 }, PathBuf::from("1.val"))
            }),
            keyspace: 0,
            access: Access::Buffered,
            sync_bytes: 0,
            now_micros: 1,
        }
    }
}

/// The value files that a merge writes.
pub(super) struct ValueOutput<'a> {
    config: ValueOutputConfig<'a>,
    writer: Option<ValueFileWriter>,
    finished: Vec<FinishedValueFile>,
    finished_bytes: u64,
    /// The encoded pointer to the value that was written last.
    pointer: Vec<u8>,
    /// The files with values that could not be read, each with its first error.
    damaged: DamagedValues,
}

/// Value files with values that could not be read, with the errors.
pub(crate) type DamagedValues = BTreeMap<ValueFileId, Error>;

/// The bytes of an entry of a table.
pub(super) enum Placed<'v> {
    /// The bytes of the input, a value or a pointer.
    Unchanged,
    /// The pointer to a value that was written to a value file, and the number of the value's bytes
    /// that were read from another value file.
    Pointer { pointer: &'v [u8], read: usize },
    /// A value that was read from a value file.
    Inline(Value),
}

impl<'a> ValueOutput<'a> {
    pub(super) fn new(config: ValueOutputConfig<'a>) -> Self {
        let finished = Vec::new();
        let (pointer, damaged) = (Vec::new(), DamagedValues::new());
        Self { config, writer: None, finished, finished_bytes: 0, pointer, damaged }
    }

    /// Approximate total size of all files so far, in bytes.
    pub(super) fn written_bytes(&self) -> u64 {
        self.finished_bytes + self.writer.as_ref().map_or(0, ValueFileWriter::size_bytes)
    }

    /// Decides where the value of an entry goes, and writes it unless it goes to a table. Adds the
    /// paths of new files to `paths`.
    pub(super) fn place(
        &mut self,
        storage: &dyn Storage,
        paths: &mut Vec<PathBuf>,
        (key, seq, kind): (&[u8], SeqNo, EntryKind),
        value: &[u8],
    ) -> Result<Placed<'_>> {
        let values = self.config.values;
        match kind {
            // A value that expires stays with its key, so that dropping it frees its space.
            EntryKind::Tombstone | EntryKind::Expiring | EntryKind::Operand => {
                Ok(Placed::Unchanged)
            }
            EntryKind::Value if !values.is_separated(value.len() as u64) => Ok(Placed::Unchanged),
            EntryKind::Value => {
                let pointer = match self.config.logged.find(key, seq, value) {
                    Some(pointer) => self.encoded(&pointer),
                    None => self.write(storage, paths, (key, seq), value)?,
                };
                Ok(Placed::Pointer { pointer, read: 0 })
            }
            EntryKind::Separated => {
                let Some(value) = self.read_moving(key, seq, value)? else {
                    return Ok(Placed::Unchanged);
                };
                if values.is_separated(value.len() as u64) {
                    let pointer = self.write(storage, paths, (key, seq), &value)?;
                    Ok(Placed::Pointer { pointer, read: value.len() })
                } else {
                    Ok(Placed::Inline(value))
                }
            }
        }
    }

    /// Reads a separated value that must move. Returns `None` if it stays.
    fn read_moving(&mut self, key: &[u8], seq: SeqNo, encoded: &[u8]) -> Result<Option<Value>> {
        let ValueOutputConfig { values, relocated, source, .. } = &self.config;
        let pointer = ValuePointer::decode(encoded).ok();
        let must_move =
            pointer.is_some_and(|pointer| relocated.contains(&ValueFileId(pointer.file)));
        let stays = pointer.is_some_and(|pointer| values.is_separated(pointer.len.into()));
        if stays && !must_move {
            return Ok(None);
        }
        let is_logged = pointer.is_some_and(|pointer| source.is_logged(pointer.file));
        match source.read_once(key, seq, encoded) {
            Ok(value) => Ok(Some(value)),
            // The entry keeps its pointer, so only a reader of this key gets the error, and all
            // other values move. The file is not collected again. A log segment would be freed, and the
            // value lost, unless the flush begins again and keeps the segment.
            Err(error) if is_damage(&error) => match pointer {
                Some(pointer) if is_logged => {
                    source.logged().note_unreadable(pointer.file);
                    Err(error)
                }
                Some(pointer) => {
                    self.damaged.entry(ValueFileId(pointer.file)).or_insert(error);
                    Ok(None)
                }
                None => Ok(None),
            },
            Err(error) => Err(error),
        }
    }

    /// Writes a value to a value file, and returns the encoded pointer to it.
    fn write(
        &mut self,
        storage: &dyn Storage,
        paths: &mut Vec<PathBuf>,
        (key, seq): (&[u8], SeqNo),
        value: &[u8],
    ) -> Result<&[u8]> {
        let file_bytes =
            self.config.values.separation().map_or(0, |separation| separation.file_bytes);
        if self.writer.as_ref().is_some_and(|writer| writer.size_bytes() >= file_bytes) {
            self.finish_file()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.config.create(storage, paths)?),
        };
        let pointer = writer.append(key, seq, value)?;
        Ok(self.encoded(&pointer))
    }

    fn encoded(&mut self, pointer: &ValuePointer) -> &[u8] {
        self.pointer.clear();
        pointer.encode(&mut self.pointer);
        &self.pointer
    }

    fn finish_file(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            let file = writer.finish()?;
            self.finished_bytes += file.size_bytes;
            self.finished.push(file);
        }
        Ok(())
    }

    /// Completes the last file.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.finish_file()
    }

    /// Returns the files with values that could not be read.
    pub(super) fn take_damaged(&mut self) -> DamagedValues {
        std::mem::take(&mut self.damaged)
    }

    /// Returns the complete files.
    pub(super) fn take_files(&mut self) -> Vec<FinishedValueFile> {
        std::mem::take(&mut self.finished)
    }
}

/// Returns true if an error means that a value cannot be read because it is damaged or the device
/// fails. Opening a file may fail for other reasons.
pub(super) fn is_damage(error: &Error) -> bool {
    match error {
        Error::Corruption(_) => true,
        Error::Io(failure) => failure.operation == "read",
        _ => false,
    }
}

impl ValueOutputConfig<'_> {
    fn create(
        &mut self,
        storage: &dyn Storage,
        paths: &mut Vec<PathBuf>,
    ) -> Result<ValueFileWriter> {
        let (name, path) = (self.next_file)();
        paths.push(path.clone());
        let created_micros = self.now_micros;
        let header = ValueFileHeader { keyspace: self.keyspace, name, created_micros };
        ValueFileWriter::create(storage, &path, header, self.access, self.sync_bytes)
    }
}
