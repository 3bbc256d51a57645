//! Reports deletes and expired entries that miss the deadline for persistence.

use terrane_policy::TreeShape;

use crate::base::event::Event;
use crate::engine::context::Context;
use crate::engine::tree::{LateDeletes, Tree};

/// Emits an event if a tombstone, an expired entry, or a dead value in a value file is older than
/// `delete_persistence` allows. The next event about tombstones, or about values, is emitted only
/// after the tree has been free of late ones in between. Called after every compaction, and when a
/// compaction thread is idle.
pub(super) fn report_late_deletes(context: &Context, tree: &Tree) {
    let Some(threshold_micros) = context.settings.delete_persistence_micros() else { return };
    let now = context.clock.now_micros();
    let state = tree.state();
    let shape = state.version.shape();
    let late = |oldest: Option<(u64, u64)>| {
        let aged = oldest.map(|(since, number)| (now.saturating_sub(since), number));
        aged.filter(|(age, _)| *age > threshold_micros)
    };
    let (table, file) = (late(oldest_tombstone(shape)), late(oldest_dead_value(shape)));
    let is_late = LateDeletes { tombstones: table.is_some(), values: file.is_some() };
    let before = std::mem::replace(&mut tree.jobs().late_deletes, is_late);
    let keyspace = || tree.name().to_string();
    if let (Some((age_micros, table)), false) = (table, before.tombstones) {
        let keyspace = keyspace();
        context.events.emit(Event::DeletesLate { keyspace, table, age_micros, threshold_micros });
    }
    if let (Some((age_micros, file)), false) = (file, before.values) {
        let keyspace = keyspace();
        context.events.emit(Event::DeadValuesLate { keyspace, file, age_micros, threshold_micros });
    }
}

/// Returns the time of the oldest tombstone or expiry, and the number of the table that contains
/// it.
fn oldest_tombstone(shape: &TreeShape) -> Option<(u64, u64)> {
    shape.tables().filter_map(|table| Some((table.dead_since(None)?, table.id.0))).min()
}

/// Returns the time at which the oldest dead value died, and the number of its file.
fn oldest_dead_value(shape: &TreeShape) -> Option<(u64, u64)> {
    let files = shape.value_files.iter();
    files.filter_map(|file| Some((file.oldest_dead_micros?, file.id.0))).min()
}
