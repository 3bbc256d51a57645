//! A version of a key in a merge.

use crate::base::types::{EntryKind, SeqNo};

/// A version of the current key.
#[derive(Clone, Copy)]
pub(super) struct Version<'a> {
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) value: &'a [u8],
}
