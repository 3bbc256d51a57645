//! Searches of a B-link tree for the first entry at or after a key, or the last entry before it.

use super::BTree;
use super::node::{LeafEntry, NodeChanged, NodeTarget, PinnedEntry, SearchTarget, TreeNodeRef};
use crate::entry::{MAX_SEQ, SeqNo};
use crate::skiplist::{Layout, NodeRef};
use crate::structure::{Hold, Overwritten};

/// The result of one step of a search.
pub(super) enum SearchStep<'a> {
    At(LeafEntry<'a>),
    /// Continue at this node, to the right or below.
    Continue(TreeNodeRef<'a>),
    End,
}

impl BTree {
    /// As [`crate::structure::Structure::get`], for entries with versions. Returns an error if the
    /// requested version may have been reclaimed. The found version and the next newer one, which
    /// records gaps, need not be read at the same moment: if a version was removed before the first
    /// search, whichever version is the next newer one by then records the gap.
    pub(crate) fn get_unless_reclaimed(
        &self,
        key: &[u8],
        seq: SeqNo,
        hold: Hold,
    ) -> Result<Option<PinnedEntry<'_>>, Overwritten> {
        debug_assert!(self.layout == Layout::Versioned);
        let target = self.target(key, seq);
        let found = self.first_from(self.descend(&target, 0), &target);
        if hold == Hold::Held {
            return Ok(found.map(LeafEntry::into_pinned).filter(|(record, _)| record.key() == key));
        }
        let before = match found.as_ref().map(|slot| slot.before(&target)) {
            Some(Ok(before)) => before,
            Some(Err(NodeChanged)) | None => self.last_before(key, seq).map(LeafEntry::into_pinned),
        };
        if let Some((newer, _pin)) = before.filter(|(newer, _)| newer.key() == key) {
            // SAFETY: all entries of this tree have its layout, and `Lower`, the only caller,
            // creates its tree with `Layout::Versioned`.
            let older = unsafe { newer.versions() }.older();
            if older.has_gap() {
                return Err(Overwritten);
            }
        }
        Ok(found.map(LeafEntry::into_pinned).filter(|(record, _)| record.key() == key))
    }

    /// Returns the smallest key.
    pub(crate) fn first_key(&self) -> Option<Vec<u8>> {
        self.first().map(|slot| slot.record.key().to_vec())
    }

    /// Returns the largest key.
    pub(crate) fn last_key(&self) -> Option<Vec<u8>> {
        self.last().map(|slot| slot.record.key().to_vec())
    }

    /// Returns the keys of one in `step` leaf separators, spread evenly over all entries; none if there is only
    /// one leaf.
    pub(super) fn sample_keys(&self, step: usize) -> Vec<&[u8]> {
        let mut node = self.root();
        while node.level() > 1
            && let Some(child) = node.child(0)
        {
            node = child;
        }
        let mut keys = Vec::new();
        let mut next = (node.level() == 1).then_some(node);
        while let Some(node) = next {
            // Whatever a concurrent change leaves here is a separator, which never changes.
            let entries = (0..node.len()).step_by(step).filter_map(|at| node.entry(at));
            keys.extend(entries.map(NodeRef::key));
            next = node.right();
        }
        keys
    }

    /// Finds the node of a level in which the target belongs, or a node to the left of that node.
    #[inline]
    pub(super) fn descend(&self, target: &SearchTarget<'_>, level: usize) -> TreeNodeRef<'_> {
        let mut node = self.root();
        while node.level() > level {
            // If the node changed during the step, retry the step.
            if let Ok(next) = Self::step_down(node, target) {
                node = next;
                node.prefetch();
            }
        }
        node
    }

    /// Returns the child or the right neighbour in which the search continues.
    #[inline]
    pub(super) fn step_down<'a>(
        node: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
    ) -> Result<TreeNodeRef<'a>, NodeChanged> {
        let version = node.read_version();
        let target = node.target(target);
        Self::step_from(node, target, (version, node.lower_bound(target.head)))
    }

    /// As [`Self::step_down`], if `from` heads were known to be below the target's when the counter
    /// was `version`.
    #[inline(always)]
    pub(super) fn step_from<'a>(
        node: TreeNodeRef<'a>,
        target: NodeTarget<'_>,
        (version, from): (u64, usize),
    ) -> Result<TreeNodeRef<'a>, NodeChanged> {
        let next = if node.is_beyond(target) {
            node.right()
        } else {
            // An entry is the first of the child after it, so a target equal to an entry leads into
            // that child.
            let before = node.count_before_from(target, from);
            node.child(before + usize::from(node.is_at(before, target)))
        };
        node.check(version)?;
        next.ok_or(NodeChanged)
    }

    /// Returns the first entry at or after `(key, seq)`.
    pub(super) fn first_at_or_after(&self, key: &[u8], seq: SeqNo) -> Option<LeafEntry<'_>> {
        let target = self.target(key, seq);
        self.first_from(self.descend(&target, 0), &target)
    }

    /// Returns the first entry at or after the target, from a leaf that is not to the right of it.
    pub(super) fn first_from<'a>(
        &'a self,
        mut leaf: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
    ) -> Option<LeafEntry<'a>> {
        loop {
            match self.seek_in(leaf, target) {
                Ok(SearchStep::At(slot)) => return Some(slot),
                Ok(SearchStep::Continue(right)) => leaf = right,
                Ok(SearchStep::End) => return None,
                Err(NodeChanged) => {}
            }
        }
    }

    fn seek_in<'a>(
        &'a self,
        leaf: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
    ) -> Result<SearchStep<'a>, NodeChanged> {
        let version = leaf.read_version();
        let target = leaf.target(target);
        let index = leaf.count_before_in(target, version, self.layout)?;
        self.seek_at(leaf, target, (version, index))
    }

    /// Returns the first entry at or after the target; the leaf had `index` entries before the target when its
    /// counter was `version`.
    #[inline]
    pub(super) fn seek_at<'a>(
        &'a self,
        leaf: TreeNodeRef<'a>,
        target: NodeTarget<'_>,
        (version, index): (u64, usize),
    ) -> Result<SearchStep<'a>, NodeChanged> {
        let found = match leaf.pin_entry(index, version, self.layout)? {
            Some((record, pin)) if !leaf.is_beyond(target) => {
                SearchStep::At(LeafEntry { leaf, version, index, record, pin })
            }
            _ => leaf.right().map_or(SearchStep::End, SearchStep::Continue),
        };
        leaf.check(version)?;
        Ok(found)
    }

    /// Returns the last entry before `(key, seq)`.
    pub(super) fn last_before(&self, key: &[u8], seq: SeqNo) -> Option<LeafEntry<'_>> {
        let mut target = self.target(key, seq);
        let mut node = self.root();
        let mut separator = None;
        loop {
            match self.step_before(node, &target, &mut separator) {
                Ok(SearchStep::At(slot)) => return Some(slot),
                Ok(SearchStep::Continue(next)) => node = next,
                Ok(SearchStep::End) => {
                    // The leaf no longer has an entry before the target, so the entry is to the left of
                    // the leaf, before its separator.
                    let first: NodeRef<'_> = separator.take()?;
                    target = self.target(first.key(), first.seq());
                    node = self.root();
                }
                Err(NodeChanged) => {}
            }
        }
    }

    /// Like a search for the target, but descends into the child whose separator is before it; the
    /// last entry before the target is in that subtree or to its right, unless that subtree begins
    /// after the target. Sets `separator` to that of the next node, if it is known.
    fn step_before<'a>(
        &'a self,
        node: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
        separator: &mut Option<NodeRef<'a>>,
    ) -> Result<SearchStep<'a>, NodeChanged> {
        let version = node.read_version();
        let target = node.target(target);
        let before = match node.level() {
            0 => node.count_before_in(target, version, self.layout)?,
            _ => node.count_before(target),
        };
        // If the target is the high entry itself, the last entry before it is in this node, so the
        // search does not move right.
        let is_right = node.is_after_high(target);
        let (found, next_separator) = if is_right {
            (node.right().map_or(SearchStep::End, SearchStep::Continue), node.high())
        } else if node.level() > 0 {
            let child = node.child(before).map_or(SearchStep::End, SearchStep::Continue);
            (child, before.checked_sub(1).and_then(|before| node.entry(before)))
        } else {
            (self.at_index(node, version, before.checked_sub(1))?, None)
        };
        node.check(version)?;
        *separator = next_separator.or(*separator);
        Ok(found)
    }

    /// Returns the entry at an index of a leaf.
    fn at_index<'a>(
        &'a self,
        leaf: TreeNodeRef<'a>,
        version: u64,
        index: Option<usize>,
    ) -> Result<SearchStep<'a>, NodeChanged> {
        let Some(index) = index else { return Ok(SearchStep::End) };
        let entry = leaf.pin_entry(index, version, self.layout)?;
        Ok(entry.map_or(SearchStep::End, |(record, pin)| {
            SearchStep::At(LeafEntry { leaf, version, index, record, pin })
        }))
    }

    pub(super) fn first(&self) -> Option<LeafEntry<'_>> {
        self.first_at_or_after(&[], MAX_SEQ)
    }

    pub(super) fn last(&self) -> Option<LeafEntry<'_>> {
        let mut node = self.root();
        loop {
            match self.step_to_end(node) {
                Ok(SearchStep::At(slot)) => return Some(slot),
                Ok(SearchStep::Continue(next)) => node = next,
                Ok(SearchStep::End) => return None,
                Err(NodeChanged) => {}
            }
        }
    }

    fn step_to_end<'a>(&'a self, node: TreeNodeRef<'a>) -> Result<SearchStep<'a>, NodeChanged> {
        let version = node.read_version();
        let len = node.len();
        let found = match (node.right(), node.level()) {
            (Some(right), _) => SearchStep::Continue(right),
            (None, 0) => self.at_index(node, version, len.checked_sub(1))?,
            (None, _) => node.child(len).map_or(SearchStep::End, SearchStep::Continue),
        };
        node.check(version)?;
        Ok(found)
    }
}
