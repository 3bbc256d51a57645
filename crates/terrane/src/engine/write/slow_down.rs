//! Delays writers to lagging trees, so that they are not stopped later, and limits writers to the
//! maximum rates of designs and to the schedules by which they use the room before a stop.

use std::time::{Duration, Instant};

use terrane_policy::Admission;

use super::Writer;
use super::deferred::defer;
use super::delays::SHORTEST_SLEEP;
use super::spread::ahead_of_schedules;
use super::target::WriteTarget;
use crate::base::error::Result;
use crate::base::event::StallEffect;
use crate::base::stats::{Counter, Timed};
use crate::engine::catalog::Catalog;
use crate::engine::tree::{Tree, TreeState};

/// The maximum time that a delayed writer sleeps before it checks whether the database was closed.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// The reasons to delay a write.
#[derive(Debug, Clone, Copy, Default)]
struct Brake {
    /// The delay for a lagging tree, in nanoseconds per byte.
    nanos_per_byte: f64,
    /// Whether some tree has a maximum rate.
    is_paced: bool,
    /// Whether writers of some tree are ahead of its schedule.
    is_spread: bool,
}

impl Brake {
    fn of(state: &TreeState) -> Self {
        let nanos_per_byte = match state.admission {
            Admission::Delay(pressure) => pressure.delay_nanos_per_byte(),
            _ => 0.0,
        };
        Self { nanos_per_byte, is_paced: state.nanos_per_write > 0, is_spread: is_spread(state) }
    }

    fn of_target(target: &WriteTarget<'_>, catalog: &Catalog) -> Self {
        match target {
            WriteTarget::One { state, .. } => Self::of(state),
            WriteTarget::Batch { batch, .. } => {
                let trees = catalog.trees();
                let trees = batch.keyspaces().iter().filter_map(|id| trees.get(id));
                trees.map(|tree| Self::of(&tree.state())).fold(Self::default(), Self::and)
            }
        }
    }

    fn is_none(self) -> bool {
        self.nanos_per_byte <= 0.0 && !self.is_paced && !self.is_spread
    }

    fn and(self, other: Self) -> Self {
        let nanos_per_byte = self.nanos_per_byte.max(other.nanos_per_byte);
        Self {
            nanos_per_byte,
            is_paced: self.is_paced || other.is_paced,
            is_spread: self.is_spread || other.is_spread,
        }
    }
}

#[inline]
fn is_spread(state: &TreeState) -> bool {
    state.spreads && state.active.share().is_paused()
}

/// Returns true if there may be a reason to delay a write to a tree.
#[inline]
fn may_brake(state: &TreeState) -> bool {
    let is_delayed = matches!(state.admission, Admission::Delay(_));
    is_delayed || state.nanos_per_write > 0 || is_spread(state)
}

impl Writer {
    /// Sleeps if a tree of the write lags; the sleep is proportional to the lag and to the size of
    /// the write. Also sleeps as long as the trees' maximum rates require. If the thread collects
    /// its delays, adds the sleep to them instead.
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed) if the database was closed meanwhile.
    #[inline(always)]
    pub(super) fn slow_down(&self, target: &mut WriteTarget<'_>, user_bytes: usize) -> Result<()> {
        match target {
            WriteTarget::One { state, .. } if !may_brake(state) => Ok(()),
            _ => self.delay(target, user_bytes),
        }
    }

    fn delay(&self, target: &mut WriteTarget<'_>, user_bytes: usize) -> Result<()> {
        let brake = Brake::of_target(target, &self.catalog);
        // The sleep of a listener would delay the job that called it.
        if brake.is_none() || self.context.is_inline() || self.context.events.is_in_listener() {
            return Ok(());
        }
        let mut owed = Duration::ZERO;
        if brake.nanos_per_byte > 0.0 {
            self.report_delayed(target);
            owed = self.delays.owe(user_bytes as f64 * brake.nanos_per_byte);
        }
        let ahead = if brake.is_paced { self.ahead_of_rate(target) } else { Duration::ZERO };
        let spread =
            if brake.is_spread { ahead_of_schedules(self, target) } else { Duration::ZERO };
        let ahead = ahead.max(spread);
        if let Some(more) = defer(self.context.number, owed, ahead) {
            if !more.is_zero() {
                self.count_delay(more);
            }
            return Ok(());
        }
        owed = owed.max(ahead);
        if owed < SHORTEST_SLEEP {
            return Ok(());
        }
        let start = Instant::now();
        while let Some(left) = owed.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            // A sleeping writer must not keep a memtable in memory that is flushed meanwhile.
            target.refresh();
            std::thread::sleep(left.min(LONGEST_SLEEP));
            self.context.health.check_open()?;
        }
        let took = start.elapsed();
        if brake.nanos_per_byte > 0.0 {
            self.delays.slept(owed, took);
        }
        self.count_delay(took);
        Ok(())
    }

    fn count_delay(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.context.counters.add(Counter::DelayMicros, micros);
        self.context.counters.add(Counter::StalledWrites, 1);
        self.context.counters.durations.note(Timed::Stall, took);
    }

    fn report_delayed(&self, target: &WriteTarget<'_>) {
        let report = |tree: &Tree| {
            if let Admission::Delay(pressure) = tree.state().admission {
                self.catalog.report_stalled(tree, StallEffect::Delayed, &pressure);
            }
        };
        match target {
            WriteTarget::One { tree, .. } => report(tree),
            WriteTarget::Batch { batch, .. } => {
                let trees = self.catalog.trees();
                let ids = batch.keyspaces();
                ids.iter().filter_map(|id| trees.get(id)).for_each(|tree| report(tree));
            }
        }
    }

    /// Returns how far writers, including this write, are ahead of the maximum rate of any tree of
    /// the write.
    fn ahead_of_rate(&self, target: &WriteTarget<'_>) -> Duration {
        match target {
            WriteTarget::One { tree, .. } => tree.pace(1),
            WriteTarget::Batch { batch, .. } => {
                let trees = self.catalog.trees();
                let ids = batch.keyspaces();
                let operations = batch.len() as u64;
                let trees = ids.iter().filter_map(|id| trees.get(id));
                trees.map(|tree| tree.pace(operations)).max().unwrap_or_default()
            }
        }
    }
}
