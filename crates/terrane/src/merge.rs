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

use crate::error::{Error, Result};
use crate::iter::MergeCursor;
use crate::table::FinishedTable;
use crate::types::{EntryKind, SeqNo};

/// How often the merge asks whether it should stop, in entries.
const ENTRIES_PER_CHECK: u64 = 1024;

/// Merges `input`, which is positioned on its first entry, into tables.
///
/// `fragments` are the range tombstones of the inputs. `should_stop` is asked now and then.
///
/// # Errors
/// [`Error::Closed`] if it was told to stop; tables that were begun are left behind then, and
/// after any other error, for `output` to remove.
pub(crate) fn merge(
    mut input: MergeCursor,
    fragments: Vec<Fragment>,
    mut rules: DropRules,
    output: &mut Output<'_>,
    should_stop: &dyn Fn() -> bool,
) -> Result<Vec<FinishedTable>> {
    output.begin(rules.kept_fragments(&fragments));
    rules.set_deleted(fragments);
    let mut key = Vec::new();
    let mut has_key = false;
    let mut last_stripe = 0;
    let mut seen: u64 = 0;
    while input.is_valid() {
        seen += 1;
        if seen.is_multiple_of(ENTRIES_PER_CHECK) && should_stop() {
            return Err(Error::Closed);
        }
        let (seq, kind) = (input.seq(), input.kind());
        let stripe = rules.stripe(seq);
        let is_new_key = !has_key || input.key() != &key[..];
        if is_new_key {
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
    output.finish()
}

fn keeps(rules: &DropRules, key: &[u8], seq: SeqNo, kind: EntryKind, stripe: usize) -> bool {
    if rules.is_deleted(key, seq, stripe) {
        return false;
    }
    // A tombstone is needed as long as something older may be found without it.
    kind == EntryKind::Value || stripe > 0 || !rules.is_bottom()
}
