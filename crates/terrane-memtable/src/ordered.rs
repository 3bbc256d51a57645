//! Sorted views of an unsorted structure: sorted runs of pointers, and the nodes appended since.
//!
//! A reader that needs a sorted view pays for the nodes appended since the last one: they are
//! sorted into a run of their own, and runs are merged when they are of similar size, as in an LSM
//! tree. So each entry is merged only a few times, however often views are requested, and a view
//! has few runs.
//!
//! Writers hold a lock while they append a pointer, and readers while they copy the appended ones;
//! sorting blocks only other readers that need a view.
//!
//! Invariants:
//! 1. Every pointer names a node without versions in an arena that outlives the log and all its
//!    views, because callers of [`EntryLog::new`] guarantee it. So nodes are never refilled.
//! 2. The slots of a run are in the order of entries, and never change.
//! 3. A node stays in the fresh part until a view that includes it is installed, because `refresh`
//!    installs the view first.

mod position;
mod tags;
mod view;

use std::ptr::NonNull;
use std::sync::Arc;

use crate::entry::SeqNo;
use crate::skiplist::{Node, NodeRef};
use crate::sync::{AtomicUsize, Mutex, Ordering, RwLock, lock, read, write};
pub(crate) use position::ViewPosition;
use tags::{BLOCK, Tags, tag_of};
use view::SortedRun;
pub(crate) use view::{RunSlot, SortedView};

/// Nodes that were appended and are in no view yet.
#[derive(Default)]
struct FreshNodes {
    nodes: Vec<NonNull<Node>>,
    /// Nodes that a view may include already.
    doubtful: Vec<NonNull<Node>>,
    /// Tags of `nodes`, if lookups search them.
    tags: Tags,
    /// The number of nodes that were moved into views.
    drained: usize,
}

impl FreshNodes {
    fn len(&self) -> usize {
        self.nodes.len() + self.doubtful.len()
    }

    /// Returns the bytes in use and the bytes allocated.
    fn usage(&self) -> (usize, usize) {
        const NODE: usize = size_of::<NonNull<Node>>();
        let (used, allocated) = self.tags.usage();
        let capacity = self.nodes.capacity() + self.doubtful.capacity();
        (used + self.len() * NODE, allocated + capacity * NODE)
    }
}

/// A growing list of nodes, and the latest sorted view of them.
pub(crate) struct EntryLog {
    fresh: Mutex<FreshNodes>,
    /// The length of `fresh`. Like the next two fields, stored under the lock of `fresh`.
    fresh_len: AtomicUsize,
    fresh_used: AtomicUsize,
    fresh_allocated: AtomicUsize,
    view: RwLock<Arc<SortedView>>,
    /// Held while `view` is updated.
    sorting: Mutex<()>,
    /// Bytes of all runs in use, including those of older views.
    run_bytes: Arc<AtomicUsize>,
    /// Whether the fresh part keeps its memory when it is emptied.
    is_reserved: bool,
    /// Whether nodes that are not doubtful have tags.
    is_searchable: bool,
}

// SAFETY: nodes live as long as the log and are not refilled (invariant 1); they are not tied to a
// thread.
unsafe impl Send for EntryLog {}
// SAFETY: shared access goes through locks and atomics, and nodes are only read (invariant 1).
unsafe impl Sync for EntryLog {}

impl EntryLog {
    /// Creates an empty log with capacity for `capacity` nodes.
    ///
    /// # Safety
    /// Every node that is appended has no versions and lies in an arena that outlives the log and
    /// all its views.
    pub(crate) unsafe fn new(capacity: usize) -> Self {
        // SAFETY: the contract of this function is that of `with_tags`.
        unsafe { Self::with_tags(capacity, false) }
    }

    /// Creates an empty log that lookups can [search](Self::search).
    ///
    /// # Safety
    /// As for [`EntryLog::new`].
    pub(crate) unsafe fn searchable(capacity: usize) -> Self {
        // SAFETY: the contract of this function is that of `with_tags`.
        unsafe { Self::with_tags(capacity, true) }
    }

    /// # Safety
    /// As for [`EntryLog::new`].
    unsafe fn with_tags(capacity: usize, is_searchable: bool) -> Self {
        let tags = Tags::with_capacity(if is_searchable { capacity } else { 0 });
        let mut nodes = Vec::with_capacity(capacity);
        // Touches the memory, so that no append takes a page fault.
        nodes.resize(capacity, NonNull::dangling());
        nodes.clear();
        let fresh = FreshNodes { nodes, doubtful: Vec::new(), tags, drained: 0 };
        Self {
            fresh_len: AtomicUsize::new(0),
            fresh_used: AtomicUsize::new(0),
            fresh_allocated: AtomicUsize::new(fresh.usage().1),
            fresh: Mutex::new(fresh),
            view: RwLock::new(Arc::default()),
            sorting: Mutex::new(()),
            run_bytes: Arc::default(),
            is_reserved: capacity > 0,
            is_searchable,
        }
    }

    /// Appends a node. The array doubles when it is full.
    pub(crate) fn push(&self, node: NonNull<Node>) {
        let tag = self.is_searchable.then(|| {
            // SAFETY: the node lies in the arena of this log and is not refilled (invariant 1).
            let node: NodeRef<'_> = unsafe { NodeRef::new(node) };
            (tag_of(node.key()), node.seq())
        });
        let mut fresh = lock(&self.fresh);
        fresh.nodes.push(node);
        if let Some((tag, seq)) = tag {
            fresh.tags.push(tag, seq);
        }
        self.count(&fresh);
    }

    /// Appends a node that [`EntryLog::install`] may have received already.
    pub(crate) fn push_doubtful(&self, node: NonNull<Node>) {
        let mut fresh = lock(&self.fresh);
        fresh.doubtful.push(node);
        self.count(&fresh);
    }

    fn count(&self, fresh: &FreshNodes) {
        // Release pairs with the acquires in `view` and `get`: a reader that sees no fresh nodes
        // sees the view that includes them.
        self.fresh_len.store(fresh.len(), Ordering::Release);
        // Relaxed: statistics order nothing.
        let (used, allocated) = fresh.usage();
        self.fresh_used.store(used, Ordering::Relaxed);
        self.fresh_allocated.store(allocated, Ordering::Relaxed);
    }

    /// Returns a sorted view of everything appended before.
    pub(crate) fn view(&self) -> Arc<SortedView> {
        if self.fresh_len.load(Ordering::Acquire) > 0 {
            self.refresh();
        }
        Arc::clone(&read(&self.view))
    }

    /// Returns the newest version of `key` at or below `seq`.
    pub(crate) fn get<'a>(&'a self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'a>> {
        if self.fresh_len.load(Ordering::Acquire) > 0 {
            self.refresh();
        }
        let slot = read(&self.view).get(key, seq)?;
        // SAFETY: the node lies in the arena of this log, which outlives the borrow (invariant 1).
        Some(unsafe { slot.node() })
    }

    /// As [`EntryLog::get`], but searches the fresh nodes from new to old and does not sort them.
    /// The log must be searchable.
    pub(crate) fn search<'a>(&'a self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'a>> {
        let tag = tag_of(key);
        let mut newest: Option<NodeRef<'a>> = None;
        // Positions count from the first node ever appended, because other threads may drain
        // meanwhile.
        let mut end = usize::MAX;
        loop {
            let fresh = lock(&self.fresh);
            let end_here = (end.saturating_sub(fresh.drained)).min(fresh.nodes.len());
            let Some(last) = end_here.checked_sub(1) else { break };
            let start = last / BLOCK * BLOCK;
            fresh.tags.find(tag, start, end_here, |place| {
                // SAFETY: the node lies in the arena of this log, which outlives the borrow, and is
                // not refilled (invariant 1).
                let node = unsafe { NodeRef::new(fresh.nodes[place]) };
                let is_newer = newest.is_none_or(|newest| newest.seq() < node.seq());
                if node.seq() <= seq && is_newer && node.key() == key {
                    newest = Some(node);
                }
            });
            if newest.is_some_and(|newest| newest.seq() >= fresh.tags.newest_before(start)) {
                return newest;
            }
            end = fresh.drained + start;
        }
        // Nodes that were drained meanwhile are in the view (invariant 3). SAFETY: nodes of a view
        // lie in the arena of this log, which outlives the borrow (invariant 1).
        let sorted = read(&self.view).get(key, seq).map(|slot| unsafe { slot.node() });
        newest.into_iter().chain(sorted).max_by_key(|node: &NodeRef<'a>| node.seq())
    }

    /// Returns a view of everything appended before this call, copied and sorted for it alone.
    pub(crate) fn copy(&self) -> Arc<SortedView> {
        // Held so that no node moves from the fresh part to the view in between.
        let _sorting = lock(&self.sorting);
        let nodes = lock(&self.fresh).nodes.clone();
        let older = Arc::clone(&read(&self.view));
        self.sorted(nodes.into_iter().chain(older.nodes()))
    }

    /// Returns a sorted view of these nodes, which is not kept.
    pub(crate) fn sorted(&self, nodes: impl Iterator<Item = NonNull<Node>>) -> Arc<SortedView> {
        // SAFETY: callers pass nodes of the arena of this log (invariant 1).
        let slots = nodes.map(|node| unsafe { RunSlot::new(node) }).collect();
        Arc::new(SortedView::of(SortedRun::sorted(slots, &self.run_bytes)))
    }

    /// Adds nodes to the view. Any that were appended before must have been appended as doubtful.
    pub(crate) fn install(&self, nodes: impl Iterator<Item = NonNull<Node>>) {
        let _sorting = lock(&self.sorting);
        // SAFETY: callers pass nodes of the arena of this log (invariant 1).
        let slots = nodes.map(|node| unsafe { RunSlot::new(node) }).collect();
        let next = read(&self.view).with(SortedRun::sorted(slots, &self.run_bytes));
        *write(&self.view) = Arc::new(next);
    }

    /// Sorts the fresh nodes into the view.
    #[cold]
    fn refresh(&self) {
        let _sorting = lock(&self.sorting);
        let (nodes, doubtful) = {
            let fresh = lock(&self.fresh);
            (fresh.nodes.clone(), fresh.doubtful.clone())
        };
        if nodes.len() + doubtful.len() == 0 {
            return;
        }
        let (count, doubtful_count) = (nodes.len(), doubtful.len());
        let view = Arc::clone(&read(&self.view));
        // SAFETY: the node was appended to this log (invariant 1).
        let doubtful = doubtful.into_iter().map(|node| unsafe { RunSlot::new(node) });
        let missing = doubtful.filter(|slot| !view.contains(slot));
        // SAFETY: the nodes were appended to this log (invariant 1).
        let slots = nodes.into_iter().map(|node| unsafe { RunSlot::new(node) });
        let run = SortedRun::sorted(slots.chain(missing).collect(), &self.run_bytes);
        let next = Arc::new(view.with(run));
        drop(view);
        // The view is installed before the fresh part is emptied (invariant 3).
        *write(&self.view) = next;
        let mut fresh = lock(&self.fresh);
        if fresh.nodes.len() == count && !self.is_reserved {
            fresh.nodes = Vec::new();
        } else {
            fresh.nodes.drain(..count);
        }
        fresh.doubtful.drain(..doubtful_count);
        fresh.drained += count;
        if self.is_searchable {
            fresh.tags.drain(count, self.is_reserved);
        }
        self.count(&fresh);
    }

    /// Returns the bytes in use and the bytes allocated.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let runs = self.run_bytes.load(Ordering::Relaxed);
        let used = self.fresh_used.load(Ordering::Relaxed);
        let allocated = self.fresh_allocated.load(Ordering::Relaxed).max(used);
        (runs + used, runs + allocated)
    }
}
