//! Reports compaction filters that do nothing.

use crate::base::event::Event;
use crate::engine::context::Context;
use crate::engine::tree::Tree;

/// Emits an event if the filter of the tree does nothing, unless an event has said so. Called when the
/// database is opened for writing, and after every compaction.
pub(crate) fn report_inactive_filter(context: &Context, tree: &Tree) {
    let Some(filter) = tree.functions.compaction_filter() else { return };
    if let Some(reason) = filter.unreported_reason() {
        let (keyspace, filter) = (tree.name().to_string(), filter.name().to_owned());
        context.events.emit(Event::CompactionFilterInactive { keyspace, filter, reason });
    }
}
