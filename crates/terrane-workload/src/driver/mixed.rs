//! Operations of several kinds in proportions.
//!
//! Clients own disjoint keys: each reads and writes its own part of the loaded keys, and inserts into
//! its own stripe. A client therefore knows which of its keys exist, and every answer is checked: an
//! existing key must be found, and a deleted or never written key must not. Scans also return keys
//! of other clients, which may change concurrently; only their order and values are checked.
//!
//! Each kind is executed exactly as often as its share requires. In interleaved order, the next kind
//! is drawn in proportion to the remaining operations of each kind, so the proportions hold
//! throughout the run.

use super::client::Client;
use super::part::part;
use super::scans::scan_from_loaded;
use crate::distribution::{Distribution, IndexChooser};
use crate::error::StoreError;
use crate::latency::Latency;
use crate::operation_mix::{MixOrder, MixPart, OperationKind};
use crate::random::below;

/// After this many draws of deleted keys, the next existing key is taken.
const DRAWS_MAX: u32 = 32;

/// Executes `count` operations of the options' mix.
pub(super) fn run(client: &mut Client<'_>, count: u64) -> Result<(), StoreError> {
    let mix = client.options.mix.clone();
    let mut left = mix.counts(count);
    let mut keys = OwnKeys::of(client);
    let mut choosers: Vec<IndexChooser> =
        mix.parts().iter().map(|part| chooser(client, part, &keys)).collect();
    client.kinds = mix.parts().iter().map(|_| Latency::new()).collect();
    let mut remaining = count;
    while remaining > 0 && !client.is_stopped() {
        let next = match mix.order {
            MixOrder::Serial => left.iter().position(|left| *left > 0),
            MixOrder::Interleaved => drawn(&left, below(&mut client.rng, remaining)),
        };
        let Some((next, part)) = next.and_then(|next| Some((next, *mix.parts().get(next)?))) else {
            break;
        };
        left[next] -= 1;
        remaining -= 1;
        let inserted = operate(client, part, &mut keys, &mut choosers[next])?;
        if inserted {
            choosers.iter_mut().for_each(IndexChooser::grow);
        }
        let nanos = client.recorder.sample(1);
        client.kinds[next].record_nanos(nanos);
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
        client.keys.write_key(keys.insert(), &mut client.key);
        return client.put().map(|()| true);
    }
    let mut number = chooser.choose(&mut client.rng);
    if part.kind == OperationKind::Missing {
        // A deleted key serves as a missing key.
        match keys.is_deleted(number) {
            true => client.keys.write_key(keys.index(number), &mut client.key),
            false => client.keys.write_missing_key(keys.index(number), &mut client.key),
        }
        return get_missing(client).map(|()| false);
    }
    let mut draws = 0;
    while keys.is_deleted(number) {
        draws += 1;
        number = match draws < DRAWS_MAX {
            true => chooser.choose(&mut client.rng),
            false => (number + 1) % keys.known(),
        };
    }
    client.keys.write_key(keys.index(number), &mut client.key);
    match part.kind {
        OperationKind::Get => client.get_loaded()?,
        OperationKind::Update => client.put()?,
        OperationKind::Delete => {
            client.tally.bytes_written += client.key.len() as u64;
            client.store.delete(&client.key)?;
            keys.delete(number);
        }
        OperationKind::Scan(length) => {
            let entries = length.entries(client.options.num);
            scan_from_loaded(client, u32::try_from(entries).unwrap_or(u32::MAX))?;
        }
        OperationKind::Insert | OperationKind::Missing => {}
    }
    Ok(false)
}

fn needs_key(kind: OperationKind) -> bool {
    !matches!(kind, OperationKind::Insert | OperationKind::Missing)
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
}

impl OwnKeys {
    fn of(client: &Client<'_>) -> Self {
        let total = client.options.num;
        let own = part(total, client.thread, client.options.threads);
        Self {
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

    /// The index of a new key.
    fn insert(&mut self) -> u64 {
        let index = self.index(self.known());
        self.inserted += 1;
        self.live += 1;
        index
    }

    #[inline]
    fn is_deleted(&self, number: u64) -> bool {
        let word = self.deleted.get((number / 64) as usize);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    fn delete(&mut self, number: u64) {
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
        };
        let (mut first, mut second) = (own(0, 0), own(1, 5));
        assert_eq!([first.insert(), first.insert()], [10, 12]);
        assert_eq!([second.insert(), second.insert()], [11, 13]);
        assert_eq!([second.index(0), second.index(4), second.index(6)], [5, 9, 13]);
        second.delete(70);
        assert!(second.is_deleted(70) && !second.is_deleted(69) && !second.is_deleted(1000));
        assert_eq!(second.live, 6);
    }

    #[test]
    fn draws_are_in_proportion_to_the_remaining_operations() {
        let fallen: Vec<_> = (0..5).map(|dice| drawn(&[2, 0, 3], dice)).collect();
        assert_eq!(fallen, [Some(0), Some(0), Some(2), Some(2), Some(2)]);
        assert_eq!(drawn(&[0, 0], 0), None);
    }
}
