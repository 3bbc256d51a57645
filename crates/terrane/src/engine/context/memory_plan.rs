//! How the memory budget is divided.
//!
//! | part | share of the usable budget |
//! |---|---|
//! | memtables, including those that readers keep | a half |
//! | buffers of compactions | three sixteenths |
//! | buffers of flushes | a sixteenth |
//! | blocks that scans read ahead | a sixteenth |
//! | the rest: the block cache, open tables, write sets of transactions | three sixteenths |
//!
//! The block cache also gets the memory that the other parts leave unused, and returns it first. Full memtables
//! that wait for their flush may take what the cache has not allocated yet; from when they need it until they have
//! been flushed, the cache grows by small steps only. A tenth of the budget and up to 4 MiB are not usable: stacks,
//! the allocator and small objects need them.

use terrane_memtable::PoolLimits;

/// The stacks of threads, and what the allocator retains of freed buffers; small budgets leave less.
const OUTSIDE_BYTES: usize = 4 << 20;

/// The memory that one compaction should have, and one flush, so that several run concurrently. They run
/// with half of it while others need the rest.
const COMPACTION_BYTES: usize = 1 << 20;
const FLUSH_BYTES: usize = 256 << 10;

/// Memtables take memory in blocks of at most their share divided by this, so that unused ends of
/// blocks matter little.
const MEMTABLE_BLOCKS: usize = 16;

/// The parts of a memory budget, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    pub(crate) usable_bytes: usize,
    pub(crate) memtable_bytes: usize,
    pub(crate) compactions: JobShare,
    pub(crate) flushes: JobShare,
    pub(crate) scan_bytes: usize,
    /// The minimum size of the block cache.
    pub(crate) cache_bytes_min: usize,
}

/// The memory of all jobs of a kind together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobShare {
    pub(crate) bytes: usize,
    /// The number of jobs that may run concurrently.
    pub(crate) jobs_max: usize,
}

impl MemoryPlan {
    /// Divides a budget among memtables, at most `compactions_max` compactions and `flushes_max`
    /// flushes, and the rest.
    pub(crate) fn new(budget_bytes: u64, compactions_max: usize, flushes_max: usize) -> Self {
        let budget = usize::try_from(budget_bytes).unwrap_or(usize::MAX);
        let usable = budget - budget / 10 - (budget / 8 * 3).min(OUTSIDE_BYTES);
        let share = |bytes: usize, each: usize, most: usize| JobShare {
            bytes,
            jobs_max: (bytes / each).clamp(1, most.max(1)),
        };
        Self {
            usable_bytes: usable,
            memtable_bytes: usable / 2,
            compactions: share(usable / 16 * 3, COMPACTION_BYTES, compactions_max),
            flushes: share(usable / 16, FLUSH_BYTES, flushes_max),
            scan_bytes: usable / 16,
            cache_bytes_min: budget / 16,
        }
    }

    /// Returns the size at which a memtable is full, whatever its design says: while one is flushed,
    /// another is filled.
    pub(crate) fn memtable_bytes_max(&self) -> usize {
        self.memtable_bytes / 2
    }

    /// Returns the smallest share of memtables, which writers may fill although readers keep more.
    pub(crate) fn memtable_bytes_min(&self) -> usize {
        self.memtable_bytes / 16
    }

    /// Returns the memory of one flush while all run. An ingest, which a caller begins, gets as much.
    pub(crate) fn flush_bytes(&self) -> usize {
        self.flushes.bytes / self.flushes.jobs_max
    }

    /// Returns the memory of the buffers of all jobs.
    pub(crate) fn job_bytes(&self) -> usize {
        self.compactions.bytes + self.flushes.bytes
    }

    /// Returns what pinned blocks, open tables, read-ahead and transactions may take before memtables
    /// get less.
    pub(crate) fn bytes_of_others(&self) -> usize {
        let jobs = self.job_bytes();
        self.usable_bytes.saturating_sub(self.memtable_bytes + jobs + self.cache_bytes_min)
    }

    /// Returns how much the cache grows at once.
    pub(crate) fn cache_step_bytes(&self) -> usize {
        self.cache_bytes_min / 4
    }

    /// Returns the memory from which on memtables may borrow what the cache has not allocated.
    pub(crate) fn borrow_from_bytes(&self) -> usize {
        self.memtable_bytes / 8 * 7
    }

    /// Returns the capacity of a cache that has allocated this much while memtables borrow the rest: it can grow a
    /// little before memory is measured again.
    pub(crate) fn cache_bytes_when_lent(&self, allocated: usize) -> usize {
        allocated.saturating_add(2 * self.cache_step_bytes()).max(self.cache_bytes_min)
    }

    /// Returns what all memtables together may take without a block being evicted for it: what neither a cache that
    /// has allocated this much needs, nor jobs, which may still begin, nor scans nor others.
    pub(crate) fn unused_bytes(&self, allocated: usize, jobs: usize, others: usize) -> usize {
        let cache = self.cache_bytes_when_lent(allocated);
        let used = cache + jobs.max(self.job_bytes()) + self.scan_bytes + others;
        self.usable_bytes.saturating_sub(used)
    }

    pub(crate) fn pool_limits(&self) -> PoolLimits {
        PoolLimits {
            free_bytes_max: self.memtable_bytes / 2,
            total_bytes_max: self.memtable_bytes,
            block_bytes: self.memtable_bytes / MEMTABLE_BLOCKS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_every_budget_fit_into_it() {
        for mib in [1, 2, 8, 32, 64, 128, 512, 1 << 20] {
            let budget = mib << 20;
            let plan = MemoryPlan::new(budget, 8, 2);
            let MemoryPlan { memtable_bytes, compactions, flushes, scan_bytes, .. } = plan;
            let parts = memtable_bytes + compactions.bytes + flushes.bytes + scan_bytes;
            assert!(
                (parts + plan.cache_bytes_min) as u64 <= budget - budget / 10,
                "{mib}: {plan:?}"
            );
            assert!(compactions.jobs_max >= 1 && flushes.jobs_max >= 1, "{mib}: {plan:?}");
        }
        let jobs = |mib: u64| {
            let plan = MemoryPlan::new(mib << 20, 8, 2);
            (plan.compactions.jobs_max, plan.flushes.jobs_max)
        };
        assert_eq!([1, 8, 32, 128].map(jobs), [(1, 1), (1, 1), (4, 2), (8, 2)]);
    }

    #[test]
    fn memory_that_a_part_may_still_take_is_not_unused() {
        let plan = MemoryPlan::new(128 << 20, 8, 2);
        let (least, step) = (plan.cache_bytes_min, plan.cache_step_bytes());
        let unused = plan.unused_bytes(0, 0, 0);
        assert!(unused > plan.memtable_bytes, "{unused}");
        assert_eq!(plan.unused_bytes(0, plan.job_bytes(), 0), unused);
        assert_eq!(plan.unused_bytes(least - 2 * step, 0, 0), unused);
        assert_eq!(plan.unused_bytes(least - 2 * step + 1, 0, 0), unused - 1);
        assert_eq!(plan.unused_bytes(0, plan.job_bytes() + 2, 3), unused - 5);
        assert_eq!(plan.unused_bytes(plan.usable_bytes, 0, 0), 0);
        // What memtables borrow and what the cache may take meanwhile fit into the budget.
        for allocated in [0, least, 2 * least] {
            let cache = plan.cache_bytes_when_lent(allocated);
            assert!(cache >= allocated + 2 * step);
            let parts = plan.unused_bytes(allocated, 0, 0) + cache + plan.scan_bytes;
            assert_eq!(parts + plan.job_bytes(), plan.usable_bytes);
        }
    }
}
