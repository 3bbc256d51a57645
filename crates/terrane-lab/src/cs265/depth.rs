//! The capacity of a tree whose depth is fixed (Dent §2.1, §2.3).
//!
//! Dent's buffer holds a number of distinct keys. A put that finds the buffer full first turns the
//! buffer into a run. A level holds at most `fanout` runs; when one more arrives, they are merged
//! into one run of the next level. The tree is full when its last level is full. The number of runs
//! made so far therefore determines whether the tree is full: a tree of depth d holds f + f² + … +
//! f^d runs. [`FixedDepth`] counts the runs as his tree does; our own tree stores the data
//! differently.

use std::collections::HashSet;

use anyhow::{Result, anyhow};

use crate::output::human;

/// The used capacity of a tree of fixed depth.
#[derive(Debug)]
pub struct FixedDepth {
    buffer: HashSet<i32>,
    buffer_entries_max: u64,
    runs_made: u64,
    runs_max: u64,
    depth: u32,
    is_full: bool,
}

impl FixedDepth {
    /// Returns an empty tree of `depth` levels of `fanout` runs each, with a buffer of
    /// `buffer_entries_max` entries.
    pub fn new(buffer_entries_max: u64, fanout: u32, depth: u32) -> Self {
        let fanout = u64::from(fanout);
        // The capacity of 64 levels exceeds u64.
        let levels = (1..=depth.min(64)).map(|level| fanout.saturating_pow(level));
        Self {
            buffer: HashSet::new(),
            buffer_entries_max,
            runs_made: 0,
            runs_max: levels.fold(0, u64::saturating_add),
            depth,
            is_full: false,
        }
    }

    /// Reserves space for a key.
    ///
    /// # Errors
    ///
    /// If the tree is full.
    pub fn reserve(&mut self, key: i32) -> Result<()> {
        if self.buffer.len() as u64 >= self.buffer_entries_max {
            if self.runs_made >= self.runs_max {
                self.is_full = true;
                let levels = human::counted(self.depth.into(), "level");
                return Err(anyhow!("No more space in tree. It has {levels}; see -d, -f and -b"));
            }
            self.runs_made += 1;
            self.buffer.clear();
        }
        self.buffer.insert(key);
        Ok(())
    }

    /// Returns true if a reservation failed.
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of distinct keys that fit.
    fn keys_that_fit(buffer: u64, fanout: u32, depth: u32) -> i32 {
        let mut tree = FixedDepth::new(buffer, fanout, depth);
        (0..).find(|&key| tree.reserve(key).is_err()).unwrap()
    }

    #[test]
    fn a_tree_holds_all_its_runs_and_a_buffer() {
        assert_eq!(keys_that_fit(3, 2, 1), 3 * (2 + 1));
        assert_eq!(keys_that_fit(3, 2, 2), 3 * (2 + 4 + 1));
        assert_eq!(keys_that_fit(1, 10, 3), 1110 + 1);
        assert_eq!(FixedDepth::new(1, 10, 4000).runs_max, u64::MAX);
    }

    #[test]
    fn keys_in_the_buffer_need_no_space_until_it_is_full() {
        let mut tree = FixedDepth::new(2, 2, 1);
        for _ in 0..100 {
            tree.reserve(7).unwrap();
        }
        assert_eq!(tree.runs_made, 0);
        tree.reserve(8).unwrap();
        // The buffer is full: even a key that it contains requires a new run first.
        tree.reserve(7).unwrap();
        assert_eq!(tree.runs_made, 1);
        assert!(!tree.is_full());
    }
}
