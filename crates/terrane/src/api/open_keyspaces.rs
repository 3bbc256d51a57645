//! Opens many keyspaces at once.

use std::sync::Arc;

use crate::api::db::Db;
use crate::api::keyspace::{Keyspace, KeyspaceOptions};
use crate::base::error::Result;

impl KeyspaceOptions {
    /// Opens keyspaces of a database, in the order of `names`, and creates those that do not exist. All
    /// of them are created by one change of the manifest, which becomes durable as a whole. Creating
    /// thousands of keyspaces therefore takes about as long as creating a few by [`Db::keyspace`], each
    /// of which waits for the disk.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let names: Vec<String> = (0..1000).map(|number| format!("tenant {number}")).collect();
    /// let tenants = terrane::KeyspaceOptions::new().open_all(&db, &names)?;
    /// tenants[7].put("language", "Latin")?;
    /// assert_eq!(tenants[7].name(), "tenant 7");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Db::keyspace`]. No keyspace is created then.
    pub fn open_all<N: AsRef<str>>(self, db: &Db, names: &[N]) -> Result<Vec<Keyspace>> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let trees = db.engine().keyspaces(&names, self.design.as_ref())?;
        let handle = &db.default_keyspace().handle;
        let keyspace = |tree| Keyspace { handle: Arc::clone(handle), tree };
        Ok(trees.into_iter().map(keyspace).collect())
    }
}
