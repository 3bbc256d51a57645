//! What holds writers back, so that they need not wait later: trees that fall behind, and rates
//! that designs allow.

mod delays;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use terrane_policy::Admission;

use crate::engine::Engine;
use crate::engine::tree::{Tree, TreeState};
use crate::engine::write::Goal;
use crate::error::Result;
use crate::event::StallEffect;
use crate::stats::Counter;

pub(crate) use delays::Delays;
use delays::SHORTEST_SLEEP;

/// Who sleeps long looks this often whether the database is closed.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// By how much writers that were slower than the greatest rate may be faster afterwards, in
/// nanoseconds of that rate.
const CATCH_UP_NANOS: u64 = 1_000_000;

/// What a write is held back by.
#[derive(Debug, Clone, Copy, Default)]
struct Brake {
    /// What a tree that falls behind asks for, in nanoseconds per byte.
    nanos_per_byte: f64,
    /// Whether some tree has a greatest rate.
    is_paced: bool,
}

impl Brake {
    fn of(state: &TreeState) -> Self {
        let nanos_per_byte = match state.admission {
            Admission::Delay(pressure) => pressure.delay_nanos_per_byte(),
            _ => 0.0,
        };
        Self { nanos_per_byte, is_paced: state.nanos_per_write > 0 }
    }

    fn and(self, other: Self) -> Self {
        let nanos_per_byte = self.nanos_per_byte.max(other.nanos_per_byte);
        Self { nanos_per_byte, is_paced: self.is_paced || other.is_paced }
    }
}

impl Engine {
    /// Sleeps a little if a tree falls behind: longer the further it is, and the more is written;
    /// and as long as the greatest rates of the trees ask for.
    ///
    /// # Errors
    /// The database was closed meanwhile.
    #[inline]
    pub(crate) fn slow_down(&self, goal: &mut Goal<'_>, user_bytes: usize) -> Result<()> {
        let brake = match goal {
            Goal::One { state, .. } => Brake::of(state),
            Goal::Batch { batch, .. } => {
                let trees = self.trees();
                let ids = batch.keyspaces();
                let brakes =
                    ids.iter().filter_map(|id| trees.get(id)).map(|tree| Brake::of(&tree.state()));
                brakes.fold(Brake::default(), Brake::and)
            }
        };
        if (brake.nanos_per_byte <= 0.0 && !brake.is_paced) || self.is_inline() {
            return Ok(());
        }
        self.hold_back(goal, brake, user_bytes)
    }

    #[cold]
    fn hold_back(&self, goal: &mut Goal<'_>, brake: Brake, user_bytes: usize) -> Result<()> {
        let mut owed = Duration::ZERO;
        if brake.nanos_per_byte > 0.0 {
            self.tell_delayed(goal);
            owed = self.work.delays.owe(user_bytes as f64 * brake.nanos_per_byte);
        }
        if brake.is_paced {
            owed = owed.max(self.ahead_of_rate(goal));
        }
        if owed < SHORTEST_SLEEP {
            return Ok(());
        }
        let start = Instant::now();
        while let Some(left) = owed.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            // Who sleeps keeps no memtable that was flushed since.
            goal.refresh();
            std::thread::sleep(left.min(LONGEST_SLEEP));
            self.health.check_open()?;
        }
        let took = start.elapsed();
        if brake.nanos_per_byte > 0.0 {
            self.work.delays.slept(owed, took);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counters.add(Counter::DelayMicros, micros);
        self.counters.add(Counter::StalledWrites, 1);
        Ok(())
    }

    fn tell_delayed(&self, goal: &Goal<'_>) {
        let tell = |tree: &Tree| {
            if let Admission::Delay(pressure) = tree.state().admission {
                self.tell_stalled(tree, StallEffect::Delayed, &pressure);
            }
        };
        match goal {
            Goal::One { tree, .. } => tell(tree),
            Goal::Batch { batch, .. } => {
                let trees = self.trees();
                let ids = batch.keyspaces();
                ids.iter().filter_map(|id| trees.get(id)).for_each(|tree| tell(tree));
            }
        }
    }

    /// How far writers are ahead of the greatest rate of any tree of a write, this one counted.
    fn ahead_of_rate(&self, goal: &Goal<'_>) -> Duration {
        match goal {
            Goal::One { tree, .. } => pace(tree, 1),
            Goal::Batch { batch, .. } => {
                let trees = self.trees();
                let ids = batch.keyspaces();
                let ahead = ids
                    .iter()
                    .filter_map(|id| trees.get(id))
                    .map(|tree| pace(tree, batch.len() as u64));
                ahead.max().unwrap_or_default()
            }
        }
    }
}

/// Enters `operations` in the schedule of a tree, and answers how far ahead of it they are.
fn pace(tree: &Arc<Tree>, operations: u64) -> Duration {
    let cost = tree.state().nanos_per_write.saturating_mul(operations);
    let now = u64::try_from(tree.opened_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let earliest = now.saturating_sub(CATCH_UP_NANOS);
    let next = |until: u64| Some(until.max(earliest).saturating_add(cost));
    // Relaxed: the number stands for itself.
    let before = tree.paced_until_nanos.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    let until = before.unwrap_or(0).max(earliest).saturating_add(cost);
    Duration::from_nanos(until.saturating_sub(now))
}
