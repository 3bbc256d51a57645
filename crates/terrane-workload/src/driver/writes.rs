//! Workloads that only write.

use std::ops::Range;

use super::client::Client;
use crate::error::StoreError;

/// Puts the key of every index of `part`.
pub(super) fn fill(client: &mut Client<'_>, part: Range<u64>) -> Result<(), StoreError> {
    let mut index = part.start;
    client.repeat(part.end - part.start, |client| {
        client.keys.write_key(index, &mut client.key);
        index += 1;
        client.put()
    })
}

/// Puts the key of every index of `part`, each synced to storage.
pub(super) fn fill_synced(client: &mut Client<'_>, part: Range<u64>) -> Result<(), StoreError> {
    let mut index = part.start;
    client.repeat(part.end - part.start, |client| {
        client.keys.write_key(index, &mut client.key);
        index += 1;
        let value = client.values.value_for(&client.key, &mut client.rng);
        client.store.put_synced(&client.key, value)?;
        client.tally.bytes_written += (client.key.len() + value.len()) as u64;
        Ok(())
    })
}

/// Puts the key of every index of `part` in atomic batches of `entries`.
pub(super) fn fill_batches(
    client: &mut Client<'_>,
    part: Range<u64>,
    entries: u32,
) -> Result<(), StoreError> {
    let size_bytes = client.options.value_size.max_bytes();
    let entry = || (vec![0; client.keys.key_size_bytes()], Vec::with_capacity(size_bytes));
    let mut batch: Vec<(Vec<u8>, Vec<u8>)> = (0..entries).map(|_| entry()).collect();
    let mut index = part.start;
    while index < part.end && !client.is_stopped() {
        let length = (part.end - index).min(u64::from(entries));
        let batch = &mut batch[..length as usize];
        for (key, value) in &mut *batch {
            client.keys.write_key(index, key);
            index += 1;
            value.clear();
            value.extend_from_slice(client.values.value_for(key, &mut client.rng));
            client.tally.bytes_written += (key.len() + value.len()) as u64;
        }
        client.store.write_batch(batch)?;
        client.recorder.sample(length);
    }
    Ok(())
}

/// Overwrites `count` existing keys.
pub(super) fn overwrite(client: &mut Client<'_>, count: u64) -> Result<(), StoreError> {
    let mut chooser = client.chooser();
    client.repeat(count, |client| {
        client.keys.write_key(chooser.choose(&mut client.rng), &mut client.key);
        client.put()
    })
}

/// Overwrites until the run is stopped.
pub(super) fn until_stopped(client: &mut Client<'_>) -> Result<(), StoreError> {
    overwrite(client, u64::MAX)
}

/// Deletes `count` keys.
pub(super) fn delete_random(client: &mut Client<'_>, count: u64) -> Result<(), StoreError> {
    let mut chooser = client.chooser();
    client.repeat(count, |client| {
        client.keys.write_key(chooser.choose(&mut client.rng), &mut client.key);
        client.tally.bytes_written += client.key.len() as u64;
        client.store.delete(&client.key)
    })
}
