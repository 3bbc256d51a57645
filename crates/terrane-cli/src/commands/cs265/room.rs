//! The room of a tree whose depth is fixed (Dent §2.1, §2.3).
//!
//! Dent's buffer holds a number of distinct keys. A put that finds it full first makes a run of
//! it. A level holds at most `fanout` runs; when another one comes, they are merged into one run
//! of the next level, and there is no more space when the last level is full too. So how full the
//! tree is follows from the number of runs that were made alone: a tree of depth d has room for
//! f + f² + … + f^d of them. This counts them as his tree does; our own keeps its data otherwise.

use std::collections::HashSet;

use anyhow::{Result, anyhow};

use super::{Cs265Args, PAGE_ENTRIES, PAGES_DEFAULT};

const DENT_FANOUT: u32 = 10;

/// How much of the room is taken.
#[derive(Debug)]
pub(super) struct Room {
    buffer: HashSet<i32>,
    buffer_entries_max: u64,
    runs_made: u64,
    runs_max: u64,
    depth: u32,
    is_full: bool,
}

impl Room {
    /// The room of an empty tree.
    pub(super) fn new(args: &Cs265Args) -> Self {
        let pages = args.buffer.unwrap_or(PAGES_DEFAULT);
        Self::of(u64::from(pages) * PAGE_ENTRIES, args.fanout.unwrap_or(DENT_FANOUT), args.depth)
    }

    fn of(buffer_entries_max: u64, fanout: u32, depth: u32) -> Self {
        let fanout = u64::from(fanout);
        // Deeper trees than 64 levels have room for everything all the more.
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

    /// Takes room for a key.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn take(&mut self, key: i32) -> Result<()> {
        if self.buffer.len() as u64 >= self.buffer_entries_max {
            if self.runs_made >= self.runs_max {
                self.is_full = true;
                let levels = terrane_lab::human::counted(self.depth.into(), "level");
                return Err(anyhow!("No more space in tree. It has {levels}; see -d, -f and -b"));
            }
            self.runs_made += 1;
            self.buffer.clear();
        }
        self.buffer.insert(key);
        Ok(())
    }

    /// Whether room was asked for in vain.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many distinct keys fit.
    fn keys_that_fit(buffer: u64, fanout: u32, depth: u32) -> i32 {
        let mut room = Room::of(buffer, fanout, depth);
        (0..).find(|&key| room.take(key).is_err()).unwrap()
    }

    #[test]
    fn a_tree_has_room_for_all_its_runs_and_a_buffer() {
        assert_eq!(keys_that_fit(3, 2, 1), 3 * (2 + 1));
        assert_eq!(keys_that_fit(3, 2, 2), 3 * (2 + 4 + 1));
        assert_eq!(keys_that_fit(1, 10, 3), 1110 + 1);
        assert_eq!(Room::of(1, 10, 4000).runs_max, u64::MAX);
    }

    #[test]
    fn keys_that_are_in_the_buffer_take_no_more_room_until_it_is_full() {
        let mut room = Room::of(2, 2, 1);
        for _ in 0..100 {
            room.take(7).unwrap();
        }
        assert_eq!(room.runs_made, 0);
        room.take(8).unwrap();
        // Full: even a key that is there finds no place before a run is made.
        room.take(7).unwrap();
        assert_eq!(room.runs_made, 1);
        assert!(!room.is_full());
    }
}
