//! Sorted runs of pointers to entries.

use std::cmp::Ordering::{self as Order, Less};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::entry::SeqNo;
use crate::head::head_of;
use crate::skiplist::{Node, NodeRef};
use crate::sync::{AtomicUsize, Ordering};

/// A run is merged with the run before it, unless the earlier run is larger by this factor. A
/// smaller factor merges less often and leaves more runs, all of which a lookup searches.
const RUN_RATIO: usize = 4;

/// A pointer to a node, with the head of its key.
///
/// Invariant 1: the node lies in an arena that outlives the slot and is never refilled, because
/// [`RunSlot::new`] requires it.
#[derive(Clone, Copy)]
pub(crate) struct RunSlot {
    head: u64,
    node: NonNull<Node>,
}

// SAFETY: the node outlives the slot and is only read (invariant 1 of this type).
unsafe impl Send for RunSlot {}
// SAFETY: the node outlives the slot and is only read (invariant 1 of this type).
unsafe impl Sync for RunSlot {}

impl RunSlot {
    /// # Safety
    /// The node lies in an arena that outlives the slot and its copies, and is never refilled.
    pub(crate) unsafe fn new(node: NonNull<Node>) -> Self {
        // SAFETY: the caller guarantees that the arena lives and the node is never refilled.
        let key = unsafe { NodeRef::new(node) }.key();
        Self { head: head_of(key), node }
    }

    /// Returns the node.
    ///
    /// # Safety
    /// The arena of the node lives for `'a`.
    #[inline]
    pub(crate) unsafe fn node<'a>(self) -> NodeRef<'a> {
        // SAFETY: the caller guarantees the arena, and the node is never refilled (invariant 1 of
        // this type).
        unsafe { NodeRef::new(self.node) }
    }

    #[inline]
    fn compare(&self, head: u64, key: &[u8], seq: SeqNo) -> Order {
        self.head.cmp(&head).then_with(|| {
            // SAFETY: the arena outlives the slot (invariant 1 of this type).
            let node: NodeRef<'_> = unsafe { self.node() };
            node.compare(key, seq)
        })
    }

    #[inline]
    pub(super) fn compare_to(&self, other: &RunSlot) -> Order {
        self.head.cmp(&other.head).then_with(|| {
            // SAFETY: the arena outlives the slot (invariant 1 of this type).
            let other: NodeRef<'_> = unsafe { other.node() };
            // SAFETY: the arena outlives the slot (invariant 1 of this type).
            let node: NodeRef<'_> = unsafe { self.node() };
            node.compare(other.key(), other.seq())
        })
    }
}

/// A sorted run of slots.
pub(super) struct SortedRun {
    slots: Box<[RunSlot]>,
    /// The counter of the bytes of all runs.
    bytes: Arc<AtomicUsize>,
}

impl SortedRun {
    pub(super) fn sorted(mut slots: Vec<RunSlot>, bytes: &Arc<AtomicUsize>) -> Arc<Self> {
        slots.sort_unstable_by(RunSlot::compare_to);
        Self::of(slots, bytes)
    }

    fn of(slots: Vec<RunSlot>, bytes: &Arc<AtomicUsize>) -> Arc<Self> {
        let run = Self { slots: slots.into_boxed_slice(), bytes: Arc::clone(bytes) };
        run.bytes.fetch_add(run.size(), Ordering::Relaxed);
        Arc::new(run)
    }

    fn size(&self) -> usize {
        // Includes the two counts of the `Arc`.
        size_of_val(&*self.slots) + size_of::<Self>() + 2 * size_of::<usize>()
    }

    /// Merges two runs.
    fn merged(&self, other: &Self) -> Arc<Self> {
        let mut slots = Vec::with_capacity(self.slots.len() + other.slots.len());
        let (mut left, mut right) = (&self.slots[..], &other.slots[..]);
        while let (Some((first, left_rest)), Some((second, right_rest))) =
            (left.split_first(), right.split_first())
        {
            if first.compare_to(second) == Less {
                slots.push(*first);
                left = left_rest;
            } else {
                slots.push(*second);
                right = right_rest;
            }
        }
        slots.extend_from_slice(left);
        slots.extend_from_slice(right);
        Self::of(slots, &self.bytes)
    }

    /// Returns the number of slots before `(key, seq)`.
    pub(super) fn count_before(&self, head: u64, key: &[u8], seq: SeqNo) -> usize {
        self.slots.partition_point(|slot| slot.compare(head, key, seq) == Less)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(super) fn slot(&self, index: usize) -> Option<&RunSlot> {
        self.slots.get(index)
    }
}

impl Drop for SortedRun {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.size(), Ordering::Relaxed);
    }
}

/// A sorted view: runs that together contain all entries; the oldest and largest run comes first.
#[derive(Default)]
pub(crate) struct SortedView {
    pub(super) runs: Vec<Arc<SortedRun>>,
}

impl SortedView {
    pub(super) fn of(run: Arc<SortedRun>) -> Self {
        Self { runs: vec![run] }
    }

    /// Returns this view with another run added.
    pub(super) fn with(&self, run: Arc<SortedRun>) -> Self {
        let mut runs = self.runs.clone();
        let mut last = run;
        while let Some(before) = runs.pop_if(|before| before.len() < RUN_RATIO * last.len()) {
            last = before.merged(&last);
        }
        runs.push(last);
        Self { runs }
    }

    /// Iterates over all nodes, unordered.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NonNull<Node>> {
        self.runs.iter().flat_map(|run| run.slots.iter().map(|slot| slot.node))
    }

    /// Returns the newest version of `key` at or below `seq`.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<RunSlot> {
        let head = head_of(key);
        let mut newest: Option<(SeqNo, RunSlot)> = None;
        for run in &self.runs {
            let Some(slot) = run.slot(run.count_before(head, key, seq)) else { continue };
            if slot.head != head {
                continue;
            }
            // SAFETY: the arena outlives the slot (invariant 1 of the slot).
            let node: NodeRef<'_> = unsafe { slot.node() };
            let is_newer = newest.is_none_or(|(newest, _)| newest < node.seq());
            if node.key() == key && is_newer {
                newest = Some((node.seq(), *slot));
            }
        }
        newest.map(|(_, slot)| slot)
    }

    /// Returns true if one of the runs has this node.
    pub(super) fn contains(&self, slot: &RunSlot) -> bool {
        // SAFETY: the arena outlives the slot (invariant 1 of the slot).
        let node: NodeRef<'_> = unsafe { slot.node() };
        self.runs.iter().any(|run| {
            let found = run.slot(run.count_before(slot.head, node.key(), node.seq()));
            found.is_some_and(|found| ptr::eq(found.node.as_ptr(), slot.node.as_ptr()))
        })
    }
}
