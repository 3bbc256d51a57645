//! The memory of memtables, and the share of the memory budget that they may take.
//!
//! A memtable exists until its last user drops it: a tree, or a reader that still uses a replaced state.
//! Memory that readers keep is taken from the share, so the next memtables are smaller. Writers wait
//! while the memtables of trees exceed the rest of the share and a flush will free some of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use terrane_memtable::{Memtable, Pool};
use terrane_policy::{Design, MemtableKind, Pressure, StallCause};

use super::memory_plan::MemoryPlan;

/// A write of at least this many bytes waits until it fits into the share of memtables; smaller writes are
/// measured together.
const LARGE_WRITE_BYTES: usize = 1 << 20;

/// The memory of the memtables of all trees.
#[derive(Debug)]
pub(crate) struct MemtableMemory {
    plan: MemoryPlan,
    pool: Arc<Pool>,
    /// The memtables that became immutable and may still exist.
    replaced: Mutex<Vec<Weak<Memtable>>>,
    /// The bytes of large writes that have begun.
    large_write_bytes: AtomicUsize,
    /// The size at which a memtable is full, whatever its design says.
    bytes_max: AtomicUsize,
    /// The last measured bytes that readers keep, now and when a memtable was last replaced.
    kept_bytes: AtomicUsize,
    kept_before: AtomicUsize,
    /// The last measured bytes of the memtables of trees, and what they may take.
    used_bytes: AtomicUsize,
    allowed_bytes: AtomicUsize,
    is_short: AtomicBool,
    short_since: Mutex<Option<Instant>>,
}

/// The memtables that trees use, as measured together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TreeMemtables {
    /// The bytes of all memtables of trees.
    pub(crate) bytes: usize,
    /// The bytes of immutable ones, which are flushed or wait for their flush.
    pub(crate) immutable_bytes: usize,
    /// The bytes of empty ones, which no flush frees.
    pub(crate) empty_bytes: usize,
    /// Whether readers use a replaced state of a tree, and thereby keep its memtables.
    pub(crate) are_read: bool,
}

/// All memtables, as measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MeasuredMemtables {
    /// The bytes of all memtables, including those that readers keep.
    pub(crate) total_bytes: usize,
    /// Whether they may take more than their share.
    pub(crate) borrows: bool,
}

/// The memory that a large write will take, until the write is in the memtables.
#[derive(Debug)]
pub(crate) struct LargeWrite<'a> {
    memory: &'a MemtableMemory,
    bytes: usize,
}

impl Drop for LargeWrite<'_> {
    fn drop(&mut self) {
        // Relaxed, like all accesses here: stale values only shift when writers wait.
        self.memory.large_write_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl TreeMemtables {
    /// Returns true if a flush will free memory.
    pub(crate) fn is_flush_due(&self) -> bool {
        self.immutable_bytes > 0
    }
}

impl MemtableMemory {
    pub(crate) fn new(plan: MemoryPlan) -> Self {
        Self {
            plan,
            pool: Pool::with_limits(plan.pool_limits()),
            replaced: Mutex::default(),
            large_write_bytes: AtomicUsize::new(0),
            bytes_max: AtomicUsize::new(plan.memtable_bytes_max()),
            kept_bytes: AtomicUsize::new(0),
            kept_before: AtomicUsize::new(0),
            used_bytes: AtomicUsize::new(0),
            allowed_bytes: AtomicUsize::new(plan.memtable_bytes),
            is_short: AtomicBool::new(false),
            short_since: Mutex::default(),
        }
    }

    /// The pool from which memtables take their memory.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Counts a memtable that its tree replaces until its last user drops it.
    pub(crate) fn note_replaced(&self, memtable: &Arc<Memtable>) {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.push(Arc::downgrade(memtable));
        self.kept_before.store(self.kept_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns true if a write of this size is admitted by itself.
    #[inline]
    pub(crate) fn is_large(bytes: usize) -> bool {
        bytes >= LARGE_WRITE_BYTES
    }

    /// Counts a write of this size until it ends, if it is large: other writers wait while it and the
    /// memtables exceed their share.
    #[inline]
    pub(crate) fn begin_large_write(&self, bytes: usize) -> Option<LargeWrite<'_>> {
        Self::is_large(bytes).then(|| {
            self.large_write_bytes.fetch_add(bytes, Ordering::Relaxed);
            LargeWrite { memory: self, bytes }
        })
    }

    /// Returns the bytes of replaced memtables that no tree flushes any more, but readers use.
    pub(crate) fn kept_bytes_beside(&self, in_trees: TreeMemtables) -> usize {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        replaced.retain(|memtable| {
            let memtable = memtable.upgrade();
            bytes += memtable.as_ref().map_or(0, |memtable| memtable.memory().total_bytes());
            memtable.is_some()
        });
        bytes.saturating_sub(in_trees.immutable_bytes)
    }

    /// Returns the size at which a memtable of a design with this buffer is full.
    #[inline]
    pub(crate) fn bytes_max(&self, buffer_bytes: u64) -> u64 {
        // Relaxed, like all accesses here: a stale value only shifts when a memtable is replaced.
        buffer_bytes.min(self.bytes_max.load(Ordering::Relaxed) as u64)
    }

    /// Returns a design whose memtables, with their preallocated memory, have this size.
    pub(crate) fn fitted(&self, design: &Design) -> Design {
        let (mut fitted, buffer_bytes) = (design.clone(), self.bytes_max(design.buffer_bytes));
        let most = |part: u64, whole: u64| {
            let scaled = u128::from(part) * u128::from(buffer_bytes) / u128::from(whole.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        match &mut fitted.memtable {
            MemtableKind::Vector { prealloc_bytes, .. } => {
                *prealloc_bytes = most(*prealloc_bytes, design.buffer_bytes);
            }
            MemtableKind::HashSkipList { buckets, .. }
            | MemtableKind::HashLinkedList { buckets, .. }
            | MemtableKind::HashVector { buckets, .. } => {
                let scaled = most((*buckets).into(), design.buffer_bytes).max(1);
                *buckets = u32::try_from(scaled).unwrap_or(*buckets);
            }
            MemtableKind::Auto
            | MemtableKind::BTree
            | MemtableKind::SkipList { .. }
            | MemtableKind::FloDb(_) => {}
        }
        fitted.buffer_bytes = buffer_bytes;
        fitted
    }

    /// Measures all memtables, and updates what they may take: their share, which `beyond` bytes of other
    /// memory reduce. Once they take most of it, and a flush or a large write needs more, they may borrow all that is
    /// `unused`, if that is more and readers keep no memtables, which would not return it.
    pub(crate) fn measure(
        &self,
        in_trees: TreeMemtables,
        beyond: usize,
        unused: usize,
    ) -> MeasuredMemtables {
        let kept = self.kept_bytes_beside(in_trees);
        let share = self.plan.memtable_bytes.saturating_sub(beyond);
        let least = self.plan.memtable_bytes_min();
        self.kept_bytes.store(kept, Ordering::Relaxed);
        // A memtable was just flushed if its state is kept only until a thread drops it. Only memory
        // that was kept when the last memtable was replaced makes memtables smaller.
        let kept_long = kept.min(self.kept_before.load(Ordering::Relaxed));
        let bytes_max = (share.saturating_sub(kept_long) / 2).max(least / 2);
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        let used = in_trees.bytes.saturating_sub(in_trees.empty_bytes);
        self.used_bytes.store(used, Ordering::Relaxed);
        let total = in_trees.bytes + kept;
        let large = self.large_write_bytes.load(Ordering::Relaxed);
        let needs_more = (in_trees.is_flush_due() || large > 0)
            && total.saturating_add(large) > self.plan.borrow_from_bytes();
        let are_kept = in_trees.are_read || kept_long > 0;
        let borrows = needs_more && !are_kept && unused > share;
        let whole = if borrows { unused } else { share };
        let allowed = whole.saturating_sub(kept + in_trees.empty_bytes).max(least);
        self.allowed_bytes.store(allowed, Ordering::Relaxed);
        self.set_short(in_trees.is_flush_due() && self.is_exceeded());
        MeasuredMemtables { total_bytes: total, borrows }
    }

    /// Returns true if memtables and large writes exceed what they may take, as last measured.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.wanted_bytes() > self.allowed_bytes.load(Ordering::Relaxed)
    }

    fn wanted_bytes(&self) -> usize {
        let large = self.large_write_bytes.load(Ordering::Relaxed);
        self.used_bytes.load(Ordering::Relaxed).saturating_add(large)
    }

    fn set_short(&self, is_short: bool) {
        if self.is_short.swap(is_short, Ordering::Relaxed) != is_short {
            let since = is_short.then(Instant::now);
            *self.short_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
        }
    }

    /// Returns the sum of the active memtables at which one of them is replaced, so that the others
    /// can be filled while it is flushed.
    pub(crate) fn active_bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Returns true if replaced memtables exist that only readers use, as last measured.
    pub(crate) fn are_kept(&self) -> bool {
        self.kept_bytes.load(Ordering::Relaxed) > 0
    }

    /// Returns true if writers wait for memory, as last measured.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Returns when memory became short, if it is.
    pub(crate) fn short_since(&self) -> Option<Instant> {
        *self.short_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pressure that stops writers while memory is short.
    pub(crate) fn pressure(&self) -> Pressure {
        let allowed = self.allowed_bytes.load(Ordering::Relaxed).max(1);
        let percent = self.wanted_bytes().saturating_mul(100) / allowed;
        let percent = u32::try_from(percent).unwrap_or(u32::MAX);
        Pressure::new(StallCause::MemoryBudget, None, percent, 100, 100)
    }
}

#[cfg(test)]
mod tests {
    use terrane_memtable::EntryKind;

    use super::*;

    fn memory() -> MemtableMemory {
        MemtableMemory::new(MemoryPlan::new(8 << 20, 1, 1))
    }

    fn replaced(memory: &MemtableMemory, bytes: usize) -> Arc<Memtable> {
        let config = terrane_memtable::Config::BTree(terrane_memtable::BTreeConfig);
        let memtable = Memtable::new(config, memory.pool());
        memtable.insert(b"key", 1, EntryKind::Value, &vec![7; bytes]);
        memory.note_replaced(&memtable);
        memtable
    }

    #[test]
    fn memory_that_readers_keep_makes_memtables_smaller() {
        let memory = memory();
        let usual = memory.bytes_max(u64::MAX);
        let kept = replaced(&memory, 1 << 20);
        let flushed = TreeMemtables::default();
        assert!(memory.measure(flushed, 0, 0).total_bytes >= 1 << 20);
        // It may have been flushed a moment ago.
        assert_eq!(memory.bytes_max(u64::MAX), usual);
        drop(replaced(&memory, 0));
        memory.measure(flushed, 0, 0);
        let smaller = usual - memory.bytes_max(u64::MAX);
        assert!((512 << 10..600 << 10).contains(&smaller), "{smaller}");
        assert_eq!(memory.bytes_max(4096), 4096, "the design's buffer");
        drop(kept);
        assert_eq!(memory.measure(flushed, 0, 0).total_bytes, 0);
        assert_eq!(memory.bytes_max(u64::MAX), usual);
    }

    #[test]
    fn memory_is_short_while_a_flush_will_free_some() {
        let memory = memory();
        let share = MemoryPlan::new(8 << 20, 1, 1).memtable_bytes;
        let used = |bytes, immutable_bytes| TreeMemtables {
            bytes,
            immutable_bytes,
            ..TreeMemtables::default()
        };
        memory.measure(used(share, 1), 0, 0);
        assert!(!memory.is_short() && memory.short_since().is_none());
        memory.measure(used(share + 1, 0), 0, 0);
        assert!(!memory.is_short(), "nothing would end the wait");
        memory.measure(used(share + (share / 10), 1), 0, 0);
        assert!(memory.is_short() && memory.short_since().is_some());
        let pressure = memory.pressure();
        assert_eq!((pressure.cause, pressure.measured), (StallCause::MemoryBudget, 110));
        memory.measure(used(share, 1), 1, 0);
        assert!(memory.is_short(), "other memory reduces the share");
        memory.measure(used(share + 2, 1), 1, share + 2);
        assert!(!memory.is_short(), "no other part uses that memory");
        memory.measure(used(share + 2, 1), 0, share + 1);
        assert!(memory.is_short(), "another part uses a byte of it");
        memory.measure(TreeMemtables { empty_bytes: share, ..used(share + 1, 1) }, 0, 0);
        assert!(!memory.is_short(), "empty memtables cannot be flushed");
    }

    #[test]
    fn memtables_borrow_only_once_they_take_most_of_their_share() {
        let memory = memory();
        let plan = MemoryPlan::new(8 << 20, 1, 1);
        let (share, unused) = (plan.memtable_bytes, plan.unused_bytes(0, 0, 0));
        assert!(unused > share, "{unused} of {share}");
        let borrows = |bytes, unused| {
            let used = TreeMemtables { bytes, immutable_bytes: 1, ..TreeMemtables::default() };
            memory.measure(used, 0, unused).borrows
        };
        assert!(!borrows(share / 8 * 7, unused));
        assert!(borrows(share / 8 * 7 + 1, unused));
        assert!(!borrows(share, share), "there is nothing to borrow");
        let flushed = TreeMemtables { bytes: share, ..TreeMemtables::default() };
        assert!(!memory.measure(flushed, 0, unused).borrows, "no flush would return it");
        let large = memory.begin_large_write(share / 2);
        assert!(borrows(share / 2, unused), "a large write needs the memory as well");
        drop(large);
        let due = TreeMemtables { bytes: share, immutable_bytes: 1, ..TreeMemtables::default() };
        let read = TreeMemtables { are_read: true, ..due };
        assert!(memory.measure(due, 0, unused).borrows);
        assert!(
            !memory.measure(read, 0, unused).borrows,
            "readers keep a memtable that is flushed"
        );
        let _kept = replaced(&memory, 1000);
        assert!(borrows(share, unused), "it may have been flushed a moment ago");
        drop(replaced(&memory, 0));
        assert!(!borrows(share, unused), "readers would not return it");
    }

    #[test]
    fn a_large_write_counts_until_it_ends() {
        let memory = memory();
        let share = MemoryPlan::new(8 << 20, 1, 1).memtable_bytes;
        let half =
            TreeMemtables { bytes: share / 2, immutable_bytes: 1, ..TreeMemtables::default() };
        assert!(memory.begin_large_write(LARGE_WRITE_BYTES - 1).is_none());
        let write = memory.begin_large_write(share / 2 + 1);
        memory.measure(half, 0, 0);
        assert!(memory.is_short());
        drop(write);
        memory.measure(half, 0, 0);
        assert!(!memory.is_short());
    }

    #[test]
    fn preallocated_memory_fits_into_a_smaller_memtable() {
        let memory = memory();
        let most = memory.bytes_max(u64::MAX);
        let fitted = |text: &str| memory.fitted(&text.parse().unwrap()).memtable.to_string();
        assert_eq!(memory.fitted(&"leveling; buffer=64MiB".parse().unwrap()).buffer_bytes, most);
        let vector = fitted("leveling; buffer=64MiB; memtable=vector(prealloc=64MiB)");
        assert!(vector.contains(&format!("prealloc={most}")), "{vector} {most}");
        let hash = fitted("leveling; buffer=64MiB; memtable=hash-vector(buckets=100000)");
        let buckets = 100_000 * most / (64 << 20);
        assert!(hash.contains(&format!("buckets={buckets}")), "{hash} {buckets}");
    }
}
