//! Key ranges in which a scan has found only deleted keys.
//!
//! Deleting a queue from its front, or a day of data key by key, leaves a long sequence of
//! tombstones before the first live key. A scan that steps through it notes the range here, and
//! later scans skip it, until a compaction drops the tombstones.
//!
//! A range is valid as of a sequence number and a state of the tree: a reader at that number or
//! later, in that state or a later one, finds no live key in it unless one has since been put. A
//! put into a range therefore removes the range. The state matters because a compaction filter
//! removes keys that readers of earlier states see at the same number. This is only a cache: it is
//! not persistent, and dropping a range is always correct.
//!
//! A scan misses writes that become visible after it began, so it cannot determine alone that a
//! range is dead. It therefore watches the keys from the first dead one on, and writers cut the
//! watched range at the keys that they put. If the tree was not written since the scan began, this
//! scan notes the dead range; otherwise later scans note ranges within the watched one.
//!
//! 1. A watched range contains no key of a put whose sequence number is above `since`.
//! 2. If a visible sequence number is at or above the number of a dead range, a reader at that number, in
//!    the state of the range or a later one, finds no live key in the range.
//!
//! Both hold because of the order of operations on both sides, all sequentially consistent. A
//! writer first stores the tree's last sequence number, then loads the bounds of all ranges, cuts
//! watched ranges and removes dead ranges with its key, and then makes the write visible. A scan
//! first stores the bounds of a watched range, then loads the last sequence number as `since`, with
//! the lock held. So a put above `since` has loaded the new bounds (1). A dead range is added, with
//! the lock held, only within a watched range whose `since` is at most the number up to which the
//! scan has seen all writes (2).

mod range_set;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrane_memtable::Padded;
use terrane_policy::key_range::successor;

use super::merge::Direction;
use crate::base::stats::stripe_of_thread;
use crate::base::types::SeqNo;
use range_set::RangeSet;

const STRIPES: usize = 8;

/// The maximum number of watched ranges; more are rarely useful. Beyond it, the oldest range is
/// dropped.
const WATCHED_MAX: usize = 32;

/// The maximum length of a key; ranges with longer keys are not worth their memory.
const KEY_BYTES_MAX: usize = 4 << 10;

/// What a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) seq: SeqNo,
    /// The number of the tree's state, which increases when the state is replaced.
    pub(crate) state: u64,
}

impl Sight {
    /// Returns true if a reader with this sight finds no key that a reader with `other` misses,
    /// unless the key was put in the meantime.
    fn is_after(self, other: Self) -> bool {
        self.seq >= other.seq && self.state >= other.state
    }
}

/// The keys from `start` to the exclusive `end`; unbounded if `end` is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadRange {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
    since: Sight,
}

/// The keys from `start` to the exclusive `end`. None was put with a sequence number above `since`.
#[derive(Debug)]
struct WatchedRange {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    since: SeqNo,
    /// The direction of the scans that the range serves: away from the end that they reach first.
    direction: Direction,
}

/// The dead ranges of a tree, and the tree's last sequence number.
#[derive(Debug, Default)]
pub(crate) struct DeadRanges {
    /// The largest sequence numbers assigned to writes of the tree. Every write stores one, so
    /// threads are spread over several stripes.
    last_seqs: [Padded<AtomicU64>; STRIPES],
    /// Every put loads these, so they have a cache line of their own.
    bounds: Padded<Bounds>,
    ranges: Mutex<Ranges>,
}

/// The bounds of the heads of all keys in dead and watched ranges, so that a writer takes the lock
/// only for keys between them.
#[derive(Debug)]
struct Bounds {
    least: AtomicU64,
    greatest: AtomicU64,
}

#[derive(Debug, Default)]
struct Ranges {
    dead: RangeSet,
    watched: Vec<WatchedRange>,
}

/// The first eight bytes of a key, in the order of the keys.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

fn contains((start, end): (&[u8], Option<&[u8]>), key: &[u8]) -> bool {
    start <= key && end.is_none_or(|end| key < end)
}

fn covers((start, end): (&[u8], Option<&[u8]>), other: (&[u8], Option<&[u8]>)) -> bool {
    start <= other.0 && end.is_none_or(|end| other.1.is_some_and(|other| end >= other))
}

/// Returns the lesser of two ends; `None` is the greatest.
fn lesser<'a>(a: Option<&'a [u8]>, b: Option<&'a [u8]>) -> Option<&'a [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self { least: AtomicU64::new(u64::MAX), greatest: AtomicU64::new(0) }
    }
}

impl Bounds {
    /// SeqCst: see the invariants.
    fn may_contain(&self, key: &[u8]) -> bool {
        let least = self.least.load(Ordering::SeqCst);
        let greatest = self.greatest.load(Ordering::SeqCst);
        least <= greatest && (least..=greatest).contains(&head(key))
    }

    /// SeqCst: see the invariants. The caller holds the lock.
    fn set(&self, ranges: &Ranges) {
        let watched = ranges.watched.iter().map(WatchedRange::bounds);
        let (mut least, mut greatest) = (u64::MAX, 0);
        for (start, end) in ranges.dead.hull().into_iter().chain(watched) {
            least = least.min(head(start));
            greatest = greatest.max(end.map_or(u64::MAX, head));
        }
        self.least.store(least, Ordering::SeqCst);
        self.greatest.store(greatest, Ordering::SeqCst);
    }
}

impl WatchedRange {
    fn bounds(&self) -> (&[u8], Option<&[u8]>) {
        (&self.start, self.end.as_deref())
    }

    /// Cuts off the keys from `key` on, in scan direction. Returns false if none is left.
    fn cut_at(&mut self, key: &[u8]) -> bool {
        if contains(self.bounds(), key) {
            match self.direction {
                Direction::Forward => self.end = Some(key.to_vec()),
                Direction::Backward => self.start = successor(key).to_vec(),
            }
        }
        self.end.as_ref().is_none_or(|end| self.start < *end)
    }
}

impl Ranges {
    fn add(&mut self, start: &[u8], end: Option<&[u8]>, since: Sight) {
        self.dead.add(DeadRange { start: start.to_vec(), end: end.map(<[u8]>::to_vec), since });
    }

    /// Adds the part of a range of dead keys that has been watched since `known` or earlier.
    /// Returns whether a watched range, regardless of its start time, contains the whole range.
    fn add_watched(&mut self, start: &[u8], end: &[u8], known: SeqNo, sight: Sight) -> bool {
        let mut is_watched = false;
        let mut added = None;
        for watched in &self.watched {
            let (first, last) = watched.bounds();
            let first = first.max(start);
            let Some(last) = lesser(last, Some(end)).filter(|last| first < *last) else { continue };
            is_watched |= first == start && last == end;
            if watched.since <= known {
                added = Some((first.to_vec(), last.to_vec()));
            }
        }
        if let Some((start, end)) = added {
            self.add(&start, Some(&end), sight);
        }
        is_watched
    }
}

impl DeadRanges {
    /// Notes that sequence numbers up to `seq` have been assigned to writes of the tree.
    #[inline]
    pub(crate) fn set_last_seq(&self, seq: SeqNo) {
        // SeqCst: pairs with the stores to `bounds` and the loads of `last_seq` in `enter`; see the
        // invariants. Threads may share a stripe, so the number must not decrease.
        self.last_seqs[stripe_of_thread() % STRIPES].fetch_max(seq, Ordering::SeqCst);
    }

    /// Returns the largest sequence number assigned to a write of the tree.
    pub(crate) fn last_seq(&self) -> SeqNo {
        let last_seqs = self.last_seqs.iter().map(|last| last.load(Ordering::SeqCst));
        last_seqs.max().unwrap_or(0)
    }

    /// Removes the dead ranges that contain `key`, which is about to be put, and cuts the watched
    /// ones. The write must have passed its sequence number to [`DeadRanges::set_last_seq`].
    #[inline]
    pub(crate) fn before_put(&self, key: &[u8]) {
        if self.bounds.may_contain(key) {
            self.exclude(key);
        }
    }

    /// Returns the range around `key` in which a reader finds no live key.
    pub(crate) fn around(&self, key: &[u8], sight: Sight) -> Option<DeadRange> {
        if !self.bounds.may_contain(key) {
            return None;
        }
        self.lock().dead.around(key).filter(|range| sight.is_after(range.since))
    }

    /// Adds a range. A reader at a visible number found no live key from `start` to the exclusive
    /// `end`, moving in `direction`. Its sources contain all writes up to `known`; later writes may
    /// be in a newer memtable that the reader does not see.
    pub(crate) fn enter(
        &self,
        start: &[u8],
        end: &[u8],
        direction: Direction,
        (known, sight): (SeqNo, Sight),
    ) {
        if start.len().max(end.len()) > KEY_BYTES_MAX {
            return;
        }
        let mut ranges = self.lock();
        if !ranges.add_watched(start, end, known, sight) {
            self.watch(&mut ranges, start, end, direction);
            if ranges.watched.last().is_some_and(|watched| watched.since <= known) {
                ranges.add(start, Some(end), sight);
            }
        }
        self.bounds.set(&ranges);
    }

    /// Watches the keys from the first dead one on, in scan direction.
    fn watch(&self, ranges: &mut Ranges, start: &[u8], end: &[u8], direction: Direction) {
        let (start, end) = match direction {
            Direction::Forward => (start.to_vec(), None),
            Direction::Backward => (Vec::new(), Some(end.to_vec())),
        };
        let new = WatchedRange { start, end, since: SeqNo::MAX, direction };
        ranges.watched.retain(|other| !covers(new.bounds(), other.bounds()));
        if ranges.watched.len() >= WATCHED_MAX {
            ranges.watched.remove(0);
        }
        ranges.watched.push(new);
        self.bounds.set(ranges);
        let since = self.last_seq();
        if let Some(watched) = ranges.watched.last_mut() {
            watched.since = since;
        }
    }

    /// Removes all dead ranges, after a compaction has dropped tombstones.
    pub(crate) fn clear(&self) {
        let mut ranges = self.lock();
        ranges.dead.clear();
        self.bounds.set(&ranges);
    }

    /// Removes all dead and watched ranges, because a write may have put keys anywhere. The write
    /// has already stored its last sequence number.
    pub(crate) fn forget(&self) {
        let mut ranges = self.lock();
        ranges.dead.clear();
        ranges.watched.clear();
        self.bounds.set(&ranges);
    }

    #[cold]
    fn exclude(&self, key: &[u8]) {
        let mut ranges = self.lock();
        ranges.dead.remove_around(key);
        ranges.watched.retain_mut(|range| range.cut_at(key));
        self.bounds.set(&ranges);
    }

    fn lock(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sight of a reader in the first state.
    fn at(seq: SeqNo) -> Sight {
        Sight { seq, state: 0 }
    }

    fn around(ranges: &DeadRanges, key: &str, seq: SeqNo) -> Option<(String, Option<String>)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        ranges.around(key.as_bytes(), at(seq)).map(|range| (text(range.start), range.end.map(text)))
    }

    fn pair(start: &str, end: &str) -> Option<(String, Option<String>)> {
        Some((start.into(), Some(end.into())))
    }

    /// Adds a range that a forward scan found dead as of the last write.
    fn enter(ranges: &DeadRanges, start: &str, end: &str, seq: SeqNo) {
        ranges.enter(start.as_bytes(), end.as_bytes(), Direction::Forward, (seq, at(seq)));
    }

    fn put(ranges: &DeadRanges, key: &str, seq: SeqNo) {
        ranges.set_last_seq(seq);
        ranges.before_put(key.as_bytes());
    }

    #[test]
    fn ranges_grow_and_end_with_a_put() {
        let ranges = DeadRanges::default();
        ranges.set_last_seq(10);
        enter(&ranges, "b", "d", 10);
        assert_eq!(around(&ranges, "b", 9), None, "an older reader");
        assert_eq!(around(&ranges, "d", 10), None);
        ranges.set_last_seq(11);
        enter(&ranges, "d", "f", 11);
        assert_eq!(around(&ranges, "c", 11), pair("b", "f"));
        assert_eq!(around(&ranges, "c", 10), None, "a joined range is valid as of the later one");
        put(&ranges, "g", 12);
        assert_eq!(around(&ranges, "c", 20), pair("b", "f"));
        put(&ranges, "e", 13);
        assert_eq!(around(&ranges, "c", 20), None);
        enter(&ranges, "x", "z", 13);
        ranges.clear();
        assert_eq!(around(&ranges, "y", 20), None);
    }

    /// A filter removes keys without a write, so a reader of an earlier state may see keys in a range
    /// that a later reader at the same number found dead.
    #[test]
    fn a_reader_of_an_earlier_state_does_not_skip_what_later_ones_found_dead() {
        let ranges = DeadRanges::default();
        let sight = |seq, state| Sight { seq, state };
        ranges.enter(b"b", b"d", Direction::Forward, (10, sight(10, 5)));
        assert_eq!(ranges.around(b"c", sight(10, 4)), None);
        assert!(ranges.around(b"c", sight(10, 5)).is_some());
        ranges.enter(b"d", b"f", Direction::Forward, (10, sight(10, 6)));
        assert_eq!(ranges.around(b"c", sight(10, 5)), None, "joined with one of a later state");
        ranges.enter(b"f", b"h", Direction::Forward, (10, sight(10, 3)));
        assert_eq!(ranges.around(b"g", sight(10, 5)), None);
        assert!(ranges.around(b"b", sight(11, 6)).is_some());
    }

    #[test]
    fn a_write_since_the_scan_leaves_its_range_to_the_next_scan() {
        let ranges = DeadRanges::default();
        ranges.set_last_seq(12);
        ranges.enter(b"a", b"c", Direction::Forward, (11, at(11)));
        ranges.enter(b"a", b"c", Direction::Forward, (11, at(12)));
        assert_eq!(around(&ranges, "b", 20), None);
        // Writes that come after the range was watched do not matter, unless they are in the range.
        put(&ranges, "d", 13);
        ranges.enter(b"a", b"c", Direction::Forward, (12, at(12)));
        assert_eq!(around(&ranges, "b", 12), pair("a", "c"));
    }

    #[test]
    fn a_put_cuts_the_watched_range_in_the_direction_of_the_scan() {
        let forward = DeadRanges::default();
        forward.set_last_seq(12);
        forward.enter(b"a", b"b", Direction::Forward, (11, at(11)));
        put(&forward, "c", 13);
        forward.enter(b"a", b"e", Direction::Forward, (12, at(12)));
        assert_eq!(around(&forward, "b", 13), pair("a", "c"));
        assert_eq!(around(&forward, "c", 13), None);

        let backward = DeadRanges::default();
        backward.set_last_seq(12);
        backward.enter(b"d", b"e", Direction::Backward, (11, at(11)));
        put(&backward, "b", 13);
        backward.enter(b"a", b"e", Direction::Backward, (12, at(12)));
        assert_eq!(around(&backward, "d", 13), pair("b\0", "e"));
        assert_eq!(around(&backward, "b", 13), None);
    }

    #[test]
    fn writers_take_the_lock_only_for_keys_between_all_ranges() {
        let ranges = DeadRanges::default();
        assert!(!ranges.bounds.may_contain(b"a") && !ranges.bounds.may_contain(b""));
        enter(&ranges, "bbbbbbbbb", "d", 0);
        put(&ranges, "e", 1);
        for (key, is_between) in [("a", false), ("bbbbbbbba", true), ("dz", true), ("f", false)] {
            assert_eq!(ranges.bounds.may_contain(key.as_bytes()), is_between, "{key}");
        }
        put(&ranges, "bbbbbbbbb", 2);
        assert!(!ranges.bounds.may_contain(b"bbbbbbbbb"), "nothing is left");
    }

    #[test]
    fn the_number_of_watched_ranges_is_bounded() {
        let ranges = DeadRanges::default();
        for number in 0..200u8 {
            let (start, end) = ([199 - number, 0], [199 - number, 1]);
            ranges.enter(&start, &end, Direction::Forward, (5, at(5)));
            ranges.before_put(&end);
        }
        assert_eq!(ranges.lock().dead.len(), 200);
        assert!(ranges.lock().watched.len() <= WATCHED_MAX);
        assert!(ranges.around(&[0, 0], at(5)).is_some());
    }
}
