//! What a reader at a sequence number sees: the newest version of each key that is not newer than
//! it, unless that version is a tombstone or lies in a range that was deleted since.

use std::sync::Arc;

use terrane_memtable::{Memtable, RangeTombstones};
use terrane_policy::key_range::successor;

use super::dead_ranges::DeadRanges;
use super::merge::{Direction, MergeCursor};
use crate::error::Result;
use crate::types::{EntryKind, SeqNo};
use crate::value::Value;
use crate::version::Version;

/// After so many entries in a row that are not for this reader, a walk asks whether it can jump
/// over the rest.
const BEFORE_JUMP: u64 = 8;

/// So many dead keys in a row are worth to be remembered.
const WORTH_ENTERING: u64 = 64;

/// The deleted ranges that a reader must consider.
#[derive(Debug, Clone)]
pub(crate) struct DeletedRanges {
    memtables: Vec<Arc<Memtable>>,
    version: Option<Arc<Version>>,
    dead: Arc<DeadRanges>,
    /// Everything that was written up to this is in these places.
    known: SeqNo,
    seq: SeqNo,
}

impl DeletedRanges {
    /// The ranges in these places that were deleted not later than `seq`; `dead` are those of the
    /// tree, with the number up to which these places hold all that was written.
    pub(crate) fn new<'a>(
        memtables: impl Iterator<Item = &'a Arc<Memtable>>,
        version: &Arc<Version>,
        (dead, known): (&Arc<DeadRanges>, SeqNo),
        seq: SeqNo,
    ) -> Result<Self> {
        let deletes = |memtable: &&Arc<Memtable>| !memtable.range_tombstones().is_empty();
        let has_tombstones = version.range_tombstones()?.is_some();
        Ok(Self {
            memtables: memtables.filter(deletes).cloned().collect(),
            version: has_tombstones.then(|| Arc::clone(version)),
            dead: Arc::clone(dead),
            known,
            seq,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.memtables.is_empty() && self.version.is_none()
    }

    /// Nothing was found from `start` to before `end`.
    fn enter(&self, start: &[u8], end: &[u8]) {
        self.dead.enter(start, Some(end), self.known, self.seq);
    }

    /// The newest tombstone that this reader sees and that deletes the version of `key` written at
    /// `seq`, and the set that it is in.
    fn covering(&self, key: &[u8], seq: SeqNo) -> Result<Option<(&RangeTombstones, SeqNo)>> {
        let tables = match &self.version {
            Some(version) => version.range_tombstones()?,
            None => None,
        };
        let sets = self.memtables.iter().map(|memtable| memtable.range_tombstones()).chain(tables);
        let newest = sets
            .filter_map(|set| Some((set, set.newest_covering(key, self.seq)?)))
            .max_by_key(|(_, deleted)| *deleted);
        Ok(newest.filter(|(_, deleted)| *deleted > seq))
    }
}

/// Walks the keys and values that a reader sees, in one direction at a time.
#[derive(Debug)]
pub(crate) struct VisibleCursor {
    merge: MergeCursor,
    seq: SeqNo,
    deleted: DeletedRanges,
    /// The current key and value, when walking backward; forward they are those of `merge`.
    backward_key: Vec<u8>,
    backward_value: Option<Value>,
    is_forward: bool,
    is_valid: bool,
    /// Keys past this are not asked for: forward from it on, backward before it. Only walks over
    /// dead keys look at it, for others end there anyway.
    limit: Option<Vec<u8>>,
}

/// Dead keys that a walk goes over.
#[derive(Debug, Default)]
struct DeadKeys {
    count: u64,
    /// One of the first, in the direction of the walk; empty before there are many.
    first: Vec<u8>,
}

impl VisibleCursor {
    pub(crate) fn new(
        merge: MergeCursor,
        seq: SeqNo,
        deleted: DeletedRanges,
        limit: Option<Vec<u8>>,
    ) -> Self {
        Self {
            merge,
            seq,
            deleted,
            backward_key: Vec::new(),
            backward_value: None,
            is_forward: true,
            is_valid: false,
            limit,
        }
    }

    /// A cursor on the first visible key from where `merge` is, in its direction.
    pub(crate) fn positioned(
        merge: MergeCursor,
        seq: SeqNo,
        deleted: DeletedRanges,
        limit: Option<Vec<u8>>,
    ) -> Result<Self> {
        let is_forward = merge.direction() == Direction::Forward;
        let mut cursor = Self { is_forward, ..Self::new(merge, seq, deleted, limit) };
        if is_forward {
            cursor.find_forward()?;
        } else {
            cursor.find_backward()?;
        }
        Ok(cursor)
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// The current key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        if self.is_forward { self.merge.key() } else { &self.backward_key }
    }

    /// The current value.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        if self.is_forward {
            return self.merge.value();
        }
        self.backward_value.as_deref().unwrap_or_default()
    }

    /// The current value, kept alive without being copied.
    pub(crate) fn pin_value(&self) -> Value {
        self.backward_value.clone().unwrap_or_else(|| self.merge.pin_value())
    }

    /// The first key at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.begin(true);
        self.merge.seek(key, self.seq)?;
        self.find_forward()
    }

    /// The last key before `key`; of all keys, if there is none to be before.
    pub(crate) fn seek_before(&mut self, key: Option<&[u8]>) -> Result<()> {
        self.begin(false);
        match key {
            Some(key) => self.merge.seek_before(key)?,
            None => self.merge.seek_last()?,
        }
        self.find_backward()
    }

    fn begin(&mut self, is_forward: bool) {
        self.is_forward = is_forward;
        self.is_valid = false;
        self.backward_value = None;
    }

    /// The next key in the direction of the last seek.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<()> {
        if !self.is_valid {
            return Ok(());
        }
        self.is_valid = false;
        if self.is_forward {
            self.merge.next_key()?;
            self.find_forward()
        } else {
            self.find_backward()
        }
    }

    /// From where the merge is, the first entry that is visible. What the reader has decided on is
    /// behind the merge, with all of its versions.
    #[inline]
    fn find_forward(&mut self) -> Result<()> {
        let mut hidden = 0;
        let mut dead = DeadKeys::default();
        while self.merge.is_valid() {
            let seq = self.merge.seq();
            if seq > self.seq {
                self.skip_hidden(&mut hidden)?;
                continue;
            }
            let is_value = self.merge.kind() == EntryKind::Value;
            if is_value && self.deleted.is_empty() {
                self.is_valid = true;
                return Ok(());
            }
            if !self.is_dead(seq, is_value, &mut dead)? {
                self.is_valid = true;
                return Ok(());
            }
            if dead.count == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Goes on from an entry that is newer than the reader.
    #[cold]
    fn skip_hidden(&mut self, hidden: &mut u64) -> Result<()> {
        *hidden += 1;
        if *hidden <= BEFORE_JUMP {
            return self.merge.next();
        }
        // Many new versions of one key: go to those that are for this reader at once.
        *hidden = 0;
        let key = self.merge.key().to_vec();
        self.merge.seek(&key, self.seq)
    }

    /// Whether the key of an entry is deleted; if so, goes on from it. No dead keys are counted
    /// when the walk is over.
    fn is_dead(&mut self, seq: SeqNo, is_value: bool, dead: &mut DeadKeys) -> Result<bool> {
        let key = self.merge.key();
        let covering =
            if self.deleted.is_empty() { None } else { self.deleted.covering(key, seq)? };
        if is_value && covering.is_none() {
            return Ok(false);
        }
        dead.count += 1;
        if dead.count.is_multiple_of(BEFORE_JUMP) {
            if dead.first.is_empty() {
                dead.first = key.to_vec();
            }
            if self.limit.as_ref().is_some_and(|limit| key >= &limit[..]) {
                dead.count = 0;
                return Ok(true);
            }
            if dead.count.is_multiple_of(WORTH_ENTERING) {
                self.deleted.enter(&dead.first, key);
            }
            // What is deleted at this reader's number from the key on stays so.
            let range = covering.and_then(|(set, deleted)| Some((set.end_of(key)?, deleted)));
            if let Some((end, deleted)) = range {
                self.merge.skip_deleted(end.as_deref(), deleted)?;
                return Ok(true);
            }
            if let Some(range) = self.deleted.dead.around(key, self.seq) {
                self.merge.skip_to(range.end.as_deref())?;
                return Ok(true);
            }
        }
        self.merge.next_key()?;
        Ok(true)
    }

    /// From where the merge is, the last key that has a visible version. The merge is left before
    /// all versions of it.
    fn find_backward(&mut self) -> Result<()> {
        self.backward_value = None;
        let mut dead = DeadKeys::default();
        while self.merge.is_valid() {
            self.backward_key.clear();
            self.backward_key.extend_from_slice(self.merge.key());
            let mut newest: Option<(SeqNo, EntryKind, Value)> = None;
            // Versions of a key come from old to new.
            while self.merge.is_valid() && self.merge.key() == &self.backward_key[..] {
                if self.merge.seq() <= self.seq {
                    let value = self.merge.pin_value();
                    newest = Some((self.merge.seq(), self.merge.kind(), value));
                }
                self.merge.previous()?;
            }
            if let Some((seq, EntryKind::Value, value)) = newest {
                let is_alive = self.deleted.is_empty()
                    || self.deleted.covering(&self.backward_key, seq)?.is_none();
                if is_alive {
                    self.backward_value = Some(value);
                    self.is_valid = true;
                    return Ok(());
                }
            }
            if self.is_past_dead(&mut dead)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Goes on backward from a key that is dead; answers whether the walk is over.
    fn is_past_dead(&mut self, dead: &mut DeadKeys) -> Result<bool> {
        let key = &self.backward_key;
        dead.count += 1;
        if !dead.count.is_multiple_of(BEFORE_JUMP) {
            return Ok(false);
        }
        if dead.first.is_empty() {
            dead.first = successor(key).to_vec();
        }
        if self.limit.as_ref().is_some_and(|limit| key < limit) {
            return Ok(true);
        }
        if dead.count.is_multiple_of(WORTH_ENTERING) {
            self.deleted.enter(key, &dead.first);
        }
        if let Some(range) = self.deleted.dead.around(key, self.seq) {
            self.merge.seek_before(&range.start)?;
        }
        Ok(false)
    }
}
