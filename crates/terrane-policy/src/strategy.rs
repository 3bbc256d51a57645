//! A compaction strategy as a value: trigger × eagerness × granularity × data movement.
//!
//! The four primitives are those of the compaction paper (§3.1). [`Eagerness`] says how many runs
//! a level may hold, [`Trigger`]s when a level has to act, [`Granularity`] how much it moves, and
//! [`Movement`]s which part of it. How large levels are is part of the strategy too: the size
//! ratio T, the number of runs that level 0 gathers, and the capacity of level 1.

mod eagerness;
mod granularity;
mod movement;
mod trigger;

pub use eagerness::Eagerness;
pub use granularity::Granularity;
pub use movement::Movement;
pub use trigger::Trigger;

/// When to compact, into what layout, how much at once, and which data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategy {
    /// How many runs each level may hold.
    pub eagerness: Eagerness,
    /// Size ratio T between neighbouring levels; at least 2.
    pub size_ratio: u32,
    /// Runs at which level 0, where flushes land, is merged into level 1; at least 1.
    pub level0_runs: u32,
    /// Capacity of level 1 in bytes; `None` for T times the capacity of level 0.
    pub base_bytes: Option<u64>,
    /// What makes a level act, in order of precedence among equal scores.
    pub triggers: Vec<Trigger>,
    /// How much one compaction moves.
    pub granularity: Granularity,
    /// Which table a partial compaction moves, in order of precedence.
    pub movement: Vec<Movement>,
}

impl Strategy {
    /// The usual strategy of an eagerness: size ratio 10, both triggers, whole levels where runs
    /// pile up and single files where they do not.
    pub fn new(eagerness: Eagerness) -> Self {
        let size_ratio = 10;
        Self {
            eagerness,
            size_ratio,
            level0_runs: eagerness.default_level0_runs(size_ratio),
            base_bytes: None,
            triggers: vec![Trigger::LevelSaturation, Trigger::RunCount],
            granularity: eagerness.default_granularity(),
            movement: vec![Movement::LeastOverlap],
        }
    }

    /// How many runs `level` may hold at rest, where `last_level` is the deepest level in use.
    ///
    /// 0 means that a run may only pass through, 1 that the level is one sorted sequence.
    pub fn runs_allowed(&self, level: usize, last_level: usize) -> u32 {
        self.eagerness.runs_allowed(level, last_level, self.level0_runs, self.size_ratio)
    }

    /// Whether `level` is kept as one sorted run.
    pub fn is_single_run(&self, level: usize, last_level: usize) -> bool {
        level > 0 && self.runs_allowed(level, last_level) == 1
    }

    /// The capacity of a level in bytes, where `buffer_bytes` is the size of the write buffer.
    ///
    /// Level 0 holds as many buffers as it gathers runs, level 1 [`Strategy::base_bytes`] or T
    /// times level 0, and each deeper level T times its upper neighbour (compaction paper §2).
    pub fn capacity_bytes(&self, level: usize, buffer_bytes: u64) -> u64 {
        let ratio = u64::from(self.size_ratio);
        if level == 0 {
            return buffer_bytes.saturating_mul(u64::from(self.level0_runs));
        }
        let base = self.base_bytes.unwrap_or_else(|| {
            buffer_bytes.saturating_mul(u64::from(self.level0_runs)).saturating_mul(ratio)
        });
        let steps = u32::try_from(level - 1).unwrap_or(u32::MAX);
        base.max(1).saturating_mul(ratio.saturating_pow(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_grow_by_the_size_ratio() {
        let mut strategy = Strategy::new(Eagerness::Leveling);
        assert_eq!(strategy.capacity_bytes(0, 64), 64);
        assert_eq!(strategy.capacity_bytes(1, 64), 640);
        assert_eq!(strategy.capacity_bytes(3, 64), 64_000);
        assert_eq!(strategy.capacity_bytes(500, 64), u64::MAX);
        strategy.base_bytes = Some(256);
        assert_eq!(strategy.capacity_bytes(2, 64), 2_560);
        let tiering = Strategy::new(Eagerness::Tiering);
        assert_eq!(tiering.capacity_bytes(0, 64), 640);
        assert_eq!(tiering.capacity_bytes(1, 64), 6_400);
    }

    #[test]
    fn eagerness_decides_runs_by_level() {
        let runs = |eagerness| {
            let strategy = Strategy::new(eagerness);
            (0..4).map(|level| strategy.runs_allowed(level, 3)).collect::<Vec<_>>()
        };
        assert_eq!(runs(Eagerness::Leveling), [0, 1, 1, 1]);
        assert_eq!(runs(Eagerness::OneLeveling), [3, 1, 1, 1]);
        assert_eq!(runs(Eagerness::Tiering), [9, 9, 9, 9]);
        assert_eq!(runs(Eagerness::LazyLeveling), [9, 9, 9, 1]);
    }
}
