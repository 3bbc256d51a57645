//! Entries of one block that are decoded together.

use super::VisibleCursor;
use crate::base::error::Result;
use crate::files::table::Stretch;

impl VisibleCursor {
    /// Returns true if [`VisibleCursor::stretch`] may be called, and will probably succeed.
    #[inline]
    pub(crate) fn may_stretch(&self) -> bool {
        self.merge.is_in_stretch()
            && self.is_forward
            && self.is_valid
            && self.combined.is_none()
            && self.loaded.is_none()
            && self.skipped == 0
            && self.deleted.is_empty()
    }

    /// Decodes entries to which the next steps lead: some that are in the same block, lasting values, and below `below`
    /// and the entries of other sources by the first eight bytes of their keys. Returns false, and stays where it is,
    /// if the next one is not. Otherwise the cursor moves to the last of them.
    #[inline]
    pub(crate) fn stretch(&mut self, stretch: &mut Stretch, below: u64) -> bool {
        self.merge.stretch(stretch, below, self.seq)
    }

    /// Moves to an entry of the stretch, `count` entries back.
    pub(crate) fn step_back(&mut self, count: usize) -> Result<()> {
        self.merge.step_back(count)
    }
}
