//! Buckets, chosen by a hash of the first bytes of the key (memory buffer paper, §2.1): the hash
//! skip-list and the hash linked-list, whose buckets are sorted lists, and the hash vector of the
//! authors' later program, whose buckets are in the order of arrival.
//!
//! An insert or a lookup searches one bucket. Prefixes that share a bucket are in one list, which
//! is in the order of keys. The linked-list is a skip-list whose nodes have one link, so that a
//! bucket can become a skip-list while it is in use: from so many entries on, nodes are taller.
//!
//! Keys of one prefix are neighbours in the order of all keys, so a cursor stays in its bucket as
//! long as it stays in its prefix. Where it leaves that, and the reader did not promise to stop
//! before, it goes on in an order of all entries. By default that order is made when it is first
//! needed, and then only brought up to date; with [`HashView::Copy`] it is made anew each time, as
//! RocksDB does and as the paper measured. In a bucket in the order of arrival, a cursor sorts what
//! shares its prefix.
//!
//! To make the order of all, all buckets are walked while entries are inserted. From then on entries are also
//! logged, and no entry may be missed or be there twice. A writer looks at `stage` before it links
//! its node and after: if the walk was over before, the node is not in it; if the walk had not
//! begun after, the node is in it; otherwise the node is logged as doubtful, and looked up.
//!
//! Invariants:
//! 1. Buckets lie in the arena, and are never removed.
//! 2. An entry is in the bucket of its prefix; a list is in the order of entries.

mod chain;
mod position;
mod prefix;

use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::arena::{ALIGN, Arena};
use crate::entry::{Entry, SeqNo};
use crate::ordered::{EntryLog, SortedView};
use crate::pool::Pool;
use crate::skiplist::{Layout, List, Node, NodeRef, random_height};
use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, WrittenOnce, fence, lock};
use chain::{Chain, ChainTooLong, STEPS_MAX};
pub(crate) use position::{HashPosition, ReadBounds};
use prefix::Prefix;

/// What a hashed memtable reads where a range leaves a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashView {
    /// An order of all entries that is made once and then brought up to date.
    #[default]
    Kept,
    /// A copy of all entries, sorted each time.
    Copy,
}

/// The table of a hashed memtable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableShape {
    /// Bytes of a key that choose its bucket.
    pub(crate) prefix: usize,
    pub(crate) buckets: usize,
    pub(crate) form: BucketForm,
}

/// What is in a bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BucketForm {
    /// A sorted list.
    List(ListHeights),
    /// Entries in the order of arrival.
    Chain,
}

/// The lists of a hashed memtable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListHeights {
    /// The links of an empty list's head.
    pub(crate) head: usize,
    /// The largest height of a node.
    pub(crate) max: usize,
    /// In a list of fewer entries, nodes have one link.
    pub(crate) tall_from: usize,
}

/// One in so many nodes of a height also has the next one.
const BRANCHING: u64 = 4;

/// The walk over all buckets: not begun, going on, over.
const UNORDERED: usize = 0;
const ORDERING: usize = 1;
const ORDERED: usize = 2;

/// A list, and how long it is.
struct ListBucket {
    list: List,
    /// Counted only where it decides about heights.
    len: AtomicUsize,
    all: WrittenOnce,
}

const _: () = assert!(align_of::<ListBucket>() <= ALIGN);

/// A place for each bucket.
enum Buckets {
    /// A list is made when its first entry comes.
    Lists(Box<[AtomicPtr<ListBucket>]>, ListHeights),
    Chains(Box<[Chain]>),
}

/// Buckets with entries.
pub(crate) struct Hashed {
    arena: Arena,
    places: Buckets,
    prefix: usize,
    view: HashView,
    /// What was inserted since the order was made.
    log: EntryLog,
    stage: AtomicUsize,
    /// Held while the order is made.
    ordering: Mutex<()>,
}

// SAFETY: buckets and nodes live in the arena, which the table owns, and change only through
// atomics.
unsafe impl Send for Hashed {}
// SAFETY: as for `Send`.
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
        // SAFETY: nodes are made in the arena of this table, which cursors keep together with
        // their positions.
        let log = unsafe { EntryLog::new(0) };
        let stage = AtomicUsize::new(UNORDERED);
        let prefix = shape.prefix;
        Self { arena, places, prefix, view, log, stage, ordering: Mutex::new(()) }
    }

    /// Bytes in use, and bytes taken from the allocator.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let (used, allocated) = self.arena.usage();
        let (log_used, log_allocated) = self.log.usage();
        let table = self.table_bytes();
        (used + log_used + table, allocated + log_allocated + table)
    }

    /// Bytes of the table of buckets.
    pub(crate) fn table_bytes(&self) -> usize {
        match &self.places {
            Buckets::Lists(places, _) => size_of_val(&**places),
            Buckets::Chains(chains) => size_of_val(&**chains),
        }
    }

    fn prefix<'k>(&self, key: &'k [u8]) -> Prefix<'k> {
        Prefix::of(key, self.prefix)
    }

    /// What the bucket of a key is reached by.
    fn place<'a, P>(&self, places: &'a [P], key: &[u8]) -> &'a P {
        &places[self.prefix(key).bucket(places.len())]
    }

    fn deref(&self, bucket: *mut ListBucket) -> Option<&ListBucket> {
        // SAFETY: invariant 1.
        let bucket: &ListBucket = unsafe { bucket.as_ref() }?;
        bucket.all.read();
        Some(bucket)
    }

    /// The list at a place; none if nothing was put there.
    fn list(&self, place: &AtomicPtr<ListBucket>) -> Option<&List> {
        // Acquire pairs with the release in `bucket_or_new`.
        self.deref(place.load(Ordering::Acquire)).map(|bucket| &bucket.list)
    }

    fn bucket_or_new(&self, place: &AtomicPtr<ListBucket>, heights: &ListHeights) -> &ListBucket {
        loop {
            if let Some(bucket) = self.deref(place.load(Ordering::Acquire)) {
                return bucket;
            }
            let new = self.arena.allocate(size_of::<ListBucket>()).cast::<ListBucket>();
            // SAFETY: the arena is this table's, and so are all nodes of its lists.
            let list = unsafe { List::new(&self.arena, Layout::Plain, heights.head) };
            let bucket = ListBucket { list, len: AtomicUsize::new(0), all: WrittenOnce::new() };
            bucket.all.write();
            // SAFETY: freshly allocated for a bucket, and aligned to 8.
            unsafe { new.write(bucket) };
            // Release: who sees the bucket sees it written. Where another thread was faster, this
            // one is left unused.
            let _ = place.compare_exchange(
                ptr::null_mut(),
                new.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
    }

    /// Adds a version. No two versions of a key may have the same sequence number.
    pub(crate) fn insert(&self, contents: &Entry<'_>) {
        // Acquire pairs with the release in `kept_view`.
        let stage = self.stage.load(Ordering::Acquire);
        let node = match &self.places {
            Buckets::Lists(places, heights) => {
                let bucket = self.bucket_or_new(self.place(places, contents.key), heights);
                let node = self.insert_sorted(bucket, heights, contents);
                // Pairs with the fence in `kept_view`: either the walk sees the link, or this sees
                // that the walk has begun.
                if stage != ORDERED {
                    fence(Ordering::SeqCst);
                }
                node
            }
            Buckets::Chains(chains) => {
                let node = Node::allocate(&self.arena, Layout::Plain, 1, contents);
                // SAFETY: just made in the arena of this table, with one link.
                unsafe { self.place(chains, contents.key).push(node) };
                node
            }
        };
        if self.view == HashView::Kept {
            self.log(node, stage);
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

    /// Logs a node that was put into its bucket, and before that saw the walk at `stage`.
    fn log(&self, node: NonNull<Node>, stage: usize) {
        if stage == ORDERED {
            self.log.push(node);
        // Sequentially consistent, after the fence of a list or the exchange of a chain.
        } else if self.stage.load(Ordering::SeqCst) != UNORDERED {
            self.log.push_doubtful(node);
        }
    }

    /// All nodes, in no order.
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

    /// The entries of a chain that share the prefix of `key`, in order; as of now.
    fn ordered_prefix(&self, chain: &Chain, key: &[u8]) -> Arc<SortedView> {
        let prefix = self.prefix(key);
        let nodes = chain.nodes().filter(|node| prefix.is_of(node.key()));
        self.log.sorted(nodes.map(NodeRef::as_ptr))
    }

    /// An order of all entries that were inserted before.
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
                // Release: who sees that the walk is over links its node after it.
                self.stage.store(ORDERED, Ordering::Release);
            }
        }
        self.log.view()
    }

    /// Nodes of a chain that a lookup follows before it asks for the order of all entries.
    fn steps_max(&self) -> usize {
        match self.view {
            HashView::Kept => STEPS_MAX,
            // An order would be made for this lookup alone.
            HashView::Copy => usize::MAX,
        }
    }

    /// The newest version of `key` that is not newer than `seq`.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
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
                        // SAFETY: the arena is this table's.
                        let node: NodeRef<'_> = unsafe { slot.node() };
                        Some(node.entry())
                    }
                }
            }
        }
    }
}

impl ListHeights {
    fn of(&self, bucket: &ListBucket, seq: SeqNo) -> usize {
        // Relaxed: it decides about speed alone.
        if self.tall_from > 0 && bucket.len.fetch_add(1, Ordering::Relaxed) < self.tall_from {
            return 1;
        }
        random_height(seq, BRANCHING, self.max)
    }
}
