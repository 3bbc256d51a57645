//! When time alone will make something due.

use super::input::PickInput;
use super::marked::marks;
use crate::design::PerLevel;
use crate::strategy::{Trigger, TriggerKind};

/// The next time at which a table becomes too old for its level, by itself or by its tombstones,
/// in microseconds since the Unix epoch. What is due already is not counted.
pub fn next_due_micros(input: &PickInput<'_>) -> Option<u64> {
    let ages = |kind| matches!(kind, TriggerKind::FileStaleness | TriggerKind::TombstoneTtl);
    let promised =
        input.delete_persistence_micros.map(|micros| Trigger::TombstoneTtl(PerLevel::all(micros)));
    let mut due: Option<u64> = None;
    for level in 0..input.shape.levels.len() {
        let triggers = input.design.strategy.triggers.at(level).iter();
        for trigger in triggers.chain(&promised).filter(|trigger| ages(trigger.kind())) {
            for mark in marks(input, level, trigger, &|age, threshold| age < threshold) {
                let left = mark.measure.1 - mark.measure.0;
                let at = input.now_micros.saturating_add(left);
                due = Some(due.map_or(at, |due| due.min(at)));
            }
        }
    }
    due
}
