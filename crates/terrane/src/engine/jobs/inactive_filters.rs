//! Reports compaction filters that do nothing.

use crate::engine::context::Context;
use crate::engine::tree::Tree;
use crate::event::Event;

/// Emits an event if the filter of the tree does nothing, unless an event has said so. Called when the
/// database is opened for writing, and after every compaction.
pub(crate) fn report_inactive_filter(context: &Context, tree: &Tree) {
    let Some(filter) = tree.functions.compaction_filter() else { return };
    if let Some(reason) = filter.unreported_reason() {
        let (keyspace, filter) = (tree.name().to_string(), filter.name().to_owned());
        context.events.emit(Event::CompactionFilterInactive { keyspace, filter, reason });
    }
}
