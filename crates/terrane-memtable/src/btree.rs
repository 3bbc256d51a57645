//! A concurrent B-link tree (Lehman and Yao 1981) that only grows, read without locks.
//!
//! A search in a skip-list visits a node for each comparison, and most of them are cache misses.
//! Here neighbouring keys share a node, and a search reads only a few adjacent lines of it, which
//! can be prefetched; the upper levels stay in the cache. That saves most of the cost of an insert
//! or a lookup in a large memtable.
//!
//! Writers lock one node at a time. A full node is split: its upper half moves to a new right
//! neighbour, which is reached through the node until the parent has an entry for it. Readers do
//! not lock; they retry reads of a node that changed (optimistic, as in Masstree, Mao et al. 2012).
//! A reader waits only while a writer changes the same node: for a few copies, or while the writer
//! reads the node's keys to give it new heads.
//!
//! Ascending keys leave full nodes behind, because a split at the end of the last node moves
//! nothing.
//!
//! Searches compare the heads of keys first, without the prefixes that the tree learns: [`heads`], [`learning`].
//!
//! FloDB's tree overwrites in place: [`in_place`].
//!
//! Left out on purpose: removal of keys, and with it merging nodes and every scheme to reclaim them.

mod group;
mod heads;
mod in_place;
mod learning;
mod multi_insert;
mod node;
pub(crate) mod position;
mod search;
mod structure;

use std::ptr::NonNull;

use crate::arena::Arena;
use crate::entry::{Entry, SeqNo};
use crate::key_span::KeySpan;
use crate::pool::Pool;
use crate::skiplist::{Layout, Node, NodeRef};
use crate::structure::Settings;
use crate::sync::{AtomicPtr, Mutex, Ordering, lock};
use heads::Heads;
pub(crate) use in_place::{Neighbours, Reclaim};
use learning::Learning;
pub(crate) use node::PinnedEntry;
use node::{SLOTS, SearchTarget, TreeNode, TreeNodeGuard, TreeNodeRef};
use std::sync::Arc;

/// The approximate number of keys from which the tree learns prefixes.
const SAMPLES: usize = 512;

/// The settings of a B-link tree: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BTreeConfig;

impl Settings for BTreeConfig {
    type Structure = BTree;

    const EXAMPLES: &'static [(&'static str, Self)] = &[("as usual", Self)];

    const SMALLEST: Self = Self;

    fn usual(_entries: usize) -> Self {
        Self
    }

    fn build(self, pool: Arc<Pool>, span: impl FnOnce() -> Option<KeySpan>) -> BTree {
        let heads = span().as_ref().map(Heads::expecting).unwrap_or_default();
        BTree::with_heads(Layout::Plain, pool, heads)
    }
}

/// The tree.
pub(crate) struct BTree {
    arena: Arena,
    root: AtomicPtr<TreeNode>,
    /// Held while a new root is added.
    growing: Mutex<()>,
    layout: Layout,
    learning: Learning,
}

// SAFETY: the tree owns the arena of its nodes and entries (crate rule 1); entries are filled
// before they are published (crate rule 2), and nodes change by atomic operations.
unsafe impl Send for BTree {}
// SAFETY: shared access changes nodes by atomic operations only, and readers of entries that may be
// refilled pin them (invariant 2 of `node`).
unsafe impl Sync for BTree {}

impl BTree {
    pub(crate) fn new(layout: Layout, pool: Arc<Pool>) -> Self {
        Self::with_heads(layout, pool, Heads::default())
    }

    fn with_heads(layout: Layout, pool: Arc<Pool>, heads: Heads) -> Self {
        let (arena, learning) = (Arena::new(pool), Learning::new(heads));
        let root = AtomicPtr::new(TreeNode::allocate(&arena, 0, learning.newest()).as_ptr());
        Self { arena, root, growing: Mutex::new(()), layout, learning }
    }

    #[inline]
    fn root(&self) -> TreeNodeRef<'_> {
        // Acquire pairs with the release in `grow`: the root is seen initialized.
        let root = self.root.load(Ordering::Acquire);
        // SAFETY: `new` and `grow` store only pointers to nodes, so the root is never null.
        let root = unsafe { NonNull::new_unchecked(root) };
        // SAFETY: `root` is a node of this tree's arena, which `self` keeps.
        unsafe { TreeNodeRef::new(root) }
    }

    /// Returns the target of a search for a version.
    #[inline]
    fn target<'k>(&self, key: &'k [u8], seq: SeqNo) -> SearchTarget<'k> {
        SearchTarget::new(self.learning.heads(), key, seq)
    }

    /// Inserts a version. No two versions of a key may have the same sequence number.
    fn insert(&self, contents: &Entry<'_>) {
        let target = self.target(contents.key, contents.seq);
        let leaf = self.descend(&target, 0);
        leaf.prefetch_entries();
        // The prefetched lines arrive while key and value are copied.
        let record = self.allocate(contents);
        let seen = leaf.look_ahead(&target);
        // SAFETY: `allocate` made the node in this tree's arena, and no one else knows it, so it is
        // never refilled.
        let entry = unsafe { NodeRef::new(record) };
        self.insert_from(leaf, &target, entry, seen);
    }

    /// Inserts an entry into the leaf to which it belongs, which is `node` or to its right. `node` had `from` heads
    /// below the target's when its counter was `version`.
    #[inline]
    fn insert_from<'a>(
        &'a self,
        node: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
        entry: NodeRef<'a>,
        (version, from): (u64, usize),
    ) {
        let leaf = self.lock_from(node, target);
        let target = leaf.node.target(target);
        let is_seen = leaf.node.as_ptr() == node.as_ptr() && leaf.is_unchanged_since(version);
        let from = if is_seen { from } else { leaf.node.lower_bound(target.head) };
        let at = leaf.node.count_before_from(target, from);
        self.insert_at(leaf, at, target.head, entry);
    }

    /// Allocates an entry that is not linked.
    pub(crate) fn allocate(&self, contents: &Entry<'_>) -> NonNull<Node> {
        Node::allocate(&self.arena, self.layout, 0, contents)
    }

    /// Refills an entry that is not linked.
    ///
    /// # Safety
    /// The entry was allocated by [`BTree::allocate`] of this tree, no other thread reads it (crate
    /// rule 2), and it has room for the contents.
    pub(crate) unsafe fn rewrite(&self, record: NonNull<Node>, contents: &Entry<'_>) {
        // SAFETY: the caller guarantees exclusive access and room, and all entries of this tree
        // have its layout.
        unsafe { Node::fill(record, self.layout, contents) };
    }

    /// Links an entry, and reclaims older versions of its key that it hides.
    ///
    /// # Safety
    /// The entry was allocated with versions by [`BTree::allocate`] of this tree, is permanent or
    /// in no Membuffer, and is not in the tree.
    pub(crate) unsafe fn link(&self, record: NonNull<Node>, reclaim: Reclaim<'_>) -> Neighbours {
        // SAFETY: the caller guarantees that the entry lies in this tree's arena and is not
        // refilled before it is removed from a leaf, which is locked below until it is inserted.
        let entry: NodeRef<'_> = unsafe { NodeRef::new(record) };
        let target = self.target(entry.key(), entry.seq());
        let leaf = self.descend(&target, 0);
        leaf.prefetch_entries();
        let leaf = self.lock_from(leaf, &target);
        let neighbours = self.insert_into(leaf, &target, entry, reclaim);
        self.reclaim_beyond(neighbours, &target, reclaim);
        neighbours
    }

    /// Removes older versions of an inserted target, if the right neighbour of its leaf may begin with them.
    #[inline]
    fn reclaim_beyond(
        &self,
        neighbours: Neighbours,
        target: &SearchTarget<'_>,
        reclaim: Reclaim<'_>,
    ) {
        if neighbours.is_continued {
            self.remove_older(target.key, target.seq, reclaim);
        }
    }

    /// Removes the hidden versions of a key that are older than its version `seq`, from that version's
    /// leaf and from the right neighbour. Does nothing if version `seq` is not in the tree.
    pub(crate) fn remove_older(&self, key: &[u8], seq: SeqNo, reclaim: Reclaim<'_>) {
        let target = self.target(key, seq);
        let mut leaf = self.lock_for(&target, 0);
        let placed = leaf.node.target(&target);
        let at = leaf.node.count_before(placed);
        let newest = leaf.node.is_at(at, placed).then(|| leaf.node.entry(at)).flatten();
        let Some(newest) = newest else { return };
        in_place::remove_hidden(&mut leaf, (at + 1, placed.head), newest, None, reclaim);
        let last = leaf.node.entry(leaf.node.len() - 1).filter(|last| last.key() == key);
        if let Some(last) = last.filter(|_| leaf.node.continues_right(placed))
            && let Some(right) = leaf.node.right()
        {
            // Threads that lock two nodes lock the left one first.
            let mut right = right.lock();
            let head = right.node.target(&target).head;
            in_place::remove_hidden(&mut right, (0, head), last, None, reclaim);
        }
    }

    /// Inserts an entry into the locked leaf to which it belongs.
    #[inline]
    fn insert_into<'a>(
        &'a self,
        mut leaf: TreeNodeGuard<'a>,
        target: &SearchTarget<'_>,
        entry: NodeRef<'a>,
        reclaim: Reclaim<'_>,
    ) -> Neighbours {
        let target = leaf.node.target(target);
        let (at, head) = (leaf.node.count_before(target), target.head);
        let is_like_next = at < leaf.node.len() && leaf.node.head(at) == head;
        let may_continue = leaf.node.continues_right(target);
        let mut neighbours = Neighbours::default();
        if is_like_next {
            neighbours =
                in_place::remove_hidden(&mut leaf, (at, head), entry, Some(entry), reclaim);
        }
        if may_continue {
            (neighbours.is_continued, neighbours.has_older) = (true, true);
        }
        if !neighbours.is_placed {
            self.insert_at(leaf, at, head, entry);
        }
        neighbours
    }

    /// Inserts an entry at an index of a locked leaf.
    #[inline]
    fn insert_at<'a>(
        &'a self,
        mut leaf: TreeNodeGuard<'a>,
        at: usize,
        head: u64,
        entry: NodeRef<'a>,
    ) {
        if leaf.node.len() < SLOTS {
            leaf.insert(at, head, entry.as_ptr(), None);
            return;
        }
        let is_blind = leaf.node.is_blind();
        let (first, right) = self.split_leaf(&mut leaf, at, head, entry);
        drop(leaf);
        self.add_to_parent(1, first, right);
        if self.learning.note_split(is_blind) {
            self.learning.learn(|leaves| self.sample_keys((leaves / SAMPLES).max(1)));
        }
    }

    /// Returns the separator of a leaf: its first entry, or a copy of that entry's key and sequence
    /// number if the entry may be removed.
    fn separator<'a>(&'a self, first: NodeRef<'a>) -> NodeRef<'a> {
        if self.layout == Layout::Plain {
            return first;
        }
        let contents = Entry { value: &[], ..first.entry() };
        let node = Node::allocate(&self.arena, Layout::Plain, 0, &contents);
        // SAFETY: the node was just allocated in this tree's arena; it has no versions, so it is never
        // refilled.
        unsafe { NodeRef::new(node) }
    }

    /// Splits a full leaf and inserts an entry that belongs at `at`. Returns the new right
    /// neighbour, and its separator.
    fn split_leaf<'a>(
        &'a self,
        leaf: &mut TreeNodeGuard<'a>,
        at: usize,
        head: u64,
        entry: NodeRef<'a>,
    ) -> (NodeRef<'a>, TreeNodeRef<'a>) {
        let right = self.new_node(0);
        if at == SLOTS && leaf.node.right().is_none() {
            // An ascending key leaves the full node unchanged.
            right.lock().insert(0, head, entry.as_ptr(), None);
            let separator = self.separator(entry);
            leaf.link(right, head, separator);
            return (separator, right);
        }
        let middle = SLOTS / 2;
        let separator = |first| self.separator(first);
        // `split` returns an entry, because a full leaf has one in its middle.
        let first = leaf.split(middle, right, separator).unwrap_or(entry);
        if at > middle {
            right.lock().insert(at - middle, head, entry.as_ptr(), None);
        } else {
            leaf.insert(at, head, entry.as_ptr(), None);
        }
        (first, right)
    }

    fn new_node(&self, level: usize) -> TreeNodeRef<'_> {
        let newest = self.learning.newest();
        // SAFETY: the node was just allocated in this tree's arena.
        unsafe { TreeNodeRef::new(TreeNode::allocate(&self.arena, level, newest)) }
    }

    /// Inserts a new node, whose first entry is `first`, into the level above.
    fn add_to_parent<'a>(&'a self, level: usize, first: NodeRef<'a>, child: TreeNodeRef<'a>) {
        let target = self.target(first.key(), first.seq());
        if self.root().level() < level {
            self.grow(level);
        }
        let mut parent = self.lock_for(&target, level);
        let target = parent.node.target(&target);
        let (at, head) = (parent.node.count_before(target), target.head);
        if parent.node.len() < SLOTS {
            parent.insert(at, head, first.as_ptr(), Some(child));
            return;
        }
        let right = self.new_node(level);
        let middle = SLOTS / 2;
        let Some(up) = parent.split(middle, right, |first| first) else { return };
        if at > middle {
            right.lock().insert(at - middle - 1, head, first.as_ptr(), Some(child));
        } else {
            parent.insert(at, head, first.as_ptr(), Some(child));
        }
        drop(parent);
        self.add_to_parent(level + 1, up, right);
    }

    /// Adds a root of `level`, unless another thread has added it.
    fn grow(&self, level: usize) {
        let _growing = lock(&self.growing);
        let old = self.root();
        if old.level() >= level {
            return;
        }
        let root = self.new_node(level);
        // The old root is the leftmost node of its level; nodes to its right are reached through it
        // until they are added.
        root.lock().set_first_child(old);
        // Release pairs with the acquire in `root`.
        self.root.store(root.as_ptr().as_ptr(), Ordering::Release);
    }

    /// Locks the node of a level in which the target belongs.
    fn lock_for(&self, target: &SearchTarget<'_>, level: usize) -> TreeNodeGuard<'_> {
        self.lock_from(self.descend(target, level), target)
    }

    /// Locks the node in which the target belongs, which is `node` or to its right, and gives it the newest heads.
    #[inline]
    fn lock_from<'a>(
        &'a self,
        mut node: TreeNodeRef<'a>,
        target: &SearchTarget<'_>,
    ) -> TreeNodeGuard<'a> {
        loop {
            let mut locked = node.lock();
            // The node may have been split since it was found.
            match node.right() {
                Some(right) if node.is_beyond(node.target(target)) => node = right,
                _ => {
                    locked.renew_heads(self.learning.newest());
                    return locked;
                }
            }
        }
    }
}
