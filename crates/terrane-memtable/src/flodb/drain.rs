//! Draining: versions go from the Membuffer into the lower level (FloDB paper, §4.2).
//!
//! Under the lock of each bucket its versions are marked as moving; then, sorted, they are linked
//! into the lower level, each from where the one before went; then those of them that are still the
//! newest of their slot make the slot clean. A version that is replaced meanwhile leaves its slot
//! dirty. Writers and readers go on all the time; those who drain the same partition take turns.
//!
//! Versions are drained before they are needed elsewhere, so that there are slots for new keys. A
//! key that is written again and again would then leave a version in the lower level each time: one
//! that replaced another since the last time is passed over once (as the clock algorithm does for
//! pages), so that what is hot stays.

use super::lower::Lower;
use super::membuffer::Membuffer;
use super::partition::DrainItem;
use crate::head::head_of;
use crate::prefetch::prefetch;
use crate::skiplist::{NodeRef, Older, versions_of};
use crate::sync::lock;

/// What to drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainScope {
    /// Everything that is there.
    All,
    /// What was not replaced since the last time.
    Cold,
}

/// How versions are put into the lower level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainInsert {
    /// Each by a search from the top.
    Single,
    /// Sorted, each from where the one before went.
    Multi,
}

/// So many buckets ahead the nodes are asked for that will be marked.
const AHEAD: usize = 2;

/// So many versions ahead they are asked for when they are linked. By then what was read of them
/// for marking is no longer near.
const LINKED_AHEAD: usize = 8;

impl Membuffer {
    /// Drains a partition. Everything that was added to it before, and is asked for, is in the
    /// lower level when this returns. Answers how many versions were moved.
    pub(super) fn drain(
        &self,
        lower: &Lower,
        partition: usize,
        scope: DrainScope,
        insert: DrainInsert,
    ) -> usize {
        let part = &self.partitions[partition];
        if part.dirty() == 0 {
            return 0;
        }
        let mut moving = lock(&part.draining);
        moving.clear();
        let before = moving.capacity() * size_of::<DrainItem>();
        self.mark(partition, scope, &mut moving);
        part.count_list(before, moving.capacity() * size_of::<DrainItem>());
        if insert == DrainInsert::Multi {
            moving.sort_unstable_by(|a, b| {
                a.head.cmp(&b.head).then_with(|| {
                    let (a, b) = (node_of(a), node_of(b));
                    a.compare(b.key(), b.seq())
                })
            });
        }
        link(lower, &moving, insert);
        self.clean(partition);
        moving.len()
    }

    fn mark(&self, partition: usize, scope: DrainScope, moving: &mut Vec<DrainItem>) {
        let buckets = self.buckets_of(partition);
        for (number, bucket) in buckets.iter().enumerate() {
            if let Some(later) = buckets.get(number + AHEAD) {
                later.prefetch();
            }
            if !bucket.meta().has_dirty() {
                continue;
            }
            let locked = bucket.lock();
            let meta = locked.meta();
            for slot in (0..super::bucket::SLOTS).filter(|slot| meta.is_dirty(*slot)) {
                let mut version = std::ptr::NonNull::new(locked.head(slot));
                if scope == DrainScope::Cold
                    // SAFETY: slots name nodes of the lower level, scope have versions.
                    && version.is_some_and(|node| unsafe { versions_of(node) }.take_hot())
                {
                    continue;
                }
                while let Some(node) = version {
                    // SAFETY: as above.
                    let versions = unsafe { versions_of(node) };
                    if versions.is_permanent() {
                        break;
                    }
                    versions.set_moving();
                    // SAFETY: as above.
                    let head = head_of(unsafe { NodeRef::new(node) }.key());
                    moving.push(DrainItem { head, node });
                    version = match versions.older() {
                        Older::Node(older) => Some(older),
                        Older::None | Older::Reclaimed => None,
                    };
                }
            }
        }
    }

    /// Slots whose newest version is in the lower level are clean.
    fn clean(&self, partition: usize) {
        let mut cleaned = 0;
        let buckets = self.buckets_of(partition);
        for (number, bucket) in buckets.iter().enumerate() {
            if let Some(later) = buckets.get(number + AHEAD) {
                later.prefetch();
            }
            if !bucket.meta().has_dirty() {
                continue;
            }
            let mut locked = bucket.lock();
            let meta = locked.meta();
            for slot in (0..super::bucket::SLOTS).filter(|slot| meta.is_dirty(*slot)) {
                let Some(node) = std::ptr::NonNull::new(locked.head(slot)) else { continue };
                // SAFETY: slots name nodes of the lower level, scope have versions.
                if unsafe { versions_of(node) }.is_linked() {
                    locked.set_clean(slot);
                    cleaned += 1;
                }
            }
        }
        self.partitions[partition].remove_dirty(cleaned);
    }
}

fn node_of(drained: &DrainItem) -> NodeRef<'_> {
    // SAFETY: a node of the lower level, scope outlives what is drained into it.
    unsafe { NodeRef::new(drained.node) }
}

fn link(lower: &Lower, moving: &[DrainItem], insert: DrainInsert) {
    // SAFETY: it was made with versions.
    let is_linked = |node| unsafe { versions_of(node) }.set_linked();
    let nodes = moving.iter().enumerate().map(|(number, drained)| {
        if let Some(later) = moving.get(number + LINKED_AHEAD) {
            prefetch(later.node.as_ptr().cast());
        }
        drained.node
    });
    match insert {
        DrainInsert::Single => nodes.for_each(|node| {
            // SAFETY: it was made for the lower level, and marked as moving once, by who links it.
            unsafe { lower.link(node) };
            is_linked(node);
        }),
        // SAFETY: as above, and they are sorted.
        DrainInsert::Multi => unsafe { lower.link_in_order(nodes, is_linked) },
    }
}
