//! Dent's own models of the CS 265 tree, as orders of growth in I/O operations.
//!
//! A tree with n pages of entries, a buffer of b pages and fanout f has depth d = log_f(n/b). A
//! page holds p/e entries. As in Dent, constants are left out: the numbers show how one tree grows
//! and how two trees differ.

use libm::log;

/// A tree as in the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DentTree {
    /// Pages of entries written: n.
    pub pages: f64,
    /// Pages of the buffer: b.
    pub buffer_pages: f64,
    /// The number of runs of a level that are merged into one run of the next level: f.
    pub fanout: f64,
    /// The fraction of missing keys that a filter lets through: φ.
    pub false_positive_rate: f64,
    /// The cost of reading a page divided by the cost of writing a page: μ.
    pub read_cost: f64,
}

impl DentTree {
    /// Returns the number of levels: log_f(n/b), at least one.
    pub fn depth(&self) -> f64 {
        let flushes = (self.pages / self.buffer_pages).max(1.0);
        (log(flushes) / log(self.fanout.max(2.0))).max(1.0)
    }

    /// Returns the cost of an update in a tree whose levels gather runs: (1/b)(1 + μ) log_f(n/b)
    /// (§2.3.3).
    pub fn tiered_update(&self) -> f64 {
        (1.0 + self.read_cost) * self.depth() / self.buffer_pages
    }

    /// Returns the cost of an update in a tree whose levels are one run each: each level is
    /// rewritten for every run that enters it, f times as often.
    pub fn leveled_update(&self) -> f64 {
        self.tiered_update() * self.fanout.min(self.pages / self.buffer_pages).max(1.0)
    }

    /// Returns the cost of a lookup in a tree whose levels gather runs: φ f log_f(n/b) (§2.4.1).
    pub fn tiered_lookup(&self) -> f64 {
        self.false_positive_rate * self.fanout * self.depth()
    }

    /// Returns the cost of a lookup in a tree whose levels are one run each: φ log_f(n/b).
    pub fn leveled_lookup(&self) -> f64 {
        self.false_positive_rate * self.depth()
    }

    /// Returns the cost of reading a range of Δ entries of `entry_bytes` from pages of
    /// `page_bytes`, in a tree whose levels gather runs: d f e Δ/p (§2.6.1). Each run contributes
    /// at least one page.
    pub fn tiered_range(&self, entries: f64, entry_bytes: f64, page_bytes: f64) -> f64 {
        self.depth() * self.fanout * (entry_bytes * entries / page_bytes).max(1.0)
    }

    /// Returns the cost of reading a range in a tree whose levels are one run each.
    pub fn leveled_range(&self, entries: f64, entry_bytes: f64, page_bytes: f64) -> f64 {
        self.tiered_range(entries, entry_bytes, page_bytes) / self.fanout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: DentTree = DentTree {
        pages: 1e6,
        buffer_pages: 1e3,
        fanout: 10.0,
        false_positive_rate: 0.01,
        read_cost: 1.0,
    };

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-9
    }

    #[test]
    fn costs_match_the_paper() {
        assert!(near(TREE.depth(), 3.0));
        assert!(near(TREE.tiered_update(), 2.0 * 3.0 / 1e3));
        assert!(near(TREE.tiered_lookup(), 0.01 * 10.0 * 3.0));
        assert!(near(TREE.tiered_range(4096.0, 8.0, 4096.0), 3.0 * 10.0 * 8.0));
        assert!(near(TREE.tiered_range(1.0, 8.0, 4096.0), 3.0 * 10.0));
    }

    #[test]
    fn a_fanout_as_large_as_the_data_turns_tiering_into_a_log_and_leveling_into_a_sorted_array() {
        let flushes = TREE.pages / TREE.buffer_pages;
        let tree = DentTree { fanout: flushes, ..TREE };
        // A log: every page is written once more, and a lookup reads every run.
        assert!(near(tree.tiered_update(), (1.0 + tree.read_cost) / tree.buffer_pages));
        assert!(near(tree.tiered_lookup(), tree.false_positive_rate * flushes));
        // A sorted array: each flush rewrites all of it, and a lookup reads one run.
        assert!(near(tree.leveled_update(), flushes * (1.0 + tree.read_cost) / tree.buffer_pages));
        assert!(near(tree.leveled_lookup(), tree.false_positive_rate));
    }

    #[test]
    fn a_larger_fanout_makes_tiered_updates_cheaper_and_lookups_more_expensive() {
        for pair in [2.0, 4.0, 10.0, 100.0].windows(2) {
            let [less, more] = [pair[0], pair[1]].map(|fanout| DentTree { fanout, ..TREE });
            assert!(more.tiered_update() < less.tiered_update());
            assert!(more.tiered_lookup() >= less.tiered_lookup());
            assert!(more.leveled_update() > less.leveled_update() || less.fanout < 3.0);
        }
    }
}
