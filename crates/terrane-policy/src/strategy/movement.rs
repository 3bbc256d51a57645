//! Data movement: which table a partial compaction takes (compaction paper §3.1.4).
//!
//! Rules are tried in order. Most of them rank all tables of a run; those about deletes rank only
//! tables that have what they look for, and leave the choice to the next rule where there is none
//! (Table 2, TSD and TSA). Where no rule is left, the table with the least overlap moves.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;

/// A rule that picks a table of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Movement {
    /// The table after the one moved last, in key order, around and around.
    RoundRobin,
    /// Any table. Which one follows from the seed and the tables that the run has.
    Random {
        /// What makes one sequence of choices differ from another.
        seed: u64,
    },
    /// The table with the fewest overlapping bytes in the next level per byte of its own.
    LeastOverlap,
    /// The same for the level after the next; in the last two levels, the next.
    LeastOverlapGrandparent,
    /// The table that was read least recently.
    Coldest,
    /// The table whose newest entry is the oldest: what RocksDB takes for the coldest.
    ColdestUpdate,
    /// The table with the oldest entry.
    Oldest,
    /// The table with the most tombstones, of those that have any.
    MostTombstones,
    /// The table whose oldest tombstone is the furthest past its time, of those that have any.
    ExpiredTtl,
}

impl Movement {
    /// All rules with their names; the seed of the random one is given in parentheses.
    pub const ALL: [(Movement, &'static str); 9] = [
        (Movement::RoundRobin, "round-robin"),
        (Movement::Random { seed: 0 }, "random"),
        (Movement::LeastOverlap, "least-overlap"),
        (Movement::LeastOverlapGrandparent, "least-overlap-grandparent"),
        (Movement::Coldest, "coldest"),
        (Movement::ColdestUpdate, "coldest-update"),
        (Movement::Oldest, "oldest"),
        (Movement::MostTombstones, "most-tombstones"),
        (Movement::ExpiredTtl, "expired-ttl"),
    ];

    /// Whether the rule ranks every table, so that none after it is ever asked.
    pub fn ranks_all(self) -> bool {
        !matches!(self, Self::MostTombstones | Self::ExpiredTtl)
    }
}

impl fmt::Display for Movement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Random { seed } = self
            && *seed != 0
        {
            return write!(f, "random({seed})");
        }
        let same = |rule: &Movement| std::mem::discriminant(rule) == std::mem::discriminant(self);
        f.write_str(Self::ALL.iter().find(|(rule, _)| same(rule)).map_or("", |(_, name)| name))
    }
}

impl FromStr for Movement {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let known = || {
            let names: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
            ParseError::new("movement", text, format!("one of {}", names.join(", ")))
        };
        let (name, argument) = call(text)?;
        match (name, argument) {
            ("random", Some(seed)) => {
                Ok(Self::Random { seed: seed.trim().parse().map_err(|_| known())? })
            }
            (_, Some(_)) => Err(known()),
            ("least-overlap-parent", None) => Ok(Self::LeastOverlap),
            ("tombstone-density", None) => Ok(Self::MostTombstones),
            (name, None) => {
                let found = Self::ALL.iter().find(|(_, known)| *known == name);
                found.map(|(rule, _)| *rule).ok_or_else(known)
            }
        }
    }
}
