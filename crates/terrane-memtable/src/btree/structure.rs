//! The B-link tree as the structure of a memtable.

use super::BTree;
use super::heads::common_prefixes;
use super::position::BTreePosition;
use crate::entry::{Entry, SeqNo};
use crate::key_span::KeySpan;
use crate::readers::ReaderView;
use crate::skiplist::Pin;
use crate::structure::{Found, InsertOutcome, Structure};

/// One in this many leaf separators is part of a sample of the keys.
const SAMPLE_STEP: usize = 8;

impl Structure for BTree {
    type Position = BTreePosition;

    const INSERTS_GROUPS: bool = true;

    #[inline]
    fn insert(&self, entry: &Entry<'_>, _view: &ReaderView<'_>) -> InsertOutcome {
        BTree::insert(self, entry);
        InsertOutcome::default()
    }

    fn insert_all(&self, entries: &[Entry<'_>]) {
        self.insert_groups(entries);
    }

    #[inline]
    fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        let found = self.first_at_or_after(key, seq)?;
        (found.record.key() == key).then(|| found.record.entry())
    }

    fn get_all<'a>(&'a self, keys: &[&[u8]], seq: SeqNo, found: &mut dyn FnMut(usize, Found<'a>)) {
        self.get_groups(keys, seq, |at, entry| {
            found(at, Ok(entry.map(|entry| (entry, Pin::NONE))));
        });
    }

    fn key_span(&self) -> Option<KeySpan> {
        let keys = self.sample_keys(SAMPLE_STEP);
        if keys.is_empty() {
            // A single leaf has too few keys to predict later ones.
            return None;
        }
        let span = KeySpan::between(&self.first_key()?, &self.last_key()?);
        Some(span.with_prefixes(common_prefixes(keys)))
    }

    fn usage(&self) -> (usize, usize) {
        self.arena.usage()
    }
}
