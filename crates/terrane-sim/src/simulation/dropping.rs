//! Drops tables whose values have all expired.

use terrane_policy::{TableId, expiring_tables};

use super::state::TreeState;
use super::{SOON, Simulation};
use crate::trace::TraceKind;

impl Simulation<'_> {
    /// Drops tables without values from trees that have changed, unless a job has claimed them, and
    /// sets the time of the next drops.
    pub(super) fn drop_tables(&mut self) {
        if self.setup.workload.mix.expiring <= 0.0 {
            return;
        }
        for at in 0..self.trees.len() {
            if !self.trees[at].has_changed {
                continue;
            }
            let dropped = drop_of(&mut self.trees[at], self.now);
            self.outcome.totals.drops += dropped;
            if dropped > 0 {
                let changes = self.trees[at].tree.take_changes();
                self.trace(at, || TraceKind::Dropped(changes));
            }
        }
    }

    /// Notes the trees that have tables to drop now.
    pub(super) fn note_due_drops(&mut self) {
        let now = self.now;
        let due = self.trees.iter_mut().filter(|tree| now >= tree.drop_at - SOON);
        due.for_each(|tree| tree.has_changed = true);
    }
}

fn drop_of(tree: &mut TreeState<'_>, now: f64) -> u64 {
    let mut tables = expiring_tables(tree.tree.shape());
    let taken = tree.taken();
    tables.retain(|table| !taken.iter().any(|job| job.takes(table.id)));
    let now_micros = (now * 1e6).round() as u64;
    let is_due = |from: u64| from <= now_micros;
    let due = tables.iter().filter(|table| is_due(table.from_micros));
    let due: Vec<TableId> = due.map(|table| table.id).collect();
    let later = tables.iter().map(|table| table.from_micros).filter(|from| !is_due(*from)).min();
    tree.drop_at = later.map_or(f64::INFINITY, |from| from as f64 * 1e-6);
    if !due.is_empty() {
        tree.tree.drop_tables(&due);
    }
    due.len() as u64
}
