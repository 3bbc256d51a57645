//! An iterator that moves in both directions, over the iterators of the engine, which move from both ends until
//! they meet.
//!
//! Forward, it is an [`Iter`] over the whole range, which is positioned again as needed. Backward, it is
//! another one, which ends at the entry where the direction changed. Both read one snapshot, so a change of
//! direction costs a seek and loses nothing.

use std::ops::Bound;

use terrane::{Iter, Key, Keyspace, Result, Snapshot, Value};

/// Where a cursor is.
#[derive(Debug)]
enum Place {
    /// Not positioned yet: the next entry is the first one, the previous entry the last one.
    Fresh,
    /// On the entry of the forward iterator.
    Forward,
    /// On an entry that the backward iterator returned.
    Backward(Key, Value),
    /// Before the first entry.
    Before,
    /// After the last entry.
    After,
    /// A step failed, so the position is unknown until the next seek.
    Failed,
}

/// An iterator over the keys and values of a range, which moves in both directions.
#[derive(Debug)]
pub struct Cursor {
    snapshot: Snapshot,
    keyspace: Keyspace,
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    is_keys_only: bool,
    forward: Option<Iter>,
    backward: Option<Iter>,
    place: Place,
}

impl Cursor {
    /// Returns a cursor over the keys from `start` to the exclusive `end`, without a position.
    pub fn new(snapshot: Snapshot, keyspace: Keyspace, start: &[u8], end: Option<&[u8]>) -> Self {
        let (start, end) = (start.to_vec(), end.map(<[u8]>::to_vec));
        let place = Place::Fresh;
        let (forward, backward) = (None, None);
        Self { snapshot, keyspace, start, end, is_keys_only: false, forward, backward, place }
    }

    /// Leaves out the values, and forgets the position.
    pub fn leave_out_values(&mut self) {
        self.is_keys_only = true;
        (self.forward, self.backward) = (None, None);
        self.place = Place::Fresh;
    }

    /// Returns whether the cursor is on an entry.
    pub fn is_valid(&self) -> bool {
        matches!(self.place, Place::Forward | Place::Backward(..))
    }

    /// Returns the key of the entry; empty if there is none.
    pub fn key(&self) -> &[u8] {
        match (&self.place, &self.forward) {
            (Place::Forward, Some(forward)) => forward.key(),
            (Place::Backward(key, _), _) => key,
            _ => &[],
        }
    }

    /// Returns the value of the entry; empty if there is none.
    pub fn value(&self) -> &[u8] {
        match (&self.place, &self.forward) {
            (Place::Forward, Some(forward)) => forward.value(),
            (Place::Backward(_, value), _) => value,
            _ => &[],
        }
    }

    /// Moves to the first entry; returns false if there is none.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.seek(&[])
    }

    /// Moves to the last entry; returns false if there is none.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.begin_backward(None)
    }

    /// Moves to the first entry whose key is `key` or above; returns false if there is none.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.place = Place::Failed;
        self.backward = None;
        let mut forward = match self.forward.take() {
            Some(forward) => forward,
            None => self.iter(Bound::Included(&self.start), self.upper())?,
        };
        forward.seek(key)?;
        self.advance(forward)
    }

    /// Moves to the last entry whose key is `key` or below; returns false if there is none.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        self.begin_backward(Some(Bound::Included(key)))
    }

    /// Moves to the next entry, which is the first one if the cursor has no position; returns false at the end.
    ///
    /// # Errors
    /// A table or a value could not be read. Until the next seek the cursor is on no entry.
    pub fn move_next(&mut self) -> Result<bool> {
        match std::mem::replace(&mut self.place, Place::Failed) {
            Place::Forward => match self.forward.take() {
                Some(forward) => self.advance(forward),
                None => Ok(false),
            },
            Place::Fresh | Place::Before => self.seek_to_first(),
            Place::Backward(key, _) => {
                let is_there = self.seek(&key)?;
                if is_there && self.key() == &key[..] { self.move_next() } else { Ok(is_there) }
            }
            place @ (Place::After | Place::Failed) => {
                self.place = place;
                Ok(false)
            }
        }
    }

    /// Moves to the previous entry, which is the last one if the cursor has no position; returns false at the
    /// beginning.
    ///
    /// # Errors
    /// A table or a value could not be read. Until the next seek the cursor is on no entry.
    pub fn move_prev(&mut self) -> Result<bool> {
        match std::mem::replace(&mut self.place, Place::Failed) {
            Place::Backward(..) => self.retreat(),
            Place::Fresh | Place::After => self.seek_to_last(),
            Place::Forward => {
                let key = self.forward.as_ref().map(|forward| Key::from(forward.key()));
                self.begin_backward(key.as_deref().map(Bound::Excluded))
            }
            place @ (Place::Before | Place::Failed) => {
                self.place = place;
                Ok(false)
            }
        }
    }

    fn advance(&mut self, mut forward: Iter) -> Result<bool> {
        let is_there = forward.advance()?;
        self.place = if is_there { Place::Forward } else { Place::After };
        self.forward = Some(forward);
        Ok(is_there)
    }

    /// Moves to the last entry up to a bound.
    fn begin_backward(&mut self, upper: Option<Bound<&[u8]>>) -> Result<bool> {
        self.place = Place::Failed;
        let is_beyond = |key: &[u8]| self.end.as_deref().is_some_and(|end| key >= end);
        let upper = match upper {
            Some(Bound::Included(key) | Bound::Excluded(key)) if is_beyond(key) => self.upper(),
            Some(bound) => bound,
            None => self.upper(),
        };
        let is_below = match upper {
            Bound::Included(key) => key < &self.start[..],
            Bound::Excluded(key) => key <= &self.start[..],
            Bound::Unbounded => false,
        };
        if is_below {
            self.place = Place::Before;
            return Ok(false);
        }
        let backward = self.iter(Bound::Included(&self.start), upper)?;
        self.backward = Some(backward);
        self.retreat()
    }

    fn retreat(&mut self) -> Result<bool> {
        let previous = self.backward.as_mut().and_then(Iter::next_back).transpose()?;
        let is_there = previous.is_some();
        self.place = previous.map_or(Place::Before, |(key, value)| Place::Backward(key, value));
        Ok(is_there)
    }

    fn upper(&self) -> Bound<&[u8]> {
        self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
    }

    fn iter(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Result<Iter> {
        let iter = self.snapshot.range_in(&self.keyspace, (start, end))?;
        Ok(if self.is_keys_only { iter.keys_only() } else { iter })
    }
}

/// Returns the smallest key above every key that begins with `prefix`, if there is one.
pub fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix.get(..=kept)?.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    Some(end)
}
