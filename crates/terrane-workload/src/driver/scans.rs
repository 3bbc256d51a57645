//! Workloads that read entries in order.

use super::client::{Client, Tally};
use crate::error::StoreError;
use crate::store::Direction;
use crate::value::{ValueCheck, key_prefix};
use crate::workload::Workload;

/// Checks the entries of one scan, whose keys all have the same size.
///
/// Compares keys by their first eight bytes, which differ for any two keys; comparing and copying
/// whole keys would cost as much as the scan.
pub(super) struct ScanCheck {
    direction: Direction,
    check: ValueCheck,
    previous: Option<u64>,
}

impl ScanCheck {
    pub(super) fn new(direction: Direction, check: ValueCheck) -> Self {
        Self { direction, check, previous: None }
    }

    /// Checks the next entry.
    #[inline]
    pub(super) fn look_at(&mut self, tally: &mut Tally, key: &[u8], value: &[u8]) {
        let prefix = key_prefix(key);
        let in_order = match (self.previous, self.direction) {
            (None, _) => true,
            (Some(previous), Direction::Forward) => previous < prefix,
            (Some(previous), Direction::Backward) => previous > prefix,
        };
        self.previous = Some(prefix);
        tally.out_of_order += u64::from(!in_order);
        tally.found += 1;
        tally.look_at(self.check, key, value);
    }
}

/// Reads `count` entries, starting at the first or the last key of the store.
pub(super) fn read_all(
    client: &mut Client<'_>,
    direction: Direction,
    count: u64,
) -> Result<(), StoreError> {
    let per_sample = u64::from(Workload::ReadSeq.operations_per_sample());
    let Client { store, tally, check, recorder, .. } = client;
    let mut scan = ScanCheck::new(direction, *check);
    let mut since_sample = 0;
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let entries = store.scan(None, direction, limit, &mut |key, value| {
        scan.look_at(tally, key, value);
        since_sample += 1;
        if since_sample == per_sample {
            recorder.sample(per_sample);
            since_sample = 0;
        }
    })?;
    recorder.rest(since_sample);
    tally.not_found += count.saturating_sub(entries as u64);
    Ok(())
}

/// Seeks to `count` existing keys, and reads up to `entries` entries from each.
pub(super) fn seek_random(
    client: &mut Client<'_>,
    count: u64,
    entries: u32,
) -> Result<(), StoreError> {
    let mut chooser = client.chooser();
    client.repeat(count, |client| {
        client.keys.write_key(chooser.choose(&mut client.rng), &mut client.key);
        scan_from_loaded(client, entries)
    })
}

/// Reads up to `entries` entries from the current key, which must exist.
#[inline]
pub(super) fn scan_from_loaded(client: &mut Client<'_>, entries: u32) -> Result<(), StoreError> {
    let Client { store, key, tally, check, .. } = client;
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
