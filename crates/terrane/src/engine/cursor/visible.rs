//! The entries that a reader at a sequence number sees: each key's newest version at or before that
//! number, unless it is a tombstone, has expired, or a newer visible range tombstone covers it.

mod ahead;
mod chain;
mod load;
mod stretch;

pub(crate) use load::ValueSource;

use terrane_memtable::Memtable;
use terrane_policy::key_range::successor;

use self::ahead::ValuesAhead;
use self::chain::BackwardChain;
use super::deleted_ranges::{DeadRest, DeletedRanges};
use super::merge::{Direction, MergeCursor};
use crate::base::error::Result;
use crate::base::expiry::{EXPIRY_BYTES, expires_at_micros};
use crate::base::types::{EntryKind, MAX_SEQ, SeqNo};
use crate::files::value::{Key, Value};

/// The number of consecutive invisible entries after which a scan tries to skip the rest by a seek.
const BEFORE_SKIP: u64 = 8;

/// The number of consecutive dead keys after which a scan notes them as a dead range.
const BEFORE_RECORDING: u64 = 64;

/// Iterates over the keys and values that a reader sees, in one direction at a time.
#[derive(Debug)]
pub(crate) struct VisibleCursor {
    merge: MergeCursor,
    seq: SeqNo,
    /// The time by which the reader decides which values have expired.
    now_micros: u64,
    deleted: DeletedRanges,
    /// The current key in the backward direction, and in the forward direction while `combined` has
    /// its newest sequence number. Otherwise `merge` has the key.
    kept_key: Vec<u8>,
    combined: Option<SeqNo>,
    /// The current value in the backward direction; in the forward direction `merge` has it.
    backward_value: Option<Value>,
    /// The sequence number of the backward value, if that is a pointer to a separated value.
    backward_separated: Option<SeqNo>,
    /// The versions on which the backward value depends, if the newest is an operand.
    backward_chain: BackwardChain,
    /// The current entry's value, if it is separated or an operand, and has been read.
    loaded: Option<Value>,
    ahead: Option<Box<ValuesAhead>>,
    /// In the forward direction, the length of the expiry time that is stored before the current
    /// value.
    skipped: usize,
    is_forward: bool,
    is_valid: bool,
    /// The number of dead keys that the cursor has stepped over.
    dead_keys: u64,
    /// Whether the cursor ends at a version that is newer than the reader, and whether it has met one.
    ends_at_newer: bool,
    is_overtaken: bool,
    /// The bound of the scan: exclusive forward, inclusive backward. Checked only while stepping over
    /// dead keys; otherwise the caller stops at the bound.
    limit: Option<Key>,
}

/// A version of a key: its sequence number, its kind, and what it stores.
type Version = (SeqNo, EntryKind, Value);

/// The consecutive dead keys that a scan has stepped over.
#[derive(Debug, Default)]
struct DeadKeys {
    count: u64,
    /// One of the first dead keys in the direction of the scan; empty until there are
    /// [`BEFORE_SKIP`] dead keys.
    first: Vec<u8>,
}

impl VisibleCursor {
    pub(crate) fn new(
        merge: MergeCursor,
        (seq, now_micros): (SeqNo, u64),
        deleted: DeletedRanges,
        limit: Option<Key>,
    ) -> Self {
        Self {
            merge,
            seq,
            now_micros,
            deleted,
            kept_key: Vec::new(),
            combined: None,
            backward_value: None,
            backward_separated: None,
            backward_chain: BackwardChain::default(),
            loaded: None,
            ahead: None,
            skipped: 0,
            is_forward: true,
            is_valid: false,
            dead_keys: 0,
            ends_at_newer: false,
            is_overtaken: false,
            limit,
        }
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// The number of dead keys that the cursor has stepped over since it was created.
    pub(crate) fn dead_keys(&self) -> u64 {
        self.dead_keys
    }

    /// The current key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        if self.is_forward && self.combined.is_none() { self.merge.key() } else { &self.kept_key }
    }

    /// The current value.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        if let Some(value) = &self.loaded {
            return value;
        }
        if self.is_forward {
            return self.merge.value().get(self.skipped..).unwrap_or_default();
        }
        self.backward_value.as_deref().unwrap_or_default()
    }

    /// Returns the current value, pinned instead of copied.
    pub(crate) fn pin_value(&self) -> Value {
        let value = self.loaded.as_ref().or(self.backward_value.as_ref());
        let of_merge = || match self.skipped {
            0 => self.merge.pin_value(),
            skipped => self.merge.pin_value().skip(skipped),
        };
        value.cloned().unwrap_or_else(of_merge)
    }

    /// Moves to the first visible key at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.begin(true);
        self.merge.seek(key, self.seq)?;
        self.find_forward()
    }

    /// Moves to the first visible key at or after `key`. If this or a later step meets a version
    /// newer than the reader, before the limit, the cursor ends there and is overtaken.
    pub(crate) fn seek_until_newer(&mut self, key: &[u8]) -> Result<()> {
        self.begin(true);
        (self.ends_at_newer, self.is_overtaken) = (true, false);
        self.merge.seek(key, MAX_SEQ)?;
        self.find_forward()
    }

    /// Returns true if the cursor ended because it met a newer version.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }

    /// Copies a forward cursor's current entry; an operand is copied as the loaded value. Returns
    /// the bytes of key and value.
    pub(crate) fn copy_to(&self, memtable: &Memtable) -> usize {
        let (seq, kind, value) = match (self.combined, &self.loaded) {
            (Some(seq), Some(value)) => (seq, EntryKind::Value, &value[..]),
            _ => (self.merge.seq(), self.merge.kind(), self.merge.value()),
        };
        memtable.insert(self.key(), seq, kind, value);
        self.key().len() + value.len()
    }

    /// Moves to the last visible key before `key`, or to the last key if `key` is `None`.
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
        self.combined = None;
        self.loaded = None;
        self.ahead = None;
        self.skipped = 0;
    }

    /// Moves to the next visible key in the direction of the last seek.
    #[inline(always)]
    pub(crate) fn step(&mut self) -> Result<()> {
        if !self.is_valid {
            return Ok(());
        }
        self.is_valid = false;
        self.loaded = None;
        self.skipped = 0;
        if self.is_forward {
            if self.combined.is_none() {
                self.merge.next_key()?;
            } else {
                self.leave_combined()?;
            }
            if self.deleted.is_empty() && self.merge.is_lasting_at(self.seq) {
                self.is_valid = true;
                return Ok(());
            }
            self.find_forward()?;
            self.ahead = self.ahead.take().filter(|_| self.is_valid);
            Ok(())
        } else {
            self.find_backward()
        }
    }

    /// Advances the merge to the first visible entry. The merge must be past all versions of keys
    /// that were already returned or skipped.
    #[inline(never)]
    fn find_forward(&mut self) -> Result<()> {
        let mut hidden = 0;
        let mut dead = DeadKeys::default();
        while self.merge.is_valid() {
            let seq = self.merge.seq();
            if seq > self.seq {
                if self.ends_at_newer {
                    self.is_overtaken = self.is_before_limit();
                    return Ok(());
                }
                self.skip_hidden(&mut hidden)?;
                continue;
            }
            let kind = self.merge.kind();
            if kind == EntryKind::Expiring
                && expires_at_micros(self.merge.value()) <= self.now_micros
            {
                if self.is_past_expired(&mut dead)? {
                    return Ok(());
                }
                continue;
            }
            let is_alive = kind.is_value() && self.deleted.is_empty();
            if is_alive || !self.is_dead(seq, kind.is_value(), &mut dead)? {
                self.is_valid = true;
                self.skipped = if kind == EntryKind::Expiring { EXPIRY_BYTES } else { 0 };
                return Ok(());
            }
            if dead.count == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Advances past an entry whose value has expired. Returns true if the scan has reached its limit.
    ///
    /// Such keys do not belong to dead ranges, because a snapshot of an earlier time sees them.
    #[cold]
    fn is_past_expired(&mut self, dead: &mut DeadKeys) -> Result<bool> {
        *dead = DeadKeys::default();
        self.dead_keys += 1;
        if self.dead_keys.is_multiple_of(BEFORE_SKIP) && !self.is_before_limit() {
            return Ok(true);
        }
        self.merge.next_key()?;
        Ok(false)
    }

    fn is_before_limit(&self) -> bool {
        self.limit.as_ref().is_none_or(|limit| self.merge.key() < &limit[..])
    }

    /// Skips an entry that is newer than the reader.
    #[cold]
    fn skip_hidden(&mut self, hidden: &mut u64) -> Result<()> {
        *hidden += 1;
        if *hidden <= BEFORE_SKIP {
            return self.merge.next();
        }
        // The key has many newer versions: seek to the first one visible to this reader.
        *hidden = 0;
        let key = self.merge.key().to_vec();
        self.merge.seek(&key, self.seq)
    }

    /// Returns whether the current entry's key is deleted, and if so, advances past it. Resets the
    /// count in `dead` if the scan has reached its limit.
    fn is_dead(&mut self, seq: SeqNo, is_value: bool, dead: &mut DeadKeys) -> Result<bool> {
        let key = self.merge.key();
        let covering =
            if self.deleted.is_empty() { None } else { self.deleted.covering(key, seq)? };
        if is_value && covering.is_none() {
            return Ok(false);
        }
        dead.count += 1;
        self.dead_keys += 1;
        if dead.count.is_multiple_of(BEFORE_SKIP) {
            if dead.first.is_empty() {
                dead.first = key.to_vec();
            }
            if self.limit.as_ref().is_some_and(|limit| key >= &limit[..]) {
                dead.count = 0;
                return Ok(true);
            }
            if dead.count.is_multiple_of(BEFORE_RECORDING) {
                self.deleted.enter(&dead.first, key, Direction::Forward);
            }
            match self.deleted.rest_of(key, covering) {
                Some(DeadRest::Deleted(end, seq)) => {
                    self.merge.skip_deleted(end.as_deref(), seq)?;
                }
                Some(DeadRest::Noted(end)) => self.merge.skip_to(end.as_deref())?,
                None => return self.merge.next_key().map(|()| true),
            }
            return Ok(true);
        }
        self.merge.next_key()?;
        Ok(true)
    }

    /// Moves backward to the last key with a visible version. Leaves the merge before all versions
    /// of that key.
    fn find_backward(&mut self) -> Result<()> {
        self.backward_value = None;
        let mut dead = DeadKeys::default();
        while self.merge.is_valid() {
            self.kept_key.clear();
            self.kept_key.extend_from_slice(self.merge.key());
            self.backward_chain.clear();
            let mut newest: Option<Version> = None;
            // Going backward, the versions of a key arrive from oldest to newest.
            while self.merge.is_valid() && self.merge.key() == &self.kept_key[..] {
                if self.merge.seq() <= self.seq {
                    let version = (self.merge.seq(), self.merge.kind(), self.merge.pin_value());
                    self.keep_below(version.1, newest.replace(version));
                }
                self.merge.previous()?;
            }
            let is_expired = newest.as_ref().is_some_and(|(_, kind, value)| {
                *kind == EntryKind::Expiring && expires_at_micros(value) <= self.now_micros
            });
            if is_expired {
                dead = DeadKeys::default();
            }
            let newest = newest.filter(|(_, kind, _)| kind.is_value() && !is_expired);
            if let Some((seq, kind, value)) = newest {
                let is_alive = self.deleted.is_empty()
                    || self.deleted.covering(&self.kept_key, seq)?.is_none();
                if is_alive {
                    self.keep_operand((seq, kind), &value);
                    let is_expiring = kind == EntryKind::Expiring;
                    self.backward_value =
                        Some(if is_expiring { value.skip(EXPIRY_BYTES) } else { value });
                    self.backward_separated = (kind == EntryKind::Separated).then_some(seq);
                    self.is_valid = true;
                    return Ok(());
                }
            }
            if is_expired {
                self.dead_keys += 1;
                let is_past = |limit: &Key| self.kept_key[..] < limit[..];
                if self.limit.as_ref().is_some_and(is_past) {
                    return Ok(());
                }
            } else if self.is_past_dead(&mut dead)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Continues backward past a dead key. Returns true if the scan has reached its limit.
    fn is_past_dead(&mut self, dead: &mut DeadKeys) -> Result<bool> {
        let key = &self.kept_key;
        dead.count += 1;
        self.dead_keys += 1;
        if !dead.count.is_multiple_of(BEFORE_SKIP) {
            return Ok(false);
        }
        if dead.first.is_empty() {
            dead.first = successor(key).to_vec();
        }
        if self.limit.as_ref().is_some_and(|limit| key[..] < limit[..]) {
            return Ok(true);
        }
        if dead.count.is_multiple_of(BEFORE_RECORDING) {
            self.deleted.enter(key, &dead.first, Direction::Backward);
        }
        if let Some(range) = self.deleted.dead_around(key) {
            self.merge.seek_before(&range.start)?;
        }
        Ok(false)
    }
}
