//! Value files in the manifest.
//!
//! ```text
//! value file: | number u64 | writer u64 | kind u8 | size | bytes | values | state | created
//!             | oldest dead option |
//! ```
//! Numbers without a type are varints.

use std::sync::Arc;

use terrane_policy::{ValueFileInfo, ValueFileState};

use crate::base::codec::{Decoded, Reader, put_option, put_varint};
use crate::files::value_pointer::ValueFileName;

/// A value file in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueFileRecord {
    pub(crate) name: ValueFileName,
    /// True if the file is a segment of the log, with a second name.
    pub(crate) is_segment: bool,
    /// The length of the file.
    pub(crate) size_bytes: u64,
    pub(crate) info: Arc<ValueFileInfo>,
}

impl ValueFileRecord {
    /// Marks all writes in the file as flushed. From then on the whole length of a log segment
    /// counts.
    pub(crate) fn settle(&mut self) {
        let info = Arc::make_mut(&mut self.info);
        info.state = ValueFileState::Settled;
        if self.is_segment {
            info.bytes = info.bytes.max(self.size_bytes);
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let info = &self.info;
        out.extend_from_slice(&self.name.number.to_le_bytes());
        out.extend_from_slice(&self.name.writer.to_le_bytes());
        out.push(u8::from(self.is_segment));
        let state = match info.state {
            ValueFileState::Open => 0,
            ValueFileState::Unflushed => 1,
            ValueFileState::Settled => 2,
        };
        let numbers = [self.size_bytes, info.bytes, info.values, state, info.created_micros];
        numbers.iter().for_each(|&number| put_varint(out, number));
        put_option(out, info.oldest_dead_micros, put_varint);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let mut fixed = || reader.u64("value file");
        let name = ValueFileName { number: fixed()?, writer: fixed()? };
        let is_segment = match reader.u8("kind of value file")? {
            0 => false,
            1 => true,
            _ => return Err(reader.error("kind of value file")),
        };
        let mut number = || reader.varint("facts of a value file");
        let (size_bytes, bytes, values) = (number()?, number()?, number()?);
        let state = match number()? {
            0 => ValueFileState::Open,
            1 => ValueFileState::Unflushed,
            2 => ValueFileState::Settled,
            _ => return Err(reader.error("state of a value file")),
        };
        let created_micros = number()?;
        let oldest_dead_micros = reader
            .option("facts of a value file", |reader| reader.varint("facts of a value file"))?;
        let info = ValueFileInfo {
            id: name.id(),
            bytes,
            values,
            state,
            created_micros,
            oldest_dead_micros,
        };
        Ok(Self { name, is_segment, size_bytes, info: Arc::new(info) })
    }
}
