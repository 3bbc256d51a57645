//! Combines the operands of a key in a merge.
//!
//! The versions of a key arrive from new to old. While the newest version of a stripe (see
//! [`super::rules`]) is an operand, the older versions of the stripe are also needed, so they are
//! gathered until one decides the value:
//!
//! 1. Adjacent operands of one stripe become one, at the place of the newest.
//! 2. With a value below them in the stripe they become a value.
//! 3. With a tombstone or a deleted range below them in the stripe, or where no older version can
//!    exist, they become a value.
//! 4. A separated value or a value that expires stays below them: reading the former would cost as
//!    much as the merge, and combining the latter would lose its expiry time.
//! 5. Operands that the operator cannot combine stay as they are.

use super::output::{Output, Version};
use super::rules::DropRules;
use crate::base::error::Result;
use crate::base::merge_operator::{OperandChain, Part};
use crate::base::types::{EntryKind, SeqNo};

/// The version below the gathered operands.
pub(super) enum Below<'a> {
    /// A value.
    Value(&'a [u8], SeqNo),
    /// No version that readers of the stripe see.
    Nothing,
    /// Possibly an older version.
    Unknown,
}

/// Writes the operands at the top of a stripe of one key, combined as far as possible.
pub(super) fn write(
    operands: &mut OperandChain,
    rules: &DropRules,
    key: &[u8],
    below: &Below<'_>,
    output: &mut Output<'_>,
) -> Result<()> {
    let base = match below {
        Below::Value(value, seq) => Some((*seq, *value)),
        Below::Nothing | Below::Unknown => None,
    };
    let has_newest = !operands.gave_newer();
    let parts = operands.take(rules.operator(), key, base);
    let has_value = !matches!(below, Below::Unknown);
    for (number, Part { seq, bytes, .. }) in parts.iter().enumerate().rev() {
        // If nothing is below it, the oldest operand is the value.
        let kind = if number == 0 && has_value { EntryKind::Value } else { EntryKind::Operand };
        let version = Version { seq: *seq, kind, value: bytes };
        if has_newest && number + 1 == parts.len() {
            rules.write_newest(key, version, output)?;
        } else {
            output.add(key, *seq, kind, bytes)?;
        }
    }
    Ok(())
}
