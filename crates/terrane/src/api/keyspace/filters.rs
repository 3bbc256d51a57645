//! The compaction filter of a keyspace.

use crate::api::keyspace::Keyspace;
use crate::base::error::Result;

impl Keyspace {
    /// Makes compactions of the keyspace apply a filter of this name, which must be
    /// [registered](crate::Options::compaction_filter); `None` removes the filter. Running compactions
    /// keep their filter. The name is stored with the keyspace. A later opening that does not
    /// register the filter keeps all values, and reports that in
    /// [`Event::CompactionFilterInactive`](crate::Event::CompactionFilterInactive) and
    /// [`TreeView::compaction_filter`](crate::TreeView::compaction_filter). See
    /// [`CompactionFilter`](crate::CompactionFilter) for the rules.
    ///
    /// ```
    /// use terrane::{CompactionFilter, FilterDecision, KeyspaceOptions, Options};
    ///
    /// /// Removes the sessions of guests.
    /// #[derive(Debug)]
    /// struct NoGuests;
    ///
    /// impl CompactionFilter for NoGuests {
    ///     fn name(&self) -> &str {
    ///         "no guests"
    ///     }
    ///
    ///     fn decide(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
    ///         if value == b"guest" { FilterDecision::Remove } else { FilterDecision::Keep }
    ///     }
    /// }
    ///
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Options::new().compaction_filter(NoGuests).open(dir.path())?;
    /// let sessions = db.keyspace("sessions", KeyspaceOptions::new())?;
    /// sessions.set_compaction_filter(Some("no guests"))?;
    /// sessions.put("1", "guest")?;
    /// sessions.put("2", "alice")?;
    /// let before = db.snapshot();
    /// sessions.compact_range(..)?;
    /// assert!(sessions.contains("1")?, "a snapshot sees it");
    /// drop(before);
    /// sessions.compact_range(..)?;
    /// assert!(!sessions.contains("1")? && sessions.contains("2")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No filter of this name is registered, the keyspace was dropped, or the database does not accept
    /// writes.
    pub fn set_compaction_filter(&self, name: Option<&str>) -> Result<()> {
        self.handle.engine.catalog.set_compaction_filter(&self.tree, name)
    }

    /// Returns the name of the compaction filter, whether it is registered or not.
    pub fn compaction_filter(&self) -> Option<String> {
        self.tree.functions.compaction_filter().map(|filter| filter.name().to_owned())
    }
}
