//! Files of the log that are gone in time, where deletes are persistent in time.
//!
//! A segment holds what was written until its file is removed, whatever became of that in tables. So
//! a segment ends when its first record is as old as a memtable may become, a tenth of the time, also
//! if it is not full; memtables that are flushed for their age are replaced after that, and need
//! nothing of it. A segment that no tree needs goes then, also if no flush comes that would say so:
//! all within two tenths of the time and what a flush takes. Files that are freed are removed, and not
//! written again, as what is not yet overwritten would stay. The end of a database takes the log with
//! it as far as it is in tables; what a crash leaves is flushed when the database is opened next.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::engine::Engine;
use crate::manifest::Change;
use crate::types::KeyspaceId;
use crate::wal::LogWriter;

/// What could not be done is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_millis(50);

impl Engine {
    /// Ends the segment of the log that is written, if its first record is old.
    pub(crate) fn end_aged_segment(&self) {
        self.end_segment_if(|log| self.left_of_segment(log).is_some_and(|left| left.is_zero()));
    }

    /// Ends the segment that is written, if `is_due` says so. Where that fails it is tried again.
    pub(crate) fn end_segment_if(&self, is_due: impl Fn(&LogWriter) -> bool) {
        let wanted = match &mut self.lock_writer().log {
            Some(log) if is_due(log) => log.wanted_to_end(),
            _ => return,
        };
        // Made without the lock: it is writers who would wait.
        if let Some(wanted) = wanted {
            let made = wanted.make(&*self.storage, &self.dir).ok();
            if let Some(log) = &mut self.lock_writer().log {
                log.give_spare(made);
            }
        }
        let ended = match &mut self.lock_writer().log {
            Some(log) if is_due(log) => log.end_segment(),
            _ => return,
        };
        match ended {
            Ok(None) => {}
            Ok(Some(header)) => {
                let synced = self.log_sync.sync_header(&header);
                let _ = synced.inspect_err(|error| self.health.fail(error.clone()));
            }
            Err(_) => self.check_log(),
        }
    }

    /// Frees segments that are full and hold only what is in tables, also where trees have not said
    /// so, as they had nothing to flush since.
    pub(crate) fn let_go_of_log(&self) {
        let Some(oldest) = self.lock_writer().log.as_ref().and_then(LogWriter::oldest_end) else {
            return;
        };
        let idle = self.idle_positions();
        let mut guard = self.lock_manifest();
        let Some(manifest) = guard.as_mut() else { return };
        let keyspaces = manifest.state().keyspaces.iter();
        let holding: BTreeSet<KeyspaceId> = keyspaces
            .filter(|(_, keyspace)| keyspace.flushed < oldest)
            .map(|(id, _)| *id)
            .collect();
        let idle = idle.into_iter().filter(|(keyspace, _)| holding.contains(keyspace));
        let said: Vec<Change> =
            idle.map(|(keyspace, upto)| Change::Flushed { keyspace, upto }).collect();
        if said.len() < holding.len() {
            return;
        }
        let has_changed = !said.is_empty();
        if has_changed && self.commit(manifest, said).is_err() {
            return;
        }
        drop(guard);
        if has_changed {
            self.note_manifest();
        }
        self.release_log();
    }

    /// How long until something is due of the log, or to be tried again.
    pub(crate) fn left_of_log(&self) -> Option<Duration> {
        let age = Duration::from_micros(self.settings.memtable_age_micros()?);
        let writer = self.lock_writer();
        let log = writer.log.as_ref()?;
        let is_left = log.oldest_end().is_some() || self.has_not_removed();
        let left = [self.left_of_segment(log), is_left.then_some(age)].into_iter().flatten().min();
        left.map(|left| left.max(RETRY_AFTER))
    }

    fn left_of_segment(&self, log: &LogWriter) -> Option<Duration> {
        let age = self.settings.memtable_age_micros()?;
        let due = log.holds_since()?.saturating_add(age);
        Some(Duration::from_micros(due.saturating_sub(self.clock.now_micros())))
    }
}
