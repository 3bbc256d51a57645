//! Operations of several kinds in proportions.
//!
//! Clients own disjoint keys: each reads and writes its own part of the loaded keys, and inserts into
//! its own stripe. A client therefore knows which of its keys exist, and every answer is checked: an
//! existing key must be found, and a deleted or never written key must not. Scans also return keys
//! of other clients, which may change concurrently; only their order and values are checked.
//!
//! Each kind is executed exactly as often as its share requires. In interleaved order, the next kind
//! is drawn in proportion to the remaining operations of each kind, so the proportions hold
//! throughout a phase.

use std::collections::BTreeMap;
use std::ops::Range;

use super::client::Client;
use super::part::part;
use super::scans::scan_from_loaded;
use crate::distribution::{Distribution, IndexChooser};
use crate::error::StoreError;
use crate::latency::Latency;
use crate::operation_mix::{MixOrder, MixPart, OperationKind};
use crate::random::below;
use crate::value::key_prefix;

/// After this many draws of deleted keys, the next existing key is taken.
const DRAWS_MAX: u32 = 32;

/// Executes `count` operations of the options' mix.
pub(super) fn run(client: &mut Client<'_>, count: u64) -> Result<(), StoreError> {
    let mix = client.options.mix.clone();
    let mut counts = mix.counts(count);
    let mut keys = OwnKeys::of(client);
    client.kinds = mix.parts().iter().map(|_| Latency::new()).collect();
    let mut first = 0;
    for parts in mix.phases() {
        let left = &mut counts[first..first + parts.len()];
        run_phase(client, (parts, mix.order), &mut keys, (left, first))?;
        first += parts.len();
    }
    Ok(())
}

/// Executes the operations of a phase: `left` of each part, whose latencies are those from number
/// `first` on.
fn run_phase(
    client: &mut Client<'_>,
    (parts, order): (&[MixPart], MixOrder),
    keys: &mut OwnKeys,
    (left, first): (&mut [u64], usize),
) -> Result<(), StoreError> {
    let mut choosers: Vec<IndexChooser> =
        parts.iter().map(|part| chooser(client, part, keys)).collect();
    let mut remaining: u64 = left.iter().sum();
    while remaining > 0 && !client.is_stopped() {
        let next = match order {
            MixOrder::Serial => left.iter().position(|left| *left > 0),
            MixOrder::Interleaved => drawn(left, below(&mut client.rng, remaining)),
        };
        let Some((next, part)) = next.and_then(|next| Some((next, *parts.get(next)?))) else {
            break;
        };
        left[next] -= 1;
        remaining -= 1;
        let inserted = operate(client, part, keys, &mut choosers[next])?;
        if inserted {
            choosers.iter_mut().for_each(IndexChooser::grow);
        }
        let nanos = client.recorder.sample(1);
        client.kinds[first + next].record_nanos(nanos);
    }
    Ok(())
}

/// Returns the kind of the remaining operation number `dice`.
fn drawn(left: &[u64], mut dice: u64) -> Option<usize> {
    left.iter().position(|&left| {
        let is_it = dice < left;
        dice = dice.saturating_sub(left);
        is_it
    })
}

fn chooser(client: &Client<'_>, part: &MixPart, keys: &OwnKeys) -> IndexChooser {
    let chosen = part.distribution.or(client.options.distribution);
    IndexChooser::new(chosen.unwrap_or(Distribution::Uniform), keys.known(), 0)
}

/// Executes one operation. Returns whether it inserted a new key.
fn operate(
    client: &mut Client<'_>,
    part: MixPart,
    keys: &mut OwnKeys,
    chooser: &mut IndexChooser,
) -> Result<bool, StoreError> {
    // If no key exists, an operation that needs one inserts one.
    if part.kind == OperationKind::Insert || (needs_key(part.kind) && keys.live == 0) {
        let (number, index) = keys.insert();
        client.keys.write_key(index, &mut client.key);
        keys.sort_in(number, &client.key);
        return client.put().map(|()| true);
    }
    let mut number = chooser.choose(&mut client.rng);
    if matches!(part.kind, OperationKind::Missing | OperationKind::DeleteMissing) {
        // A deleted key serves as a missing key.
        match keys.is_deleted(number) {
            true => client.keys.write_key(keys.index(number), &mut client.key),
            false => client.keys.write_missing_key(keys.index(number), &mut client.key),
        }
        return match part.kind {
            OperationKind::Missing => get_missing(client).map(|()| false),
            _ => delete(client).map(|()| false),
        };
    }
    let mut draws = 0;
    while keys.is_deleted(number) {
        draws += 1;
        number = match draws < DRAWS_MAX {
            true => chooser.choose(&mut client.rng),
            false => keys.existing_from(number),
        };
    }
    client.keys.write_key(keys.index(number), &mut client.key);
    match part.kind {
        OperationKind::Get => client.get_loaded()?,
        OperationKind::Update => client.put()?,
        OperationKind::Delete => {
            delete(client)?;
            keys.delete(number, &client.key);
        }
        OperationKind::DeleteRange(length) => {
            delete_range(client, keys, length.entries(client.options.num))?;
        }
        OperationKind::Scan(length) => {
            let entries = length.entries(client.options.num);
            scan_from_loaded(client, u32::try_from(entries).unwrap_or(u32::MAX))?;
        }
        OperationKind::Insert | OperationKind::Missing | OperationKind::DeleteMissing => {}
    }
    Ok(false)
}

fn needs_key(kind: OperationKind) -> bool {
    use OperationKind::{DeleteMissing, Insert, Missing};
    !matches!(kind, Insert | Missing | DeleteMissing)
}

/// Deletes the current key.
fn delete(client: &mut Client<'_>) -> Result<(), StoreError> {
    client.tally.bytes_written += client.key.len() as u64;
    client.store.delete(&client.key)
}

/// Deletes the range that begins at the current key and has `count` existing keys, or fewer at the end
/// of the key space.
fn delete_range(client: &mut Client<'_>, keys: &mut OwnKeys, count: u64) -> Result<(), StoreError> {
    let Some(last) = keys.delete_from(&client.key, count) else { return Ok(()) };
    let mut end = vec![0; client.key.len()];
    client.keys.write_key(keys.index(last), &mut end);
    // The first key after the last one.
    end.push(0);
    client.tally.bytes_written += (client.key.len() + end.len()) as u64;
    client.store.delete_range(&client.key, &end)
}

/// Gets the current key, which must not exist.
fn get_missing(client: &mut Client<'_>) -> Result<(), StoreError> {
    let found = client.get()?;
    client.tally.phantoms += u64::from(found);
    client.tally.missing += u64::from(!found);
    Ok(())
}

/// The keys of one client: its part of the loaded keys, then its inserted keys.
#[derive(Debug)]
struct OwnKeys {
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
    /// The numbers of the existing keys by the first bytes of the key, which differ for any two keys;
    /// `None` if the mix deletes no ranges.
    sorted: Option<BTreeMap<u64, u64>>,
}

impl OwnKeys {
    fn of(client: &Client<'_>) -> Self {
        let total = client.options.num;
        let own = part(total, client.thread, client.options.threads);
        let sorted = client.options.mix.deletes_ranges().then(|| {
            let mut key = vec![0; client.key.len()];
            let mut prefix = |index| {
                client.keys.write_key(index, &mut key);
                key_prefix(&key)
            };
            own.clone().map(|index| (prefix(index), index - own.start)).collect()
        });
        Self {
            sorted,
            first_loaded: own.start,
            loaded: own.end - own.start,
            inserted: 0,
            thread: u64::from(client.thread),
            threads: u64::from(client.options.threads),
            total,
            deleted: Vec::new(),
            live: own.end - own.start,
        }
    }

    /// The number of keys, deleted ones included.
    fn known(&self) -> u64 {
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
    fn draws_are_in_proportion_to_the_remaining_operations() {
        let fallen: Vec<_> = (0..5).map(|dice| drawn(&[2, 0, 3], dice)).collect();
        assert_eq!(fallen, [Some(0), Some(0), Some(2), Some(2), Some(2)]);
        assert_eq!(drawn(&[0, 0], 0), None);
    }
}
