//! The interface of triggers: a description of the kind, a text form and a measurement.

use crate::design::PerLevel;
use crate::error::ParseError;
use crate::shape::TableInfo;
use crate::strategy::size_tiered::SizeTiered;

/// The part of the tree that a trigger measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The bytes or tables of one level.
    LevelSize,
    /// The number of runs of one level.
    LevelRuns,
    /// Single tables.
    Table,
    /// The tree as a whole.
    Tree,
    /// The sizes of all runs, whatever their levels; see [`SizeTiered`].
    SizeTiered,
    /// Nothing: the trigger never fires.
    Nothing,
}

/// The finding of a trigger that fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TriggerFinding {
    /// The level that acts.
    pub level: usize,
    /// The measured value, in the unit of the trigger.
    pub measured: u64,
    /// The value that fires the trigger.
    pub threshold: u64,
}

/// The properties of a kind of trigger.
#[derive(Debug)]
#[non_exhaustive]
pub struct TriggerInfo {
    /// The name in text forms.
    pub name: &'static str,
    /// The part of the tree that the trigger measures.
    pub scope: Scope,
    /// A text form with usual settings; [`crate::space`] enumerates these.
    pub usual: &'static str,
    /// Text forms that fire on trees of a few KiB within a second; property tests draw from these.
    pub small: &'static [&'static str],
    /// Whether the measured value is an age in microseconds, so that time alone makes it fire.
    pub looks_at_time: bool,
    /// Whether the trigger depends on how often tables were read.
    pub looks_at_accesses: bool,
    /// Whether it fires in order to drop tombstones, and therefore rewrites a table in place if no
    /// older data lies below it.
    pub drops_tombstones: bool,
    /// The compaction paper's triggers that the policy combines, by their names here; empty if the
    /// trigger is itself one of the paper's.
    pub consists_of: &'static [&'static str],
    /// Prints a value with its unit.
    pub quantity: fn(u64) -> String,
    /// Prints a finding as part of a sentence.
    pub describe: fn(&TriggerFinding) -> String,
}

/// The measured value and the threshold of a trigger.
pub(crate) type Measure = (u64, u64);

/// A level, as [`Scope::LevelSize`] triggers see it, without the inputs of running compactions.
pub(crate) struct LevelContext<'a> {
    pub(crate) level: usize,
    pub(crate) bytes: u64,
    pub(crate) tables: u64,
    pub(crate) capacity_bytes: u64,
    pub(crate) table_bytes: u64,
    /// The size ratio of a level to the level above.
    pub(crate) ratio: &'a dyn Fn(usize) -> u64,
}

/// A table, as [`Scope::Table`] triggers see it.
pub(crate) struct TableContext<'a> {
    pub(crate) level: usize,
    pub(crate) table: &'a TableInfo,
    pub(crate) now_micros: u64,
    /// When the oldest snapshot was taken, if there is one.
    pub(crate) oldest_snapshot_micros: Option<u64>,
    /// Lookups that read the table.
    pub(crate) reads: u64,
    /// The age at which tombstones must leave the level, from [`TriggerRule::tombstone_times`].
    pub(crate) tombstone_deadline: Option<u64>,
}

/// A tree, as [`Scope::Tree`] triggers see it.
pub(crate) struct TreeContext {
    /// Bytes of the oldest run.
    pub(crate) oldest_bytes: u64,
    /// Bytes of all other runs.
    pub(crate) newer_bytes: u64,
    /// The number of runs.
    pub(crate) runs: u64,
}

/// A trigger. Each has a file, and a line in the list of [`super::Trigger`].
pub(crate) trait TriggerRule {
    /// The properties of the kind.
    fn info() -> &'static TriggerInfo
    where
        Self: Sized;

    /// Parses the text between the parentheses; `text` is the whole text, for messages.
    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError>
    where
        Self: Sized;

    /// Returns the text between the parentheses; `None` to print only the name.
    fn argument(&self) -> Option<String> {
        None
    }

    /// Measures a level.
    fn measure_level(&self, _level: &LevelContext<'_>) -> Option<Measure> {
        None
    }

    /// Measures a table; `None` if the trigger ignores it.
    fn measure_table(&self, _table: &TableContext<'_>) -> Option<Measure> {
        None
    }

    /// Measures a tree.
    fn measure_tree(&self, _tree: &TreeContext) -> Option<Measure> {
        None
    }

    /// Returns the times within which tombstones must be gone, if the trigger considers their age.
    fn tombstone_times(&self) -> Option<&PerLevel<u64>> {
        None
    }

    /// Returns the policy of a [`Scope::SizeTiered`] trigger.
    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        None
    }
}

/// Returns the error that `text` was given where `expected` is required.
pub(super) fn wrong(text: &str, expected: &str) -> ParseError {
    ParseError::new("trigger", text, expected)
}

/// Checks that a trigger without settings has no argument.
pub(super) fn no_argument<T>(
    argument: Option<&str>,
    text: &str,
    trigger: T,
) -> Result<T, ParseError> {
    if argument.is_some() { Err(wrong(text, "no argument")) } else { Ok(trigger) }
}

/// Describes a level as `held of allowed`.
pub(super) fn level_holds(finding: &TriggerFinding, quantity: fn(u64) -> String) -> String {
    let TriggerFinding { level, measured, threshold } = finding;
    format!("level {level} holds {measured} of {}", quantity(*threshold))
}

/// Parses times by level, which must not decrease.
pub(super) fn parse_times(argument: Option<&str>, text: &str) -> Result<PerLevel<u64>, ParseError> {
    let Some(argument) = argument else {
        return Err(wrong(text, "a time, as in 'tombstone-ttl(1h)'"));
    };
    let times = argument.split(',').map(crate::units::parse_micros);
    let times = times.collect::<Result<Vec<u64>, _>>()?;
    let bad = || wrong(text, "times above zero that do not fall from level to level");
    if times.contains(&0) || !times.is_sorted() {
        return Err(bad());
    }
    let mut times = times.into_iter();
    times.next().map(|first| PerLevel::new(first, times)).ok_or_else(bad)
}

/// Prints times by level.
pub(super) fn format_times(times: &PerLevel<u64>) -> String {
    let words = times.values().iter().map(|&micros| crate::units::format_micros(micros));
    words.collect::<Vec<_>>().join(",")
}

/// Parses a percentage from 1 to `most`.
pub(super) fn parse_percent(argument: &str, most: u32, text: &str) -> Result<u32, ParseError> {
    let number = argument.trim().trim_end_matches('%').trim_end().parse().ok();
    let in_range = number.filter(|percent| (1..=most).contains(percent));
    in_range.ok_or_else(|| wrong(text, &format!("1 to {most} percent")))
}

/// Prints a percentage.
pub(super) fn percent(value: u64) -> String {
    format!("{value} %")
}

/// Prints a number of runs.
pub(super) fn runs(value: u64) -> String {
    format!("{value} runs")
}

/// Returns the properties of a size-tiered policy. Its reasons are [`MergeCause`]s, with their own
/// texts.
///
/// [`MergeCause`]: crate::strategy::MergeCause
pub(super) const fn sized_info(
    name: &'static str,
    usual: &'static str,
    small: &'static [&'static str],
    consists_of: &'static [&'static str],
) -> TriggerInfo {
    TriggerInfo {
        name,
        scope: Scope::SizeTiered,
        usual,
        small,
        looks_at_time: false,
        looks_at_accesses: false,
        drops_tombstones: false,
        consists_of,
        quantity: runs,
        describe: |finding| runs(finding.measured),
    }
}
