//! Reports deletes that are not persistent in time.

use crate::engine::context::Context;
use crate::engine::tree::Tree;
use crate::event::Event;

/// Emits an event if a tombstone of the tree is older than `delete_persistence` allows. Emits no
/// second event while the tree has had such tombstones ever since the first. Called after every
/// compaction, and when a compaction thread is idle.
pub(super) fn report_late_deletes(context: &Context, tree: &Tree) {
    let Some(threshold_micros) = context.settings.delete_persistence_micros() else { return };
    let now = context.clock.now_micros();
    let state = tree.state();
    let tables = state.version.shape().tables();
    let oldest = tables
        .filter_map(|table| Some((table.oldest_tombstone_micros?, table.id)))
        .min()
        .map(|(since, table)| (now.saturating_sub(since), table))
        .filter(|(age, _)| *age > threshold_micros);
    let was_late = std::mem::replace(&mut tree.jobs().are_deletes_late, oldest.is_some());
    if let (Some((age_micros, table)), false) = (oldest, was_late) {
        let keyspace = tree.name.to_string();
        let table = table.0;
        context.events.emit(Event::DeletesLate { keyspace, table, age_micros, threshold_micros });
    }
}
