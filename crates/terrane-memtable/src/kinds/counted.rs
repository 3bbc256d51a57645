//! Counts the entries of structures that do not count them.

use crate::entry::Entry;
use crate::entry_counts::EntryCounts;
use crate::readers::ReaderView;
use crate::structure::{InsertOutcome, Structure};

#[inline]
pub(super) fn insert<S: Structure>(
    structure: &S,
    entry: &Entry<'_>,
    view: &ReaderView<'_>,
    counts: &EntryCounts,
) -> InsertOutcome {
    let outcome = Structure::insert(structure, entry, view);
    if !S::COUNTS_ENTRIES {
        counts.add(1, entry.data_bytes());
    }
    outcome
}

pub(super) fn insert_all<S: Structure>(structure: &S, entries: &[Entry<'_>], counts: &EntryCounts) {
    Structure::insert_all(structure, entries);
    if !S::COUNTS_ENTRIES {
        counts.add(entries.len(), entries.iter().map(Entry::data_bytes).sum());
    }
}

pub(super) fn counts_of<S: Structure>(structure: &S, counts: &EntryCounts) -> (usize, usize) {
    if S::COUNTS_ENTRIES {
        return Structure::counts(structure);
    }
    counts.get()
}

pub(super) fn is_empty<S: Structure>(structure: &S, counts: &EntryCounts) -> bool {
    if S::COUNTS_ENTRIES { Structure::counts(structure).0 == 0 } else { counts.is_empty() }
}
