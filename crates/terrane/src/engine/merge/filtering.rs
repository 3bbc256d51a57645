//! Applies the compaction filter of a keyspace in a merge.
//!
//! The filter sees the newest version of each key among the inputs, after combining its operands,
//! if that version is a value and invisible to every snapshot that was taken before the merge. A
//! value below operands that could not be combined with it is not the newest version. A filtered
//! version is in the last stripe (see [`super::rules`]). Snapshots that are taken while the merge
//! runs keep the tree's earlier state (`engine/filtering.rs`).
//!
//! 1. The result has the sequence number of the value, so that a transaction that read the value finds
//!    no newer version.
//! 2. A removed value becomes a tombstone. Where the rules drop tombstones, it is dropped instead,
//!    because nothing is below it.
//! 3. A separated value is read only if the filter needs it, and stays if it cannot be read.

use std::sync::Arc;

use super::output::{Output, Version};
use super::value_output::is_damage;
use crate::base::compaction_filter::{FilterDecision, KeyspaceFilter};
use crate::base::error::Result;
use crate::base::expiry::EXPIRY_BYTES;
use crate::base::types::{EntryKind, MAX_VALUE_LEN, SeqNo};
use crate::files::value_file::ValueFiles;

/// The filter of a merge.
#[derive(Debug, Clone)]
pub(crate) struct Filtering {
    filter: Arc<KeyspaceFilter>,
    /// The value files of the inputs.
    values: Arc<ValueFiles>,
}

impl Filtering {
    pub(crate) fn new(filter: &Arc<KeyspaceFilter>, values: &Arc<ValueFiles>) -> Self {
        Self { filter: Arc::clone(filter), values: Arc::clone(values) }
    }

    /// Writes a version as the filter decides. If `drops_tombstone`, nothing is below the version.
    /// Returns how many bytes of values were read from value files.
    pub(super) fn write(
        &self,
        key: &[u8],
        version: Version<'_>,
        drops_tombstone: bool,
        output: &mut Output<'_>,
    ) -> Result<usize> {
        let Version { seq, kind, value } = version;
        let (decision, read) = self.decide(key, version)?;
        let written = match decision {
            FilterDecision::Keep => output.add(key, seq, kind, value),
            FilterDecision::Remove => {
                output.filtered().removed += 1;
                if drops_tombstone {
                    return Ok(read);
                }
                output.add(key, seq, EntryKind::Tombstone, &[])
            }
            FilterDecision::Replace(new) => {
                let (new_kind, new) = match kind {
                    EntryKind::Expiring => {
                        let expiry = value.get(..EXPIRY_BYTES).unwrap_or_default();
                        (kind, [expiry, &new[..]].concat())
                    }
                    _ => (EntryKind::Value, new),
                };
                if new.len() > MAX_VALUE_LEN {
                    output.add(key, seq, kind, value)
                } else {
                    output.filtered().replaced += 1;
                    output.add(key, seq, new_kind, &new)
                }
            }
        };
        written.map(|written| written + read)
    }

    /// Calls the filter. Returns its decision, and how many bytes of the value were read from a
    /// value file.
    fn decide(&self, key: &[u8], version: Version<'_>) -> Result<(FilterDecision, usize)> {
        if let Some(decision) = self.filter.decide_by_key(key) {
            return Ok((decision, 0));
        }
        let Version { seq, kind, value } = version;
        match kind {
            EntryKind::Separated => self.decide_separated(key, seq, value),
            EntryKind::Expiring => {
                let value = value.get(EXPIRY_BYTES..).unwrap_or_default();
                Ok((self.filter.decide(key, value), 0))
            }
            _ => Ok((self.filter.decide(key, value), 0)),
        }
    }

    fn decide_separated(
        &self,
        key: &[u8],
        seq: SeqNo,
        pointer: &[u8],
    ) -> Result<(FilterDecision, usize)> {
        match self.values.read_once(key, seq, pointer) {
            Ok(value) => Ok((self.filter.decide(key, &value), value.len())),
            // Only a reader of the key gets the error.
            Err(error) if is_damage(&error) => Ok((FilterDecision::Keep, 0)),
            Err(error) => Err(error),
        }
    }
}
