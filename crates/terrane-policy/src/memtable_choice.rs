//! Which memtable suits a mix of operations, by what each kind is expected to cost.
//!
//! For a design with `memtable=auto` the engine asks at each rotation, with the operations since the
//! one before. The model has the form of that of the memory buffer paper's later program (each kind:
//! writes × cost of an insert + lookups × cost of a lookup + scans × cost of a seek), with costs
//! measured on our kinds:
//!
//! | kind | insert | lookup, seek |
//! |---|---|---|
//! | vector | constant | a search of few runs, and what came since the last one is sorted |
//! | B-link tree | a search | a search |
//!
//! Hashed kinds are not chosen from: their lookups cost here what those of the B-link tree do, they
//! take more memory, and their prefix is something that only the user knows.
//!
//! A kind that is better by a little only is not worth a change: the present one stays unless
//! another is expected to cost a tenth less.

use std::fmt;

use crate::design::MemtableKind;

/// The operations of a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mix {
    /// Puts and deletes.
    pub writes: u64,
    /// Lookups of single keys.
    pub lookups: u64,
    /// Iterators and scans begun.
    pub scans: u64,
}

/// A kind, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// One that is not `auto`.
    pub kind: MemtableKind,
    /// Why, in a sentence.
    pub reason: String,
}

/// What an operation costs with so many entries in the memtable, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Cost {
    write: f64,
    read: f64,
}

/// With fewer operations there is nothing to go by.
const OPERATIONS_MIN: u64 = 1000;

/// Another kind must be expected to cost less than this share of the present one.
const WORTH_CHANGING: f64 = 0.9;

/// Costs that do not depend on the number of entries, and those for each doubling of it, in
/// nanoseconds: `terrane bench --memtable vector --memtable btree` with 140 K and 500 K entries of
/// 64 bytes.
const VECTOR_WRITE: f64 = 35.0;
const SORT_PER_DOUBLING: f64 = 4.0;
const VECTOR_READ: f64 = 300.0;
const VECTOR_READ_PER_DOUBLING: f64 = 35.0;
/// Two locks, and a view that is replaced.
const REFRESH: f64 = 500.0;
const TREE_WRITE: f64 = 40.0;
const TREE_WRITE_PER_DOUBLING: f64 = 9.0;
const TREE_READ: f64 = 40.0;
const TREE_READ_PER_DOUBLING: f64 = 40.0;

/// Bytes of an entry with its metadata, to guess how many fit a buffer.
const ENTRY_BYTES: u64 = 100;

impl Mix {
    /// All operations.
    pub fn total(&self) -> u64 {
        self.writes.saturating_add(self.lookups).saturating_add(self.scans)
    }

    /// The operations since `before`.
    pub fn since(&self, before: &Mix) -> Self {
        Self {
            writes: self.writes.saturating_sub(before.writes),
            lookups: self.lookups.saturating_sub(before.lookups),
            scans: self.scans.saturating_sub(before.scans),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u64| part as f64 * 100.0 / self.total().max(1) as f64;
        let (writes, lookups, scans) = (self.writes, self.lookups, self.scans);
        write!(
            f,
            "{:.1}% writes, {:.1}% lookups, {:.1}% scans",
            percent(writes),
            percent(lookups),
            percent(scans)
        )
    }
}

/// The kinds that are chosen from, and what they cost a memtable that fills a buffer in a mix.
fn candidates(mix: &Mix, buffer_bytes: u64) -> [(MemtableKind, Cost); 2] {
    let doublings = ((buffer_bytes / ENTRY_BYTES).max(2) as f64).log2();
    let reads = mix.lookups + mix.scans;
    // A read after a write sorts, and everything is sorted once if there are any.
    let sort = if reads == 0 { 0.0 } else { SORT_PER_DOUBLING * doublings };
    let refresh = REFRESH * reads.min(mix.writes) as f64 / reads.max(1) as f64;
    let vector = Cost {
        write: VECTOR_WRITE + sort,
        read: VECTOR_READ + VECTOR_READ_PER_DOUBLING * doublings + refresh,
    };
    let tree = Cost {
        write: TREE_WRITE + TREE_WRITE_PER_DOUBLING * doublings,
        read: TREE_READ + TREE_READ_PER_DOUBLING * doublings,
    };
    [(MemtableKind::BTree, tree), (MemtableKind::VECTOR, vector)]
}

/// The kind that is expected to cost least in this mix; the present one if it is nearly as good.
pub fn choose(mix: &Mix, present: Option<MemtableKind>, buffer_bytes: u64) -> Choice {
    let candidates = candidates(mix, buffer_bytes);
    let present = present.unwrap_or(MemtableKind::BTree);
    if mix.total() < OPERATIONS_MIN {
        let reason = format!("{present} as before: only {} operations to go by", mix.total());
        return Choice { kind: present, reason };
    }
    let each = |cost: &Cost| {
        let reads = mix.lookups as f64 + mix.scans as f64;
        let total = cost.write * mix.writes as f64 + cost.read * reads;
        total / mix.total() as f64
    };
    let costs = candidates.each_ref().map(|(_, cost)| each(cost));
    let least = (0..candidates.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0);
    let at = candidates.iter().position(|(kind, ..)| *kind == present);
    let chosen = match at {
        Some(at) if costs[least] >= costs[at] * WORTH_CHANGING => at,
        _ => least,
    };
    let list: Vec<String> = candidates
        .iter()
        .zip(costs)
        .map(|((kind, _), cost)| format!("{kind} {cost:.0} ns"))
        .collect();
    let reason = format!("of {mix}, expected for each: {}", list.join(", "));
    Choice { kind: candidates[chosen].0, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: u64 = 64 << 20;

    fn name(kind: MemtableKind) -> &'static str {
        match kind {
            MemtableKind::BTree => "btree",
            MemtableKind::Vector { .. } => "vector",
            _ => "other",
        }
    }

    fn chosen(writes: u64, lookups: u64, scans: u64) -> &'static str {
        name(choose(&Mix { writes, lookups, scans }, None, BUFFER).kind)
    }

    #[test]
    fn each_kind_is_chosen_where_it_is_best() {
        assert_eq!(chosen(1_000_000, 0, 0), "vector");
        assert_eq!(chosen(500_000, 0, 500_000), "btree");
        assert_eq!(chosen(500_000, 500_000, 10_000), "btree");
        assert_eq!(chosen(300_000, 700_000, 0), "btree");
        assert_eq!(chosen(1_000_000, 1000, 0), "vector");
    }

    #[test]
    fn little_to_go_by_and_little_to_gain_change_nothing() {
        let vector = Some(MemtableKind::VECTOR);
        let few = choose(&Mix { writes: 10, lookups: 9, scans: 9 }, vector, BUFFER);
        assert_eq!(few.kind, MemtableKind::VECTOR);
        assert!(few.reason.contains("28 operations"), "{}", few.reason);
        // Whatever the present one is, asking again with the same mix changes nothing more.
        for lookups in 0..100 {
            let mix = Mix { writes: 100_000, lookups: lookups * 2000, scans: lookups % 7 * 100 };
            let first = choose(&mix, None, BUFFER).kind;
            assert_eq!(choose(&mix, Some(first), BUFFER).kind, first);
        }
    }

    #[test]
    fn a_choice_is_valid_and_says_why() {
        for buffer_bytes in [1 << 10, 64 << 10, 64 << 20, 1 << 40] {
            for (writes, lookups) in [(10_000, 0), (0, 10_000), (10_000, 10_000)] {
                let mix = Mix { writes, lookups, scans: 0 };
                let choice = choose(&mix, None, buffer_bytes);
                let text = format!("leveling; buffer={buffer_bytes}; memtable={}", choice.kind);
                assert!(text.parse::<crate::Design>().is_ok(), "{text}");
                assert!(choice.reason.contains("% writes") && choice.reason.contains("btree"));
            }
        }
    }
}
