//! A merge as a scheduler sees it.

/// A merge of one tree that could run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MergeDemand {
    /// Ids increase in the order in which merges are created.
    pub(crate) id: u64,
    /// The tree to which the merge belongs.
    pub(crate) tree: u32,
    /// Input left, in bytes.
    pub(crate) remaining_bytes: u64,
    /// How far the level from which the merge takes data has refilled, as a fraction of the
    /// fullness at which the level acts.
    pub(crate) refilled: f64,
    /// Whether the merge had a share when shares were last allocated.
    pub(crate) is_running: bool,
    /// By how much the tree is overdue; 0 if it is not overdue.
    pub(crate) overdue: u32,
}

/// The properties of a scheduler. Each has a file, and a line in the list of [`super::Scheduler`].
#[derive(Debug)]
#[non_exhaustive]
pub struct SchedulerInfo {
    /// The name in text forms.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// The maximum value of the scheduler's argument.
    pub most: u32,
    /// Whether the scheduler depends on [`refilled`](crate::scheduler::ScheduledMerge::refilled),
    /// whose computation inspects the tree.
    pub looks_at_levels: bool,
    /// A tree that was passed over this many times precedes other trees; see
    /// [`Turns`](crate::scheduler::Turns).
    pub passes_max: u32,
    /// Whether, for a given argument, shares change as merges progress; otherwise they change only
    /// when a merge begins or ends.
    pub(crate) changes_with_progress: fn(u32) -> bool,
    /// Computes each merge's share of the bandwidth. The second parameter is the scheduler's
    /// argument; the third is the number of trees that may run merges.
    pub(crate) shares: fn(&[MergeDemand], u32, usize) -> Vec<f64>,
}
