//! Workloads that look up keys.

use super::client::Client;
use crate::error::StoreError;

/// Gets `count` existing keys.
pub(super) fn read_random(client: &mut Client<'_>, count: u64) -> Result<(), StoreError> {
    let mut chooser = client.chooser();
    client.repeat(count, |client| {
        client.keys.write_key(chooser.choose(&mut client.rng), &mut client.key);
        client.get_loaded()
    })
}

/// Gets `count` keys that were never written.
pub(super) fn read_missing(client: &mut Client<'_>, count: u64) -> Result<(), StoreError> {
    let mut chooser = client.chooser();
    client.repeat(count, |client| {
        client.keys.write_missing_key(chooser.choose(&mut client.rng), &mut client.key);
        let found = client.get()?;
        client.tally.phantoms += u64::from(found);
        client.tally.missing += u64::from(!found);
        Ok(())
    })
}

/// Gets `count` existing keys, `keys` per call.
pub(super) fn multi_read(client: &mut Client<'_>, count: u64, keys: u32) -> Result<(), StoreError> {
    let mut chooser = client.chooser();
    let mut batch = vec![vec![0; client.keys.key_size_bytes()]; keys as usize];
    let mut left = count;
    while left > 0 && !client.is_stopped() {
        let length = left.min(u64::from(keys));
        left -= length;
        let batch = &mut batch[..length as usize];
        for key in &mut *batch {
            client.keys.write_key(chooser.choose(&mut client.rng), key);
        }
        let Client { store, tally, check, .. } = client;
        let mut shown = 0;
        let found = store.multi_get(batch, &mut |position, value| {
            shown += 1;
            match batch.get(position) {
                Some(key) => tally.look_at(*check, key, value),
                None => tally.wrong_values += 1,
            }
        })? as u64;
        tally.found += found;
        tally.not_found += length.saturating_sub(found);
        // A faulty store might return a count without passing values, or pass a key twice.
        tally.wrong_values += found.abs_diff(shown);
        client.recorder.sample(length);
    }
    Ok(())
}
