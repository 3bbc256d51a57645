//! Entries of an unsorted structure, in order: sorted runs of pointers, and what came since.
//!
//! Who asks for an order pays for what came since the last one who did: it is sorted into a run of
//! its own, and runs are merged when they are of like size, as in an LSM tree. So an entry is
//! merged a few times only, however often the order is asked for, and a view has few runs.
//!
//! Writers hold a lock for as long as it takes to append a pointer, readers one for as long as it
//! takes to copy what was appended; sorting holds up only those who ask for an order too.
//!
//! Invariants:
//! 1. Every pointer names a node in an arena that outlives the log and all its views.
//! 2. The slots of a run are in the order of entries, and never change.
//! 3. What was appended is in the fresh part until a view that has it is in place.

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

/// What was appended and is in no view yet.
#[derive(Default)]
struct FreshNodes {
    nodes: Vec<NonNull<Node>>,
    /// Nodes that a view may have already.
    doubtful: Vec<NonNull<Node>>,
    /// Of `nodes`, where lookups search them.
    tags: Tags,
    /// How many nodes are in views only.
    drained: usize,
}

impl FreshNodes {
    fn len(&self) -> usize {
        self.nodes.len() + self.doubtful.len()
    }

    /// Bytes in use, and bytes taken from the allocator.
    fn usage(&self) -> (usize, usize) {
        const NODE: usize = size_of::<NonNull<Node>>();
        let (used, allocated) = self.tags.usage();
        let capacity = self.nodes.capacity() + self.doubtful.capacity();
        (used + self.len() * NODE, allocated + capacity * NODE)
    }
}

/// A growing list of nodes, and the order of those that were there when it was last asked for.
pub(crate) struct EntryLog {
    fresh: Mutex<FreshNodes>,
    /// The length of `fresh`; changed under its lock, as are the other two.
    fresh_len: AtomicUsize,
    fresh_used: AtomicUsize,
    fresh_allocated: AtomicUsize,
    view: RwLock<Arc<SortedView>>,
    /// Held while `view` is brought up to date.
    sorting: Mutex<()>,
    /// Bytes of all runs that are alive, those of older views included.
    run_bytes: Arc<AtomicUsize>,
    /// Whether the fresh part keeps its memory when it is emptied.
    is_reserved: bool,
    /// Whether nodes have tags, except doubtful ones.
    is_searchable: bool,
}

// SAFETY: pointers are only followed while the arena lives (invariant 1), and nodes are `Sync`.
unsafe impl Send for EntryLog {}
// SAFETY: as for `Send`.
unsafe impl Sync for EntryLog {}

impl EntryLog {
    /// An empty log with room for `capacity` nodes.
    ///
    /// # Safety
    /// Every node that is appended lies in an arena that outlives the log and all its views.
    pub(crate) unsafe fn new(capacity: usize) -> Self {
        // SAFETY: passed on.
        unsafe { Self::with_tags(capacity, false) }
    }

    /// An empty log that lookups can [search](Self::search).
    ///
    /// # Safety
    /// As for [`EntryLog::new`].
    pub(crate) unsafe fn searchable(capacity: usize) -> Self {
        // SAFETY: passed on.
        unsafe { Self::with_tags(capacity, true) }
    }

    unsafe fn with_tags(capacity: usize, is_searchable: bool) -> Self {
        let tags = Tags::with_capacity(if is_searchable { capacity } else { 0 });
        let mut nodes = Vec::with_capacity(capacity);
        // Written once, so that no append has to wait for a page.
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
            // SAFETY: invariant 1.
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

    /// Appends a node that was perhaps [installed](Self::install) already.
    pub(crate) fn push_doubtful(&self, node: NonNull<Node>) {
        let mut fresh = lock(&self.fresh);
        fresh.doubtful.push(node);
        self.count(&fresh);
    }

    fn count(&self, fresh: &FreshNodes) {
        // Release pairs with the acquire in `view`: who sees that nothing is fresh sees the view
        // that has it.
        self.fresh_len.store(fresh.len(), Ordering::Release);
        // Relaxed: figures order nothing.
        let (used, allocated) = fresh.usage();
        self.fresh_used.store(used, Ordering::Relaxed);
        self.fresh_allocated.store(allocated, Ordering::Relaxed);
    }

    /// Everything that was appended before, in order.
    pub(crate) fn view(&self) -> Arc<SortedView> {
        if self.fresh_len.load(Ordering::Acquire) > 0 {
            self.refresh();
        }
        Arc::clone(&read(&self.view))
    }

    /// The newest version of `key` that is not newer than `seq`.
    pub(crate) fn get<'a>(&'a self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'a>> {
        if self.fresh_len.load(Ordering::Acquire) > 0 {
            self.refresh();
        }
        // SAFETY: invariant 1; the arena outlives this borrow of the log.
        let slot = read(&self.view).get(key, seq)?;
        // SAFETY: invariant 1.
        Some(unsafe { slot.node() })
    }

    /// As [`EntryLog::get`], without an order of what is fresh: all of it is searched, from new to old.
    /// The log is searchable.
    pub(crate) fn search<'a>(&'a self, key: &[u8], seq: SeqNo) -> Option<NodeRef<'a>> {
        let tag = tag_of(key);
        let mut newest: Option<NodeRef<'a>> = None;
        // Places are counted from the first node that ever came, as others may drain meanwhile.
        let mut end = usize::MAX;
        loop {
            let fresh = lock(&self.fresh);
            let end_here = (end.saturating_sub(fresh.drained)).min(fresh.nodes.len());
            let Some(last) = end_here.checked_sub(1) else { break };
            let start = last / BLOCK * BLOCK;
            fresh.tags.find(tag, start, end_here, |place| {
                // SAFETY: invariant 1; the arena outlives this borrow of the log.
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
        // What was drained meanwhile is here, by invariant 3.
        // SAFETY: as above.
        let sorted = read(&self.view).get(key, seq).map(|slot| unsafe { slot.node() });
        newest.into_iter().chain(sorted).max_by_key(|node: &NodeRef<'a>| node.seq())
    }

    /// A copy of everything that was appended before, sorted for this once.
    pub(crate) fn copy(&self) -> Arc<SortedView> {
        // With the lock, so that nothing is on its way from one part to the other.
        let _sorting = lock(&self.sorting);
        let nodes = lock(&self.fresh).nodes.clone();
        let older = Arc::clone(&read(&self.view));
        self.sorted(nodes.into_iter().chain(older.nodes()))
    }

    /// An order of these nodes, which is not kept.
    pub(crate) fn sorted(&self, nodes: impl Iterator<Item = NonNull<Node>>) -> Arc<SortedView> {
        // SAFETY: invariant 1.
        let slots = nodes.map(|node| unsafe { RunSlot::new(node) }).collect();
        Arc::new(SortedView::of(SortedRun::sorted(slots, &self.run_bytes)))
    }

    /// Adds nodes of which none was appended, except as doubtful.
    pub(crate) fn install(&self, nodes: impl Iterator<Item = NonNull<Node>>) {
        let _sorting = lock(&self.sorting);
        // SAFETY: invariant 1.
        let slots = nodes.map(|node| unsafe { RunSlot::new(node) }).collect();
        let next = read(&self.view).with(SortedRun::sorted(slots, &self.run_bytes));
        *write(&self.view) = Arc::new(next);
    }

    /// Sorts what is fresh into the view.
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
        // SAFETY: invariant 1.
        let doubtful = doubtful.into_iter().map(|node| unsafe { RunSlot::new(node) });
        let missing = doubtful.filter(|slot| !view.contains(slot));
        // SAFETY: invariant 1.
        let slots = nodes.into_iter().map(|node| unsafe { RunSlot::new(node) });
        let run = SortedRun::sorted(slots.chain(missing).collect(), &self.run_bytes);
        let next = Arc::new(view.with(run));
        drop(view);
        // In this order, by invariant 3.
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

    /// Bytes in use, and bytes taken from the allocator.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let runs = self.run_bytes.load(Ordering::Relaxed);
        let used = self.fresh_used.load(Ordering::Relaxed);
        let allocated = self.fresh_allocated.load(Ordering::Relaxed).max(used);
        (runs + used, runs + allocated)
    }
}
