//! Steps within a block.

use super::VisibleCursor;

impl VisibleCursor {
    /// Returns true if [`VisibleCursor::step_within`] may be called, and will probably succeed.
    #[inline]
    pub(crate) fn may_step_within(&self) -> bool {
        self.merge.is_in_stretch()
            && self.is_forward
            && self.is_valid
            && self.combined.is_none()
            && self.loaded.is_none()
            && self.skipped == 0
            && self.deleted.is_empty()
    }

    /// Makes a step as [`VisibleCursor::step`] does, if it leads to an entry of the same block whose key is
    /// below `below` by its first eight bytes. Returns false, and stays where it is, if it does not.
    #[inline(always)]
    pub(crate) fn step_within(&mut self, below: u64) -> bool {
        self.merge.step_within(below, self.seq)
    }

    /// The current key, while [`VisibleCursor::may_step_within`].
    #[inline(always)]
    pub(crate) fn key_within(&self) -> &[u8] {
        self.merge.key()
    }

    /// The current value, while [`VisibleCursor::may_step_within`].
    #[inline(always)]
    pub(crate) fn value_within(&self) -> &[u8] {
        self.merge.value()
    }
}
