//! Measured costs of operations, in nanoseconds: the table `costs.txt`, which a benchmark writes:
//!
//! ```sh
//! cargo bench -p terrane-memtable --bench costs > crates/terrane-policy/src/memtable_choice/costs.txt
//! ```
//!
//! The table is for keys of 16 bytes and values of 100 bytes, on an AMD EPYC with two cores.
//! Sorting in many small steps costs no more than sorting at once. The choice depends on ratios of
//! these costs, which differ less between machines than the costs themselves.
//!
//! Writes are measured with one thread and with two, reads with one, because readers do not wait for
//! each other. Costs for more threads are not measured but extrapolated linearly from these two, as
//! for a lock.

use std::sync::LazyLock;

use libm::{log, pow};

use crate::design::{MemtableKind, VectorQuery};

/// The sizes of the measured memtables, in entries.
pub(super) const SIZES: [f64; 4] = [1024.0, 8192.0, 65_536.0, 524_288.0];

/// The cost of each write, by size.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteCosts {
    /// An insert of a random key, averaged while a memtable fills to that size.
    pub(super) insert: [f64; 4],
    /// An insert of a key that is greater than the previous key.
    pub(super) insert_ascending: [f64; 4],
    /// A write to one of a few keys that are already in the memtable.
    pub(super) update: [f64; 4],
}

/// The cost of each operation, by size.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindCosts {
    /// Writes by one thread and by each of two threads.
    pub(super) writes: [WriteCosts; 2],
    pub(super) lookup: [f64; 4],
    pub(super) lookup_missing: [f64; 4],
    /// The cost of sorting, per entry.
    pub(super) order: [f64; 4],
    /// A seek, if nothing was inserted since the previous seek.
    pub(super) seek: [f64; 4],
    /// A seek after an insert.
    pub(super) seek_fresh: [f64; 4],
    /// A step to the next entry.
    pub(super) step: [f64; 4],
}

impl KindCosts {
    /// Returns the cost of a write in a memtable of `entries` while `threads` threads write.
    pub(super) fn write(
        &self,
        threads: u32,
        entries: f64,
        column: fn(&WriteCosts) -> &[f64; 4],
    ) -> f64 {
        let [one, two] = self.writes.each_ref().map(|costs| at(column(costs), entries));
        one + (two - one).max(0.0) * f64::from(threads.saturating_sub(1))
    }
}

/// The costs of all kinds.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostTable {
    pub(super) btree: KindCosts,
    pub(super) vector: KindCosts,
    pub(super) vector_scanned: KindCosts,
    pub(super) hash_vector: KindCosts,
    pub(super) flodb: KindCosts,
    pub(super) skip_list: KindCosts,
    pub(super) hash_skip_list: KindCosts,
    pub(super) hash_linked_list: KindCosts,
}

impl CostTable {
    /// Returns the costs of a kind.
    pub(super) fn of(&self, kind: MemtableKind) -> &KindCosts {
        match kind {
            MemtableKind::Vector { query: VectorQuery::Scan, .. } => &self.vector_scanned,
            MemtableKind::Vector { .. } => &self.vector,
            MemtableKind::HashVector { .. } => &self.hash_vector,
            MemtableKind::FloDb(_) => &self.flodb,
            MemtableKind::SkipList { .. } => &self.skip_list,
            MemtableKind::HashSkipList { .. } => &self.hash_skip_list,
            MemtableKind::HashLinkedList { .. } => &self.hash_linked_list,
            MemtableKind::BTree | MemtableKind::Auto => &self.btree,
        }
    }
}

/// The measured costs.
pub(super) static MEASURED: LazyLock<CostTable> = LazyLock::new(|| {
    // This is never reached, because a test parses the same text.
    CostTable::parse(include_str!("costs.txt")).unwrap_or_else(|| unreachable!())
});

/// The costs of an operation, by size.
struct CostRow<'a> {
    kind: &'a str,
    operation: &'a str,
    threads: &'a str,
    costs: [f64; 4],
}

impl<'a> CostRow<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let [kind, operation, threads] = [words.next()?, words.next()?, words.next()?];
        let costs: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some(Self { kind, operation, threads, costs: costs.try_into().ok()? })
    }
}

impl KindCosts {
    fn of(rows: &[CostRow<'_>], kind: &str) -> Option<Self> {
        let costs = |operation: &str, threads: &str| {
            let is_wanted = |row: &&CostRow<'_>| {
                (row.kind, row.operation, row.threads) == (kind, operation, threads)
            };
            rows.iter().find(is_wanted).map(|row| row.costs)
        };
        let writes = |threads| {
            Some(WriteCosts {
                insert: costs("insert", threads)?,
                insert_ascending: costs("insert_ascending", threads)?,
                update: costs("update", threads)?,
            })
        };
        Some(Self {
            writes: [writes("1")?, writes("2")?],
            lookup: costs("lookup", "1")?,
            lookup_missing: costs("lookup_missing", "1")?,
            order: costs("order", "1")?,
            seek: costs("seek", "1")?,
            seek_fresh: costs("seek_fresh", "1")?,
            step: costs("step", "1")?,
        })
    }
}

impl CostTable {
    /// Parses a table whose first line has the names of the columns; `None` if it is incomplete.
    fn parse(text: &str) -> Option<Self> {
        let mut rows = text.lines().map(CostRow::parse).collect::<Option<Vec<_>>>()?.into_iter();
        if rows.next()?.costs != SIZES {
            return None;
        }
        let rows = rows.as_slice();
        Some(Self {
            btree: KindCosts::of(rows, "btree")?,
            vector: KindCosts::of(rows, "vector")?,
            vector_scanned: KindCosts::of(rows, "vector(query=scan)")?,
            hash_vector: KindCosts::of(rows, "hash-vector")?,
            flodb: KindCosts::of(rows, "flodb")?,
            skip_list: KindCosts::of(rows, "skip-list")?,
            hash_skip_list: KindCosts::of(rows, "hash-skip-list")?,
            hash_linked_list: KindCosts::of(rows, "hash-linked-list")?,
        })
    }
}

/// Returns the cost in a memtable of `entries`: a power law between measured sizes, extrapolated
/// beyond the largest.
pub(super) fn at(costs: &[f64; 4], entries: f64) -> f64 {
    let above = SIZES.iter().skip(1).position(|size| entries <= *size).map_or(3, |at| at + 1);
    let (low, high) = (above - 1, above);
    let way = log(entries.max(SIZES[0]) / SIZES[low]) / log(SIZES[high] / SIZES[low]);
    // A power law cannot start from zero.
    let [first, last] = [costs[low], costs[high]].map(|cost| cost.max(0.1));
    first * pow(last / first, way)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete() {
        let text = include_str!("costs.txt");
        assert!(CostTable::parse(text).is_some());
        for line in text.lines() {
            let others = text.lines().filter(|other| *other != line).collect::<Vec<_>>();
            assert!(CostTable::parse(&others.join("\n")).is_none(), "without '{line}'");
        }
    }
}
