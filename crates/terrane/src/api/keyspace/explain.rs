//! Explains lookups.

use crate::api::keyspace::Keyspace;
use crate::base::error::Result;
use crate::base::lookup_path::LookupPath;

impl Keyspace {
    /// Looks up a key, and returns the memtables and runs that the lookup consults, each with its
    /// answer. It reads the same blocks as a lookup, and takes little longer.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::LookupAnswer;
    ///
    /// let keyspace = db.default_keyspace();
    /// keyspace.put("apple", "red")?;
    /// keyspace.put("pear", "green")?;
    /// keyspace.flush()?;
    /// let path = keyspace.explain("apple")?;
    /// assert!(path.has_value);
    /// // The memtable, and the run of the table.
    /// assert_eq!(path.steps.len(), 2);
    /// assert_eq!(path.steps[0].answer, LookupAnswer::Absent);
    /// assert!(path.steps[1].answer.decides());
    /// assert!(!keyspace.explain("cherry")?.has_value);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("explain_get", "trace"))]
    pub fn explain(&self, key: impl AsRef<[u8]>) -> Result<LookupPath> {
        self.handle.engine.reader.explain(&self.tree, self.name(), key.as_ref())
    }
}
