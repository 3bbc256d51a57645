//! The sequence numbers that readers use, which decide which versions of a key they can see.
//!
//! A version is *hidden* by the next newer version of its key once the newer one is visible, unless
//! a reader holds a sequence number at or above the older version's and below the newer one's. The
//! newer version is visible at every sequence number taken later, so a hidden version stays hidden.
//! [`ReaderView`] may therefore use bounds that it loaded earlier.

use std::cell::Cell;
use std::ops::Range;

use crate::entry::{EntryKind, SeqNo};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// Bounds of the sequence numbers that readers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeqBounds {
    /// A visible sequence number. No reader takes an older one from now on.
    pub visible: SeqNo,
    /// No sequence number below this one is held; `SeqNo::MAX` if none is held.
    pub oldest: SeqNo,
    /// No sequence number above this one is held, except those at or above `visible`.
    pub newest: SeqNo,
}

/// The sequence numbers that readers of a memtable use. A closure that returns a number `horizon`
/// stands for readers at any number from `horizon` on.
pub trait Readers {
    /// Returns the current bounds. `visible` is loaded first.
    fn bounds(&self) -> SeqBounds;

    /// Returns whether a sequence number in `seqs` is held. Called after [`Readers::bounds`].
    fn hold_any(&self, seqs: Range<SeqNo>) -> bool;
}

impl<F: Fn() -> SeqNo> Readers for F {
    fn bounds(&self) -> SeqBounds {
        SeqBounds { visible: self(), oldest: SeqNo::MAX, newest: 0 }
    }

    fn hold_any(&self, _seqs: Range<SeqNo>) -> bool {
        false
    }
}

/// Readers whose bounds are loaded once, when they are first needed.
pub(crate) struct ReaderView<'r> {
    readers: &'r dyn Readers,
    bounds: Cell<Option<SeqBounds>>,
}

impl<'r> ReaderView<'r> {
    pub(crate) fn new(readers: &'r dyn Readers) -> Self {
        Self { readers, bounds: Cell::new(None) }
    }

    pub(crate) fn bounds(&self) -> SeqBounds {
        self.bounds.get().unwrap_or_else(|| {
            let bounds = self.readers.bounds();
            self.bounds.set(Some(bounds));
            bounds
        })
    }

    /// Returns whether no reader needs the version `older`, now or later, because the next newer
    /// version of its key is `newer`, which [hides older ones](EntryKind::hides_older). Readers that took a sequence number below `newer` and do not
    /// hold it are not considered.
    pub(crate) fn is_hidden(&self, older: SeqNo, (newer, kind): (SeqNo, EntryKind)) -> bool {
        if !kind.hides_older() {
            return false;
        }
        let bounds = self.bounds();
        let seqs = older..newer;
        newer <= bounds.visible
            && (newer <= bounds.oldest
                || older > bounds.newest
                // Most often one number is held, and the bounds say which: no lock is needed.
                || !(seqs.contains(&bounds.oldest)
                    || seqs.contains(&bounds.newest)
                    || self.readers.hold_any(seqs)))
    }
}

/// Bounds that a writer loaded some time ago, for drains, which do not know the readers.
pub(crate) struct SeenReaders {
    bounds: Mutex<SeqBounds>,
    /// A write at or above this sequence number replaces the bounds.
    due: AtomicU64,
}

/// The number of writes after which the bounds are loaded again.
const SEEN_FOR: u64 = 64;

impl SeenReaders {
    pub(crate) fn new() -> Self {
        // Nothing is visible, so nothing is hidden.
        let bounds = SeqBounds { visible: 0, oldest: SeqNo::MAX, newest: 0 };
        Self { bounds: Mutex::new(bounds), due: AtomicU64::new(0) }
    }

    /// Loads the bounds from `view`, unless a write shortly before `seq` has done so.
    #[inline]
    pub(crate) fn note(&self, seq: SeqNo, view: &ReaderView<'_>) {
        // Relaxed: the number only decides how often the bounds are loaded.
        if seq >= self.due.load(Ordering::Relaxed) {
            self.due.store(seq + SEEN_FOR, Ordering::Relaxed);
            *lock(&self.bounds) = view.bounds();
        }
    }

    /// Returns readers that are known only by the bounds.
    pub(crate) fn get(&self) -> impl Readers {
        SeenBounds(*lock(&self.bounds))
    }
}

struct SeenBounds(SeqBounds);

impl Readers for SeenBounds {
    fn bounds(&self) -> SeqBounds {
        self.0
    }

    fn hold_any(&self, _seqs: Range<SeqNo>) -> bool {
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Held(SeqNo, Vec<SeqNo>);

    impl Readers for Held {
        fn bounds(&self) -> SeqBounds {
            let oldest = self.1.iter().min().copied().unwrap_or(SeqNo::MAX);
            let newest = self.1.iter().max().copied().unwrap_or(0);
            SeqBounds { visible: self.0, oldest, newest }
        }

        fn hold_any(&self, seqs: Range<SeqNo>) -> bool {
            self.1.iter().any(|seq| seqs.contains(seq))
        }
    }

    #[test]
    fn a_version_is_hidden_if_no_reader_is_between_it_and_a_visible_newer_one() {
        for held in [vec![], vec![3], vec![3, 6], vec![9], vec![3, 9]] {
            let readers = Held(8, held.clone());
            for older in 0..10 {
                for newer in older + 1..12 {
                    let is_held = held.iter().any(|seq| (older..newer).contains(seq));
                    let expected = newer <= 8 && !is_held;
                    let view = ReaderView::new(&readers);
                    let version = (newer, EntryKind::Value);
                    assert_eq!(
                        view.is_hidden(older, version),
                        expected,
                        "{held:?} {older} {newer}"
                    );
                    assert!(!view.is_hidden(older, (newer, EntryKind::Operand)));
                }
            }
        }
        let horizon = || 5;
        let view = ReaderView::new(&horizon);
        let version = |seq| (seq, EntryKind::Tombstone);
        assert!(view.is_hidden(3, version(5)) && !view.is_hidden(3, version(6)));
    }
}
