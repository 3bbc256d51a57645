//! The changes of keys that a command makes, for keyspace events.

use super::Store;

/// A command's change of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Set the value or its expiry time.
    Set {
        has_expiry: bool,
    },
    Removed,
    FieldsSet,
    /// Removed fields of a hash.
    FieldsRemoved,
    /// Set the key to the value of another one.
    Placed,
    /// Moved the value to another key.
    Taken,
}

/// A slot, a key in it, and the change that a command made.
pub(crate) type NotedChange = (usize, Box<[u8]>, Change);

impl Store<'_> {
    /// Notes changes from now on.
    #[cold]
    pub(crate) fn note_changes(&mut self) {
        self.noted = Some(Vec::new());
    }

    /// Returns whether changes are noted.
    #[inline]
    pub(crate) fn is_noting(&self) -> bool {
        self.noted.is_some()
    }

    /// Returns the changes since the last call; none if they are not noted.
    pub(crate) fn take_noted(&mut self) -> Vec<NotedChange> {
        self.noted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notifies the clients that watch a key, whose lock the caller holds, and notes the change if changes are noted.
    #[inline]
    pub(super) fn touch(&mut self, db: usize, key: &[u8], change: Change) {
        self.locks.touch(db, key);
        if self.noted.is_some() {
            self.note(db, key, change);
        }
    }

    #[cold]
    fn note(&mut self, db: usize, key: &[u8], change: Change) {
        self.noted.iter_mut().for_each(|noted| noted.push((db, key.into(), change)));
    }
}
