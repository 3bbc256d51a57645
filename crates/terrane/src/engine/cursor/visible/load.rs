//! Loads values that a cursor does not find in place: values in value files, and operands combined
//! with older versions. Also returns the expiry times of values that it finds in place.

use super::{Version, VisibleCursor};
use crate::base::error::{Error, Result};
use crate::base::expiry::{EXPIRY_BYTES, expires_at_micros};
use crate::base::merge_operator::{MergeOperator, OperandChain};
use crate::base::types::{EntryKind, SeqNo};
use crate::files::value::Value;
use crate::files::value_file::ValueFiles;

/// What a cursor needs to load values.
#[derive(Clone, Copy)]
pub(crate) struct ValueSource<'a> {
    pub(crate) files: &'a ValueFiles,
    pub(crate) operator: Option<&'a dyn MergeOperator>,
}

impl VisibleCursor {
    /// Loads the current value if it is not in place. Without this call the entry's value is a
    /// pointer to a value file, or an operand.
    #[inline]
    pub(crate) fn load_value(&mut self, source: ValueSource<'_>) -> Result<()> {
        if self.is_unread() { self.load(source) } else { Ok(()) }
    }

    /// Returns when a forward cursor's current value expires; `None` if it does not.
    pub(crate) fn expires_at_micros(&self) -> Option<u64> {
        let is_expiring = self.is_forward && self.skipped > 0;
        is_expiring.then(|| expires_at_micros(self.merge.value()))
    }

    /// Returns true if a forward cursor is on an operand.
    pub(crate) fn is_operand(&self) -> bool {
        self.combined.is_some() || self.merge.kind() == EntryKind::Operand
    }

    /// Returns true if the current value is not in place and was not loaded.
    #[inline]
    pub(crate) fn is_unread(&self) -> bool {
        let is_elsewhere = match self.is_forward {
            true => matches!(self.merge.kind(), EntryKind::Separated | EntryKind::Operand),
            false => self.backward_separated.is_some() || !self.backward_chain.is_empty(),
        };
        // After operands were combined, the merge has moved on, but the value is loaded.
        is_elsewhere && self.loaded.is_none()
    }

    #[cold]
    fn load(&mut self, source: ValueSource<'_>) -> Result<()> {
        let value = if !self.is_forward {
            self.load_backward(source)?
        } else if self.merge.kind() == EntryKind::Operand {
            self.combine_forward(source)?
        } else {
            self.load_separated(source.files)?
        };
        self.loaded = Some(value);
        Ok(())
    }

    fn load_backward(&mut self, source: ValueSource<'_>) -> Result<Value> {
        if self.backward_chain.is_empty() {
            return match (&self.backward_value, self.backward_separated) {
                (Some(place), Some(seq)) => source.files.read_scanned(&self.kept_key, seq, place),
                _ => Err(Error::internal("a separated value without its place")),
            };
        }
        let Some(versions) = self.backward_chain.newest_first() else {
            return self.combine_backward_by_seek(source);
        };
        let mut chain = OperandChain::default();
        for (seq, kind, stored) in versions {
            let version = (&self.kept_key[..], *seq, *kind, &stored[..]);
            if let Some(base) = self.extend(&mut chain, version, source)? {
                return combined(chain, &self.kept_key, base.as_deref(), source);
            }
        }
        combined(chain, &self.kept_key, None, source)
    }

    /// Combines the versions of the backward key in a forward pass, which need not keep them all in
    /// memory. Then the merge returns to the entry before the key.
    #[cold]
    fn combine_backward_by_seek(&mut self, source: ValueSource<'_>) -> Result<Value> {
        self.merge.seek(&self.kept_key, self.seq)?;
        let value = self.combine_versions(source);
        self.merge.seek_before(&self.kept_key)?;
        value
    }

    /// Combines the current operand with the versions below it, and keeps its key: the merge moves
    /// on to the first version on which the value does not depend. After an error it is back at the
    /// operand.
    fn combine_forward(&mut self, source: ValueSource<'_>) -> Result<Value> {
        self.kept_key.clear();
        self.kept_key.extend_from_slice(self.merge.key());
        let newest = self.merge.seq();
        let value = self.combine_versions(source);
        match &value {
            Ok(_) => self.combined = Some(newest),
            Err(_) => self.merge.seek(&self.kept_key, newest)?,
        }
        value
    }

    fn combine_versions(&mut self, source: ValueSource<'_>) -> Result<Value> {
        let mut chain = OperandChain::default();
        let mut base = None;
        while base.is_none() && self.merge.is_valid() && self.merge.key() == &self.kept_key[..] {
            let version =
                (&self.kept_key[..], self.merge.seq(), self.merge.kind(), self.merge.value());
            base = self.extend(&mut chain, version, source)?;
            self.merge.next()?;
        }
        combined(chain, &self.kept_key, base.flatten().as_deref(), source)
    }

    /// Moves from a key whose value was combined to the next key.
    #[cold]
    pub(super) fn leave_combined(&mut self) -> Result<()> {
        self.combined = None;
        if self.merge.is_valid() && self.merge.key() == &self.kept_key[..] {
            return self.merge.next_key();
        }
        Ok(())
    }

    /// Adds the next older version of a key to a chain. Returns `None` until it is known which
    /// value, if any, is below the operands.
    fn extend(
        &self,
        chain: &mut OperandChain,
        (key, seq, kind, stored): (&[u8], SeqNo, EntryKind, &[u8]),
        source: ValueSource<'_>,
    ) -> Result<Option<Option<Value>>> {
        // A range that was deleted between two versions ends the chain.
        if !self.deleted.is_empty() && self.deleted.covering(key, seq)?.is_some() {
            return Ok(Some(None));
        }
        Ok(match kind {
            EntryKind::Operand => {
                chain.push(source.operator, key, (seq, stored));
                if chain.is_excessive() {
                    return Err(chain.excess(source.operator, key));
                }
                None
            }
            EntryKind::Value => Some(Some(stored.into())),
            EntryKind::Separated => Some(Some(source.files.read_scanned(key, seq, stored)?)),
            EntryKind::Expiring if expires_at_micros(stored) > self.now_micros => {
                Some(stored.get(EXPIRY_BYTES..).map(Value::from))
            }
            EntryKind::Expiring | EntryKind::Tombstone => Some(None),
        })
    }

    /// Keeps the version of the backward key that was the newest so far, if the next newer version,
    /// of kind `above`, depends on it.
    pub(super) fn keep_below(&mut self, above: EntryKind, version: Option<Version>) {
        if above.hides_older() {
            self.backward_chain.clear();
        } else if let Some(version) = version {
            self.backward_chain.push(version);
        }
    }

    /// Keeps the newest version of the backward key if it is an operand.
    pub(super) fn keep_operand(&mut self, (seq, kind): (SeqNo, EntryKind), value: &Value) {
        if kind == EntryKind::Operand {
            self.backward_chain.push((seq, kind, value.clone()));
        }
    }
}

fn combined(
    chain: OperandChain,
    key: &[u8],
    base: Option<&[u8]>,
    source: ValueSource<'_>,
) -> Result<Value> {
    let value = chain.value(source.operator, key, base)?;
    Ok(Value::from(&value[..]))
}
