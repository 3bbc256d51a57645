//! Data movement: which table a partial compaction takes (compaction paper §3.1.4).
//!
//! Rules are tried in order. Most of them rank all tables of a run. Rules about deletes rank only
//! tables with tombstones of the kind they seek, and leave the choice to the next rule if there are
//! none (Table 2, TSD and TSA). After the last rule, the table with the least overlap moves.
//!
//! A rule is a file with an order of tables, and an entry in the list below. Its name, its text
//! form, and its place in [`crate::space`] and in the property tests follow from the entry.

mod coldest;
mod coldest_update;
mod expired_ttl;
mod least_overlap;
mod least_overlap_grandparent;
mod most_tombstones;
mod oldest;
mod random;
mod round_robin;
mod round_robin_within;
pub(crate) mod rule;

pub use rule::MovementInfo;

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;

/// Generates [`Movement`] from a list of rules, each with the module that has its [`MovementInfo`].
macro_rules! movements {
    ($($(#[doc = $doc:literal])* $name:ident $({ $seed:ident: u64 })? => $module:ident,)*) => {
        /// A rule that picks a table of a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Movement {
            $(
                $(#[doc = $doc])*
                $name $({
                    /// The seed, which makes one sequence of choices differ from another.
                    $seed: u64,
                })?,
            )*
        }

        impl Movement {
            /// All rules; seeds are 0.
            pub const ALL: &'static [Movement] = &[$(Self::$name $({ $seed: 0 })?),*];

            /// The properties of the rule.
            pub fn info(self) -> &'static MovementInfo {
                match self {
                    $(Self::$name { .. } => &$module::INFO,)*
                }
            }

            /// Returns the seed of a rule that has a seed.
            pub(crate) fn seed(self) -> Option<u64> {
                match self {
                    $($(Self::$name { $seed } => Some($seed),)?)*
                    _ => None,
                }
            }

            /// Returns the rule with another seed; `None` if the rule takes no seed.
            fn with_seed(self, value: u64) -> Option<Self> {
                match self {
                    $($(Self::$name { .. } => Some(Self::$name { $seed: value }),)?)*
                    _ => None,
                }
            }
        }
    };
}

movements! {
    /// The table after the one moved last, in key order, wrapping around at the end.
    RoundRobin => round_robin,
    /// Like round-robin, but the turn may begin within a table: the one with the first keys after
    /// those that moved last (LevelDB).
    RoundRobinWithin => round_robin_within,
    /// Any table; the seed and the tables of the run decide which.
    Random { seed: u64 } => random,
    /// The table with the fewest overlapping bytes in the next level per byte of its own.
    LeastOverlap => least_overlap,
    /// Like least overlap, but for the level after the next; in the last two levels, for the next
    /// level.
    LeastOverlapGrandparent => least_overlap_grandparent,
    /// The table that was read least recently.
    Coldest => coldest,
    /// The table whose newest entry is the oldest: RocksDB's estimate of the coldest table.
    ColdestUpdate => coldest_update,
    /// The table with the oldest entry.
    Oldest => oldest,
    /// The table with the most tombstones, among the tables that have any.
    MostTombstones => most_tombstones,
    /// The table whose oldest tombstone is furthest past its deadline, among the tables that have
    /// any.
    ExpiredTtl => expired_ttl,
}

impl Movement {
    /// Returns true if the rule ranks every table, so that rules after it are never consulted.
    pub fn ranks_all(self) -> bool {
        self.info().ranks_all
    }
}

impl fmt::Display for Movement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)?;
        match self.seed() {
            Some(seed) if seed != 0 => write!(f, "({seed})"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Movement {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let known = || {
            let names: Vec<&str> = Self::ALL.iter().map(|rule| rule.info().name).collect();
            ParseError::unknown_name("movement", text, &names.join(", "))
        };
        let (name, seed) = call(text)?;
        let is_called = |rule: &&Movement| {
            let info = rule.info();
            info.name == name || info.aliases.contains(&name)
        };
        let rule = *Self::ALL.iter().find(is_called).ok_or_else(known)?;
        match seed {
            None => Ok(rule),
            Some(seed) => {
                let seed = seed.trim().parse().ok();
                seed.and_then(|seed| rule.with_seed(seed)).ok_or_else(known)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_print_as_they_parse() {
        for rule in Movement::ALL {
            assert_eq!(rule.to_string().parse(), Ok(*rule));
        }
        for text in ["random", "random(1)", "random(2)"] {
            assert_eq!(text.parse::<Movement>().unwrap().to_string(), text);
        }
        assert_eq!("random(0)".parse(), Ok(Movement::Random { seed: 0 }));
        for text in ["", "random(x)", "oldest(1)"] {
            assert!(text.parse::<Movement>().is_err(), "{text}");
        }
    }
}
