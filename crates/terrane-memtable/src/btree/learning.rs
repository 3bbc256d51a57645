//! Learns the prefixes of keys while they are inserted.
//!
//! Keys with a prefix that the tree does not expect have equal heads. This happens in the first memtable of a
//! database, or when a new kind of key appears. The tree counts the splits of leaves with equal heads. When one split
//! in [`BLIND_SHARE`] is of such a leaf, it derives new heads from the prefixes of a sample of its keys. A node gets
//! these when a writer locks it, and keeps its older heads until then.
//!
//! Invariant: heads live as long as the tree, because its nodes refer to them.

use std::ptr::NonNull;
use std::sync::Arc;

use super::heads::{Heads, common_prefixes};
use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, lock};

/// The tree learns once one in this many splits was of a leaf with equal heads.
const BLIND_SHARE: usize = 32;

/// How many leaves with equal heads are split before the tree learns for the first time. The number doubles
/// each time, because the heads of keys that differ only far after their prefixes stay equal.
#[cfg(not(any(loom, miri)))]
const PATIENCE: usize = 16;
/// Few, so that the small tests of loom and Miri learn.
#[cfg(any(loom, miri))]
const PATIENCE: usize = 2;

/// New heads justify the work of renewing nodes if they distinguish at least one more in this many keys.
const GAIN_SHARE: usize = 64;

/// The heads of a tree.
#[derive(Debug)]
pub(super) struct Learning {
    newest: AtomicPtr<Heads>,
    all: Mutex<Vec<Arc<Heads>>>,
    splits: AtomicUsize,
    blind: AtomicUsize,
    patience: AtomicUsize,
}

impl Learning {
    pub(super) fn new(heads: Heads) -> Self {
        let heads = Arc::new(heads);
        Self {
            newest: AtomicPtr::new(Arc::as_ptr(&heads).cast_mut()),
            all: Mutex::new(vec![heads]),
            splits: AtomicUsize::new(0),
            blind: AtomicUsize::new(0),
            patience: AtomicUsize::new(PATIENCE),
        }
    }

    /// Returns the heads that nodes get.
    #[inline]
    pub(super) fn newest(&self) -> NonNull<Heads> {
        // Acquire pairs with the release in `learn`: the heads are seen initialized.
        let newest = self.newest.load(Ordering::Acquire);
        // SAFETY: `new` and `learn` store pointers that come from an `Arc`, which are not null.
        unsafe { NonNull::new_unchecked(newest) }
    }

    #[inline]
    pub(super) fn heads(&self) -> &Heads {
        // SAFETY: `all` keeps the heads as long as `self`, and no one changes them.
        unsafe { self.newest().as_ref() }
    }

    /// Counts the split of a leaf, a blind one if its heads are equal. Returns whether the tree should learn.
    #[inline]
    pub(super) fn note_split(&self, is_blind: bool) -> bool {
        // Relaxed, for all counts: they decide only when to learn.
        let splits = self.splits.fetch_add(1, Ordering::Relaxed) + 1;
        is_blind && {
            let blind = self.blind.fetch_add(1, Ordering::Relaxed) + 1;
            blind >= self.patience.load(Ordering::Relaxed) && blind * BLIND_SHARE >= splits
        }
    }

    /// Derives heads from the prefixes of a sample of the keys; `sample` takes the number of splits. Keeps the current
    /// heads if they distinguish the keys equally well, because the choice among many prefixes varies with the sample.
    #[cold]
    pub(super) fn learn<'k>(&self, sample: impl FnOnce(usize) -> Vec<&'k [u8]>) {
        let mut all = lock(&self.all);
        let (blind, patience) =
            (self.blind.load(Ordering::Relaxed), self.patience.load(Ordering::Relaxed));
        if blind < patience {
            // Another thread has learned meanwhile.
            return;
        }
        self.blind.store(0, Ordering::Relaxed);
        self.patience.store(blind * 2, Ordering::Relaxed);
        let mut keys = sample(self.splits.load(Ordering::Relaxed));
        keys.sort_unstable();
        let heads = Heads::after(common_prefixes(keys.clone()));
        let different = self.heads().count_different(&keys);
        if heads.count_different(&keys) <= different + keys.len() / GAIN_SHARE {
            return;
        }
        let heads = Arc::new(heads);
        self.newest.store(Arc::as_ptr(&heads).cast_mut(), Ordering::Release);
        all.push(heads);
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use crate::btree::BTree;
    use crate::entry::{Entry, EntryKind};
    use crate::pool::Pool;
    use crate::skiplist::Layout;

    fn fill(tree: &BTree, prefix: &str, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let key = format!("{prefix}{:012}", number * 7919 % 1_000_000);
            let kind = EntryKind::Value;
            tree.insert(&Entry { key: key.as_bytes(), seq: u64::from(number), kind, value: b"" });
        }
    }

    /// Returns the share of leaves with equal heads, after inserts into them.
    fn blind_share(tree: &BTree) -> f64 {
        let mut node = tree.root();
        while node.level() > 0
            && let Some(child) = node.child(0)
        {
            node = child;
        }
        let (mut leaves, mut blind) = (0.0, 0.0);
        loop {
            leaves += 1.0;
            let middle = node.head(node.len() / 2);
            let is_blind = node.head(0) == middle || node.head(node.len() - 1) == middle;
            blind += f64::from(u8::from(is_blind));
            match node.right() {
                Some(right) => node = right,
                None => return blind / leaves,
            }
        }
    }

    #[test]
    fn heads_of_keys_that_begin_alike_soon_differ() {
        let tree = BTree::new(Layout::Plain, Pool::new(0));
        fill(&tree, "key:", 0..600);
        assert!(blind_share(&tree) > 0.9);
        fill(&tree, "key:", 600..20_000);
        assert!(blind_share(&tree) < 0.05, "{}", blind_share(&tree));
        // Another prefix, whose blind splits are a small share of all splits.
        fill(&tree, "counter:", 0..20_000);
        assert!(blind_share(&tree) < 0.1, "{}", blind_share(&tree));
    }

    #[test]
    fn more_prefixes_than_heads_can_have_are_not_learned_again_and_again() {
        let tree = BTree::new(Layout::Plain, Pool::new(0));
        for round in 0..40 {
            for prefix in 0..60 {
                fill(&tree, &format!("prefix-{prefix:02}:"), round * 30..round * 30 + 30);
            }
        }
        let learned = tree.learning.all.lock().unwrap().len() - 1;
        assert!((1..=6).contains(&learned), "{learned}");
    }

    #[test]
    fn keys_that_heads_cannot_tell_apart_are_not_learned_again_and_again() {
        let tree = BTree::new(Layout::Plain, Pool::new(0));
        for seq in 0..100_000 {
            let entry = Entry { key: b"counter", seq, kind: EntryKind::Value, value: b"" };
            tree.insert(&entry);
        }
        assert_eq!(tree.learning.all.lock().unwrap().len(), 1);
        let patience = tree.learning.patience.load(crate::sync::Ordering::Relaxed);
        assert!(patience > 1000, "{patience}");
    }
}
