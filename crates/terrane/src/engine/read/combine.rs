//! Lookups of keys whose newest version is an operand.
//!
//! Once flushed, few operands remain above a value, so each older version is first found by a
//! separate lookup, with the help of filters. A key with many operands, which are in memtables, is
//! instead read by a cursor, which walks from one version to the next.

use std::sync::Arc;

use super::Reader;
use super::lookup::{ReadAt, value_of};
use crate::base::error::{Error, Result};
use crate::base::expiry::ReadTime;
use crate::base::merge_operator::OperandChain;
use crate::base::types::EntryKind;
use crate::engine::tree::{Tree, TreeState};
use crate::files::table::FoundVersion;
use crate::files::value::Value;

/// The number of versions that are looked up one by one.
const LOOKUPS_MAX: usize = 16;

impl Reader {
    /// Returns the value of `key`, whose newest version visible to the reader is `newest`, an
    /// operand.
    ///
    /// If memtables of `state` reclaim versions, the caller holds the reader's sequence number.
    pub(super) fn combined(
        &self,
        (tree, state): (&Tree, &Arc<TreeState>),
        key: &[u8],
        newest: FoundVersion,
        time: &ReadTime<'_>,
    ) -> Result<Value> {
        let operator = tree.functions.merge_operator().get().map(Arc::as_ref);
        let seq = newest.seq;
        let mut chain = OperandChain::default();
        let mut next = Some(newest);
        for _ in 0..LOOKUPS_MAX {
            let Some(operand) = next.take_if(|version| version.kind == EntryKind::Operand) else {
                let base = value_of(state, key, next, time)?;
                let value = chain.value(operator, key, base.as_deref())?;
                return Ok(Value::from(&value[..]));
            };
            chain.push(operator, key, (operand.seq, &operand.value));
            // The state must be that of the newest version, because operands may be combined in a
            // later state.
            if let Some(before) = operand.seq.checked_sub(1) {
                next = self.find_decided(state, key, ReadAt::Held(before))?;
            }
        }
        let view = self.view_of(tree, Arc::clone(state), (seq, time.micros()), seq);
        let mut cursor = None;
        view.put_cursor_from(&mut cursor, key, None)?;
        let cursor = cursor.filter(|cursor| cursor.is_valid() && cursor.key() == key);
        let lost = || Error::internal("the operands of a key vanished from a state of its tree");
        let mut cursor = cursor.ok_or_else(lost)?;
        cursor.load_value(view.values())?;
        Ok(cursor.pin_value())
    }
}
