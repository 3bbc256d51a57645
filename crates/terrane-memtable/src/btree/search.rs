//! Searches of the leaves of a B-link tree for the first entry at or after a key, or the last entry
//! before it.

use super::BTree;
use super::node::{LeafEntry, NodeChanged, SearchTarget, TreeNodeRef};
use crate::entry::{MAX_SEQ, SeqNo};
use crate::head::head_of;
use crate::skiplist::{Layout, NodeRef};
use crate::structure::{Hold, Overwritten};

/// The result of one step of a search.
enum SearchStep<'a> {
    At(LeafEntry<'a>),
    /// Continue at this node, to the right or below.
    Continue(TreeNodeRef<'a>),
    End,
}

impl BTree {
    /// As [`crate::structure::Structure::get`], for entries with versions. Returns an error if the
    /// requested version may have been reclaimed. The found version and the one that marks
    /// reclaimed versions below it were linked before this call, so the two need not be read at one
    /// point in time.
    pub(crate) fn get_unless_reclaimed(
        &self,
        key: &[u8],
        seq: SeqNo,
        hold: Hold,
    ) -> Result<Option<NodeRef<'_>>, Overwritten> {
        debug_assert!(self.layout == Layout::Versioned);
        let found = self.first_at_or_after(key, seq);
        if hold == Hold::Held {
            return Ok(found.map(|slot| slot.record).filter(|record| record.key() == key));
        }
        let before = match found.map(|slot| slot.before(head_of(key))) {
            Some(Ok(before)) => before,
            Some(Err(NodeChanged)) | None => self.last_before(key, seq).map(|slot| slot.record),
        };
        if let Some(newer) = before.filter(|newer| newer.key() == key) {
            // SAFETY: all entries of this tree have its layout, and `Lower`, the only caller,
            // creates its tree with `Layout::Versioned`.
            let older = unsafe { newer.versions() }.older();
            if older.has_gap() {
                return Err(Overwritten);
            }
        }
        Ok(found.map(|slot| slot.record).filter(|record| record.key() == key))
    }

    /// Returns the smallest key.
    pub(crate) fn first_key(&self) -> Option<&[u8]> {
        self.first().map(|slot| slot.record.key())
    }

    /// Returns the largest key.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.last().map(|slot| slot.record.key())
    }

    /// Returns the first entry at or after `(key, seq)`.
    pub(super) fn first_at_or_after(&self, key: &[u8], seq: SeqNo) -> Option<LeafEntry<'_>> {
        let target = SearchTarget::new(key, seq);
        let mut leaf = self.descend(&target, 0);
        loop {
            match Self::seek_in(leaf, &target) {
                Ok(SearchStep::At(slot)) => return Some(slot),
                Ok(SearchStep::Continue(right)) => leaf = right,
                Ok(SearchStep::End) => return None,
                Err(NodeChanged) => {}
            }
        }
    }

    fn seek_in<'a>(
        leaf: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
    ) -> Result<SearchStep<'a>, NodeChanged> {
        let version = leaf.read_version();
        let index = leaf.count_before(target);
        let found = match leaf.entry(index).filter(|_| index < leaf.len()) {
            Some(record) if !leaf.is_beyond(target) => {
                SearchStep::At(LeafEntry { leaf, version, index, record })
            }
            _ => leaf.right().map_or(SearchStep::End, SearchStep::Continue),
        };
        leaf.check(version)?;
        Ok(found)
    }

    /// Returns the last entry before `(key, seq)`.
    pub(super) fn last_before(&self, key: &[u8], seq: SeqNo) -> Option<LeafEntry<'_>> {
        let target = SearchTarget::new(key, seq);
        let mut node = self.root();
        loop {
            match Self::step_before(node, &target) {
                Ok(SearchStep::At(slot)) => return Some(slot),
                Ok(SearchStep::Continue(next)) => node = next,
                Ok(SearchStep::End) => return None,
                Err(NodeChanged) => {}
            }
        }
    }

    /// Like a search for the target, but descends into the child whose first entry is before it;
    /// the last entry before the target is in that subtree or to its right.
    fn step_before<'a>(
        node: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
    ) -> Result<SearchStep<'a>, NodeChanged> {
        let version = node.read_version();
        let before = node.count_before(target);
        // If the target is the high entry itself, the last entry before it is in this node, so the
        // search does not move right.
        let is_right = node.is_after_high(target);
        let found = if is_right {
            node.right().map_or(SearchStep::End, SearchStep::Continue)
        } else if node.level() > 0 {
            node.child(before).map_or(SearchStep::End, SearchStep::Continue)
        } else {
            let index = before.checked_sub(1);
            let slot = index.and_then(|index| {
                node.entry(index).map(|record| LeafEntry { leaf: node, version, index, record })
            });
            slot.map_or(SearchStep::End, SearchStep::At)
        };
        node.check(version)?;
        Ok(found)
    }

    pub(super) fn first(&self) -> Option<LeafEntry<'_>> {
        self.first_at_or_after(&[], MAX_SEQ)
    }

    pub(super) fn last(&self) -> Option<LeafEntry<'_>> {
        let mut node = self.root();
        loop {
            match Self::step_to_end(node) {
                Ok(SearchStep::At(slot)) => return Some(slot),
                Ok(SearchStep::Continue(next)) => node = next,
                Ok(SearchStep::End) => return None,
                Err(NodeChanged) => {}
            }
        }
    }

    fn step_to_end(node: TreeNodeRef<'_>) -> Result<SearchStep<'_>, NodeChanged> {
        let version = node.read_version();
        let len = node.len();
        let found = match (node.right(), node.level()) {
            (Some(right), _) => SearchStep::Continue(right),
            (None, 0) => {
                let index = len.checked_sub(1);
                let slot = index.and_then(|index| {
                    node.entry(index).map(|record| LeafEntry { leaf: node, version, index, record })
                });
                slot.map_or(SearchStep::End, SearchStep::At)
            }
            (None, _) => node.child(len).map_or(SearchStep::End, SearchStep::Continue),
        };
        node.check(version)?;
        Ok(found)
    }
}
