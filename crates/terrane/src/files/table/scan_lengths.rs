//! The lengths of recent scans of a tree, from which a scan learns how much to read at once.
//!
//! A device takes about as long to begin a read as to transfer some tens of kilobytes, so that a scan
//! which reads one block after the other waits for most of its time, and a scan that reads far ahead
//! transfers what nobody needs. For every level of a tree, the engine counts how many bytes scans read
//! consecutively from its files. The next read is the one with the lowest expected cost under these
//! counts, given what the scan has read already. Old scans are forgotten.

use std::sync::{Mutex, OnceLock, PoisonError};

/// The length of a scan is the distance, in bytes of files, from its first byte to the first byte of the last
/// block that it needed, included. It falls into the first of these classes that is not shorter, or into a
/// last class of longer scans. A read of a class contains the blocks that begin within it, in the first class
/// one.
const CLASSES: [u64; 19] = [
    1,
    4 << 10,
    8 << 10,
    12 << 10,
    16 << 10,
    24 << 10,
    32 << 10,
    48 << 10,
    64 << 10,
    96 << 10,
    128 << 10,
    192 << 10,
    256 << 10,
    384 << 10,
    512 << 10,
    768 << 10,
    1 << 20,
    3 << 19,
    2 << 20,
];

/// The number of bytes whose transfer takes as long as it takes to begin a read.
pub(super) const BEGIN_BYTES: u64 = 32 << 10;

/// The most that is read at once, unless a class is larger than that: more would delay the first entry, and
/// later reads overlap with the caller's work.
const READ_MAX: u64 = 256 << 10;

/// What a scan of the last class costs from its beginning, less what it has read: it reads on in large reads,
/// which overlap.
const LONG_COST: f32 = BEGIN_BYTES as f32;

/// The levels that are counted separately. Deeper ones share the last.
const LEVELS: usize = 8;

/// What a scan adds to the count of its class.
const SCAN: u16 = 16;

/// The counts are halved when they reach this sum, so that a hundred scans replace older ones.
const SUM_MAX: u16 = 128 * SCAN;

/// The count of each class before any scan: short scans are more frequent.
const INITIAL: [u16; CLASSES.len() + 1] =
    [256, 128, 64, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 16, 16, 16, 16, 16, 16, 16];

/// Reads are planned again after this many scans.
const SCANS_BETWEEN_PLANS: u16 = 8;

/// The lengths of the scans of a tree.
#[derive(Debug, Default)]
pub(crate) struct ScanLengths {
    /// Allocated by the first scan that reads a file, because a database may have many trees.
    levels: OnceLock<Box<[Mutex<LevelLengths>; LEVELS]>>,
}

/// A read of a scan, planned or done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NextRead {
    /// The number of bytes to read.
    pub(super) bytes: u64,
    /// Whether the scan probably needs more than that.
    pub(super) goes_on: bool,
}

#[derive(Debug)]
struct LevelLengths {
    counts: [u16; CLASSES.len() + 1],
    /// The number of scans since the reads were planned.
    unplanned: u16,
    /// The class to which a scan that has read as much as the class before, or nothing, reads next, and whether
    /// it then probably goes on.
    plan: [(u8, bool); CLASSES.len()],
}

impl ScanLengths {
    fn level(&self, level: u8) -> Option<&Mutex<LevelLengths>> {
        let levels = self.levels.get_or_init(Box::default);
        levels.get(usize::from(level).min(LEVELS - 1))
    }

    /// Counts a scan that needed `bytes` consecutive bytes of the files of a level.
    pub(super) fn note(&self, level: u8, bytes: u64) {
        // If another scan is being counted, this one is not, because no scan should wait.
        if let Some(Ok(mut lengths)) = self.level(level).map(Mutex::try_lock) {
            lengths.note(bytes);
        }
    }

    /// Returns what a scan should read next that has read `done` consecutive bytes of a level; `None` if it is
    /// longer than all classes.
    pub(super) fn next_read(&self, level: u8, done: u64) -> Option<NextRead> {
        let lengths = self.level(level)?.lock().unwrap_or_else(PoisonError::into_inner);
        let known = CLASSES.partition_point(|&bytes| bytes <= done);
        let (class, goes_on) = *lengths.plan.get(known)?;
        let bytes = CLASSES.get(usize::from(class))?.saturating_sub(done);
        Some(NextRead { bytes, goes_on })
    }
}

impl Default for LevelLengths {
    fn default() -> Self {
        let plan = [(0, false); CLASSES.len()];
        let mut lengths = Self { counts: INITIAL, unplanned: 0, plan };
        lengths.replan();
        lengths
    }
}

impl LevelLengths {
    fn note(&mut self, bytes: u64) {
        let class = CLASSES.partition_point(|&longest| longest < bytes);
        if let Some(count) = self.counts.get_mut(class) {
            *count += SCAN;
        }
        if self.counts.iter().sum::<u16>() >= SUM_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        self.unplanned += 1;
        if self.unplanned >= SCANS_BETWEEN_PLANS {
            self.replan();
        }
    }

    /// Finds the best reads from the longest scans backward: the cost of a read is that of beginning it and of
    /// its bytes, and for the scans that are longer the cost of their best next read.
    fn replan(&mut self) {
        self.unplanned = 0;
        // The number of scans longer than the class before.
        let mut longer = [0; CLASSES.len() + 1];
        let mut sum = 0;
        for (longer, count) in longer.iter_mut().zip(&self.counts).rev() {
            // Even a class that had no scan for long may have the next one.
            sum += count + 1;
            *longer = sum;
        }
        // Their lowest cost from there.
        let mut costs = [LONG_COST; CLASSES.len() + 1];
        for from in (0..CLASSES.len()).rev() {
            let done = from.checked_sub(1).map_or(0, |before| CLASSES[before]);
            let candidates = CLASSES.iter().enumerate().skip(from);
            let candidates =
                candidates.filter(|(class, bytes)| *class == from || *bytes - done <= READ_MAX);
            let candidates = candidates.map(|(class, &bytes)| {
                let share = f32::from(longer[class + 1]) / f32::from(longer[from]);
                let cost = BEGIN_BYTES as f32 + (bytes - done) as f32 + share * costs[class + 1];
                (cost, (class as u8, share >= 0.5))
            });
            if let Some((cost, read)) = candidates.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
                (costs[from], self.plan[from]) = (cost, read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    /// Returns the sizes of the reads of a scan up to the last class.
    fn reads(lengths: &ScanLengths) -> Vec<u64> {
        let mut done = 0;
        let mut reads = Vec::new();
        while let Some(read) = lengths.next_read(0, done) {
            reads.push(read.bytes / KIB);
            done += read.bytes;
        }
        reads
    }

    fn after(scans: &[(u64, usize)]) -> ScanLengths {
        let lengths = ScanLengths::default();
        for _ in 0..200 {
            for &(bytes, count) in scans {
                (0..count).for_each(|_| lengths.note(0, bytes));
            }
        }
        lengths
    }

    #[test]
    fn a_scan_reads_what_scans_before_it_needed() {
        assert_eq!(reads(&after(&[(47 * KIB, 1)]))[0], 48);
        assert_eq!(after(&[(1, 1)]).next_read(0, 0), Some(NextRead { bytes: 1, goes_on: false }));
        let long = after(&[(10 << 20, 1)]);
        assert_eq!(long.next_read(0, 0), Some(NextRead { bytes: 256 * KIB, goes_on: true }));
        let next = long.next_read(0, 256 * KIB).unwrap();
        assert!(next.bytes <= READ_MAX && next.goes_on);
        assert_eq!(long.next_read(0, 2 << 20), None);
    }

    #[test]
    fn rare_long_scans_do_not_make_short_ones_read_more() {
        let lengths = after(&[(3000, 20), (200 * KIB, 1)]);
        assert_eq!(reads(&lengths)[..2], [4, 252]);
    }

    #[test]
    fn levels_are_apart_and_old_scans_are_forgotten() {
        let lengths = after(&[(47 * KIB, 1)]);
        assert_ne!(lengths.next_read(1, 0), lengths.next_read(0, 0));
        (0..2 * SUM_MAX).for_each(|_| lengths.note(0, 7 * KIB));
        assert_eq!(reads(&lengths)[0], 8);
    }
}
