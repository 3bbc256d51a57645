//! The path of a lookup through a tree, for people and programs.

use std::fmt;

/// The path of a lookup through a tree; see [`Keyspace::explain`](crate::Keyspace::explain). Prints as a
/// line per step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookupPath {
    /// The keyspace.
    pub keyspace: String,
    /// Where the lookup searches, in this order. It ends at the first step that decides the result.
    pub steps: Vec<LookupStep>,
    /// Whether the key has a value.
    pub has_value: bool,
}

/// A memtable or a run that a lookup consults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookupStep {
    /// The memtable or run.
    pub place: LookupPlace,
    /// The result of the step.
    pub answer: LookupAnswer,
}

/// A place that a lookup consults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupPlace {
    /// The memtable that takes writes.
    ActiveMemtable,
    /// A memtable that awaits its flush.
    ImmutableMemtable,
    /// A run of tables.
    Run {
        /// The level, from 0.
        level: usize,
        /// The run of the level, from 0 for the newest one.
        run: usize,
        /// The number of the table whose range includes the key.
        table: Option<u64>,
    },
}

/// The result of consulting a memtable or run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupAnswer {
    /// No table of the run has a range that includes the key. Nothing is read.
    OutOfRange,
    /// The filter of the table excludes the key. No block is read.
    Filtered,
    /// The memtable, or a block of the table, was searched without finding the key.
    Absent,
    /// The newest version of the key. An operand is combined with versions from here on, which are not
    /// listed.
    Version {
        /// The sequence number of the write.
        sequence_number: u64,
        /// The operation: `put`, `merge` or `delete`.
        kind: &'static str,
        /// The length of the stored value in bytes.
        value_bytes: u64,
    },
    /// A range tombstone that covers the key and is newer than every version.
    RangeTombstone {
        /// The sequence number of the write.
        sequence_number: u64,
    },
}

impl LookupAnswer {
    /// Returns whether the lookup ends here.
    pub fn decides(&self) -> bool {
        matches!(self, Self::Version { .. } | Self::RangeTombstone { .. })
    }
}

impl fmt::Display for LookupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for LookupStep { place, answer } in &self.steps {
            writeln!(f, "{place}: {answer}")?;
        }
        let is_decided = self.steps.last().is_some_and(|step| step.answer.decides());
        f.write_str(match (self.has_value, is_decided) {
            (true, _) => "the key has a value",
            (false, true) => "the key has no value: it was deleted, or its value has expired",
            (false, false) => "the key has no value: nothing contains it",
        })
    }
}

impl fmt::Display for LookupPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ActiveMemtable => f.write_str("active memtable"),
            Self::ImmutableMemtable => f.write_str("immutable memtable"),
            Self::Run { level, run, table: None } => write!(f, "L{level} run {run}"),
            Self::Run { level, run, table: Some(table) } => {
                write!(f, "L{level} run {run}, table {table}")
            }
        }
    }
}

impl fmt::Display for LookupAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange => f.write_str("no table for the key"),
            Self::Filtered => f.write_str("excluded by the filter"),
            Self::Absent => f.write_str("searched, not found"),
            Self::Version { sequence_number, kind, value_bytes } => {
                write!(f, "{kind} {sequence_number}, {value_bytes} bytes")
            }
            Self::RangeTombstone { sequence_number } => {
                write!(f, "range delete {sequence_number}")
            }
        }
    }
}
