//! The versions that a backward scan gathers for a key whose newest version is an operand.
//!
//! Going backward, versions arrive from old to new, but operands are combined from new to old: the
//! newest range tombstone or value ends the chain, and `OperandChain` bounds the operands that
//! cannot be combined. A few versions are therefore kept, which pins their blocks, until the newest
//! one is known. A key with more versions is combined by a second, forward pass, so a backward scan
//! needs about as much memory as a forward scan.

use super::Version;

/// The maximum number of kept versions. Each may pin a block. Flushes and compactions leave few
/// operands above a value, so most keys have fewer.
const VERSIONS_MAX: usize = 64;

/// The maximum size of the kept versions. Combining more takes so long that the seeks of a second
/// pass do not matter.
const BYTES_MAX: usize = 1 << 20;

/// The versions on which a key's value depends, or the fact that there are too many of them.
#[derive(Debug, Default)]
pub(super) struct BackwardChain {
    /// From old to new; empty if there were too many.
    versions: Vec<Version>,
    bytes: usize,
    is_too_long: bool,
}

impl BackwardChain {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty() && !self.is_too_long
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.versions.clear();
        (self.bytes, self.is_too_long) = (0, false);
    }

    /// Adds the next newer version.
    pub(super) fn push(&mut self, version: Version) {
        let bytes = self.bytes.saturating_add(version.2.len());
        self.is_too_long |= self.versions.len() == VERSIONS_MAX || bytes > BYTES_MAX;
        if self.is_too_long {
            self.versions.clear();
        } else {
            self.versions.push(version);
            self.bytes = bytes;
        }
    }

    /// Returns the versions; `None` if there were too many to keep.
    pub(super) fn newest_first(&self) -> Option<impl Iterator<Item = &Version>> {
        (!self.is_too_long).then(|| self.versions.iter().rev())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::types::EntryKind;
    use crate::files::value::Value;

    fn operand(seq: u64, len: usize) -> Version {
        (seq, EntryKind::Operand, Value::from(&vec![b'o'; len][..]))
    }

    /// Returns the maximum numbers of versions and bytes that a chain keeps while it gets operands
    /// of one length.
    fn most_kept(chain: &mut BackwardChain, count: u64, len: usize) -> (usize, usize) {
        let (mut versions, mut bytes) = (0, 0);
        for seq in 0..count {
            chain.push(operand(seq, len));
            versions = versions.max(chain.versions.len());
            bytes = bytes.max(chain.versions.iter().map(|version| version.2.len()).sum());
        }
        (versions, bytes)
    }

    #[test]
    fn a_chain_keeps_neither_many_versions_nor_many_bytes() {
        let mut chain = BackwardChain::default();
        assert_eq!(most_kept(&mut chain, 100_000, 10), (VERSIONS_MAX, 10 * VERSIONS_MAX));
        assert!(!chain.is_empty() && chain.newest_first().is_none());
        chain.clear();
        assert!(chain.is_empty());
        assert_eq!(most_kept(&mut chain, 20, BYTES_MAX / 4), (4, BYTES_MAX));
        assert!(!chain.is_empty() && chain.newest_first().is_none());
        chain.clear();
        assert_eq!(most_kept(&mut chain, 1, BYTES_MAX + 1), (0, 0));
        assert!(chain.newest_first().is_none());
    }

    #[test]
    fn a_short_chain_returns_its_versions_newest_first() {
        let mut chain = BackwardChain::default();
        most_kept(&mut chain, VERSIONS_MAX as u64, 100);
        let seqs: Vec<_> = chain.newest_first().unwrap().map(|version| version.0).collect();
        assert_eq!(seqs, (0..VERSIONS_MAX as u64).rev().collect::<Vec<_>>());
    }
}
