//! Removes the fields of hashes that have expired.
//!
//! The engine lets the header of a hash expire. Its fields, which have no expiry time of their own, are found
//! by the entry with the expiry time of the hash (`hash_layout`), and removed with one range tombstone. The
//! entry remains until then, so the first sweep after the next start completes an interrupted one.

use terrane::{Db, Durability, Result, WriteBatch, WriteOptions};

use super::changes::Changes;
use super::databases::{Databases, Hashes};
use super::hash_layout::{Header, expired_before, expiry_key, expiry_of, header_key};
use super::locks::KeyLocks;

/// How many hashes are removed per call, so that it ends soon.
pub(crate) const SWEPT: usize = 1024;

/// Hashes that expired within the last second stay, because commands may be reading them.
const GRACE_MICROS: u64 = 1_000_000;

impl Databases {
    /// Removes the fields of at most [`SWEPT`] hashes of each slot that expired before `now_micros`. Calls
    /// `on_expired` with the slot and the key of each, which is locked, and returns the number of hashes.
    pub(crate) fn sweep(
        &self,
        locks: &KeyLocks,
        now_micros: u64,
        on_expired: impl Fn(usize, &[u8]),
    ) -> Result<usize> {
        let mut swept = 0;
        let all = self.slots().filter_map(|slot| Some((slot, self.hashes(slot)?)));
        for (slot, hashes) in all {
            let expired = expired_before(now_micros.saturating_sub(GRACE_MICROS));
            let expired =
                hashes.keyspace.range(expired)?.take(SWEPT).collect::<Result<Vec<_>>>()?;
            for (entry, key) in expired {
                let Some((expires_at, generation)) = expiry_of(&entry) else { continue };
                let _held = locks.hold(&key);
                if remove(self.db(), hashes, &key, (expires_at, generation))? {
                    on_expired(slot, &key);
                }
                swept += 1;
            }
        }
        Ok(swept)
    }
}

/// Removes the fields of a hash, whose key is locked; returns false if its expiry time has changed.
fn remove(
    db: &Db,
    hashes: &Hashes,
    key: &[u8],
    (expires_at, generation): (u64, u64),
) -> Result<bool> {
    let keyspace = &hashes.keyspace;
    let entry = expiry_key(expires_at, generation);
    if !keyspace.contains(&entry)? {
        return Ok(false);
    }
    let header = keyspace.get_with_expiry(header_key(key))?;
    let header = header.and_then(|(value, expires_at)| Header::decode(&value, expires_at));
    if header.is_some_and(|header| header.generation == generation) {
        // The clock was set back.
        return Ok(false);
    }
    let mut batch = WriteBatch::new();
    let mut changes = Changes::Batch(&mut batch);
    changes.delete(keyspace, entry.as_ref())?;
    changes.delete_fields(hashes, generation)?;
    // A later sweep repeats a removal that a crash undoes.
    let options = match db.durability() {
        Durability::Sync => WriteOptions::new().durability(Durability::Process),
        _ => WriteOptions::new(),
    };
    db.write_with(&batch, options)?;
    Ok(true)
}
