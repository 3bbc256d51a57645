//! Reclaimed nodes, grouped by how much room they have for a key and a value.
//!
//! Rooms below 512 bytes have a class for each multiple of 8; larger ones have sixteen classes for
//! each power of two. So values of varying sizes refill each other's memory with little waste.
//! Links in the nodes connect the nodes of a class, so free memory costs no further memory.
//!
//! Invariants:
//! 1. A node here is unreachable, because its reclaimer overwrote every pointer to it. It may
//!    still be pinned, so it is refilled only once `is_free` returns true.
//! 2. A node here is detached, and names the next one of its list. Only the holder of the lock
//!    changes that; a reader that holds a pin sees that the node is detached, and stops.

use std::ptr::NonNull;

use crate::pool::ALIGN;
use crate::skiplist::{Node, Older, Versions, versions_of};
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// The number of nodes of a class that a search probes, because the latest ones may be pinned.
/// Rejected nodes move to the end, so that later searches probe others.
const PROBES_MAX: usize = 4;

/// A version takes the place of the one that it hides if it wastes at most one in this many bytes.
const WASTED_SHARE_MAX: usize = 16;

/// The number of larger classes that a search tries.
const CLASSES_TRIED_MAX: usize = 24;

const EXACT_CLASSES: usize = 64;
const EXACT_STEP: usize = 8;
const EXACT_BITS: u32 = (EXACT_CLASSES * EXACT_STEP).ilog2();
const STEP_BITS: u32 = 4;

/// The free nodes of a memtable.
pub(super) struct FreeNodes {
    classes: Mutex<Vec<FreeList>>,
    /// The number of nodes.
    count: AtomicUsize,
    /// The bytes of the nodes.
    bytes: AtomicUsize,
    /// The versions that were reclaimed so far, and their bytes of keys and values.
    reclaimed: AtomicUsize,
    reclaimed_bytes: AtomicUsize,
    /// The bytes allocated for the classes.
    class_bytes: AtomicUsize,
}

/// A list of free nodes.
#[derive(Clone, Copy, Default)]
struct FreeList {
    first: Option<NonNull<Node>>,
    last: Option<NonNull<Node>>,
}

// SAFETY: the nodes lie in the arena of the lower level, which outlives the free nodes and is not
// tied to a thread; invariants 2 and 3 of `Versions` say who may access them.
unsafe impl Send for FreeList {}

impl FreeList {
    fn push_first(&mut self, node: NonNull<Node>) {
        links(node).set_older(Older::detached_before(self.first));
        self.first = Some(node);
        self.last.get_or_insert(node);
    }

    fn push_last(&mut self, node: NonNull<Node>) {
        links(node).set_older(Older::detached_before(None));
        match self.last.replace(node) {
            Some(last) => links(last).set_older(Older::detached_before(Some(node))),
            None => self.first = Some(node),
        }
    }

    fn pop_first(&mut self) -> Option<NonNull<Node>> {
        let node = self.first?;
        self.first = links(node).older().next_free();
        if self.first.is_none() {
            self.last = None;
        }
        Some(node)
    }
}

/// Returns the versions of a reclaimed node.
fn links<'a>(node: NonNull<Node>) -> &'a Versions {
    // SAFETY: reclaimed nodes have versions, and their arena outlives the free nodes.
    unsafe { versions_of(node) }
}

impl FreeNodes {
    pub(super) fn new() -> Self {
        Self {
            classes: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            reclaimed: AtomicUsize::new(0),
            reclaimed_bytes: AtomicUsize::new(0),
            class_bytes: AtomicUsize::new(0),
        }
    }

    /// Takes a node that has room for `needed` bytes of key and value, and no pins.
    #[inline]
    pub(super) fn pop(&self, needed: usize) -> Option<NonNull<Node>> {
        // Relaxed: an outdated count only costs an allocation or a futile search.
        if self.count.load(Ordering::Relaxed) == 0 { None } else { self.search(needed) }
    }

    fn search(&self, needed: usize) -> Option<NonNull<Node>> {
        let mut classes = lock(&self.classes);
        let first = class_of(needed);
        for class in classes.iter_mut().skip(first).take(CLASSES_TRIED_MAX) {
            for _ in 0..PROBES_MAX {
                let Some(node) = class.pop_first() else { break };
                if !fits(links(node).capacity(), needed) || !links(node).is_free() {
                    class.push_last(node);
                    continue;
                }
                add(&self.count, 1_usize.wrapping_neg());
                add(&self.bytes, bytes_of(node).wrapping_neg());
                return Some(node);
            }
        }
        None
    }

    /// Adds a reclaimed node, whose key and value take `data_bytes`.
    pub(super) fn push(&self, node: NonNull<Node>, data_bytes: usize) {
        let versions = links(node);
        let class = class_of(versions.capacity());
        let mut classes = lock(&self.classes);
        add(&self.reclaimed, 1);
        add(&self.reclaimed_bytes, data_bytes);
        if versions.is_retained() {
            return;
        }
        if classes.len() <= class {
            classes.resize(class + 1, FreeList::default());
            let bytes = classes.capacity() * size_of::<FreeList>();
            self.class_bytes.store(bytes, Ordering::Relaxed);
        }
        if let Some(list) = classes.get_mut(class) {
            list.push_first(node);
        }
        add(&self.count, 1);
        add(&self.bytes, bytes_of(node));
    }

    /// Returns the number of versions that were reclaimed so far, and their bytes of keys and values.
    pub(super) fn reclaimed(&self) -> (usize, usize) {
        // Acquire pairs with the release store in `add`: a version is counted as added before it is
        // counted here, so a caller that then loads the added versions never counts too few.
        let versions = self.reclaimed.load(Ordering::Acquire);
        (versions, self.reclaimed_bytes.load(Ordering::Acquire))
    }

    /// Returns the bytes of the free nodes, and those that the classes have allocated.
    pub(super) fn usage(&self) -> (usize, usize) {
        (self.bytes.load(Ordering::Relaxed), self.class_bytes.load(Ordering::Relaxed))
    }
}

/// Adds to a counter that changes only under the lock.
fn add(counter: &AtomicUsize, number: usize) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(number), Ordering::Release);
}

fn bytes_of(node: NonNull<Node>) -> usize {
    size_of::<Node>() + size_of::<Versions>() + links(node).capacity()
}

/// Returns true if a reclaimed node has no pins, and holds `needed` bytes of key and value with little
/// waste. With more waste, another node may suit better.
pub(super) fn suits(node: NonNull<Node>, needed: usize) -> bool {
    let versions = links(node);
    let room = versions.capacity();
    needed <= room && room <= needed + needed / WASTED_SHARE_MAX + ALIGN && versions.is_free()
}

/// Returns true if a room suffices, and is not much larger than necessary.
fn fits(room: usize, needed: usize) -> bool {
    needed <= room && room <= 2 * needed + 64
}

/// Returns the class of a room.
fn class_of(room: usize) -> usize {
    if room < EXACT_CLASSES * EXACT_STEP {
        return room.div_ceil(EXACT_STEP);
    }
    let bits = room.ilog2();
    let step = (room >> (bits - STEP_BITS)) & ((1 << STEP_BITS) - 1);
    EXACT_CLASSES + 1 + (((bits - EXACT_BITS) as usize) << STEP_BITS) + step
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and much of it")]
    fn classes_rise_with_the_room() {
        let classes: Vec<usize> = (0..100_000).map(|units| class_of(units * 8)).collect();
        assert!(classes.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] <= pair[0] + 2));
        assert_eq!(class_of(504), 63);
        assert_eq!(class_of(512), 65);
        // The class of a needed size is never above that of a sufficient room.
        for needed in 1..5000_usize {
            assert!(class_of(needed) <= class_of(needed.next_multiple_of(8)));
        }
    }
}
