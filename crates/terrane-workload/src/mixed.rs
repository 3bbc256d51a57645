//! The operations of a mix, and the keys of the client that carries them out.
//!
//! Clients own disjoint keys: each reads and writes its own part of the loaded keys, and inserts into
//! its own stripe. A client therefore knows which of its keys exist, and every answer is checked: an
//! existing key must be found, and a deleted or never written key must not. Scans also return keys
//! of other clients, which may change concurrently; only their order and values are checked.

use std::collections::BTreeMap;
use std::ops::Range;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::answers::{ScanCheck, Tally};
use crate::distribution::IndexChooser;
use crate::error::StoreError;
use crate::key::KeySpace;
use crate::operation_mix::{MixPart, OperationKind};
use crate::store::{Direction, Store};
use crate::value::{ValueCheck, Values, key_prefix};

/// After drawing this many deleted keys in a row, a client takes the next existing key.
const DRAWS_MAX: u32 = 32;

/// Returns part number `thread` when `0..total` is divided into `threads` parts, whose lengths
/// differ by at most one.
pub(crate) fn part(total: u64, thread: u32, threads: u32) -> Range<u64> {
    let bound = |thread: u32| {
        // The product of two large counts needs 128 bits.
        (u128::from(total) * u128::from(thread) / u128::from(threads)) as u64
    };
    bound(thread)..bound(thread + 1)
}

/// The state with which a client carries out operations.
pub(crate) struct Hands<'c> {
    pub(crate) store: &'c dyn Store,
    /// The number of loaded keys.
    pub(crate) loaded: u64,
    pub(crate) keys: &'c KeySpace,
    /// The key of the current operation.
    pub(crate) key: &'c mut Vec<u8>,
    pub(crate) values: &'c mut Values,
    pub(crate) check: ValueCheck,
    pub(crate) rng: &'c mut Xoshiro256PlusPlus,
    pub(crate) tally: &'c mut Tally,
}

impl Hands<'_> {
    /// Executes one operation. Returns whether it inserted a new key.
    pub(crate) fn operate(
        &mut self,
        part: MixPart,
        keys: &mut OwnKeys,
        chooser: &mut IndexChooser,
    ) -> Result<bool, StoreError> {
        // If no key exists, an operation that needs one inserts one.
        if part.kind == OperationKind::Insert || (needs_key(part.kind) && keys.live == 0) {
            let (number, index) = keys.insert();
            self.keys.write_key(index, self.key);
            keys.sort_in(number, self.key);
            return self.put().map(|()| true);
        }
        let mut number = chooser.choose(self.rng);
        if matches!(part.kind, OperationKind::Missing | OperationKind::DeleteMissing) {
            // A deleted key serves as a missing key.
            match keys.is_deleted(number) {
                true => self.keys.write_key(keys.index(number), self.key),
                false => self.keys.write_missing_key(keys.index(number), self.key),
            }
            return match part.kind {
                OperationKind::Missing => self.get_missing().map(|()| false),
                _ => self.delete().map(|()| false),
            };
        }
        let mut draws = 0;
        while keys.is_deleted(number) {
            draws += 1;
            number = match draws < DRAWS_MAX {
                true => chooser.choose(self.rng),
                false => keys.existing_from(number),
            };
        }
        self.keys.write_key(keys.index(number), self.key);
        match part.kind {
            OperationKind::Get => self.get_loaded()?,
            OperationKind::Update => self.put()?,
            OperationKind::Delete => {
                self.delete()?;
                keys.delete(number, self.key);
            }
            OperationKind::DeleteRange(length) => {
                self.delete_range(keys, length.entries(self.loaded))?;
            }
            OperationKind::Scan(length) => {
                let entries = length.entries(self.loaded);
                self.scan_from_loaded(u32::try_from(entries).unwrap_or(u32::MAX))?;
            }
            OperationKind::Insert | OperationKind::Missing | OperationKind::DeleteMissing => {}
        }
        Ok(false)
    }

    /// Puts a new value at the current key.
    #[inline]
    pub(crate) fn put(&mut self) -> Result<(), StoreError> {
        let value = self.values.value_for(self.key, self.rng);
        self.store.put(self.key, value)?;
        self.tally.bytes_written += (self.key.len() + value.len()) as u64;
        Ok(())
    }

    /// Gets the current key, and returns whether it exists.
    #[inline]
    pub(crate) fn get(&mut self) -> Result<bool, StoreError> {
        let Self { store, key, tally, check, .. } = self;
        store.get(key, &mut |value| tally.look_at(*check, key, value))
    }

    /// Gets the current key, which must exist.
    #[inline]
    pub(crate) fn get_loaded(&mut self) -> Result<(), StoreError> {
        let found = self.get()?;
        self.tally.found += u64::from(found);
        self.tally.not_found += u64::from(!found);
        Ok(())
    }

    /// Gets the current key, which must not exist.
    fn get_missing(&mut self) -> Result<(), StoreError> {
        let found = self.get()?;
        self.tally.phantoms += u64::from(found);
        self.tally.missing += u64::from(!found);
        Ok(())
    }

    /// Deletes the current key.
    fn delete(&mut self) -> Result<(), StoreError> {
        self.tally.bytes_written += self.key.len() as u64;
        self.store.delete(self.key)
    }

    /// Deletes the range that begins at the current key and has `count` existing keys, or fewer at the
    /// end of the key space.
    fn delete_range(&mut self, keys: &mut OwnKeys, count: u64) -> Result<(), StoreError> {
        let Some(last) = keys.delete_from(self.key, count) else { return Ok(()) };
        let mut end = vec![0; self.key.len()];
        self.keys.write_key(keys.index(last), &mut end);
        // The smallest key greater than the last one.
        end.push(0);
        self.tally.bytes_written += (self.key.len() + end.len()) as u64;
        self.store.delete_range(self.key, &end)
    }

    /// Reads up to `entries` entries from the current key, which must exist.
    #[inline]
    pub(crate) fn scan_from_loaded(&mut self, entries: u32) -> Result<(), StoreError> {
        let Self { store, key, tally, check, .. } = self;
        let mut scan = ScanCheck::new(Direction::Forward, *check);
        let mut landed = false;
        store.scan(Some(key), Direction::Forward, entries as usize, &mut |found, value| {
            if scan.previous.is_none() {
                landed = found == key.as_slice();
            }
            scan.look_at(tally, found, value);
        })?;
        tally.not_found += u64::from(!landed);
        Ok(())
    }
}

fn needs_key(kind: OperationKind) -> bool {
    use OperationKind::{DeleteMissing, Insert, Missing};
    !matches!(kind, Insert | Missing | DeleteMissing)
}

/// The keys of one client: its part of the loaded keys, then its inserted keys.
#[derive(Debug)]
pub(crate) struct OwnKeys {
    first_loaded: u64,
    loaded: u64,
    inserted: u64,
    thread: u64,
    threads: u64,
    /// The first index of inserts.
    total: u64,
    /// A bit for each deleted key.
    deleted: Vec<u64>,
    /// The number of existing keys.
    live: u64,
    /// The numbers of the existing keys, by the first bytes of the key, which are distinct; `None` if
    /// the mix deletes no ranges.
    sorted: Option<BTreeMap<u64, u64>>,
}

impl OwnKeys {
    /// Returns the keys of client number `thread` of `threads`, if `total` keys are loaded. Keeps the
    /// keys sorted if `for_ranges`, so that ranges can be deleted.
    pub(crate) fn of(
        total: u64,
        (thread, threads): (u32, u32),
        for_ranges: Option<&KeySpace>,
    ) -> Self {
        let own = part(total, thread, threads);
        let sorted = for_ranges.map(|keys| {
            let mut key = vec![0; keys.key_size_bytes()];
            let mut prefix = |index| {
                keys.write_key(index, &mut key);
                key_prefix(&key)
            };
            own.clone().map(|index| (prefix(index), index - own.start)).collect()
        });
        Self {
            sorted,
            first_loaded: own.start,
            loaded: own.end - own.start,
            inserted: 0,
            thread: u64::from(thread),
            threads: u64::from(threads),
            total,
            deleted: Vec::new(),
            live: own.end - own.start,
        }
    }

    /// The number of keys, deleted ones included.
    pub(crate) fn known(&self) -> u64 {
        self.loaded + self.inserted
    }

    /// The index of the client's `number`-th key.
    #[inline]
    fn index(&self, number: u64) -> u64 {
        match number.checked_sub(self.loaded) {
            None => self.first_loaded + number,
            Some(inserted) => self.total + inserted * self.threads + self.thread,
        }
    }

    /// The number and the index of a new key.
    fn insert(&mut self) -> (u64, u64) {
        let number = self.known();
        self.inserted += 1;
        self.live += 1;
        (number, self.index(number))
    }

    /// Adds the key with this number to the order of keys, if it is needed.
    fn sort_in(&mut self, number: u64, key: &[u8]) {
        if let Some(sorted) = &mut self.sorted {
            sorted.insert(key_prefix(key), number);
        }
    }

    /// Deletes up to `count` existing keys from `key` on. Returns the number of the last one.
    fn delete_from(&mut self, key: &[u8], count: u64) -> Option<u64> {
        let sorted = self.sorted.as_mut()?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let first = sorted.range(key_prefix(key)..).take(count);
        let deleted: Vec<(u64, u64)> = first.map(|(&prefix, &number)| (prefix, number)).collect();
        for (prefix, number) in &deleted {
            self.sorted.as_mut()?.remove(prefix);
            self.mark_deleted(*number);
        }
        deleted.last().map(|(_, number)| *number)
    }

    #[inline]
    fn is_deleted(&self, number: u64) -> bool {
        let word = self.deleted.get((number / 64) as usize);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Returns the number of the first existing key from `number` on, cyclically; `number` if none
    /// exists.
    fn existing_from(&self, number: u64) -> u64 {
        self.existing_in(number..self.known())
            .or_else(|| self.existing_in(0..number))
            .unwrap_or(number)
    }

    /// Returns the number of the first existing key of a range. Skips 64 deleted keys at a time,
    /// because few keys may be left between deleted ranges.
    fn existing_in(&self, range: Range<u64>) -> Option<u64> {
        let mut number = range.start;
        while number < range.end {
            let word = self.deleted.get((number / 64) as usize).copied().unwrap_or(0);
            let deleted = u64::from((word >> (number % 64)).trailing_ones());
            if deleted == 0 {
                return Some(number);
            }
            number += deleted;
        }
        None
    }

    fn delete(&mut self, number: u64, key: &[u8]) {
        if let Some(sorted) = &mut self.sorted {
            sorted.remove(&key_prefix(key));
        }
        self.mark_deleted(number);
    }

    fn mark_deleted(&mut self, number: u64) {
        let word = (number / 64) as usize;
        if self.deleted.len() <= word {
            self.deleted.resize(word + 1, 0);
        }
        self.deleted[word] |= 1 << (number % 64);
        self.live -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_own_a_part_of_the_loaded_keys_and_stripes_beyond() {
        let own = |thread, first_loaded| OwnKeys {
            first_loaded,
            loaded: 5,
            inserted: 0,
            thread,
            threads: 2,
            total: 10,
            deleted: Vec::new(),
            live: 5,
            sorted: None,
        };
        let (mut first, mut second) = (own(0, 0), own(1, 5));
        assert_eq!([first.insert(), first.insert()], [(5, 10), (6, 12)]);
        assert_eq!([second.insert(), second.insert()], [(5, 11), (6, 13)]);
        assert_eq!([second.index(0), second.index(4), second.index(6)], [5, 9, 13]);
        second.delete(70, b"");
        assert!(second.is_deleted(70) && !second.is_deleted(69) && !second.is_deleted(1000));
        assert_eq!(second.live, 6);
    }

    #[test]
    fn the_next_existing_key_is_found_across_deleted_ranges() {
        let mut keys = OwnKeys {
            first_loaded: 0,
            loaded: 300,
            inserted: 0,
            thread: 0,
            threads: 1,
            total: 300,
            deleted: Vec::new(),
            live: 300,
            sorted: None,
        };
        (3..250).for_each(|number| keys.mark_deleted(number));
        let found = [0, 3, 64, 127, 249, 250].map(|number| keys.existing_from(number));
        assert_eq!(found, [0, 250, 250, 250, 250, 250]);
        (250..300).for_each(|number| keys.mark_deleted(number));
        assert_eq!([keys.existing_from(2), keys.existing_from(70)], [2, 0]);
        (0..3).for_each(|number| keys.mark_deleted(number));
        assert_eq!(keys.existing_from(70), 70);
    }

    #[test]
    fn parts_follow_each_other_and_cover_everything() {
        for (total, threads) in [(0, 1), (7, 1), (7, 3), (3, 8), (1_000_003, 7), (u64::MAX, 3)] {
            let mut end = 0;
            for thread in 0..threads {
                let part = part(total, thread, threads);
                assert_eq!(part.start, end);
                assert!((part.end - part.start).abs_diff(total / u64::from(threads)) <= 1);
                end = part.end;
            }
            assert_eq!(end, total);
        }
    }
}
