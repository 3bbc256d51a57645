//! The operands of a key, combined as they arrive from new to old.
//!
//! A result may grow with each operand, so combining every operand with the result so far would take
//! quadratic time. Two parts are combined when the older one stands for at least as many operands as the
//! newer one, like carries in a binary counter, so that each byte is copied once per doubling.
//!
//! Parts that cannot be combined stay separate, because a value below them may still combine with them.
//! A chain with more than [`PARTS_MAX`] parts, which combinable operands never reach, and more than
//! [`BYTES_MAX`] bytes is excessive: a read fails, and a merge writes the newest parts as they are, so
//! neither gathers the operands of a key without bound.

use std::collections::VecDeque;

use super::{MergeOperator, combine};
use crate::base::error::{Error, Result};
use crate::base::types::SeqNo;

/// The maximum number of parts if all operands can be combined, even with one operand for each sequence
/// number.
const PARTS_MAX: usize = 64;

/// The maximum size in bytes of a chain that has more than [`PARTS_MAX`] parts.
const BYTES_MAX: usize = 64 << 20;

/// Bytes charged for a part in addition to those of its operands.
const PART_BYTES: usize = 64;

/// A value of a key, or operands that were combined.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The newest sequence number.
    pub(crate) seq: SeqNo,
    pub(crate) bytes: Vec<u8>,
    /// The number of operands.
    count: u64,
}

/// The operands of a key.
#[derive(Debug, Default)]
pub(crate) struct OperandChain {
    /// From new to old.
    parts: VecDeque<Part>,
    /// The bytes of the parts.
    bytes: usize,
    /// Whether a merge took newer parts from the chain.
    gave_newer: bool,
}

impl OperandChain {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds the next older operand.
    pub(crate) fn push(
        &mut self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        (seq, operand): (SeqNo, &[u8]),
    ) {
        self.parts.push_back(Part { seq, bytes: operand.to_vec(), count: 1 });
        self.bytes += operand.len() + PART_BYTES;
        while let Some(before) = self.parts.len().checked_sub(2) {
            let (newer, older) = (&self.parts[before], &self.parts[before + 1]);
            if older.count < newer.count {
                break;
            }
            let Some(joined) = combined(operator, key, &older.bytes, &newer.bytes) else { break };
            self.bytes -= older.bytes.len() + newer.bytes.len() + PART_BYTES;
            self.bytes += joined.len();
            let count = newer.count + older.count;
            self.parts.pop_back();
            let newer = &mut self.parts[before];
            (newer.bytes, newer.count) = (joined, count);
        }
    }

    /// Returns true if the chain has too many uncombined parts to gather more.
    #[inline]
    pub(crate) fn is_excessive(&self) -> bool {
        self.parts.len() > PARTS_MAX && self.bytes > BYTES_MAX
    }

    /// Takes the newest part from an excessive chain.
    pub(crate) fn take_excess(&mut self) -> Option<Part> {
        if !self.is_excessive() {
            return None;
        }
        let newest = self.parts.pop_front()?;
        self.bytes -= newest.bytes.len() + PART_BYTES;
        self.gave_newer = true;
        Some(newest)
    }

    /// Returns true if a merge took newer parts of the key from the chain.
    pub(crate) fn gave_newer(&self) -> bool {
        self.gave_newer
    }

    /// Returns the error of a read of an excessive chain.
    pub(crate) fn excess(&self, operator: Option<&dyn MergeOperator>, key: &[u8]) -> Error {
        not_combined(operator, &format!("{} bytes of operands", self.bytes), key)
    }

    /// Combines the operands with the value below them, if there is one, as far as possible, and empties
    /// the chain. Returns the parts from old to new; the first has the value.
    pub(crate) fn take(
        &mut self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        base: Option<(SeqNo, &[u8])>,
    ) -> Vec<Part> {
        let base = base.map(|(seq, value)| Part { seq, bytes: value.to_vec(), count: 0 });
        let mut result: Vec<Part> = base.into_iter().collect();
        (self.bytes, self.gave_newer) = (0, false);
        for newer in std::mem::take(&mut self.parts).into_iter().rev() {
            let older = result.last_mut();
            let joined = older
                .as_ref()
                .and_then(|older| combined(operator, key, &older.bytes, &newer.bytes));
            match (older, joined) {
                (Some(older), Some(joined)) => {
                    *older = Part { seq: newer.seq, bytes: joined, count: 0 };
                }
                _ => result.push(newer),
            }
        }
        result
    }

    /// Returns the value of the operands and the value below them.
    ///
    /// # Errors
    /// The operator cannot combine them.
    pub(crate) fn value(
        mut self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        base: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        let mut parts = self.take(operator, key, base.map(|base| (0, base)));
        match (parts.pop(), parts.is_empty()) {
            (Some(part), true) => Ok(part.bytes),
            _ => Err(not_combined(operator, "an operand", key)),
        }
    }
}

/// Returns the error of a read of operands that are not combined.
fn not_combined(operator: Option<&dyn MergeOperator>, operands: &str, key: &[u8]) -> Error {
    let name = operator.map_or("no operator", MergeOperator::name);
    let found = format!("{operands} of key '{}', which {name} cannot combine", key.escape_ascii());
    let expected =
        "what the operator combines; put or delete the key, or open with an operator that does";
    Error::invalid("value", found, expected)
}

fn combined(
    operator: Option<&dyn MergeOperator>,
    key: &[u8],
    older: &[u8],
    newer: &[u8],
) -> Option<Vec<u8>> {
    combine(operator?, key, older, newer)
}

#[cfg(test)]
mod tests {
    use super::super::MergeOperators;
    use super::*;

    fn chain(name: &str, operands: &[&[u8]]) -> OperandChain {
        let operators = MergeOperators::default();
        let operator = operators.find(name, "k").unwrap();
        let mut chain = OperandChain::default();
        for (number, operand) in operands.iter().enumerate() {
            chain.push(Some(&*operator), b"k", (100 - number as u64, operand));
        }
        chain
    }

    #[test]
    fn any_number_of_operands_is_combined_in_order() {
        let operator = MergeOperators::default().find("append", "k").unwrap();
        for count in 1..70_u8 {
            let operands: Vec<[u8; 1]> = (0..count).map(|number| [count - number]).collect();
            let operands: Vec<&[u8]> = operands.iter().map(|operand| &operand[..]).collect();
            let made = chain("append", &operands);
            assert!(made.parts.len() <= 8, "{count}");
            let value = made.value(Some(&*operator), b"k", Some(&[0])).unwrap();
            assert_eq!(value, (0..=count).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn an_excessive_chain_gives_up_its_newest_part() {
        let operators = MergeOperators::default();
        let operator = operators.find("counter_add", "k").unwrap();
        let mut chain = OperandChain::default();
        let bad = vec![b'b'; 1 << 20];
        let mut newest = 200;
        for seq in (0..=200_u64).rev() {
            chain.push(Some(&*operator), b"k", (seq, &bad));
            while let Some(excess) = chain.take_excess() {
                assert_eq!(excess.seq, newest, "the newest part goes first");
                newest -= 1;
            }
            assert_eq!(chain.gave_newer(), newest < 200);
            assert!(!chain.is_excessive());
        }
        assert_eq!(chain.parts.len(), PARTS_MAX);
        chain.push(Some(&*operator), b"k", (0, b"small"));
        let text = chain.excess(Some(&*operator), b"k").to_string();
        assert!(text.contains("'k'") && text.contains("counter_add"), "{text}");
        assert_eq!(chain.take(Some(&*operator), b"k", None).len(), PARTS_MAX + 1);
        assert!(!chain.gave_newer() && chain.bytes == 0);
    }

    #[test]
    fn parts_that_cannot_be_combined_stay_in_order() {
        let operators = MergeOperators::default();
        let operator = operators.find("counter_add", "k").unwrap();
        let one = 1_i64.to_le_bytes();
        let two = 2_i64.to_le_bytes().to_vec();
        let mut bad = chain("counter_add", &[&one, &one, b"bad", &one]);
        let parts = bad.take(Some(&*operator), b"k", Some((7, &one)));
        let parts: Vec<_> = parts.into_iter().map(|part| (part.seq, part.bytes)).collect();
        assert_eq!(parts, [(97, two.clone()), (98, b"bad".to_vec()), (100, two)]);
        assert!(bad.is_empty());
        let error = chain("counter_add", &[&one, b"bad"]).value(Some(&*operator), b"k", None);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("'k'") && text.contains("counter_add"), "{text}");
        let error = chain("append", &[b"b", b"a"]).value(None, b"k", Some(b"base")).unwrap_err();
        assert!(error.to_string().contains("no operator"), "{error}");
    }
}
