//! Whether a read would return a different result now than as of an earlier sequence number.
//!
//! Only memtables and tables with versions after that number are searched. Such a table or the
//! active memtable may also contain old keys, and the check of a range visits those within the
//! range.

use std::sync::Arc;

use terrane_memtable::{Fragment, Lookup, Memtable};

use super::Reader;
use super::lookup::newest_deletion;
use crate::base::error::Result;
use crate::base::types::{EntryKind, MAX_SEQ, SeqNo};
use crate::engine::cursor::{MergeCursor, RunCursor, Source};
use crate::engine::tree::{Tree, TreeState};
use crate::engine::version::OpenRun;
use crate::files::table::filter_hash;

/// What the sources with new versions say about a key.
enum Newest {
    /// The newest version has a value.
    Value(SeqNo),
    /// The key was deleted after its newest version.
    Deletion(SeqNo),
    /// The key has no version in them.
    None,
}

impl Reader {
    /// Returns whether the version that a lookup of `key` finds, if any, has changed since a lookup
    /// as of `since`, which found one if `was_found`. Also counts versions that are inserted but
    /// not visible yet.
    ///
    /// `since` is held, so no version visible at it is removed.
    pub(crate) fn is_key_changed(
        &self,
        tree: &Tree,
        key: &[u8],
        was_found: bool,
        since: SeqNo,
    ) -> Result<bool> {
        let state = tree.state();
        Ok(match self.newest(&state, key, since)? {
            Newest::Value(seq) => seq > since,
            // A key that was put and deleted since is absent again.
            Newest::Deletion(seq) => seq > since && was_found,
            Newest::None => false,
        })
    }

    fn newest(&self, state: &TreeState, key: &[u8], since: SeqNo) -> Result<Newest> {
        for memtable in memtables_after(state, since) {
            let deleted = memtable.range_tombstones().newest_covering(key, MAX_SEQ).unwrap_or(0);
            match memtable.look_up(key, MAX_SEQ) {
                Lookup::Found(seq, kind, _) => return Ok(newest_of(seq, kind, deleted)),
                // A version that was overwritten a moment ago implies a newer one.
                Lookup::Overwritten => return Ok(Newest::Value(MAX_SEQ)),
                Lookup::Absent if deleted > 0 => return Ok(Newest::Deletion(deleted)),
                Lookup::Absent => {}
            }
        }
        let hash = filter_hash(key);
        for run in state.version.runs().iter().filter(|run| run.largest_seq() > since) {
            let Some(table) = run.table_for(key) else { continue };
            if table.info().largest_seq <= since {
                continue;
            }
            let deleted = newest_deletion(table, key, MAX_SEQ)?;
            if let Some(found) = self.find_in_table(table, key, MAX_SEQ, hash)? {
                return Ok(newest_of(found.seq, found.kind, deleted));
            }
            if deleted > 0 {
                return Ok(Newest::Deletion(deleted));
            }
        }
        Ok(Newest::None)
    }

    /// Returns whether a key from `start` to the exclusive `end` was written or deleted after
    /// `since`, which is held. Also counts versions that are inserted but not visible yet.
    pub(crate) fn is_range_changed(
        &self,
        tree: &Tree,
        (start, end): (&[u8], Option<&[u8]>),
        since: SeqNo,
    ) -> Result<bool> {
        let state = tree.state();
        if deletes_range_after(&state, (start, end), since)? {
            return Ok(true);
        }
        let mut merge = MergeCursor::empty();
        for memtable in memtables_after(&state, since).filter(|memtable| !memtable.is_empty()) {
            let mut cursor = memtable.cursor();
            cursor.limit_to(None, end);
            merge.add(Source::Memtable(cursor));
        }
        for run in state.version.runs().iter().filter(|run| run.largest_seq() > since) {
            let newer = run.tables().iter().filter(|table| table.info().largest_seq > since);
            let newer = OpenRun::of_tables(newer.cloned().collect());
            merge.add(Source::Run(RunCursor::new(Arc::new(newer))));
        }
        merge.seek(start, MAX_SEQ)?;
        while merge.is_valid() && end.is_none_or(|end| merge.key() < end) {
            // The versions of a key arrive from new to old.
            if merge.seq() > since {
                return Ok(true);
            }
            merge.next_key()?;
        }
        Ok(false)
    }
}

fn newest_of(seq: SeqNo, kind: EntryKind, deleted: SeqNo) -> Newest {
    match kind {
        EntryKind::Tombstone => Newest::Deletion(seq.max(deleted)),
        _ if deleted > seq => Newest::Deletion(deleted),
        _ => Newest::Value(seq),
    }
}

/// Returns the memtables that may have versions after `since`, newest first.
fn memtables_after(state: &TreeState, since: SeqNo) -> impl Iterator<Item = &Arc<Memtable>> {
    let immutables = state.immutables.iter().take_while(move |one| one.last_seq > since);
    let immutables = immutables.map(|immutable| &immutable.memtable);
    std::iter::once(&state.active.memtable).chain(immutables)
}

/// Returns whether a range tombstone after `since` overlaps a range.
fn deletes_range_after(
    state: &TreeState,
    (start, end): (&[u8], Option<&[u8]>),
    since: SeqNo,
) -> Result<bool> {
    let is_newer = |seq: SeqNo| seq > since;
    let newest =
        |memtable: &Arc<Memtable>| memtable.range_tombstones().newest_overlapping(start, end);
    if memtables_after(state, since).filter_map(newest).any(is_newer) {
        return Ok(true);
    }
    let overlaps = |fragment: &&Fragment| {
        end.is_none_or(|end| *fragment.start < *end)
            && fragment.end.as_ref().is_none_or(|after| *start < **after)
    };
    for table in state.version.tables().values() {
        if table.info().range_tombstones == 0 || table.info().largest_seq <= since {
            continue;
        }
        let mut overlapping = table.fragments()?.iter().filter(overlaps);
        if overlapping.any(|fragment| fragment.seqs.iter().copied().any(is_newer)) {
            return Ok(true);
        }
    }
    Ok(false)
}
