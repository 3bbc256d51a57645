//! An iterator over a transaction that moves in both directions.
//!
//! An iterator of the engine borrows its transaction, which a handle of C cannot. This one asks the transaction
//! for a few entries at a time: one at first, then twice as many, up to 64. The transaction thus depends on at
//! most about twice the entries that were returned.

use std::collections::VecDeque;
use std::ops::Bound;

use terrane::{Key, Keyspace, Result, Transaction, Value};

/// The largest number of entries that are fetched together.
const ENTRIES_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Where a cursor is.
#[derive(Debug)]
enum Place {
    Fresh,
    On(Key, Value),
    Before,
    After,
    Failed,
}

/// An iterator over a range as a transaction sees it.
#[derive(Debug)]
pub(crate) struct TransactionCursor {
    keyspace: Keyspace,
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    is_keys_only: bool,
    place: Place,
    /// Entries that follow the present one in `direction`.
    fetched: VecDeque<(Key, Value)>,
    direction: Direction,
    /// The number of entries of the next fetch.
    count: usize,
}

impl TransactionCursor {
    pub(crate) fn new(keyspace: Keyspace, start: &[u8], end: Option<&[u8]>) -> Self {
        Self {
            keyspace,
            start: start.to_vec(),
            end: end.map(<[u8]>::to_vec),
            is_keys_only: false,
            place: Place::Fresh,
            fetched: VecDeque::new(),
            direction: Direction::Forward,
            count: 1,
        }
    }

    pub(crate) fn leave_out_values(&mut self) {
        self.is_keys_only = true;
        self.place = Place::Fresh;
    }

    pub(crate) fn is_valid(&self) -> bool {
        matches!(self.place, Place::On(..))
    }

    pub(crate) fn key(&self) -> &[u8] {
        if let Place::On(key, _) = &self.place { key } else { &[] }
    }

    pub(crate) fn value(&self) -> &[u8] {
        match &self.place {
            Place::On(_, value) if !self.is_keys_only => value,
            _ => &[],
        }
    }

    pub(crate) fn seek(&mut self, transaction: &Transaction, key: &[u8]) -> Result<bool> {
        self.begin(transaction, Direction::Forward, Bound::Included(key))
    }

    pub(crate) fn seek_to_last(&mut self, transaction: &Transaction) -> Result<bool> {
        self.begin(transaction, Direction::Backward, Bound::Unbounded)
    }

    pub(crate) fn seek_for_prev(&mut self, transaction: &Transaction, key: &[u8]) -> Result<bool> {
        self.begin(transaction, Direction::Backward, Bound::Included(key))
    }

    pub(crate) fn next(&mut self, transaction: &Transaction) -> Result<bool> {
        self.step(transaction, Direction::Forward)
    }

    pub(crate) fn prev(&mut self, transaction: &Transaction) -> Result<bool> {
        self.step(transaction, Direction::Backward)
    }

    fn step(&mut self, transaction: &Transaction, direction: Direction) -> Result<bool> {
        let is_forward = direction == Direction::Forward;
        match std::mem::replace(&mut self.place, Place::Failed) {
            Place::On(..) if self.direction == direction && !self.fetched.is_empty() => {
                Ok(self.take())
            }
            Place::On(key, _) => {
                if self.direction != direction {
                    self.count = 1;
                }
                self.fetch(transaction, direction, Bound::Excluded(&key))
            }
            Place::Fresh => self.begin(transaction, direction, Bound::Unbounded),
            Place::Before if is_forward => self.begin(transaction, direction, Bound::Unbounded),
            Place::After if !is_forward => self.begin(transaction, direction, Bound::Unbounded),
            place @ (Place::Before | Place::After | Place::Failed) => {
                self.place = place;
                Ok(false)
            }
        }
    }

    fn begin(
        &mut self,
        transaction: &Transaction,
        direction: Direction,
        from: Bound<&[u8]>,
    ) -> Result<bool> {
        self.place = Place::Failed;
        self.count = 1;
        self.fetch(transaction, direction, from)
    }

    /// Fetches the entries from a bound on, and moves to the first of them.
    fn fetch(
        &mut self,
        transaction: &Transaction,
        direction: Direction,
        from: Bound<&[u8]>,
    ) -> Result<bool> {
        self.fetched.clear();
        self.direction = direction;
        let (start, end) = self.bounds(direction, from);
        let mut entries = transaction.range_in(&self.keyspace, (start, end))?;
        let fetched: Result<VecDeque<_>> = match direction {
            Direction::Forward => entries.by_ref().take(self.count).collect(),
            Direction::Backward => entries.by_ref().rev().take(self.count).collect(),
        };
        drop(entries);
        self.fetched = fetched?;
        self.count = (2 * self.count).min(ENTRIES_MAX);
        Ok(self.take())
    }

    /// Returns the part of the range that begins, in a direction, at a bound.
    fn bounds<'a>(
        &'a self,
        direction: Direction,
        from: Bound<&'a [u8]>,
    ) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
        let start = &self.start[..];
        let end = self.end.as_deref();
        match direction {
            Direction::Forward => {
                let is_before = match from {
                    Bound::Included(key) | Bound::Excluded(key) => key < start,
                    Bound::Unbounded => true,
                };
                let lower = if is_before { Bound::Included(start) } else { from };
                (lower, end.map_or(Bound::Unbounded, Bound::Excluded))
            }
            Direction::Backward => {
                let upper = match (from, end) {
                    (Bound::Included(key) | Bound::Excluded(key), Some(end)) if key >= end => {
                        Bound::Excluded(end)
                    }
                    (Bound::Unbounded, Some(end)) => Bound::Excluded(end),
                    (from, _) => from,
                };
                (Bound::Included(start), upper)
            }
        }
    }

    /// Moves to the first fetched entry.
    fn take(&mut self) -> bool {
        let first = self.fetched.pop_front();
        let is_there = first.is_some();
        self.place = match (first, self.direction) {
            (Some((key, value)), _) => Place::On(key, value),
            (None, Direction::Forward) => Place::After,
            (None, Direction::Backward) => Place::Before,
        };
        is_there
    }
}
