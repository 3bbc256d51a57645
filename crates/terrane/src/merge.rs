//! Carries out a flush or a compaction: entries in, tables out.
//!
//! The entries of the inputs come merged, by key and from new to old. What no reader can see any
//! more is left out ([`DropRules`]); the rest goes into tables that are cut where the next
//! compaction would otherwise become too large ([`Output`]). Tables of which nothing would be left are
//! known before they are read ([`covered`]).

mod covered;
mod output;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use covered::{CoveredTable, covered, covered_tables};
pub(crate) use output::{Output, OutputConfig};
pub(crate) use rules::{DropRules, OlderTables};

use terrane_memtable::Fragment;

use crate::error::Result;
use crate::iter::MergeCursor;
use crate::table::FinishedTable;
use crate::types::{EntryKind, SeqNo};

/// How often the merge asks whether it may go on, in bytes of its input.
const PIECE_BYTES: usize = 64 << 10;

/// What an entry of the input counts for beside its key and value, so that small ones add up.
const ENTRY_BYTES: usize = 16;

/// What a merge did since it asked last whether it may go on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Piece {
    /// Entries of the input that it went through.
    pub(crate) entries: u64,
    /// Bytes that it wrote.
    pub(crate) written_bytes: u64,
}

/// Merges `input`, which is positioned on its first entry, into tables, up to the key `end` if there
/// is one.
///
/// `fragments` are the range tombstones of the inputs. `go_on` returns when the merge may go on; it
/// is asked after each piece, and at the end.
///
/// # Errors
/// That of `go_on`; tables that were begun are left behind then, and after any other error, for
/// `output` to remove.
pub(crate) fn merge(
    mut input: MergeCursor,
    end: Option<&[u8]>,
    fragments: Vec<Fragment>,
    mut rules: DropRules,
    output: &mut Output<'_>,
    go_on: &mut dyn FnMut(Piece) -> Result<()>,
) -> Result<Vec<FinishedTable>> {
    output.begin(rules.kept_fragments(&fragments));
    rules.set_deleted(fragments);
    let mut key = Vec::new();
    let mut has_key = false;
    let mut last_stripe = 0;
    let (mut piece, mut piece_bytes, mut written) = (Piece::default(), 0, 0);
    while input.is_valid() {
        piece_bytes += input.key().len() + input.value().len() + ENTRY_BYTES;
        piece.entries += 1;
        if piece_bytes >= PIECE_BYTES {
            piece.written_bytes = more_than(&mut written, output.written_bytes());
            go_on(std::mem::take(&mut piece))?;
            piece_bytes = 0;
        }
        let (seq, kind) = (input.seq(), input.kind());
        let stripe = rules.stripe(seq);
        let is_new_key = !has_key || input.key() != &key[..];
        if is_new_key {
            if end.is_some_and(|end| input.key() >= end) {
                break;
            }
            key.clear();
            key.extend_from_slice(input.key());
            has_key = true;
            rules.go_to(&key);
        } else if stripe == last_stripe {
            // The same readers see the newer version.
            input.next()?;
            continue;
        }
        last_stripe = stripe;
        if keeps(&rules, &key, seq, kind, stripe) {
            output.add(&key, seq, kind, input.value())?;
        }
        input.next()?;
    }
    let made = output.finish()?;
    piece.written_bytes = more_than(&mut written, output.written_bytes());
    go_on(piece)?;
    Ok(made)
}

/// What of `fragments`, in key order, lies from `start` on and before `end`.
pub(crate) fn clipped(
    fragments: &[Fragment],
    start: Option<&[u8]>,
    end: Option<&[u8]>,
) -> Vec<Fragment> {
    let clip = |fragment: &Fragment| {
        let from = start.map_or(&*fragment.start, |start| start.max(&*fragment.start));
        let to = match (fragment.end.as_deref(), end) {
            (Some(own), Some(end)) => Some(own.min(end)),
            (own, end) => own.or(end),
        };
        let is_empty = to.is_some_and(|to| to <= from);
        let seqs = fragment.seqs.clone();
        (!is_empty).then(|| Fragment { start: from.into(), end: to.map(Into::into), seqs })
    };
    fragments.iter().filter_map(clip).collect()
}

/// What is in `now` beyond what was there before. Sizes of unfinished tables are estimates, so that
/// it may have been more.
fn more_than(before: &mut u64, now: u64) -> u64 {
    let more = now.saturating_sub(*before);
    *before = now.max(*before);
    more
}

fn keeps(rules: &DropRules, key: &[u8], seq: SeqNo, kind: EntryKind, stripe: usize) -> bool {
    if rules.is_deleted(key, seq, stripe) {
        return false;
    }
    // A tombstone is needed as long as something older may be found without it.
    kind == EntryKind::Value || stripe > 0 || !rules.is_bottom()
}
