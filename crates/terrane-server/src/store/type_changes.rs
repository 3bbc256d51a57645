//! Notices that a key changes its type while a command looks for it.
//!
//! Strings and hashes are in two keyspaces. A command that only reads locks no key, and looks for a string
//! first, then for a hash. If a write replaces the hash by a string in between, it finds neither, although
//! the key always had a value. Writes that replace a value by one of another type are therefore counted when
//! they begin and when they have ended, and a command that found nothing while one of them ran looks again
//! with the key locked.
//!
//! 1. A lookup that found nothing is right if all such writes that had begun by its end had ended by its
//!    start, because then none of them became visible in between.

use std::sync::atomic::{AtomicU64, Ordering};

/// The writes that change the type of a key.
#[derive(Debug, Default)]
pub(super) struct TypeChanges {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A write that changes the type of a key, until it is dropped.
#[derive(Debug)]
pub(super) struct TypeChange<'a>(&'a TypeChanges);

impl TypeChanges {
    /// Called before the write.
    pub(super) fn begin(&self) -> TypeChange<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        TypeChange(self)
    }

    /// Called before a lookup.
    #[inline]
    pub(super) fn ended(&self) -> u64 {
        // Acquire: the lookup sees the writes that have ended.
        self.ended.load(Ordering::Acquire)
    }

    /// Returns whether no write has run since a lookup that began when `ended` writes had ended.
    #[inline]
    pub(super) fn are_over(&self, ended: u64) -> bool {
        // A lookup that saw a write also sees that it had begun.
        self.begun.load(Ordering::SeqCst) == ended
    }
}

impl Drop for TypeChange<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_disturbs_the_lookups_that_overlap_it() {
        let changes = TypeChanges::default();
        let before = changes.ended();
        assert!(changes.are_over(before));
        let change = changes.begin();
        let during = changes.ended();
        assert!(!changes.are_over(before) && !changes.are_over(during));
        drop(change);
        assert!(!changes.are_over(before) && !changes.are_over(during));
        assert!(changes.are_over(changes.ended()));
    }
}
