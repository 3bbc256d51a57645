//! Iterators over keys and values, which can be advanced from both ends.

mod back;

use std::sync::Arc;

use terrane_memtable::head_of;

use crate::api::handle::Handle;
use crate::base::error::{Error, Result};
use crate::base::fork::{self, Owner};
use crate::base::range::HalfOpen;
use crate::base::stats::{Counter, Sample, Timed};
use crate::engine::ReadView;
use crate::engine::cursor::VisibleCursor;
use crate::engine::snapshot_pin::SnapshotPin;
use crate::files::table::Stretch;
use crate::files::value::{Key, Value};

/// An iterator over the keys and values of a range, in order, from a snapshot taken when the
/// iterator was created.
///
/// It can be advanced from both ends until they meet. After an error it returns no more entries,
/// so that a failed scan is not mistaken for a complete one.
///
/// [`Iter::advance`] with [`Iter::key`] and [`Iter::value`] is fastest, because it lends the bytes
/// instead of sharing them.
///
/// An iterator pins its tables and memtables, so a long-lived iterator delays the release of their
/// space.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// for word in ["ant", "bee", "cat"] {
///     db.put(word, word.to_uppercase())?;
/// }
/// // As an iterator, its items are results.
/// let words: terrane::Result<Vec<_>> = db.iter()?.rev().collect();
/// assert_eq!(words?[0].0, "cat");
/// // Without copies of keys and values:
/// let mut entries = db.iter()?;
/// entries.seek("b")?;
/// while entries.advance()? {
///     println!("{} = {}", entries.key().escape_ascii(), entries.value().escape_ascii());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Iter {
    view: ReadView,
    start: Key,
    end: Option<Key>,
    front: Option<VisibleCursor>,
    /// Boxed, because few iterators go backward, and a small iterator is cheaper to move.
    back: Option<Box<VisibleCursor>>,
    /// Entries to which the next steps lead. If one is the current entry, the front is on the last of them.
    stretch: Stretch,
    /// While a stretch may follow: the end of the range by the first eight bytes. Otherwise 0.
    within: u64,
    /// Whether the front cursor is on an entry that was not returned yet.
    is_front_fresh: bool,
    /// Whether the back cursor is on an entry that was not returned, because the ends had met.
    is_back_fresh: bool,
    is_done: bool,
    /// How values are handled.
    values: IterValues,
    /// The number of entries returned.
    count: u64,
    /// The process that created the iterator.
    owner: Owner,
    /// Pins the versions that the view reads.
    _snapshot: Option<Arc<SnapshotPin>>,
    handle: Arc<Handle>,
}

/// How an iterator handles values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IterValues {
    /// All values are in memtables and tables.
    InPlace,
    /// Values may be separated or operands, and are loaded with their keys.
    Load,
    /// Values are left out.
    LeaveOut,
}

impl Iter {
    pub(crate) fn new(
        handle: Arc<Handle>,
        view: ReadView,
        snapshot: Option<Arc<SnapshotPin>>,
        (start, end): HalfOpen<'_>,
    ) -> Self {
        handle.engine.context.counters.add(Counter::Scans, 1);
        let is_done = end.as_ref().is_some_and(|end| *end <= start);
        let values =
            if view.has_values_in_place() { IterValues::InPlace } else { IterValues::Load };
        Self {
            view,
            start: (&*start).into(),
            end: end.map(|end| (&*end).into()),
            front: None,
            stretch: Stretch::default(),
            within: 0,
            back: None,
            is_front_fresh: false,
            is_back_fresh: false,
            is_done,
            values,
            count: 0,
            owner: Owner::this_process(),
            _snapshot: snapshot,
            handle,
        }
    }

    /// Leaves out the values: from now on every entry has an empty value. Such a scan reads no value
    /// that is stored apart from its key.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.leave_out_values();
        self
    }

    pub(crate) fn leave_out_values(&mut self) {
        self.values = IterValues::LeaveOut;
    }

    /// Moves the front to the first key at or after `key`, forward or backward, within the range of
    /// the iterator. The back does not move.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// for word in ["ant", "bee", "cat"] {
    ///     db.put(word, "")?;
    /// }
    /// let mut iter = db.iter()?;
    /// iter.seek("b")?;
    /// assert_eq!(iter.next().unwrap()?.0, "bee");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table could not be read.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.check_process()?;
        let key = key.as_ref().max(&self.start[..]);
        let sample = Sample::begin();
        self.within = 0;
        self.stretch.reset();
        // If the seek fails, the iterator has ended.
        self.is_done = true;
        match &mut self.front {
            Some(cursor) => {
                if let Err(error) = cursor.seek(key) {
                    self.front = None;
                    return Err(error);
                }
            }
            None => self.view.put_cursor_from(&mut self.front, key, self.end.as_deref())?,
        }
        sample.end(&self.handle.engine.context.counters.durations, Timed::Seek);
        self.is_front_fresh = true;
        self.is_done = self.end.as_ref().is_some_and(|end| *end <= self.start);
        Ok(())
    }

    /// Moves to the next entry; returns false at the end.
    ///
    /// A value that is stored apart from its key is read by this call, so that [`Iter::value`] cannot
    /// fail.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("apple", "red")?;
    /// let mut iter = db.iter()?;
    /// while iter.advance()? {
    ///     // Borrowed from the iterator, without a copy.
    ///     assert_eq!((iter.key(), iter.value()), (&b"apple"[..], &b"red"[..]));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table or a value could not be read, which ends the iterator.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        if self.stretch.has_next() && self.owner.is_this_process() {
            self.stretch.step();
            self.count += 1;
            return Ok(true);
        }
        self.advance_beyond()
    }

    /// Does the same as [`Iter::advance`], also beyond a stretch.
    #[inline(never)]
    fn advance_beyond(&mut self) -> Result<bool> {
        let may_stretch = self.within > 0 && self.owner.is_this_process();
        if let (Some(front), true) = (&mut self.front, may_stretch)
            && front.stretch(&mut self.stretch, self.within)
        {
            self.count += 1;
            return Ok(true);
        }
        self.stretch.clear();
        self.within = 0;
        if self.is_done {
            return Ok(false);
        }
        self.check_process()?;
        self.is_done = true;
        match &mut self.front {
            None => self.start()?,
            Some(_) if self.is_front_fresh => {}
            Some(cursor) => cursor.step()?,
        }
        self.is_front_fresh = false;
        self.count += 1;
        if !self.front.as_ref().is_some_and(|front| self.is_front_inside(front)) {
            self.stretch.reset();
            return Ok(false);
        }
        if let (Some(front), IterValues::Load) = (&mut self.front, self.values) {
            front.load_value(self.view.values())?;
        }
        self.is_done = false;
        self.within = self.end_within();
        if self.within == 0 && self.stretch.was_used() {
            self.stretch.reset();
        }
        Ok(true)
    }

    /// Returns the end of the range by the first eight bytes, if a stretch may follow; otherwise 0.
    #[inline]
    fn end_within(&self) -> u64 {
        let may_stretch = self.front.as_ref().is_some_and(VisibleCursor::may_stretch);
        if !may_stretch || self.back.is_some() || self.values == IterValues::Load {
            return 0;
        }
        self.end.as_ref().map_or(u64::MAX, |end| head_of(end))
    }

    /// Ends the iterator with an error in a process that was forked from the one that created it.
    #[inline]
    fn check_process(&mut self) -> Result<()> {
        if self.owner.is_this_process() {
            return Ok(());
        }
        self.is_done = true;
        Err(Error::Forked)
    }

    /// Moves the front to the first entry.
    #[inline(never)]
    fn start(&mut self) -> Result<()> {
        let sample = Sample::begin();
        self.view.put_cursor_from(&mut self.front, &self.start, self.end.as_deref())?;
        sample.end(&self.handle.engine.context.counters.durations, Timed::Seek);
        Ok(())
    }

    /// Returns true if the front is before the end of the range and before the entries that the
    /// back has returned.
    #[inline]
    fn is_front_inside(&self, front: &VisibleCursor) -> bool {
        front.is_valid()
            && self.end.as_ref().is_none_or(|end| front.key() < &end[..])
            && self.back.as_ref().is_none_or(|back| {
                let is_before = front.key() < back.key();
                back.is_valid() && (is_before || self.is_back_fresh && front.key() == back.key())
            })
    }

    /// Returns the key of the entry that [`Iter::advance`] moved to; empty if there is none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.stretch.key().unwrap_or_else(|| self.key_of_front())
    }

    #[inline(never)]
    fn key_of_front(&self) -> &[u8] {
        self.front.as_ref().filter(|front| front.is_valid()).map_or(&[], VisibleCursor::key)
    }

    /// Returns the value of the entry that [`Iter::advance`] moved to; empty if there is none, or for
    /// an [`Iter::keys_only`].
    #[inline]
    pub fn value(&self) -> &[u8] {
        let value = if self.values == IterValues::InPlace { self.stretch.value() } else { None };
        value.unwrap_or_else(|| self.value_of_front())
    }

    #[inline(never)]
    fn value_of_front(&self) -> &[u8] {
        if self.values != IterValues::InPlace {
            return self.checked_value();
        }
        self.front.as_ref().filter(|front| front.is_valid()).map_or(&[], VisibleCursor::value)
    }

    /// Returns when the value of the entry that [`Iter::advance`] moved to expires, in microseconds since
    /// the Unix epoch; `None` if there is no entry, or if its value does not expire.
    pub fn expires_at_micros(&self) -> Option<u64> {
        let front = self.front.as_ref().filter(|front| front.is_valid());
        front.and_then(VisibleCursor::expires_at_micros)
    }

    #[cold]
    fn checked_value(&self) -> &[u8] {
        // Between a seek and the next step, and after the end, a separated value has not been read.
        let may_be_unread = self.is_done || self.is_front_fresh;
        let front = self.front.as_ref().filter(|front| front.is_valid());
        let front = front.filter(|front| !(may_be_unread && front.is_unread()));
        let front = front.filter(|_| self.values != IterValues::LeaveOut);
        front.map_or(&[], VisibleCursor::value)
    }

    fn pin_front(&self) -> Value {
        match self.stretch.pin_value() {
            Some(value) if self.values != IterValues::LeaveOut => value,
            _ => self.front.as_ref().map_or_else(Value::empty, |front| self.pin(front)),
        }
    }

    fn pin(&self, cursor: &VisibleCursor) -> Value {
        match self.values {
            IterValues::LeaveOut => Value::empty(),
            IterValues::InPlace | IterValues::Load => cursor.pin_value(),
        }
    }
}

impl Iterator for Iter {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(false) => None,
            Ok(true) => Some(Ok((Key::from(self.key()), self.pin_front()))),
            Err(error) => Some(Err(error)),
        }
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.retreat() {
            Ok(false) => None,
            Ok(true) => self.back.as_ref().map(|back| Ok((Key::from(back.key()), self.pin(back)))),
            Err(error) => Some(Err(error)),
        }
    }
}

impl std::iter::FusedIterator for Iter {}

impl Drop for Iter {
    fn drop(&mut self) {
        let context = &self.handle.engine.context;
        if !self.owner.is_this_process() {
            let stretch = std::mem::take(&mut self.stretch);
            return fork::leak((self.view.clone(), self.front.take(), self.back.take(), stretch));
        }
        context.counters.add_some(Counter::ScanEntries, self.count);
        let cursors = self.front.iter().chain(self.back.as_deref());
        let dead = cursors.map(VisibleCursor::dead_keys).sum();
        context.counters.add_some(Counter::ScanDeadKeys, dead);
        if self.view.count_scan(self.count) {
            context.attention.request_memtable_check();
            context.signals.wake();
        }
    }
}

impl std::fmt::Debug for Iter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iter")
            .field("seq", &self.view.seq())
            .field("start", &self.start)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
