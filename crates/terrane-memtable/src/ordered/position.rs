//! A position in a sorted view: a merge of its runs.

use std::cmp::Ordering::{Greater, Less};
use std::sync::Arc;

use super::view::{RunSlot, SortedView};
use crate::entry::{Entry, SeqNo};
use crate::head::head_of;

/// A position on an entry of a view, or on no entry.
pub(crate) struct ViewPosition {
    view: Arc<SortedView>,
    /// For each run, the number of its entries before the position.
    before: Box<[usize]>,
    /// The run of the current entry.
    run: Option<usize>,
}

impl ViewPosition {
    fn at(view: Arc<SortedView>, before: Box<[usize]>) -> Self {
        let mut position = Self { view, before, run: None };
        position.run = position.first_ahead();
        position
    }

    pub(crate) fn first(view: Arc<SortedView>) -> Self {
        let before = view.runs.iter().map(|_| 0).collect();
        Self::at(view, before)
    }

    pub(crate) fn last(view: Arc<SortedView>) -> Self {
        let before = view.runs.iter().map(|run| run.len()).collect();
        let mut position = Self { view, before, run: None };
        position.step_back();
        position
    }

    /// Seeks the first entry at or after `(key, seq)`.
    pub(crate) fn at_or_after(view: Arc<SortedView>, key: &[u8], seq: SeqNo) -> Self {
        let head = head_of(key);
        let before = view.runs.iter().map(|run| run.count_before(head, key, seq)).collect();
        Self::at(view, before)
    }

    /// Seeks the last entry before `(key, seq)`.
    pub(crate) fn before(view: Arc<SortedView>, key: &[u8], seq: SeqNo) -> Self {
        let mut position = Self::at_or_after(view, key, seq);
        position.step_back();
        position
    }

    /// Returns the run whose next entry is the smallest.
    #[inline]
    fn first_ahead(&self) -> Option<usize> {
        let mut first: Option<(usize, &RunSlot)> = None;
        for (index, (run, &before)) in self.view.runs.iter().zip(&*self.before).enumerate() {
            let Some(slot) = run.slot(before) else { continue };
            if first.is_none_or(|(_, first)| slot.compare_to(first) == Less) {
                first = Some((index, slot));
            }
        }
        first.map(|(index, _)| index)
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.run.is_some()
    }

    /// Returns the slot at the position.
    pub(crate) fn slot(&self) -> Option<RunSlot> {
        let run = self.run?;
        self.view.runs[run].slot(self.before[run]).copied()
    }

    /// Returns the entry at the position.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        let run = self.run?;
        let slot = self.view.runs[run].slot(self.before[run])?;
        // SAFETY: the arena outlives the view (invariant 1 of [`super`]), which this borrow keeps.
        Some(unsafe { slot.node() }.entry())
    }

    #[inline]
    pub(crate) fn next(&mut self) {
        if let Some(run) = self.run {
            self.before[run] += 1;
            self.run = self.first_ahead();
        }
    }

    pub(crate) fn previous(&mut self) {
        if self.is_valid() {
            self.step_back();
        }
    }

    /// Moves to the last entry before the position.
    fn step_back(&mut self) {
        let mut last: Option<(usize, &RunSlot)> = None;
        for (index, (run, &before)) in self.view.runs.iter().zip(&*self.before).enumerate() {
            let Some(slot) = before.checked_sub(1).and_then(|before| run.slot(before)) else {
                continue;
            };
            if last.is_none_or(|(_, last)| slot.compare_to(last) == Greater) {
                last = Some((index, slot));
            }
        }
        self.run = last.map(|(index, _)| index);
        if let Some(run) = self.run {
            self.before[run] -= 1;
        }
    }
}
