//! Values that end, in transactions.

use super::Transaction;
use super::writes::ValueEnd;
use crate::api::keyspace::Keyspace;
use crate::base::error::Result;
use crate::files::value::Value;

impl Transaction {
    /// Sets the value of a key of a keyspace, and ends it at a time, in microseconds since the Unix epoch.
    /// A value whose time has passed has ended once it is committed; the transaction itself reads it.
    ///
    /// # Errors
    /// The keyspace belongs to another database.
    pub fn put_ending_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ends_micros: u64,
    ) -> Result<()> {
        keyspace.check_of(&self.handle)?;
        let end = Some(ValueEnd::At(ends_micros));
        self.writes.put(&keyspace.tree, key.as_ref(), value.as_ref(), end);
        Ok(())
    }

    /// Returns the value of a key of a keyspace and when it ends, as [`Keyspace::get_with_end`] does. The
    /// time to live of a value that this transaction wrote counts from now.
    ///
    /// # Errors
    /// A table could not be read, the database was closed, or the keyspace belongs to another database.
    pub fn get_with_end_in(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Value, Option<u64>)>> {
        keyspace.check_of(&self.handle)?;
        let (tree, key) = (&keyspace.tree, key.as_ref());
        if let Some(written) = self.written(tree, key) {
            let end = self.writes.in_tree(tree).and_then(|writes| writes.end(key));
            let now_micros = self.handle.engine.context.clock.now_micros();
            let end = end.map(|end| end.micros(now_micros)).filter(|end| *end < u64::MAX);
            return Ok(written.map(|value| (value, end)));
        }
        let at = Some(self.snapshot.as_of());
        let found = self.handle.engine.reader.get_with_end(tree, key, at)?;
        self.note_key(tree, key, found.is_some());
        Ok(found)
    }
}
