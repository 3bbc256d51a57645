//! Changes that happen at once: a batch, or a part of a transaction.

use terrane::{Keyspace, Result, Transaction, WriteBatch};

use super::databases::Hashes;
use super::hash_layout::{Header, expiry_key, field_range, header_key};

/// Changes that happen at once.
#[derive(Debug)]
pub(super) enum Changes<'s> {
    Batch(&'s mut WriteBatch),
    Transaction(&'s mut Transaction),
}

impl Changes<'_> {
    /// Sets a value, which may expire at a time.
    pub(super) fn put(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        value: &[u8],
        expires_at: Option<u64>,
    ) -> Result<()> {
        match (self, expires_at) {
            (Self::Batch(batch), None) => drop(batch.put_in(keyspace, key, value)),
            (Self::Batch(batch), Some(expires_at)) => {
                batch.put_with_expiry_in(keyspace, key, value, expires_at);
            }
            (Self::Transaction(transaction), None) => transaction.put_in(keyspace, key, value)?,
            (Self::Transaction(transaction), Some(expires_at)) => {
                transaction.put_with_expiry_in(keyspace, key, value, expires_at)?;
            }
        }
        Ok(())
    }

    /// Removes a key.
    pub(super) fn delete(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<()> {
        match self {
            Self::Batch(batch) => drop(batch.delete_in(keyspace, key)),
            Self::Transaction(transaction) => transaction.delete_in(keyspace, key)?,
        }
        Ok(())
    }

    /// Removes all keys of a keyspace.
    pub(super) fn clear(&mut self, keyspace: &Keyspace) -> Result<()> {
        match self {
            Self::Batch(batch) => drop(batch.delete_range_in(keyspace, ..)),
            Self::Transaction(transaction) => transaction.clear_in(keyspace)?,
        }
        Ok(())
    }

    /// Removes all fields of a hash.
    pub(super) fn delete_fields(&mut self, hashes: &Hashes, generation: u64) -> Result<()> {
        let fields = field_range(generation, None);
        match self {
            Self::Batch(batch) => drop(batch.delete_range_in(&hashes.keyspace, fields)),
            Self::Transaction(transaction) => {
                transaction.delete_range_in(&hashes.keyspace, fields)?;
            }
        }
        Ok(())
    }

    /// Writes the header of a hash, whose expiry time was `old_expiry`.
    pub(super) fn put_header(
        &mut self,
        hashes: &Hashes,
        key: &[u8],
        header: &Header,
        old_expiry: Option<u64>,
    ) -> Result<()> {
        let Header { generation, expires_at, .. } = *header;
        self.put(&hashes.keyspace, header_key(key).as_ref(), &header.encode(), expires_at)?;
        if old_expiry == expires_at {
            return Ok(());
        }
        if let Some(old) = old_expiry {
            self.delete(&hashes.keyspace, expiry_key(old, generation).as_ref())?;
        }
        match expires_at {
            Some(expires_at) => {
                self.put(&hashes.keyspace, expiry_key(expires_at, generation).as_ref(), key, None)
            }
            None => Ok(()),
        }
    }

    /// Removes the header of a hash and the entry of its expiry time.
    pub(super) fn delete_header(
        &mut self,
        hashes: &Hashes,
        key: &[u8],
        header: &Header,
    ) -> Result<()> {
        self.delete(&hashes.keyspace, header_key(key).as_ref())?;
        match header.expires_at {
            Some(expires_at) => {
                self.delete(&hashes.keyspace, expiry_key(expires_at, header.generation).as_ref())
            }
            None => Ok(()),
        }
    }

    /// Removes a hash.
    pub(super) fn delete_hash(
        &mut self,
        hashes: &Hashes,
        key: &[u8],
        header: &Header,
    ) -> Result<()> {
        self.delete_header(hashes, key, header)?;
        self.delete_fields(hashes, header.generation)
    }
}
