//! The operands of a key, combined as they arrive from new to old.
//!
//! A result may grow with each operand, so combining every operand with the result so far would take
//! quadratic time. Parts are combined when the older one stands for as many operands as the newer one, as
//! carries in a binary counter, so that each byte is copied once for each doubling.
//!
//! Operands that can be combined therefore have at most [`PARTS_MAX`] parts. A chain with more is broken: a read
//! fails without the rest, and a merge writes the newest parts as they are, so that neither gathers a key's
//! operands without bound.

use super::{MergeOperator, combine};
use crate::error::{Error, Result};
use crate::types::SeqNo;

/// The parts of as many operands as there can be sequence numbers.
const PARTS_MAX: usize = 64;

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
    parts: Vec<Part>,
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
        self.parts.push(Part { seq, bytes: operand.to_vec(), count: 1 });
        while let [.., newer, older] = &mut self.parts[..]
            && older.count >= newer.count
            && let Some(joined) = combined(operator, key, &older.bytes, &newer.bytes)
        {
            newer.bytes = joined;
            newer.count += older.count;
            self.parts.pop();
        }
    }

    /// Returns true if so many parts could not be combined that the chain has no value.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.parts.len() > PARTS_MAX
    }

    /// Takes the newest part from a broken chain.
    pub(crate) fn take_excess(&mut self) -> Option<Part> {
        self.is_broken().then(|| self.parts.remove(0))
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
            _ => {
                let name = operator.map_or("no operator", MergeOperator::name);
                let key = key.escape_ascii();
                let found = format!("'{key}' with an operand that {name} cannot combine");
                Err(Error::invalid("key", found, "one that was put or deleted since"))
            }
        }
    }
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
    fn a_broken_chain_has_no_value_and_gives_up_its_newest_part() {
        let operators = MergeOperators::default();
        let operator = operators.find("counter_add", "k").unwrap();
        let mut chain = OperandChain::default();
        for seq in (0..200_u64).rev() {
            assert_eq!(chain.is_broken(), chain.parts.len() > PARTS_MAX);
            chain.push(Some(&*operator), b"k", (seq, b"bad"));
            if seq + (PARTS_MAX as u64) < 200 {
                let excess = chain.take_excess().unwrap();
                assert_eq!(excess.seq, seq + PARTS_MAX as u64, "the newest part goes first");
            }
            assert!(chain.take_excess().is_none());
        }
        assert_eq!(chain.parts.len(), PARTS_MAX);
        assert!(chain.value(Some(&*operator), b"k", Some(&1_i64.to_le_bytes())).is_err());
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
