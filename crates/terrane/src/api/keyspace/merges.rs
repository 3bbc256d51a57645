//! Merging operands into values.

use crate::api::keyspace::Keyspace;
use crate::api::write_options::WriteOptions;
use crate::base::error::Result;
use crate::base::merge_operator::no_merge_operator;
use crate::files::batch::Op;

impl Keyspace {
    /// Gives the keyspace a merge operator, which can never be changed. The operator must be built in (`counter_add`,
    /// of `i64` in little-endian order; `append`; `max` and `min`, in byte order; `set_union`, of lists of
    /// members, each preceded by its length as a varint) or
    /// [registered](crate::Options::merge_operator). Every later opening needs it as well, unless it sets
    /// [`Options::unknown_functions`](crate::Options::unknown_functions).
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let visits = db.keyspace("visits", terrane::KeyspaceOptions::new())?;
    /// visits.set_merge_operator("counter_add")?;
    /// for _ in 0..3 {
    ///     visits.merge("home", 1_i64.to_le_bytes())?;
    /// }
    /// assert_eq!(visits.get("home")?.unwrap(), 3_i64.to_le_bytes());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No operator has this name, the keyspace has another operator or was dropped, or the database does
    /// not accept writes.
    pub fn set_merge_operator(&self, name: &str) -> Result<()> {
        self.handle.engine.catalog.set_merge_operator(&self.tree, name)
    }

    /// Returns the name of the merge operator.
    pub fn merge_operator(&self) -> Option<&str> {
        self.tree.functions.merge_operator().get().map(|operator| operator.name())
    }

    /// Combines the value of a key with an operand by the operator of the keyspace, without reading it.
    /// Concurrent merges of one key do not conflict. See [`MergeOperator`](crate::MergeOperator).
    ///
    /// An operand that the operator cannot combine with the value is accepted, and makes reads of the key
    /// fail as [`Invalid`](crate::ErrorKind::Invalid) until the key is put or deleted:
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let visits = db.keyspace("visits", terrane::KeyspaceOptions::new())?;
    /// visits.set_merge_operator("counter_add")?;
    /// visits.put("home", "three")?;
    /// visits.merge("home", 1_i64.to_le_bytes())?;
    /// assert_eq!(
    ///     visits.get("home").unwrap_err().to_string(),
    ///     "value is an operand of key 'home', which counter_add cannot combine, but must be what \
    ///      the operator combines; put or delete the key, or open with an operator that does"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Reads gather at most 64 MiB of operands, or 64 operands if those are larger, that cannot be combined
    /// with each other. With more of them above its value a read fails with `value is 67109120 bytes of
    /// operands of key 'home', which counter_add cannot combine, …`. Compactions combine them with the value.
    ///
    /// An operand does not expire, even in a keyspace with a [time to live](Self::set_ttl). When a value below
    /// it expires, the operand stays and becomes the value by itself.
    ///
    /// # Errors
    /// The keyspace has no operator; otherwise those of [`Db::write`](crate::Db::write).
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, WriteOptions::new())
    }

    /// Combines the value of a key with an operand, with options for this write.
    ///
    /// # Errors
    /// See [`Keyspace::merge`].
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        options.check_no_ttl("a merge")?;
        if self.tree.functions.merge_operator().get().is_none() {
            return Err(no_merge_operator(self.name()));
        }
        self.write_one(Op::Merge { key: key.as_ref(), operand: operand.as_ref() }, options)
    }
}
