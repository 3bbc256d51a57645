//! Workloads that read entries in order.

use super::client::Client;
use crate::answers::ScanCheck;
use crate::error::StoreError;
use crate::store::Direction;
use crate::workload::Workload;

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
    client.hands().scan_from_loaded(entries)
}
