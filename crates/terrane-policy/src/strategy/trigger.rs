//! Triggers: what makes a level act (compaction paper §3.1.1).
//!
//! | text | fires when | source |
//! |---|---|---|
//! | `level-saturation` | a level holds more bytes than its capacity | (i) |
//! | `file-count`, `file-count(4,40)` | a level holds more tables than fit its capacity, or than the given number; below the last given level the number grows by T per level | (i′) |
//! | `run-count` | a level holds more sorted runs than allowed | (ii) |
//! | `file-staleness(1d,7d)` | a table of a level is older than this, and older data lies below it | (iii) |
//! | `space-amplification(200)` | all runs but the oldest hold more than this percentage of its bytes: RocksDB's estimate | (iv) |
//! | `read-amplification(12)` | the tree consists of more sorted runs than this, all of which a scan reads | (vii) |
//! | `tombstone-ttl(1h)` | the oldest tombstone of a table is older than the level's share of this time; a list gives the age for each level | (v), Lethe §4.1 |
//! | `tombstone-density(50)` | at least this percentage of a table's entries are tombstones | (vi), Table 2 TSD |
//! | `read-triggered(16KiB)` | a table was read once per this many bytes of it, and older data lies below it | (vii) of a table, LevelDB's seek compaction |
//! | `prefix(1GiB,5)` | adjacent runs reach a total size or a number; see `super::size_tiered` | AsterixDB |
//! | `concurrent(3,10)` | enough of the newest runs are of similar size; see `super::size_tiered` | AsterixDB |
//! | `universal(runs=4)` | runs grow by space amplification, size ratio or number; see `super::size_tiered` | RocksDB |
//! | `buckets(min=4,max=32)` | enough adjacent runs are of like size; see `super::size_tiered` | Cassandra, ScyllaDB |
//! | `exploring(min=3,max=10)` | adjacent runs are of similar size; see `super::size_tiered` | HBase |
//! | `small-set(ratio=3,max=10)` | small runs hold several times the bytes of the largest; see `super::size_tiered` | Accumulo |
//! | `generations(min=7,max=15)` | enough adjacent runs are of one generation; see `super::size_tiered` | WiredTiger |
//! | `manual` | never: only on request | |
//!
//! A trigger is a file that implements `TriggerRule`, and a line in the list below. Its kind, its
//! text form, and its place in [`crate::space`] and in the property tests follow from the line.

mod buckets;
mod concurrent;
mod exploring;
mod file_count;
mod file_staleness;
mod generations;
mod level_saturation;
mod manual;
mod prefix;
mod read_amplification;
mod read_triggered;
pub(crate) mod rule;
mod run_count;
mod small_set;
mod space_amplification;
#[cfg(test)]
mod tests;
mod tombstone_density;
mod tombstone_ttl;
mod universal;

pub use buckets::Buckets;
pub use concurrent::Concurrent;
pub use exploring::Exploring;
pub use file_count::FileCount;
pub use file_staleness::FileStaleness;
pub use generations::Generations;
pub use level_saturation::LevelSaturation;
pub use manual::Manual;
pub use prefix::Prefix;
pub use read_amplification::ReadAmplification;
pub use read_triggered::ReadTriggered;
pub use rule::{Scope, TriggerFinding, TriggerInfo};
pub use run_count::RunCount;
pub use small_set::SmallSet;
pub use space_amplification::SpaceAmplification;
pub use tombstone_density::TombstoneDensity;
pub use tombstone_ttl::TombstoneTtl;
pub use universal::Universal;

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;
use rule::TriggerRule;

/// Generates [`Trigger`] and [`TriggerKind`] from a list of the types that implement
/// [`TriggerRule`].
macro_rules! triggers {
    ($($name:ident),* $(,)?) => {
        /// A condition under which a level is compacted.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the payload of a variant is documented")]
        pub enum Trigger {
            $($name($name),)*
        }

        /// A trigger without its settings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "named like the variants of `Trigger`")]
        pub enum TriggerKind {
            $($name,)*
        }

        impl TriggerKind {
            /// All kinds, in the order in which strategies usually rank them.
            pub const ALL: &'static [TriggerKind] = &[$(Self::$name),*];

            /// The properties of the kind.
            pub fn info(self) -> &'static TriggerInfo {
                match self {
                    $(Self::$name => $name::info(),)*
                }
            }

            fn parse(self, argument: Option<&str>, text: &str) -> Result<Trigger, ParseError> {
                match self {
                    $(Self::$name => $name::parse(argument, text).map(Trigger::$name),)*
                }
            }
        }

        impl Trigger {
            /// Returns the trigger without its settings.
            pub fn kind(&self) -> TriggerKind {
                match self {
                    $(Self::$name(_) => TriggerKind::$name,)*
                }
            }

            pub(crate) fn rule(&self) -> &dyn TriggerRule {
                match self {
                    $(Self::$name(rule) => rule,)*
                }
            }
        }

        $(impl From<$name> for Trigger {
            fn from(trigger: $name) -> Self {
                Self::$name(trigger)
            }
        })*
    };
}

triggers! {
    TombstoneTtl,
    TombstoneDensity,
    FileStaleness,
    ReadTriggered,
    SpaceAmplification,
    ReadAmplification,
    LevelSaturation,
    FileCount,
    RunCount,
    Prefix,
    Concurrent,
    Universal,
    Buckets,
    Exploring,
    SmallSet,
    Generations,
    Manual,
}

impl TriggerKind {
    /// Returns the name, as in text forms.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns true if the trigger considers how full a level is, as opposed to single tables or
    /// the whole tree.
    pub fn is_load(self) -> bool {
        matches!(self.info().scope, Scope::LevelSize | Scope::LevelRuns)
    }

    /// Returns true if the trigger considers the runs of the whole tree by size.
    pub fn is_size_tiered(self) -> bool {
        self.info().scope == Scope::SizeTiered
    }
}

impl Trigger {
    /// Returns true if the trigger has this scope.
    pub(crate) fn has_scope(&self, scope: Scope) -> bool {
        self.kind().info().scope == scope
    }
}

impl fmt::Display for TriggerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())?;
        self.rule().argument().map_or(Ok(()), |argument| write!(f, "({argument})"))
    }
}

impl FromStr for Trigger {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (name, argument) = call(text)?;
        let kind = TriggerKind::ALL.iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| {
            let names: Vec<&str> = TriggerKind::ALL.iter().map(|kind| kind.name()).collect();
            ParseError::unknown_name("trigger", text, &names.join(", "))
        })?;
        kind.parse(argument, text)
    }
}
