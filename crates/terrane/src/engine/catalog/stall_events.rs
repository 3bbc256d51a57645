//! Tells of what holds writers up: once when the first of them waits or is slowed down, and once
//! when they go on.

use std::sync::{MutexGuard, PoisonError};

use terrane_policy::{Admission, Pressure};

use crate::engine::Engine;
use crate::engine::tree::{Tree, pressure_of};
use crate::event::{Event, StallEffect, WriteStall};

impl Engine {
    /// A writer is held up by a tree, and this is why. Not to be called under a lock.
    pub(crate) fn tell_stalled(&self, tree: &Tree, effect: StallEffect, pressure: &Pressure) {
        let mut told = tree.told_stall();
        if is_about(&told, effect, pressure) {
            return;
        }
        let now = self.clock.now_micros();
        let held_since = tree.state().held_since;
        let held = held_since.map(|since| since.elapsed().as_micros()).unwrap_or_default();
        let stall = WriteStall {
            keyspace: tree.name.to_string(),
            effect,
            cause: pressure.cause,
            measured: pressure.measured.into(),
            threshold: pressure.threshold.into(),
            since_micros: now.saturating_sub(u64::try_from(held).unwrap_or(u64::MAX)),
            until: pressure.until(),
        };
        *told = Some(stall.clone());
        drop(told);
        self.events.emit(Event::WritesStalled(stall));
    }

    /// Writers that were held up may go on, where it is so.
    pub(crate) fn tell_resumed(&self) {
        if std::thread::panicking() {
            return;
        }
        for tree in self.trees().values() {
            let mut told = tree.told_stall();
            let admission: Admission = tree.state().admission;
            let goes_on = |stall: &mut WriteStall| {
                pressure_of(&admission).is_none_or(|pressure| pressure.cause != stall.cause)
            };
            let Some(stall) = told.take_if(goes_on) else { continue };
            drop(told);
            let lasted_micros = self.clock.now_micros().saturating_sub(stall.since_micros);
            let WriteStall { keyspace, cause, .. } = stall;
            self.events.emit(Event::WritesResumed { keyspace, cause, lasted_micros });
        }
    }
}

impl Tree {
    fn told_stall(&self) -> MutexGuard<'_, Option<WriteStall>> {
        self.told_stall.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was told that this holds writers up.
    pub(crate) fn was_told(&self, effect: StallEffect, pressure: &Pressure) -> bool {
        is_about(&self.told_stall(), effect, pressure)
    }
}

fn is_about(told: &Option<WriteStall>, effect: StallEffect, pressure: &Pressure) -> bool {
    told.as_ref().is_some_and(|told| told.effect == effect && told.cause == pressure.cause)
}
