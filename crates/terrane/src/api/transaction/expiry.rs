//! Expiry times in transactions.

use std::sync::Arc;

use super::Transaction;
use super::writes::ValueExpiry;
use crate::api::keyspace::Keyspace;
use crate::base::error::Result;
use crate::engine::Tree;
use crate::files::value::Value;

impl Transaction {
    /// Sets the value of a key of a keyspace, which expires at a time in microseconds since the Unix epoch.
    /// If that time has passed, the transaction itself reads the value, but nobody does after the commit.
    ///
    /// # Errors
    /// The keyspace belongs to another database.
    pub fn put_with_expiry_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires_at_micros: u64,
    ) -> Result<()> {
        keyspace.check_of(&self.handle)?;
        let expiry = Some(ValueExpiry::At(expires_at_micros));
        self.writes.put(&keyspace.tree, key.as_ref(), value.as_ref(), expiry);
        Ok(())
    }

    /// Returns the value of a key of a keyspace and its expiry time, as [`Keyspace::get_with_expiry`] does.
    /// The time to live of a value that this transaction wrote counts from now.
    ///
    /// # Errors
    /// A table could not be read, the database was closed, or the keyspace belongs to another database.
    pub fn get_with_expiry_in(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Value, Option<u64>)>> {
        keyspace.check_of(&self.handle)?;
        self.get_with_expiry_of(&keyspace.tree, key.as_ref())
    }

    pub(super) fn get_with_expiry_of(
        &self,
        tree: &Arc<Tree>,
        key: &[u8],
    ) -> Result<Option<(Value, Option<u64>)>> {
        if let Some(written) = self.written(tree, key) {
            let expiry = self.writes.in_tree(tree).and_then(|writes| writes.expiry(key));
            let now_micros = self.handle.engine.context.clock.now_micros();
            let expires_at = expiry.map(|expiry| expiry.micros(now_micros));
            let expires_at = expires_at.filter(|expires_at| *expires_at < u64::MAX);
            return Ok(written.map(|value| (value, expires_at)));
        }
        let at = Some(self.snapshot.as_of());
        let found = self.handle.engine.reader.get_with_expiry(tree, key, at)?;
        self.note_key(tree, key, found.is_some());
        Ok(found)
    }
}
