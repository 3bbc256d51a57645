//! A compaction strategy as a value: trigger × eagerness × granularity × data movement.
//!
//! The four primitives are those of the compaction paper (§3.1). [`Eagerness`] determines how many runs
//! a level may hold, [`Trigger`]s when a level must act, [`Granularity`] how much it moves, and
//! [`Movement`]s which part of it; all but the first may differ from level to level. A strategy also
//! determines the sizes of levels: the size ratio T with its [`Growth`], the number of runs that level
//! 0 gathers, and the capacity of level 1.
//!
//! Levels are numbered from level 0, where flushes land. The compaction paper calls the memory buffer
//! level 0, so its level 1 is level 0 here, or level 1 if level 0 keeps no run.

mod combinations;
mod eagerness;
mod granularity;
mod growth;
mod intake;
mod movement;
mod runs;
mod size_tiered;
mod tombstone_weight;
pub mod trigger;

pub use eagerness::Eagerness;
pub use granularity::{Expansion, Granularity};
pub use growth::{Growth, bush_ratio};
pub use intake::Intake;
pub(crate) use movement::rule::{MovementContext, TableChoice};
pub use movement::{Movement, MovementInfo};
pub use runs::{RunLimit, Runs};
pub use size_tiered::{MergeCause, SizeRatio, SizeTiered, SizedMerge, SizedRun};
pub(crate) use tombstone_weight::TombstoneWeight;
pub(crate) use trigger::rule::{LevelContext, TableContext, TreeContext};
pub use trigger::{Scope, Trigger, TriggerFinding, TriggerInfo, TriggerKind};

use crate::allocation::ttl_deadlines;
use crate::design::PerLevel;
use trigger::{LevelSaturation, RunCount};

/// When to compact, into what layout, how much at once, and which data.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Strategy {
    /// How many runs each level may hold.
    pub eagerness: Eagerness,
    /// Size ratio T between adjacent levels; at least 2.
    pub size_ratio: u32,
    /// How the ratio varies from level to level.
    pub growth: Growth,
    /// Runs at which level 0, where flushes land, is merged into level 1; at least 1.
    pub level0_runs: u32,
    /// Capacity of level 1 in bytes; `None` for level 1's ratio times the capacity of level 0.
    pub base_bytes: Option<u64>,
    /// How many values each tombstone beyond half of its table's entries counts as in the sizes of
    /// levels and tables; 0 counts only its bytes. With a weight, levels with many tombstones fill
    /// up earlier (RocksDB: 2).
    pub tombstone_weight: u32,
    /// How many runs a level that gathers runs gives up at once.
    pub intake: Intake,
    /// What makes a level act, in order of precedence.
    pub triggers: PerLevel<Vec<Trigger>>,
    /// How much one compaction moves.
    pub granularity: PerLevel<Granularity>,
    /// Which table a partial compaction moves, in order of precedence; empty if all tables move.
    pub movement: PerLevel<Vec<Movement>>,
}

impl Strategy {
    /// Returns the default strategy of an eagerness: size ratio 10, both fullness triggers, whole
    /// levels where runs gather and single files elsewhere.
    pub fn new(eagerness: Eagerness) -> Self {
        let size_ratio = 10;
        Self {
            size_ratio,
            growth: Growth::Fixed,
            level0_runs: eagerness.default_level0_runs(size_ratio),
            base_bytes: None,
            tombstone_weight: 0,
            intake: Intake::All,
            triggers: PerLevel::all(vec![LevelSaturation.into(), RunCount.into()]),
            granularity: PerLevel::all(eagerness.default_granularity()),
            movement: PerLevel::all(vec![Movement::LeastOverlap]),
            eagerness,
        }
    }

    /// Returns the capacity of `level`, from level 1 on, divided by the capacity of the level above.
    pub fn ratio(&self, level: usize, last_level: usize) -> u64 {
        self.growth.ratio(level, last_level, self.size_ratio)
    }

    /// Returns the number of runs that a settled `level` may hold, if `last_level` is the deepest one.
    ///
    /// 0 means that runs only pass through; 1 means that the level is one sorted sequence.
    pub fn runs_allowed(&self, level: usize, last_level: usize) -> u32 {
        if level == 0 {
            return self.level0_runs.saturating_sub(1);
        }
        self.eagerness.allowed(level, last_level, self.ratio(level, last_level))
    }

    /// Returns true if `level` is kept as one sorted run.
    pub fn is_single_run(&self, level: usize, last_level: usize) -> bool {
        level > 0 && self.runs_allowed(level, last_level) == 1
    }

    /// Returns true if a run that enters `level` joins the newest run there while that has room, as in
    /// Dostoevsky's fluid tree, where a level holds fewer runs than enter it.
    pub fn fills_runs(&self, level: usize, last_level: usize) -> bool {
        let allowed = u64::from(self.runs_allowed(level, last_level));
        level > 0 && allowed > 1 && allowed + 1 < self.ratio(level, last_level)
    }

    /// Returns the capacity of a level in bytes, for memtables of `buffer_bytes`.
    ///
    /// Level 0 holds one memtable for each run that it gathers, level 1 holds [`Strategy::base_bytes`]
    /// or its ratio times level 0, and each deeper level its ratio times the level above (compaction
    /// paper §2).
    pub fn capacity_bytes(&self, level: usize, last_level: usize, buffer_bytes: u64) -> u64 {
        let level0 = buffer_bytes.saturating_mul(u64::from(self.level0_runs));
        let mut capacity = level0;
        for deeper in 1..=level {
            let by_ratio = capacity.saturating_mul(self.ratio(deeper, last_level));
            let base = self.base_bytes.filter(|_| deeper == 1);
            capacity = self.growth.given_bytes(deeper).or(base).unwrap_or(by_ratio).max(1);
            if capacity == u64::MAX {
                break;
            }
        }
        capacity
    }

    /// Returns the four primitives as one word each, without their settings.
    pub fn words(&self) -> [String; 4] {
        let mut triggers: Vec<&str> = Vec::new();
        for trigger in self.triggers.values().iter().flatten() {
            let name = trigger.kind().name();
            if !triggers.contains(&name) {
                triggers.push(name);
            }
        }
        // Earlier versions wrote a movement rule even for strategies that always move a whole
        // level.
        let chooses = self.granularity.values().iter().any(|one| one.tables().is_some());
        let movement = self.movement.values().last().map_or(&[][..], |rules| rules);
        let movement: Vec<String> = movement.iter().map(ToString::to_string).collect();
        [
            self.eagerness.to_string(),
            triggers.join("+"),
            self.granularity.to_string(),
            if movement.is_empty() || !chooses { "none".into() } else { movement.join("+") },
        ]
    }

    /// Returns the size-tiered policy, if the strategy has one. It merges runs of similar size whatever
    /// their levels.
    pub fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        self.size_tiered_trigger()?.rule().size_tiered()
    }

    /// Returns the trigger that has a size-tiered policy.
    pub fn size_tiered_trigger(&self) -> Option<&Trigger> {
        self.triggers.at(0).iter().find(|trigger| trigger.kind().is_size_tiered())
    }

    /// Returns true if decisions depend on how tables were read.
    pub fn looks_at_accesses(&self) -> bool {
        let rules = self.movement.values().iter().flatten();
        let triggers = self.triggers.values().iter().flatten();
        rules.into_iter().any(|rule| rule.info().looks_at_accesses)
            || triggers.into_iter().any(|trigger| trigger.kind().info().looks_at_accesses)
    }

    /// Returns true if decisions depend on the time.
    pub fn looks_at_time(&self) -> bool {
        let mut triggers = self.triggers.values().iter().flatten();
        triggers.any(|trigger| trigger.kind().info().looks_at_time)
    }

    /// Returns the age at which tombstones must leave each level, except a last level of one run, in
    /// microseconds; see [`ttl_deadlines`]. `times` is the argument of the trigger.
    pub fn tombstone_deadlines(&self, times: &PerLevel<u64>, last_level: usize) -> PerLevel<u64> {
        if times.values().len() > 1 {
            return times.clone();
        }
        let ends_in_runs = last_level == 0 || !self.is_single_run(last_level, last_level);
        let levels = last_level + usize::from(ends_in_runs);
        let ratios: Vec<u64> =
            (1..levels.max(1)).map(|level| self.ratio(level, last_level)).collect();
        let mut deadlines = ttl_deadlines(times.get(0), &ratios).into_iter();
        let first = deadlines.next().unwrap_or(times.get(0));
        PerLevel::new(first, deadlines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_grow_by_the_size_ratio() {
        let mut strategy = Strategy::new(Eagerness::Leveling);
        assert_eq!(strategy.capacity_bytes(0, 3, 64), 64);
        assert_eq!(strategy.capacity_bytes(1, 3, 64), 640);
        assert_eq!(strategy.capacity_bytes(3, 3, 64), 64_000);
        assert_eq!(strategy.capacity_bytes(500, 500, 64), u64::MAX);
        strategy.base_bytes = Some(256);
        assert_eq!(strategy.capacity_bytes(2, 3, 64), 2_560);
        let tiering = Strategy::new(Eagerness::Tiering);
        assert_eq!(tiering.capacity_bytes(0, 3, 64), 640);
        assert_eq!(tiering.capacity_bytes(1, 3, 64), 6_400);
    }

    #[test]
    fn capacities_follow_lists_and_formulas() {
        let mut strategy = Strategy::new(Eagerness::Leveling);
        let capacities = |strategy: &Strategy| {
            (1..=4).map(|level| strategy.capacity_bytes(level, 4, 1)).collect::<Vec<_>>()
        };
        strategy.growth = "4,6".parse().unwrap();
        assert_eq!(capacities(&strategy), [4, 24, 144, 864]);
        strategy.growth = "100B,1000B".parse().unwrap();
        assert_eq!(capacities(&strategy), [100, 1000, 10_000, 100_000]);
        strategy.growth = "bush(2)".parse().unwrap();
        strategy.size_ratio = 2;
        assert_eq!(capacities(&strategy), [256, 4096, 16_384, 32_768]);
    }

    #[test]
    fn eagerness_decides_runs_by_level() {
        let runs = |eagerness: Eagerness| {
            let runs = eagerness.runs();
            let named = Strategy::new(eagerness);
            let hybrid = Strategy { eagerness: Eagerness::Hybrid(runs), ..named.clone() };
            let of = |strategy: &Strategy| {
                (0..4).map(|level| strategy.runs_allowed(level, 3)).collect::<Vec<_>>()
            };
            assert_eq!(of(&named), of(&hybrid), "a name is a point of the one mechanism");
            of(&named)
        };
        assert_eq!(runs(Eagerness::Leveling), [0, 1, 1, 1]);
        assert_eq!(runs(Eagerness::OneLeveling), [3, 1, 1, 1]);
        assert_eq!(runs(Eagerness::Tiering), [9, 9, 9, 9]);
        assert_eq!(runs(Eagerness::LazyLeveling), [9, 9, 9, 1]);
        assert_eq!(runs(Eagerness::Hybrid("4,2,last:1".parse().unwrap())), [9, 4, 2, 1]);
    }

    /// In Dostoevsky's fluid tree (§4), runs are filled below level 0 where a level holds fewer runs
    /// than enter it.
    #[test]
    fn runs_are_filled_where_a_level_holds_fewer_than_enter_it() {
        let fills = |design: &str, level: usize| strategy(design).fills_runs(level, 3);
        let levels = |design: &str| [0, 1, 2, 3].map(|level| fills(design, level));
        assert_eq!(levels("hybrid T=10 L0=3; runs=2,8,9"), [false, true, true, false]);
        assert_eq!(levels("leveling T=10"), [false; 4]);
        assert_eq!(levels("tiering T=10"), [false; 4]);
    }

    fn strategy(design: &str) -> Strategy {
        design.parse::<crate::design::Design>().unwrap().strategy
    }

    #[test]
    fn words_name_the_rules_of_the_deepest_levels_if_any_level_moves_tables() {
        let words = |design: &str| strategy(design).words();
        assert_eq!(
            words("leveling; granularity=level,file; movement=none,oldest; trigger=run-count"),
            ["leveling", "run-count", "level,file", "oldest"]
        );
        assert_eq!(words("leveling; granularity=level")[3], "none");
    }

    #[test]
    fn a_strategy_looks_at_reads_and_at_the_time_if_a_rule_of_some_level_does() {
        let looks = |design: &str| {
            let strategy = strategy(design);
            (strategy.looks_at_accesses(), strategy.looks_at_time())
        };
        assert_eq!(looks("leveling"), (false, false));
        assert_eq!(looks("leveling; movement=round-robin,coldest"), (true, false));
        let trigger = |text: &str| looks(&format!("leveling; trigger=level-saturation,{text}"));
        assert_eq!(trigger("read-triggered(16KiB)+level-saturation"), (true, false));
        assert_eq!(trigger("file-staleness(1d)+level-saturation"), (false, true));
        assert_eq!(trigger("tombstone-ttl(1d)+level-saturation"), (false, true));
    }

    #[test]
    fn a_strategy_is_manual_if_all_levels_are() {
        assert!(strategy("leveling; trigger=manual; delay=never; stop=never").is_manual());
        assert!(!strategy("leveling; trigger=manual,level-saturation").is_manual());
        assert!(!strategy("leveling").is_manual());
    }

    #[test]
    fn tombstones_have_shares_of_their_time_by_level() {
        let strategy = Strategy::new(Eagerness::Leveling);
        let hour = PerLevel::all(1110);
        let deadlines = strategy.tombstone_deadlines(&hour, 3);
        assert_eq!(deadlines.values(), [10, 110, 1110]);
        let tiering = Strategy::new(Eagerness::Tiering);
        assert_eq!(tiering.tombstone_deadlines(&hour, 2).values(), [10, 110, 1110]);
        assert_eq!(strategy.tombstone_deadlines(&hour, 0).values(), [1110]);
        assert_eq!(strategy.tombstone_deadlines(&PerLevel::new(5, [9]), 7).values(), [5, 9]);
    }
}
