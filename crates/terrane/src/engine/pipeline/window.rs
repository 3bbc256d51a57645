//! The window: sequence numbers and log space that writers may reserve without the lock.
//!
//! While a window is open, writers reserve sequence numbers and a part of the log in it, copy their
//! records there, and insert into memtables, all without the lock of
//! [`PipelineState`](super::PipelineState). A thread that takes the lock closes the window and
//! waits until the window's writes are visible. So the owner of the lock sees the same state as if
//! all writers took the lock: every earlier write has its record in the log and its entries in the
//! memtables, and no later write follows. A writer that finds no open window takes the lock, and
//! opens the next window before it releases the lock.
//!
//! 1. State that changes only with the lock stays the same while a window is open. A writer loads
//!    the window first, then the state that it uses, and then reserves. If it succeeds, the window
//!    was open throughout, so the loaded state matches its sequence numbers.
//! 2. No window is opened while a write that waits for a sync is invisible. So waiting for a
//!    window's writes takes no longer than their insertions.
//! 3. A writer that has reserved takes no lock that the owner of the lock may hold.

use std::sync::Arc;

use arc_swap::Guard;

use super::commit_queue::Span;
use super::reservations::{Reservations, Reserved};
use super::{PendingWrite, Pipeline, PipelineState};
use crate::base::durability::Durability;
use crate::base::error::Result;
use crate::base::types::{Lsn, MAX_SEQ, SeqNo};
use crate::files::wal::{LogSlice, LogWriter, PreparedRecord};

pub(crate) use super::reservations::{OPERATIONS_MAX, UNITS_MAX};

/// Sequence numbers and a slice of the log that writers share without the lock.
#[derive(Debug)]
pub(crate) struct Window {
    first: SeqNo,
    /// `None` if only unlogged writes fit.
    log: Option<LogSlice>,
    /// True if writes with [`Durability::None`] are logged as well.
    logs_all: bool,
    reservations: Reservations,
}

impl Window {
    /// Returns true if logged writes fit.
    pub(crate) fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// Returns whether a write with this durability is logged.
    #[inline]
    pub(crate) fn is_logged(&self, durability: Durability) -> bool {
        durability != Durability::None || self.logs_all
    }
}

/// The open window, and the facts about other writes that the owner of the lock needs.
#[derive(Debug, Default)]
pub(super) struct WindowState {
    /// The open window.
    open: Option<Arc<Window>>,
    /// The last sequence number of the latest write that waits, or waited, for a sync.
    synced_last: SeqNo,
    /// The sequence number of the latest ingest, which needs the lock to become visible.
    ingest_last: SeqNo,
}

impl WindowState {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns true if a window other than `other` is open.
    pub(super) fn is_replaced(&self, other: &Arc<Window>) -> bool {
        self.open.as_ref().is_some_and(|open| !Arc::ptr_eq(open, other))
    }

    /// Notes a write that waits for a sync before becoming visible.
    pub(super) fn await_sync(&mut self, last: SeqNo) {
        self.synced_last = last;
    }

    /// Notes an ingest, which also counts as a write that waits for a sync.
    pub(super) fn await_ingest(&mut self, last: SeqNo) {
        (self.synced_last, self.ingest_last) = (last, last);
    }
}

impl PipelineState {
    /// Returns true if an ingest has its number and is not visible yet; `visible` is the visible position. It needs the
    /// lock, so no owner of the lock may wait for it.
    pub(crate) fn awaits_ingest(&self, visible: SeqNo) -> bool {
        visible < self.window.ingest_last
    }
}

impl Pipeline {
    /// Returns the open window, if any.
    #[inline]
    pub(crate) fn window(&self) -> Guard<Option<Arc<Window>>> {
        self.window.load()
    }

    /// Reserves the sequence numbers of a write, and the place of its record if it is logged.
    /// Returns `None` if the window is full or closed. The caller checks the size of the write.
    #[inline]
    pub(crate) fn reserve(
        &self,
        window: &Window,
        operations: u64,
        record: Option<&PreparedRecord<'_>>,
    ) -> Option<(PendingWrite<'_>, Reserved)> {
        let units = record.map_or(0, PreparedRecord::units);
        let before = window.reservations.reserve(Reserved { operations, units })?;
        Some((self.pending(window, before, operations, record), before))
    }

    /// Returns the totals reserved in a window if every write up to them is visible.
    pub(crate) fn reserved_if_visible(&self, window: &Window) -> Option<Reserved> {
        let reserved = window.reservations.reserved()?;
        (self.visible() + 1 == window.first + reserved.operations).then_some(reserved)
    }

    /// Does the same as [`Self::reserve`], but also fails if anything else was reserved since
    /// `before`. So no write comes between the writes that were visible at `before` and this one.
    pub(crate) fn reserve_after(
        &self,
        window: &Window,
        before: Reserved,
        operations: u64,
        record: Option<&PreparedRecord<'_>>,
    ) -> Option<PendingWrite<'_>> {
        let units = record.map_or(0, PreparedRecord::units);
        let is_reserved = window.reservations.reserve_after(before, Reserved { operations, units });
        is_reserved.then(|| self.pending(window, before, operations, record))
    }

    fn pending(
        &self,
        window: &Window,
        before: Reserved,
        operations: u64,
        record: Option<&PreparedRecord<'_>>,
    ) -> PendingWrite<'_> {
        let first = window.first + before.operations;
        let log_end = match (&window.log, record) {
            (Some(slice), Some(record)) => slice.position(before.units + record.units()).0,
            _ => 0,
        };
        let span = Span { first, last: first + operations - 1, log_end };
        PendingWrite { pipeline: self, span: Some(span) }
    }

    /// Copies a write's record to its place. Returns where it begins; `None` if the window has no
    /// log slice.
    ///
    /// # Errors
    /// [`Error::LogLost`](crate::Error::LogLost) if a part of the log file is lost. The caller notes the
    /// failure and drops the pending write, so that the database fails.
    #[inline(always)]
    pub(crate) fn place(
        window: &Window,
        before: Reserved,
        seq: SeqNo,
        record: &mut PreparedRecord<'_>,
    ) -> Result<Option<Lsn>> {
        let Some(slice) = &window.log else { return Ok(None) };
        slice.put(before.units, seq, record)?;
        Ok(Some(slice.position(before.units)))
    }

    /// Opens a window, if possible. `is_logged` says whether the last write was logged: if so, the
    /// next one probably will be too, and would close a window without a log slice.
    pub(crate) fn open_window(&self, state: &mut PipelineState, is_logged: bool) {
        let limit = Reservations::LIMIT_MAX;
        if state.window.open.is_some()
            || self.commits.visible() < state.window.synced_last
            || MAX_SEQ.saturating_sub(state.next_seq) < limit.operations
        {
            return;
        }
        let log = state.log.as_mut().and_then(LogWriter::open_slice);
        if log.is_none() && is_logged {
            return;
        }
        let units = log.as_ref().map_or(0, LogSlice::units).min(limit.units);
        let reservations = Reservations::new(Reserved { units, ..limit });
        let logs_all = state.is_logged(Durability::None);
        let window = Arc::new(Window { first: state.next_seq, log, logs_all, reservations });
        state.window.open = Some(Arc::clone(&window));
        // Includes a release, which pairs with the acquire of a load: see 1 above.
        self.window.store(Some(window));
    }

    /// Closes the open window, and waits until its writes are finished.
    pub(super) fn close_window(&self, state: &mut PipelineState) {
        if let Some(window) = state.window.open.take() {
            self.window.store(None);
            self.finish_window(state, &window);
        }
    }

    fn finish_window(&self, state: &mut PipelineState, window: &Window) {
        let used = window.reservations.close();
        if let (Some(log), Some(_)) = (&mut state.log, &window.log) {
            log.close_slice(used.units);
        }
        if used.operations == 0 {
            return;
        }
        state.next_seq += used.operations;
        // If a write panicked or its sync failed, later writes never become visible. Nothing more
        // is appended, because the log has a gap. Earlier writes are awaited: they are
        // acknowledged, so the directory must not be released before they are in the log.
        let is_complete = self.commits.wait_done(state.next_seq - 1);
        if let (Some(log), true) = (&mut state.log, is_complete) {
            log.set_complete();
        }
    }
}
