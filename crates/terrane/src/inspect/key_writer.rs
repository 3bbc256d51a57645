//! Writes salvaged versions, which arrive by key and from new to old, to a new database.

use super::salvage::SalvagedEntry;
use crate::api::db::Db;
use crate::api::keyspace::Keyspace;
use crate::api::write_batch::WriteBatch;
use crate::base::error::Result;
use crate::base::types::EntryKind;

/// The bytes of keys and values that are written together.
const BATCH_BYTES: usize = 1 << 20;

/// Writes the newest version of every key and, if that is an operand, the versions below it.
pub(super) struct KeyWriter<'a> {
    db: &'a Db,
    keyspace: &'a Keyspace,
    batch: WriteBatch,
    bytes: usize,
    keys: u64,
    lost_operands: u64,
    /// The operands of the current key, newest first, if no version has decided the value yet.
    operands: Vec<SalvagedEntry>,
    /// The last key whose value is decided.
    decided: Option<Vec<u8>>,
}

impl<'a> KeyWriter<'a> {
    pub(super) fn new(db: &'a Db, keyspace: &'a Keyspace) -> Self {
        Self {
            db,
            keyspace,
            batch: WriteBatch::new(),
            bytes: 0,
            keys: 0,
            lost_operands: 0,
            operands: Vec::new(),
            decided: None,
        }
    }

    /// Adds the next version.
    pub(super) fn add(&mut self, version: SalvagedEntry, is_deleted: bool) -> Result<()> {
        if self.operands.first().is_some_and(|operand| operand.key != version.key) {
            self.decide(None)?;
        }
        if self.decided.as_ref() == Some(&version.key) {
            return Ok(());
        }
        if self.operands.last().is_some_and(|operand| operand.seq == version.seq) {
            // Another table of the same compaction also contains the version. A value replaces the
            // operand.
            if version.kind == EntryKind::Operand {
                return Ok(());
            }
            self.operands.pop();
        }
        if is_deleted {
            self.decided = Some(version.key);
            return self.decide(None);
        }
        if version.kind == EntryKind::Operand {
            self.operands.push(version);
            return Ok(());
        }
        self.decided = Some(version.key.clone());
        self.decide(Some(&version))
    }

    /// Writes the current key: the value of `base`, if any, and the operands above it.
    fn decide(&mut self, base: Option<&SalvagedEntry>) -> Result<()> {
        let Self { keyspace, batch, operands, .. } = self;
        let can_merge = keyspace.merge_operator().is_some();
        self.keys += u64::from(base.is_some() || can_merge && !operands.is_empty());
        if let Some(SalvagedEntry { key, kind, value, .. }) = base {
            self.bytes += key.len() + value.len();
            match kind {
                EntryKind::Expiring => batch.put_stored_in(keyspace, key, value),
                _ => batch.put_in(keyspace, key, value),
            };
        }
        for SalvagedEntry { key, value, .. } in operands.drain(..).rev() {
            if can_merge {
                self.bytes += key.len() + value.len();
                batch.merge_in(keyspace, &key, &value);
            } else {
                self.lost_operands += 1;
            }
        }
        if self.bytes > BATCH_BYTES {
            self.db.write(&self.batch)?;
            self.batch.clear();
            self.bytes = 0;
        }
        Ok(())
    }

    /// Writes the remaining versions. Returns the number of keys, and the number of operands that
    /// were lost because the keyspace has no merge operator.
    pub(super) fn finish(mut self) -> Result<(u64, u64)> {
        self.decide(None)?;
        self.db.write(&self.batch)?;
        Ok((self.keys, self.lost_operands))
    }
}
