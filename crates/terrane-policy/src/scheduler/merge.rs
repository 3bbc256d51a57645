//! A merge as a scheduler sees it.

use super::kind::Scheduler;

/// A merge that has begun or could, as a scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Merge {
    /// Numbers of merges rise in the order in which they are created.
    pub id: u64,
    /// The tree that it belongs to.
    pub tree: u32,
    /// How its tree wants merges to be scheduled.
    pub scheduler: Scheduler,
    /// Input left, in bytes: what a merge still needs is not known before it ends (§5.1.5).
    pub remaining_bytes: u64,
    /// How far the level that it takes from is full again, as a part of what makes it act; see
    /// [`refilled`](crate::pick::refilled).
    pub refilled: f64,
    /// Whether it had a share when this was last decided.
    pub is_running: bool,
}
