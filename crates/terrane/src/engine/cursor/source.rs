//! A source of ordered entries: a memtable or a run.

use terrane_memtable::{Cursor as MemtableCursor, head_of};

use super::run::RunCursor;
use crate::base::error::Result;
use crate::base::types::{EntryKind, SeqNo};
use crate::files::table::TableCursor;
use crate::files::value::Value;

/// A cursor over a memtable or a run.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a scan should allocate nothing, and sources are few")]
pub(crate) enum Source {
    Memtable(MemtableCursor),
    Run(RunCursor),
}

impl Source {
    /// Returns an upper bound on the sequence numbers in the source.
    pub(crate) fn largest_seq(&self) -> SeqNo {
        match self {
            // The memtable may still accept writes.
            Self::Memtable(_) => SeqNo::MAX,
            Self::Run(cursor) => cursor.run().largest_seq(),
        }
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Memtable(cursor) => cursor.is_valid(),
            Self::Run(cursor) => cursor.is_valid(),
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Self::Memtable(cursor) => cursor.entry().map_or(&[], |entry| entry.key),
            Self::Run(cursor) => cursor.key(),
        }
    }

    /// Returns the first eight bytes of the key, as in [`head_of`].
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        match self {
            Self::Memtable(_) => head_of(self.key()),
            Self::Run(cursor) => cursor.head(),
        }
    }

    #[inline]
    pub(crate) fn seq(&self) -> SeqNo {
        match self {
            Self::Memtable(cursor) => cursor.entry().map_or(0, |entry| entry.seq),
            Self::Run(cursor) => cursor.seq(),
        }
    }

    #[inline]
    pub(crate) fn kind(&self) -> EntryKind {
        match self {
            Self::Memtable(cursor) => {
                cursor.entry().map_or(EntryKind::Tombstone, |entry| entry.kind)
            }
            Self::Run(cursor) => cursor.kind(),
        }
    }

    /// Returns true if the cursor is on a value that was written at or before `seq` and does not
    /// expire.
    #[inline(always)]
    pub(crate) fn is_lasting_at(&self, seq: SeqNo) -> bool {
        match self {
            Self::Memtable(cursor) => {
                cursor.entry().is_some_and(|entry| entry.seq <= seq && entry.kind.is_lasting())
            }
            Self::Run(cursor) => cursor.seq() <= seq && cursor.kind().is_lasting(),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self {
            Self::Memtable(cursor) => cursor.entry().map_or(&[], |entry| entry.value),
            Self::Run(cursor) => cursor.value(),
        }
    }

    #[inline]
    pub(crate) fn pin_value(&self) -> Value {
        match self {
            Self::Memtable(cursor) => cursor.pin_value().map_or_else(Value::empty, Value::pinned),
            Self::Run(cursor) => cursor.pin_value(),
        }
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek_first(),
            Self::Run(cursor) => cursor.seek_first()?,
        }
        Ok(())
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek_last(),
            Self::Run(cursor) => cursor.seek_last()?,
        }
        Ok(())
    }

    /// Prefetches the part of an index that a seek to `key` reads.
    pub(crate) fn prefetch_index(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Self::Memtable(_) => Ok(()),
            Self::Run(cursor) => cursor.prefetch_index(key),
        }
    }

    /// Prefetches the start of the block that a seek to `key` reads. [`Source::prefetch_index`] was
    /// called with the same key.
    pub(crate) fn prefetch_block(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Self::Memtable(_) => Ok(()),
            Self::Run(cursor) => cursor.prefetch_block(key),
        }
    }

    /// The cursor over the table that was prefetched from.
    pub(crate) fn table_cursor(&mut self) -> Option<&mut TableCursor> {
        match self {
            Self::Memtable(_) => None,
            Self::Run(cursor) => cursor.entries_mut(),
        }
    }

    /// Prefetches the first entry at or after `key`. [`Source::prefetch_block`] was called with the
    /// same key.
    pub(crate) fn prefetch_entry(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Self::Memtable(_) => Ok(()),
            Self::Run(cursor) => cursor.prefetch_entry(key),
        }
    }

    /// Discards the prefetched position.
    pub(crate) fn forget_prefetch(&mut self) {
        if let Self::Run(cursor) = self {
            cursor.forget_prefetch();
        }
    }

    /// Moves to the first entry at or after `(key, seq)`.
    pub(crate) fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek(key, seq),
            Self::Run(cursor) => cursor.seek(key, seq)?,
        }
        Ok(())
    }

    /// Moves to the last entry whose key is before `key`.
    pub(crate) fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek_before(key),
            Self::Run(cursor) => cursor.seek_before(key)?,
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.next(),
            Self::Run(cursor) => cursor.next()?,
        }
        Ok(())
    }

    /// Moves to the first entry of the next key.
    #[inline(always)]
    pub(crate) fn next_key(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.next_key(),
            Self::Run(cursor) => cursor.next_key()?,
        }
        Ok(())
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.previous(),
            Self::Run(cursor) => cursor.previous()?,
        }
        Ok(())
    }
}
