//! Options for the creation of a database only, and a design that replaces an existing database's.

use terrane_policy::Design;

use super::{IfOther, Options, RequestedDesign};
use crate::base::error::Result;

impl Options {
    /// Sets the design that the default keyspace gets if this opening creates the database. An
    /// existing database keeps its design.
    #[must_use]
    pub fn design_if_new(mut self, design: Design) -> Self {
        self.design = Some(RequestedDesign::new(design, IfOther::Keep));
        self
    }

    /// Sets the design of the default keyspace, and changes the design of an existing database that
    /// differs, as [`Db::set_design`](crate::Db::set_design) does. The change is reported with its
    /// forecast in [`Event::DesignChanged`](crate::Event::DesignChanged). A read-only opening changes
    /// nothing.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # terrane::Db::open(dir.path())?.close()?;
    /// let design: terrane::Design = "tiering T=4".parse()?;
    /// let db = terrane::Options::new().design_or_change(design.clone()).open(dir.path())?;
    /// assert_eq!(db.design(), design);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn design_or_change(mut self, design: Design) -> Self {
        self.design = Some(RequestedDesign::new(design, IfOther::Change));
        self
    }

    /// Sets stored options that apply only if this opening creates the database. An existing
    /// database keeps the values that are stored with it. Options that are also set on `self` take
    /// precedence. The open mode, the storage, the clock, the background threads and the listener
    /// of `options` are ignored.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use terrane::{Durability, Options};
    /// // A later opening with other options keeps what the database was created with.
    /// let created = Options::new().if_new(Options::new().durability(Durability::Sync));
    /// created.open(dir.path())?.close()?;
    /// let later = Options::new().if_new(Options::new().durability(Durability::None));
    /// assert_eq!(later.open(dir.path())?.durability(), Durability::Sync);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "options are built for the call")]
    pub fn if_new(mut self, options: Options) -> Self {
        self.if_new.extend(options.given());
        self
    }

    /// Allows the creation of a database in a directory that has other files, which is refused
    /// otherwise. Hidden files and directories never prevent it.
    #[must_use]
    pub fn among_other_files(mut self) -> Self {
        self.components.is_among_other_files = true;
        self
    }

    /// Returns these options for an opening that creates the database.
    pub(crate) fn of_new(&self) -> Result<Self> {
        let mut merged = self.clone();
        for (name, value) in std::mem::take(&mut merged.if_new) {
            merged.set(name, &value)?;
        }
        for (name, value) in self.given() {
            merged.set(name, &value)?;
        }
        Ok(merged)
    }

    /// Returns the design that was set, if any.
    pub(crate) fn given_design(&self) -> Option<&RequestedDesign> {
        self.design.as_ref()
    }
}
