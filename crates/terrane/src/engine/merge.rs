//! Executes the merge of a flush or a compaction: entries in, tables out.
//!
//! The inputs arrive merged, by key and from the newest version to the oldest. Entries that no
//! reader can see are dropped ([`DropRules`]). The other entries are written to tables, with large
//! values in value files; tables are cut so that the next compaction does not become too large
//! ([`Output`]). Tables that would lose all of their entries are identified before they are read
//! ([`covered`]).

mod covered_tables;
mod filtering;
mod logged_values;
mod operands;
mod output;
mod rules;
#[cfg(test)]
mod tests;
mod value_output;

pub(crate) use covered_tables::{CoveredTable, covered, covered_tables};
pub(crate) use filtering::Filtering;
pub(crate) use logged_values::{LOGGED_VALUES_MAX, LoggedValue, LoggedValues};
pub(crate) use output::{Output, OutputConfig};
pub(crate) use rules::{DropRules, OlderTables};
pub(crate) use value_output::{DamagedValues, ValueOutputConfig};

use output::Version;
use terrane_memtable::Fragment;

use crate::base::error::Result;
use crate::base::merge_operator::OperandChain;
use crate::base::turns;
use crate::base::types::{EntryKind, SeqNo};
use crate::engine::cursor::MergeCursor;
use crate::files::table::FinishedTable;

/// Bytes of input, including values read from value files, between two calls of `go_on`.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes charged for an input entry in addition to its key and value, so that small entries add up.
const ENTRY_BYTES: usize = 16;

/// The progress of a merge since the previous call of `go_on`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chunk {
    /// Input entries processed.
    pub(crate) entries: u64,
    /// Bytes written.
    pub(crate) written_bytes: u64,
}

/// Merges `input`, which is positioned on its first entry, into tables, up to the exclusive key
/// `end` if given.
///
/// `fragments` are the range tombstones of the inputs. `go_on` is called after each chunk and at
/// the end, and blocks until the merge may continue.
///
/// # Errors
/// Returns the error of `go_on`, or of reading or writing. Unfinished tables then remain on disk;
/// [`Output::paths`] lists them for removal.
pub(crate) fn merge(
    mut input: MergeCursor,
    end: Option<&[u8]>,
    fragments: Vec<Fragment>,
    mut rules: DropRules,
    output: &mut Output<'_>,
    go_on: &mut dyn FnMut(Chunk) -> Result<()>,
) -> Result<Vec<FinishedTable>> {
    output.begin(rules.kept_fragments(&fragments));
    rules.set_deleted(fragments);
    let mut key = Vec::new();
    let (mut has_key, mut last_stripe) = (false, 0);
    let mut chain_of_key = OperandChain::default();
    let (mut chunk, mut chunk_bytes, mut written) = (Chunk::default(), 0, 0);
    while input.is_valid() {
        chunk_bytes += input.key().len() + input.value().len() + ENTRY_BYTES;
        chunk.entries += 1;
        if chunk_bytes >= CHUNK_BYTES {
            chunk.written_bytes = growth_of(&mut written, output.written_bytes());
            go_on(std::mem::take(&mut chunk))?;
            turns::give_way();
            chunk_bytes = 0;
        }
        let (seq, kind) = (input.seq(), input.kind());
        let stripe = rules.stripe(seq);
        let is_new_key = !has_key || input.key() != &key[..];
        if is_new_key {
            rules.end_key(&mut chain_of_key, &key, output)?;
            if end.is_some_and(|end| input.key() >= end) {
                break;
            }
            key.clear();
            key.extend_from_slice(input.key());
            has_key = true;
            rules.go_to(&key);
        } else if stripe == last_stripe && chain_of_key.is_empty() {
            // Every reader of this stripe sees the newer version.
            input.next()?;
            continue;
        }
        let (kind, value) = match rules.has_expired(kind, input.value()) {
            true => (EntryKind::Tombstone, &[][..]),
            false => (kind, input.value()),
        };
        if !chain_of_key.is_empty() {
            let version = Version { seq, kind, value };
            if rules.decide(&mut chain_of_key, &key, version, stripe == last_stripe, output)? {
                input.next()?;
                continue;
            }
        }
        last_stripe = stripe;
        if keeps(&rules, &key, seq, kind, stripe) {
            if kind == EntryKind::Operand {
                chain_of_key.push(rules.operator(), &key, (seq, value));
            } else if is_new_key && rules.has_filter() {
                chunk_bytes += rules.write_newest(&key, Version { seq, kind, value }, output)?;
            } else {
                // A value that moves may be far larger than its pointer.
                chunk_bytes += output.add(&key, seq, kind, value)?;
            }
        }
        input.next()?;
    }
    rules.end_key(&mut chain_of_key, &key, output)?;
    let tables = output.finish()?;
    chunk.written_bytes = growth_of(&mut written, output.written_bytes());
    go_on(chunk)?;
    Ok(tables)
}

/// Clips `fragments`, which are in key order, to the range from `start` to the exclusive `end`.
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

/// Returns by how much `now` exceeds the maximum so far. The size of an unfinished table is an
/// estimate, so `now` may be below an earlier value.
fn growth_of(maximum: &mut u64, now: u64) -> u64 {
    let growth = now.saturating_sub(*maximum);
    *maximum = now.max(*maximum);
    growth
}

fn keeps(rules: &DropRules, key: &[u8], seq: SeqNo, kind: EntryKind, stripe: usize) -> bool {
    if rules.is_deleted(key, seq, stripe) {
        return false;
    }
    // A tombstone is needed as long as it may hide an older version.
    kind.is_value() || stripe > 0 || !rules.is_bottom()
}
