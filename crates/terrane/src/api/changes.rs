//! The writes of a database in order, for another database or an index to follow.
//!
//! The log is the source: [`crate::files::wal::ChangeScan`] reads it, and this module gives its batches their
//! public form.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::api::db::Db;
use crate::api::handle::Handle;
use crate::base::error::{ChangesGone, Error, Result};
use crate::base::expiry::{EXPIRY_BYTES, expires_at_micros};
use crate::base::types::KeyspaceId;
use crate::engine::Following;
use crate::files::batch::{Op, Ops};
use crate::files::wal::{ChangeScan, Gone, LoggedBatch, Scanned};

impl Db {
    /// Returns the writes after a position, in the order in which they were committed.
    ///
    /// A position is a [sequence number](crate::Snapshot::sequence_number): 0 is the beginning, and
    /// [`ChangeBatch::position`] is the position after a batch. A follower stores it in the same write
    /// as the changes, so that it applies each batch exactly once, and continues after it when either
    /// side has been restarted. To begin with a copy, open a [checkpoint](Db::checkpoint) as the
    /// follower, call [`Db::sync`] on the database, and continue after the sequence number that a
    /// [snapshot](Db::snapshot) of the copy has before the first write to it. The example
    /// `change_feed` does so.
    ///
    /// The log must be kept for followers ([`Options::keep_changes`](crate::Options::keep_changes)),
    /// and only that option keeps it: a follower that falls further behind gets
    /// [`Error::ChangesGone`] and must begin with a copy. Positions survive reopening and crashes, but
    /// belong to one database: a checkpoint or a backup that is written to has its own.
    ///
    /// Only writes that survive a power failure are returned, so a follower is never ahead of a
    /// database that lost its last writes; see [`Changes::include_unsynced`]. The removals and
    /// replacements of a compaction filter are not writes and are not returned: a follower needs the same
    /// filter. Its keyspaces need no default [time to live](crate::Keyspace::set_ttl), because the changes
    /// include the expiry times of values.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use terrane::{Change, KeepChanges, Options};
    ///
    /// let options = Options::new().keep_changes(KeepChanges::bytes(64 << 20));
    /// let db = options.open(dir.path())?;
    /// db.put("a", "1")?;
    /// db.delete("a")?;
    /// let mut changes = db.changes(0)?;
    /// let batch = changes.next().unwrap()?;
    /// assert!(matches!(batch.iter().next(), Some(Change::Put { key: b"a", value: b"1", .. })));
    /// let position = batch.position();
    /// // Later, perhaps after a restart:
    /// let batch = db.changes(position)?.next().unwrap()?;
    /// assert!(matches!(batch.iter().next(), Some(Change::Delete { key: b"a", .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid): the log is not kept for followers, the database is open
    /// read-only, or the position is beyond the last write.
    /// [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("change feed", "subscribe", "watch", "updates_since", "replicate", "cdc", "wal"))]
    pub fn changes(&self, since: u64) -> Result<Changes> {
        let handle = &self.default_keyspace().handle;
        let context = &handle.engine.context;
        context.health.check_open()?;
        if context.health.is_read_only() {
            return Err(Error::ReadOnly);
        }
        if !context.settings.keep_changes.is_some() {
            let expected = "set for readers of changes, such as `1GiB` or `24h`";
            return Err(Error::invalid("keep_changes", "'none'", expected));
        }
        let last = handle.engine.pipeline.visible();
        if since > last {
            let expected = format!("at most that of the last write, {last}");
            return Err(Error::invalid("position", since.to_string(), expected));
        }
        let handle = Arc::clone(handle);
        Ok(Changes { handle, scan: ChangeScan::new(since), following: Following::Durable })
    }
}

/// The writes of a database after a position, in the order in which they were committed; see
/// [`Db::changes`].
///
/// The iterator never blocks for writes: `None` means that no further batch exists yet, and `next` may
/// be called again. [`Changes::wait`] waits for the next write. An error does not end the iterator
/// either: the next call retries the same batch.
///
/// It reads the log from files, beginning with the segment that contains the position, takes up to 1 MiB
/// of memory plus twice the largest batch, and pins neither files nor versions of keys.
/// It keeps the database open, like a [`Db`].
#[derive(Debug)]
pub struct Changes {
    handle: Arc<Handle>,
    scan: ChangeScan,
    following: Following,
}

impl Changes {
    /// Also returns writes that a power failure may still undo. If the database loses its last writes, a
    /// follower may then be ahead of it and miss later writes that reuse their numbers, so it must begin
    /// with a copy whenever the database's machine has lost power.
    ///
    /// Without this, `next` syncs the log if newer batches are not durable. Writers do not wait for it, but
    /// it costs the device as much as one with [`Durability::Sync`](crate::Durability::Sync). A follower that
    /// pauses between rounds causes fewer syncs.
    #[must_use]
    pub fn include_unsynced(mut self) -> Self {
        self.following = Following::Visible;
        self
    }

    /// Returns the position up to which all writes were returned.
    pub fn position(&self) -> u64 {
        self.scan.position()
    }

    /// Returns the keyspaces that the database has now. The feed does not report when a keyspace is
    /// created, renamed or dropped. A follower stores the numbers of its keyspaces and compares them: a
    /// keyspace whose number is missing was dropped, even if another keyspace has its name now.
    pub fn keyspaces(&self) -> Vec<ChangedKeyspace> {
        let trees = self.handle.engine.catalog.trees();
        let all = trees.iter().map(|(id, tree)| (id.0, Some(Arc::clone(tree.name()))));
        all.map(|(id, name)| ChangedKeyspace { id, name }).collect()
    }

    /// Waits until there is another write, but at most for `timeout`, and returns whether there is one.
    /// Call it once the iterator has returned `None`. Writes with
    /// [`Durability::None`](crate::Durability::None) also end the wait, but are not returned before a
    /// flush or the next logged write. While nobody waits, writers pay nothing.
    ///
    /// # Errors
    /// The database was closed.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        let seq = self.scan.seen().max(self.scan.position()) + 1;
        self.handle.engine.wait_visible_for(seq, timeout)
    }

    fn next_batch(&mut self) -> Result<Option<ChangeBatch>> {
        let engine = &self.handle.engine;
        engine.context.health.check_open()?;
        let position = self.scan.position();
        match engine.next_change(&mut self.scan, self.following)? {
            Scanned::Batch(batch) => Ok(Some(self.named(batch))),
            Scanned::Gap(last) => Ok(Some(ChangeBatch::not_logged(position + 1, last))),
            Scanned::End => Ok(None),
            Scanned::Gone(Gone { oldest }) => {
                Err(Error::ChangesGone(Box::new(ChangesGone { position, oldest })))
            }
        }
    }

    /// Adds the current names of the keyspaces.
    fn named(&self, batch: LoggedBatch) -> ChangeBatch {
        let ids: BTreeSet<KeyspaceId> =
            Ops::new(&batch.operations).flatten().map(|(id, _)| id).collect();
        let trees = self.handle.engine.catalog.trees();
        let named = ids.into_iter().map(|id| {
            let name = trees.get(&id).map(|tree| Arc::clone(tree.name()));
            ChangedKeyspace { id: id.0, name }
        });
        ChangeBatch { keyspaces: named.collect(), batch }
    }
}

impl Iterator for Changes {
    type Item = Result<ChangeBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// The changes of one write, which were applied atomically; with
/// [`WritePath::Queue`](crate::WritePath::Queue), of several writes that a leader applied together.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    /// Sorted by number. Empty for writes that are not in the log.
    keyspaces: Vec<ChangedKeyspace>,
    batch: LoggedBatch,
}

impl ChangeBatch {
    fn not_logged(first: u64, last: u64) -> Self {
        let batch = LoggedBatch { first, last, operations: Vec::new() };
        Self { keyspaces: Vec::new(), batch }
    }

    /// Returns the sequence number of the first change.
    pub fn first(&self) -> u64 {
        self.batch.first
    }

    /// Returns the sequence number of the last change: the position to continue after.
    pub fn position(&self) -> u64 {
        self.batch.last
    }

    /// Returns the changes, in order. Later changes of a key take precedence.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        // The scan has decoded all operations.
        let ops = Ops::new(&self.batch.operations).flatten();
        let changes = ops.filter_map(|(id, op)| {
            let found = self.keyspaces.iter().find(|keyspace| keyspace.id == id.0);
            found.map(|keyspace| Change::of(keyspace, op))
        });
        let is_missing = self.batch.operations.is_empty();
        is_missing.then_some(Change::NotLogged).into_iter().chain(changes)
    }
}

/// A keyspace with a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedKeyspace {
    id: u32,
    name: Option<Arc<str>>,
}

impl ChangedKeyspace {
    /// Returns the number of the keyspace, which survives renames and is never reused.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the name that the keyspace has now, even if it had another when the change was made;
    /// `None` if it has since been dropped.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A key was given a value.
    #[non_exhaustive]
    Put {
        /// The keyspace.
        keyspace: &'a ChangedKeyspace,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// When the value expires, in microseconds since the Unix epoch, if it does.
        expires_at_micros: Option<u64>,
    },
    /// A key was deleted, whether it existed or not.
    #[non_exhaustive]
    Delete {
        /// The keyspace.
        keyspace: &'a ChangedKeyspace,
        /// The key.
        key: &'a [u8],
    },
    /// The keys of a range were deleted.
    #[non_exhaustive]
    DeleteRange {
        /// The keyspace.
        keyspace: &'a ChangedKeyspace,
        /// The first key of the range.
        start: &'a [u8],
        /// The exclusive end; `None` for a range without an end.
        end: Option<&'a [u8]>,
    },
    /// The value of a key was combined with an operand by the merge operator of the keyspace.
    #[non_exhaustive]
    Merge {
        /// The keyspace.
        keyspace: &'a ChangedKeyspace,
        /// The key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// Writes that are not in the log but have the numbers of this batch: an ingest, or writes with
    /// [`Durability::None`](crate::Durability::None), even if a crash undid them. The only change in
    /// its batch. Only the database itself knows what they changed, so a follower must begin with a
    /// copy.
    NotLogged,
}

impl<'a> Change<'a> {
    fn of(keyspace: &'a ChangedKeyspace, op: Op<'a>) -> Self {
        match op {
            Op::Put { key, value } => Self::Put { keyspace, key, value, expires_at_micros: None },
            Op::PutExpiring { key, stored } => {
                let value = stored.get(EXPIRY_BYTES..).unwrap_or_default();
                Self::Put {
                    keyspace,
                    key,
                    value,
                    expires_at_micros: Some(expires_at_micros(stored)),
                }
            }
            Op::Delete { key } => Self::Delete { keyspace, key },
            Op::DeleteRange { start, end } => Self::DeleteRange { keyspace, start, end },
            Op::Merge { key, operand } => Self::Merge { keyspace, key, operand },
        }
    }

    /// Returns the keyspace; `None` for writes that are not in the log.
    pub fn keyspace(&self) -> Option<&'a ChangedKeyspace> {
        match *self {
            Self::Put { keyspace, .. }
            | Self::Delete { keyspace, .. }
            | Self::DeleteRange { keyspace, .. }
            | Self::Merge { keyspace, .. } => Some(keyspace),
            Self::NotLogged => None,
        }
    }
}
