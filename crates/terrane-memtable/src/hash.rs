//! Hashed memtables (memory buffer paper, §2.1): a hash of the first bytes of a key chooses a
//! bucket. In the hash skip-list and the hash linked-list, buckets are sorted lists; in the hash
//! vector of the authors' later program, they are chains in the order of arrival.
//!
//! An insert or a lookup searches one bucket. Prefixes that share a bucket share one list, which is
//! in the order of keys. The linked-list is a skip-list whose nodes have one link, so that a bucket
//! can become a skip-list as it grows: beyond a threshold of entries, new nodes are taller.
//!
//! Keys with the same prefix are neighbours in key order, so a cursor stays in its bucket while it
//! stays in its prefix. When it leaves the prefix, and the reader did not promise to stop before,
//! it continues in a sorted view of all entries. By default that view is created when it is first
//! needed and then only updated; with [`HashView::Copy`] it is created anew each time, as RocksDB
//! does and as the paper measured. In a bucket in the order of arrival, a cursor sorts the entries
//! of its prefix.
//!
//! To create the view, all buckets are walked while entries are inserted. From then on entries are
//! also logged, and none may be missed or appear twice. A writer reads `stage` before and after it
//! links its node. If the walk had ended before the link, it missed the node, which is logged. If
//! the walk has still not begun after the link, it will see the node. Otherwise the node is logged
//! as doubtful, and later checked against the view.
//!
//! Invariants:
//! 1. Buckets lie in the arena, which the table owns, and are never removed.
//! 2. An entry is in the bucket of its prefix; a list is in the order of entries.
//! 3. Nodes lie in the arena of the table and have no versions, so they are never refilled.

mod chain;
mod position;
mod prefix;
mod settings;

use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::arena::Arena;
use crate::entry::{Entry, SeqNo};
use crate::ordered::{EntryLog, SortedView};
use crate::pool::{ALIGN, Pool};
use crate::readers::ReaderView;
use crate::skiplist::{Layout, List, Node, NodeRef, random_height};
use crate::structure::{InsertOutcome, Structure};
use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, WrittenOnce, fence, lock};
use chain::{Chain, ChainTooLong, STEPS_MAX};
pub(crate) use position::HashPosition;
use prefix::Prefix;
pub use settings::{HashLinkedListConfig, HashSkipListConfig, HashVectorConfig};

/// How a hashed memtable serves a range that leaves a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashView {
    /// From a sorted view of all entries, which is created once and then updated.
    #[default]
    Kept,
    /// From a copy of all entries, sorted each time.
    Copy,
}

/// How the table of a hashed memtable is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableShape {
    /// The length of the prefix that chooses a bucket, in bytes.
    pub(crate) prefix: usize,
    pub(crate) buckets: usize,
    pub(crate) form: BucketForm,
}

/// The structure of a bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BucketForm {
    /// A sorted list.
    List(ListHeights),
    /// A chain in the order of arrival.
    Chain,
}

/// How tall the heads and nodes of a hashed memtable's lists are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListHeights {
    /// The number of links in the head of an empty list.
    pub(crate) head: usize,
    /// The largest height of a node.
    pub(crate) max: usize,
    /// In a list with fewer entries, nodes have one link.
    pub(crate) tall_from: usize,
}

/// One in this many nodes of a height also has the next height.
const BRANCHING: u64 = 4;

/// Stages of the walk over all buckets: not begun, running, over.
const UNORDERED: usize = 0;
const ORDERING: usize = 1;
const ORDERED: usize = 2;

/// A list and its length.
struct ListBucket {
    list: List,
    /// The number of entries; counted only if the heights of nodes depend on it.
    len: AtomicUsize,
    all: WrittenOnce,
}

const _: () = assert!(align_of::<ListBucket>() <= ALIGN);

/// The table of buckets.
enum Buckets {
    /// Sorted lists; each is created when its first entry arrives.
    Lists(Box<[AtomicPtr<ListBucket>]>, ListHeights),
    Chains(Box<[Chain]>),
}

/// A hash table of buckets.
pub(crate) struct Hashed {
    arena: Arena,
    places: Buckets,
    prefix: usize,
    view: HashView,
    /// Entries inserted since the view was created.
    log: EntryLog,
    stage: AtomicUsize,
    /// Held while the view is created.
    ordering: Mutex<()>,
}

// SAFETY: the table owns the arena of its buckets and nodes (invariant 1), which are initialized
// before they are published and change by atomic operations.
unsafe impl Send for Hashed {}
// SAFETY: shared access changes buckets by atomic operations only, and nodes are never refilled
// (invariant 3).
unsafe impl Sync for Hashed {}

impl Hashed {
    pub(crate) fn new(shape: TableShape, view: HashView, pool: Arc<Pool>) -> Self {
        let arena = Arena::new(pool);
        let empty = || AtomicPtr::new(ptr::null_mut());
        let count = 0..shape.buckets.max(1);
        let places = match shape.form {
            BucketForm::List(heights) => Buckets::Lists(count.map(|_| empty()).collect(), heights),
            BucketForm::Chain => Buckets::Chains(count.map(|_| Chain::new()).collect()),
        };
        // SAFETY: nodes are allocated in the arena of this table, which the log does not outlive;
        // cursors hold the memtable with the views that they use.
        let log = unsafe { EntryLog::new(0) };
        let stage = AtomicUsize::new(UNORDERED);
        let prefix = shape.prefix;
        Self { arena, places, prefix, view, log, stage, ordering: Mutex::new(()) }
    }

    fn prefix<'k>(&self, key: &'k [u8]) -> Prefix<'k> {
        Prefix::of(key, self.prefix)
    }

    /// Returns the table entry for the bucket of a key.
    fn place<'a, P>(&self, places: &'a [P], key: &[u8]) -> &'a P {
        &places[self.prefix(key).bucket(places.len())]
    }

    fn deref(&self, bucket: *mut ListBucket) -> Option<&ListBucket> {
        // SAFETY: `bucket` is null or was published in a table entry, so it lies in the arena
        // (invariant 1).
        let bucket: &ListBucket = unsafe { bucket.as_ref() }?;
        bucket.all.read();
        Some(bucket)
    }

    /// Returns the list of a table entry, or `None` while the list has no entries.
    fn list(&self, place: &AtomicPtr<ListBucket>) -> Option<&List> {
        // Acquire pairs with the release in `bucket_or_new`: the bucket is seen initialized.
        self.deref(place.load(Ordering::Acquire)).map(|bucket| &bucket.list)
    }

    fn bucket_or_new(&self, place: &AtomicPtr<ListBucket>, heights: &ListHeights) -> &ListBucket {
        loop {
            // Acquire pairs with the release below.
            if let Some(bucket) = self.deref(place.load(Ordering::Acquire)) {
                return bucket;
            }
            let new = self.arena.allocate(size_of::<ListBucket>()).cast::<ListBucket>();
            // SAFETY: the table owns the arena of the list and of all its nodes, which have no
            // versions (invariants 1 and 3).
            let list = unsafe { List::new(&self.arena, Layout::Plain, heights.head) };
            let bucket = ListBucket { list, len: AtomicUsize::new(0), all: WrittenOnce::new() };
            bucket.all.write();
            // SAFETY: the allocation is new, has the size of a bucket, and is aligned to 8.
            unsafe { new.write(bucket) };
            // Release pairs with the acquires above and in `list`: the bucket is seen initialized.
            // If another thread was faster, this one stays unused.
            let _ = place.compare_exchange(
                ptr::null_mut(),
                new.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
    }

    fn insert_sorted(
        &self,
        bucket: &ListBucket,
        heights: &ListHeights,
        contents: &Entry<'_>,
    ) -> NonNull<Node> {
        let Entry { key, seq, .. } = *contents;
        let height = heights.of(bucket, seq);
        let node = Node::allocate(&self.arena, Layout::Plain, height, contents);
        if height > 1 {
            bucket.list.grow(&self.arena, height);
        }
        let mut splice = bucket.list.splice(key, seq);
        bucket.list.link(node, height, key, seq, &mut splice);
        node
    }

    /// Logs a linked node unless the walk will see it; `stage` is the stage that its writer read
    /// before linking it.
    fn log(&self, node: NonNull<Node>, stage: usize) {
        if stage == ORDERED {
            self.log.push(node);
        // SeqCst: ordered after the fence of a list or the SeqCst exchange of a chain, so that it
        // cannot miss a walk that missed the node.
        } else if self.stage.load(Ordering::SeqCst) != UNORDERED {
            self.log.push_doubtful(node);
        }
    }

    /// Returns all nodes, unordered.
    fn nodes(&self) -> Vec<NonNull<Node>> {
        match &self.places {
            Buckets::Lists(places, _) => {
                let firsts = places.iter().filter_map(|place| self.list(place)?.first());
                let all = firsts.flat_map(|first| {
                    std::iter::successors(Some(first), |node| node.next()).map(NodeRef::as_ptr)
                });
                all.collect()
            }
            Buckets::Chains(chains) => {
                chains.iter().flat_map(Chain::nodes).map(NodeRef::as_ptr).collect()
            }
        }
    }

    /// Returns the entries of a chain that share the prefix of `key`, sorted.
    fn ordered_prefix(&self, chain: &Chain, key: &[u8]) -> Arc<SortedView> {
        let prefix = self.prefix(key);
        let nodes = chain.nodes().filter(|node| prefix.is_of(node.key()));
        self.log.sorted(nodes.map(NodeRef::as_ptr))
    }

    /// Returns a sorted view of all entries that were inserted before this call.
    fn ordered(&self) -> Arc<SortedView> {
        match self.view {
            HashView::Copy => self.log.sorted(self.nodes().into_iter()),
            HashView::Kept => self.kept_view(),
        }
    }

    fn kept_view(&self) -> Arc<SortedView> {
        if self.stage.load(Ordering::Acquire) != ORDERED {
            let _ordering = lock(&self.ordering);
            if self.stage.load(Ordering::Acquire) != ORDERED {
                self.stage.store(ORDERING, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                self.log.install(self.nodes().into_iter());
                // Release pairs with the acquires above and in `insert`: the installed view is
                // seen.
                self.stage.store(ORDERED, Ordering::Release);
            }
        }
        self.log.view()
    }

    /// The number of nodes of a chain that a lookup visits before it uses the sorted view.
    fn steps_max(&self) -> usize {
        match self.view {
            HashView::Kept => STEPS_MAX,
            // A view would be created for this lookup alone.
            HashView::Copy => usize::MAX,
        }
    }
}

impl Structure for Hashed {
    type Position = HashPosition;

    #[inline]
    fn insert(&self, contents: &Entry<'_>, _view: &ReaderView<'_>) -> InsertOutcome {
        // Acquire pairs with the release of ORDERED in `kept_view`: a writer that sees it links its
        // node after the walk.
        let stage = self.stage.load(Ordering::Acquire);
        let node = match &self.places {
            Buckets::Lists(places, heights) => {
                let bucket = self.bucket_or_new(self.place(places, contents.key), heights);
                let node = self.insert_sorted(bucket, heights, contents);
                // Pairs with the fence in `kept_view`: either the walk sees the link, or the load
                // of the stage in `log` sees that the walk has begun.
                if stage != ORDERED {
                    fence(Ordering::SeqCst);
                }
                node
            }
            Buckets::Chains(chains) => {
                let node = Node::allocate(&self.arena, Layout::Plain, 1, contents);
                // SAFETY: the node was just allocated in the arena of this table, with one link.
                unsafe { self.place(chains, contents.key).push(node) };
                node
            }
        };
        if self.view == HashView::Kept {
            self.log(node, stage);
        }
        InsertOutcome::default()
    }

    fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        match &self.places {
            Buckets::Lists(places, _) => {
                let list = self.list(self.place(places, key))?;
                let node = list.first_at_or_after(key, seq)?;
                (node.key() == key).then(|| node.entry())
            }
            Buckets::Chains(chains) => {
                match self.place(chains, key).get(key, seq, self.steps_max()) {
                    Ok(node) => node.map(NodeRef::entry),
                    Err(ChainTooLong) => {
                        let slot = self.ordered().get(key, seq)?;
                        // SAFETY: the slot names a node of this table's arena (invariant 3), which
                        // `self` keeps.
                        let node: NodeRef<'_> = unsafe { slot.node() };
                        Some(node.entry())
                    }
                }
            }
        }
    }

    fn usage(&self) -> (usize, usize) {
        let (used, allocated) = self.arena.usage();
        let (log_used, log_allocated) = self.log.usage();
        let table = self.charged_bytes();
        (used + log_used + table, allocated + log_allocated + table)
    }

    /// Counts the table of buckets, so that a design with a larger table has less room for entries.
    fn charged_bytes(&self) -> usize {
        match &self.places {
            Buckets::Lists(places, _) => size_of_val(&**places),
            Buckets::Chains(chains) => size_of_val(&**chains),
        }
    }
}

impl ListHeights {
    fn of(&self, bucket: &ListBucket, seq: SeqNo) -> usize {
        // Relaxed: the count only influences speed.
        if self.tall_from > 0 && bucket.len.fetch_add(1, Ordering::Relaxed) < self.tall_from {
            return 1;
        }
        random_height(seq, BRANCHING, self.max)
    }
}
