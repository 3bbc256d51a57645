//! Whether a write would wait.

use super::Engine;
use super::tree::Tree;

impl Engine {
    /// Returns true if a write to a tree would wait now for background work.
    #[inline]
    pub(crate) fn would_stall(&self, tree: &Tree) -> bool {
        self.parts.writer.would_stall(tree)
    }
}
