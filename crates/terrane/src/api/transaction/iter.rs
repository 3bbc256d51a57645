//! Iterators of a transaction: a snapshot with the transaction's own writes.

use std::cmp::Ordering;

use terrane_policy::key_range::successor;

use super::Transaction;
use super::reads::OpenRange;
use super::writes::{TreeWrites, WrittenEntries};
use crate::api::iterator::Iter;
use crate::base::error::{Error, Result};
use crate::files::value::{Key, Value};

/// An iterator over the keys and values of a range as a transaction sees them, in order.
///
/// It can be advanced from both ends until they meet. The transaction depends on the parts of the range
/// that the iterator was advanced over: up to the last entry that it returned, or all of it once it has
/// ended. After an error it returns no more entries.
pub struct TransactionIter<'a> {
    transaction: &'a Transaction,
    stored: Ends<Iter>,
    written: Ends<WrittenEntries<'a>>,
    writes: Option<&'a TreeWrites>,
    /// The range among the transaction's reads, if it records them.
    open: Option<OpenRange>,
    start: Box<[u8]>,
    end: Option<Box<[u8]>>,
    /// The last keys that were returned at the front and at the back.
    last_front: Option<Key>,
    last_back: Option<Key>,
    /// Whether the ends have met, so that the whole range was read.
    is_whole: bool,
    has_failed: bool,
}

/// The two ends of an iterator, each with an entry that was taken from it but not yet returned.
struct Ends<I: Iterator> {
    iter: I,
    front: Option<I::Item>,
    back: Option<I::Item>,
}

/// An end of an iterator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

impl<I: DoubleEndedIterator> Ends<I> {
    fn new(iter: I) -> Self {
        Self { iter, front: None, back: None }
    }

    /// Returns the next entry at an end, without moving past it.
    fn peek(&mut self, end: End) -> Option<&I::Item> {
        match end {
            End::Front => {
                if self.front.is_none() {
                    self.front = self.iter.next().or_else(|| self.back.take());
                }
                self.front.as_ref()
            }
            End::Back => {
                if self.back.is_none() {
                    self.back = self.iter.next_back().or_else(|| self.front.take());
                }
                self.back.as_ref()
            }
        }
    }

    fn take(&mut self, end: End) -> Option<I::Item> {
        match end {
            End::Front => self.front.take(),
            End::Back => self.back.take(),
        }
    }
}

impl<'a> TransactionIter<'a> {
    pub(super) fn new(
        transaction: &'a Transaction,
        stored: Iter,
        writes: Option<&'a TreeWrites>,
        open: Option<OpenRange>,
        (start, end): (&[u8], Option<&[u8]>),
    ) -> Self {
        let written = writes.map(|writes| writes.range(start, end)).unwrap_or_default();
        Self {
            transaction,
            stored: Ends::new(stored),
            written: Ends::new(written),
            writes,
            open,
            start: start.into(),
            end: end.map(Into::into),
            last_front: None,
            last_back: None,
            is_whole: false,
            has_failed: false,
        }
    }

    pub(crate) fn leave_out_values(&mut self) {
        self.stored.iter.leave_out_values();
    }

    /// Moves to the next entry at an end.
    fn step(&mut self, end: End) -> Result<Option<(Key, Value)>> {
        loop {
            let written = self.written.peek(end).map(|(key, _)| &***key);
            let order = match (self.stored.peek(end), written) {
                (Some(Err(_)), _) => return self.stored.take(end).transpose(),
                (None, None) => {
                    self.is_whole = true;
                    return Ok(None);
                }
                (Some(Ok(_)), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(Ok((stored, _))), Some(written)) => match end {
                    End::Front => (**stored).cmp(written),
                    End::Back => written.cmp(stored),
                },
            };
            let found = match order {
                Ordering::Less => self.take_stored(end)?,
                Ordering::Equal | Ordering::Greater => {
                    if order == Ordering::Equal {
                        self.stored.take(end);
                    }
                    let written = self.written.take(end);
                    written.and_then(|(key, value)| Some((key.clone(), value.clone()?)))
                }
            };
            if let Some((key, value)) = found {
                let last =
                    if end == End::Front { &mut self.last_front } else { &mut self.last_back };
                *last = Some(key.clone());
                return Ok(Some((key, value)));
            }
        }
    }

    /// Takes the next stored entry; `None` if the transaction deleted it.
    fn take_stored(&mut self, end: End) -> Result<Option<(Key, Value)>> {
        let Some((key, value)) = self.stored.take(end).transpose()? else { return Ok(None) };
        let deleted = self.writes.and_then(|writes| writes.deleted().end_around(&key));
        let Some(range_end) = deleted else { return Ok(Some((key, value))) };
        if let (End::Front, Some(range_end)) = (end, range_end) {
            // Also moves past entries that are not read.
            self.stored.iter.seek(range_end)?;
        }
        Ok(None)
    }

    fn next_at(&mut self, end: End) -> Option<Result<(Key, Value)>> {
        if self.is_whole || self.has_failed {
            return None;
        }
        let next = self.step(end);
        self.has_failed = next.is_err();
        next.transpose()
    }
}

impl Iterator for TransactionIter<'_> {
    type Item = Result<(Key, Value), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_at(End::Front)
    }
}

impl DoubleEndedIterator for TransactionIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_at(End::Back)
    }
}

impl std::iter::FusedIterator for TransactionIter<'_> {}

impl Drop for TransactionIter<'_> {
    /// Notes the parts of the range that were read.
    fn drop(&mut self) {
        let Some(open) = self.open else { return };
        let (start, end) = (&*self.start, self.end.as_deref());
        let after = self.last_front.as_ref().map(|last| successor(last).to_vec());
        let front = after.as_ref().map(|after| (start, Some(&after[..])));
        let back = self.last_back.as_ref().map(|last| (&last[..], end));
        let whole = self.is_whole.then_some((start, end));
        let parts = whole.into_iter().chain(front).chain(back);
        self.transaction.reads.borrow_mut().close_range(open, parts);
    }
}

impl std::fmt::Debug for TransactionIter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionIter")
            .field("start", &self.start)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
