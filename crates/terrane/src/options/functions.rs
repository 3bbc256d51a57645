//! The functions that an application registers.

use std::sync::Arc;

use super::Options;
use crate::base::compaction_filter::CompactionFilter;
use crate::base::merge_operator::{MergeOperator, UnknownNames};

impl Options {
    /// Registers a merge operator, for keyspaces that are stored with its name. The built-in operators
    /// `counter_add`, `append`, `max`, `min` and `set_union` need no registration. See
    /// [`Keyspace::set_merge_operator`](crate::Keyspace::set_merge_operator).
    #[must_use]
    pub fn merge_operator(mut self, operator: impl MergeOperator) -> Self {
        self.components.merge_operators.add(Arc::new(operator));
        self
    }

    /// Registers a compaction filter, for keyspaces that are stored with its name. See
    /// [`Keyspace::set_compaction_filter`](crate::Keyspace::set_compaction_filter).
    #[must_use]
    pub fn compaction_filter(mut self, filter: impl CompactionFilter) -> Self {
        self.components.compaction_filters.add(Arc::new(filter));
        self
    }

    /// Opens keyspaces even if their merge operators or compaction filters are not registered. Use this in
    /// programs that maintain other programs' databases, like the command `terrane`.
    ///
    /// The operands of such a keyspace are stored, moved and copied, but not combined: a read of a key with an
    /// operand above another operand or a value fails with [`Invalid`](crate::ErrorKind::Invalid), as does a
    /// scan that reaches the key, and a compaction keeps all of them. A filter that is not registered keeps
    /// all values. [`Keyspace::set_merge_operator`](crate::Keyspace::set_merge_operator) and
    /// [`set_compaction_filter`](crate::Keyspace::set_compaction_filter) accept only registered names.
    #[must_use]
    pub fn unknown_functions(mut self) -> Self {
        self.components.merge_operators.accept_unknown(UnknownNames::Opened);
        self
    }

    /// Like [`Self::unknown_functions`], but also allows unregistered functions to be set on
    /// keyspaces, which a repair needs to recreate them.
    #[must_use]
    pub(crate) fn any_functions(mut self) -> Self {
        self.components.merge_operators.accept_unknown(UnknownNames::Set);
        self.components.compaction_filters.accept_unknown();
        self
    }
}
