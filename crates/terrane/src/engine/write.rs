//! Writing: admission, log, memtable, visibility.

pub(crate) mod queue;
pub(crate) mod slow_down;
pub(crate) mod stall;

use std::sync::Arc;

use arc_swap::Guard;
use terrane_memtable::{Entry, InsertOutcome, Memtable};

use crate::batch::{Batch, Op, Ops};
use crate::durability::Durability;
use crate::engine::pipeline::commit_queue::Ticket;
use crate::engine::{Engine, Tree, TreeState, Writer};
use crate::error::{Error, Result};
use crate::options::WritePath;
use crate::stats::Counter;
use crate::types::{EntryKind, KeyspaceId, MAX_SEQ, SeqNo};
use crate::wal::LogWriter;

/// Operations that are written together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write<'a> {
    /// One operation on one tree.
    One(&'a Arc<Tree>, Op<'a>),
    /// Any number of operations on any trees.
    Batch(&'a Batch),
}

/// A place in the order of writes, for as long as the write is not inserted. A panic in between
/// leaves it so for ever: then no write is taken any more, nothing after it becomes visible, and
/// no one waits for that. What is in the log is there when the database is opened again.
pub(crate) struct Entered<'a> {
    engine: &'a Engine,
    ticket: Option<Ticket>,
    last: SeqNo,
}

impl Entered<'_> {
    /// The write is inserted; returns once it is visible.
    pub(crate) fn finish(mut self) -> Result<()> {
        let ticket = self.ticket.take();
        let is_visible = ticket.is_some_and(|ticket| self.engine.commits.finish(ticket, self.last));
        if is_visible { Ok(()) } else { Err(given_up()) }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.engine.health.fail(given_up());
            self.engine.commits.break_off();
        }
    }
}

/// What is told where a write panicked.
pub(crate) fn given_up() -> Error {
    // Made by hand, as it is also made during a panic.
    Error::Internal { what: "a write panicked before it was done; see the panic".into() }
}

/// Where a write goes.
pub(crate) enum Goal<'a> {
    /// One operation, a tree, and the tree's state. That is kept without counting: all writers
    /// would share the count.
    One { op: Op<'a>, tree: &'a Arc<Tree>, state: Guard<Arc<TreeState>> },
    /// A batch, and once it is its turn the memtables of its trees.
    Batch { batch: &'a Batch, memtables: Vec<(Arc<Tree>, Arc<Memtable>)> },
}

impl<'a> Goal<'a> {
    /// Asks for the memory that the write begins with, too: it comes while the writer waits for
    /// its turn.
    fn new(write: Write<'a>) -> Self {
        match write {
            Write::One(tree, op) => {
                let state = tree.state();
                if let Op::Put { key, .. } | Op::Delete { key } = op {
                    state.active.memtable.prefetch(key);
                }
                Self::One { op, tree, state }
            }
            Write::Batch(batch) => Self::Batch { batch, memtables: Vec::new() },
        }
    }

    /// Asks for the memory that the write goes on with, where what it begins with says which.
    #[inline]
    fn prefetch_version(&self) {
        if let Self::One { op: Op::Put { key, .. } | Op::Delete { key }, state, .. } = self {
            state.active.memtable.prefetch_version(key);
        }
    }

    /// Has the state be the current one.
    pub(crate) fn refresh(&mut self) {
        if let Self::One { tree, state, .. } = self {
            tree.refresh(state);
        }
    }
}

impl Engine {
    /// Writes, and returns once the write is visible and has the durability that is asked for.
    #[inline]
    pub(crate) fn write(&self, write: Write<'_>, durability: Durability) -> Result<()> {
        match self.settings.write_path {
            WritePath::Concurrent => self.write_at_once(write, durability),
            WritePath::Queue => self.write_in_turn(write, durability),
        }
    }

    /// As [`Engine::write`], whatever other writers do.
    pub(crate) fn write_at_once(&self, write: Write<'_>, durability: Durability) -> Result<()> {
        self.health.check_writable()?;
        let (count, user_bytes) = match write {
            Write::One(_, op) => {
                op.check()?;
                (1, op.user_bytes())
            }
            Write::Batch(batch) => {
                batch.checked()?;
                (batch.len() as u64, batch.user_bytes())
            }
        };
        if count == 0 {
            return if durability == Durability::Sync { self.sync_log() } else { Ok(()) };
        }
        let mut goal = Goal::new(write);
        let mut writer = self.make_room(&mut goal, user_bytes)?;
        let first = writer.next_seq;
        let last = first + count - 1;
        if last > MAX_SEQ {
            return Err(Error::internal("all sequence numbers are used up"));
        }
        self.take_memtables(&mut goal, last)?;
        if self.settings.delete_persistence_micros().is_some() {
            self.note_entries(&write);
            if let (Some(log), true) = (&mut writer.log, durability != Durability::None) {
                log.note_record(|| self.clock.now_micros());
            }
        }
        let end = match durability {
            Durability::None => None,
            _ => {
                let logged = log(&mut writer, &write, first, durability == Durability::Sync);
                let end = logged.inspect_err(|_| self.check_log())?;
                // What was asked for before the log was written is here by now: to look at it any
                // earlier would be to wait for it with the lock held.
                goal.prefetch_version();
                Some(end)
            }
        };
        writer.next_seq = last + 1;
        let entered = self.enter(&mut writer, last)?;
        let wants_spare = end.and_then(|_| writer.log.as_mut()).and_then(LogWriter::wanted_spare);
        // What is synced goes by system call, and needs no pages; its sync is the header's as well.
        let ahead = match durability {
            Durability::Process | Durability::Interval(_) => {
                writer.log.as_mut().and_then(LogWriter::wanted_ahead)
            }
            Durability::None | Durability::Sync => None,
        };
        drop(writer);
        if let Some(ahead) = ahead {
            self.work.make_ready(ahead);
        }
        // What is promised to survive must do so before anyone can see it.
        let synced = match (durability, end) {
            (Durability::Sync, Some(end)) => self.log_sync.sync(end),
            (Durability::Interval(_), Some(end)) if self.is_inline() => self.log_sync.sync(end),
            _ => Ok(()),
        };
        if synced.is_ok() {
            self.insert(&goal, first);
        }
        entered.finish()?;
        self.counters.add(Counter::Writes, count);
        self.counters.add(Counter::UserBytesWritten, user_bytes as u64);
        if let Durability::Interval(interval) = durability {
            self.work.sync_within(interval);
        }
        if let Some(spare) = wants_spare {
            self.work.make_spare(spare);
        }
        synced.inspect_err(|error| self.health.fail(error.clone()))?;
        // A sync that failed after this write was let in may have lost it.
        if durability == Durability::None { Ok(()) } else { self.health.check_synced() }
    }

    pub(crate) fn enter(&self, writer: &mut Writer, last: SeqNo) -> Result<Entered<'_>> {
        let ticket = self.commits.enter(&mut writer.entrance, last).ok_or_else(given_up)?;
        Ok(Entered { engine: self, ticket: Some(ticket), last })
    }

    /// Writing to the log failed. If it was a sync that did, no write is taken any more.
    #[cold]
    pub(crate) fn check_log(&self) {
        if let Some(error) = self.log_sync.failure() {
            self.health.fail(error);
        }
    }

    /// Makes everything that was written to the log durable.
    pub(crate) fn sync_log(&self) -> Result<()> {
        let synced = self.log_sync.sync(self.log_sync.written());
        synced.inspect_err(|error| self.health.fail(error.clone()))
    }

    /// The active memtables of all trees that are written to, up to `last`. Called with the writer's
    /// lock held, under which they are replaced.
    fn take_memtables(&self, goal: &mut Goal<'_>, last: SeqNo) -> Result<()> {
        match goal {
            Goal::One { tree, .. } if tree.is_dropped() => Err(dropped(tree.id)),
            Goal::One { tree, .. } => {
                tree.set_last_seq(last);
                Ok(())
            }
            Goal::Batch { batch, memtables } => {
                let trees = self.trees();
                let find = |id: &KeyspaceId| trees.get(id).ok_or_else(|| dropped(*id));
                let found: Vec<_> = batch.keyspaces().iter().map(find).collect::<Result<_>>()?;
                memtables.extend(found.into_iter().map(|tree| {
                    tree.set_last_seq(last);
                    (Arc::clone(tree), Arc::clone(&tree.state().active.memtable))
                }));
                Ok(())
            }
        }
    }
}

fn dropped(keyspace: KeyspaceId) -> Error {
    Error::invalid("keyspace", format!("number {keyspace}, which was dropped"), "one that exists")
}

fn log(
    writer: &mut Writer,
    write: &Write<'_>,
    first: SeqNo,
    is_synced: bool,
) -> Result<crate::types::Lsn> {
    let Some(log) = &mut writer.log else { return Err(Error::ReadOnly) };
    match write {
        Write::One(tree, op) => log.append_one(first, tree.id, op, is_synced),
        Write::Batch(batch) => log.append(first, &[batch.checked()?], is_synced),
    }
}

impl Engine {
    /// Puts the operations into their memtables.
    fn insert(&self, goal: &Goal<'_>, first: SeqNo) {
        match goal {
            Goal::One { op, tree, state } => {
                self.counters.add_some(Counter::Deletes, u64::from(op.is_delete()));
                tell_put(tree, op);
                self.insert_one(&state.active.memtable, op, first, first);
            }
            Goal::Batch { batch, memtables } => {
                // Encoded by this process, and checked before.
                let ops = batch.checked().map(Ops::new).into_iter().flatten().flatten();
                let mut deletes = 0;
                let mut group = Group::default();
                for (seq, (keyspace, op)) in (first..).zip(ops) {
                    deletes += u64::from(op.is_delete());
                    let target = memtables.iter().find(|(tree, _)| tree.id == keyspace);
                    if let Some((tree, memtable)) = target {
                        tell_put(tree, &op);
                        if !group.take(memtable, &op, seq) {
                            self.insert_one(memtable, &op, seq, first);
                        }
                    }
                }
                group.insert();
                self.counters.add_some(Counter::Deletes, deletes);
            }
        }
    }

    /// Puts one operation, of a batch that began at `first`, into a memtable, which may forget what
    /// no one reads any more.
    #[inline]
    pub(crate) fn insert_one(&self, memtable: &Memtable, op: &Op<'_>, seq: SeqNo, first: SeqNo) {
        let inserted = insert_one(memtable, op, seq, first, || self.horizon());
        if memtable.forgets() {
            self.count_inserted(inserted);
        }
    }
}

/// As many operations of a batch are put into a memtable together.
const GROUP: usize = 24;

/// Operations of a batch that are put into a memtable together, where that is cheaper. Nobody sees a
/// batch before all of it is there, so that their order means nothing.
struct Group<'a> {
    memtable: Option<&'a Memtable>,
    entries: [Entry<'a>; GROUP],
    len: usize,
}

impl Default for Group<'_> {
    fn default() -> Self {
        let none = Entry { key: &[], seq: 0, kind: EntryKind::Tombstone, value: &[] };
        Self { memtable: None, entries: [none; GROUP], len: 0 }
    }
}

impl<'a> Group<'a> {
    /// Takes an operation; false if it is to be inserted alone.
    fn take(&mut self, memtable: &'a Memtable, op: &Op<'a>, seq: SeqNo) -> bool {
        let (key, kind, value) = match *op {
            Op::Put { key, value } => (key, EntryKind::Value, value),
            Op::Delete { key } => (key, EntryKind::Tombstone, &[][..]),
            Op::DeleteRange { .. } => return false,
        };
        if !memtable.takes_groups() {
            return false;
        }
        let is_same = self.memtable.is_some_and(|one| std::ptr::eq(one, memtable));
        if !is_same || self.len == GROUP {
            self.insert();
            self.memtable = Some(memtable);
        }
        self.entries[self.len] = Entry { key, seq, kind, value };
        self.len += 1;
        true
    }

    /// Inserts what it holds.
    fn insert(&mut self) {
        if let Some(memtable) = self.memtable {
            memtable.insert_all(&self.entries[..self.len]);
        }
        self.len = 0;
    }
}

/// Where walks have found nothing, there may be something now; and a key more is written.
#[inline]
fn tell_put(tree: &Tree, op: &Op<'_>) {
    if let Op::Put { key, .. } = op {
        tree.dead().before_put(key);
        tree.usage().write(key);
    }
}

/// Puts one operation, of a batch that began at `first`, into a memtable; see [`Memtable::update`]
/// for the horizon.
#[inline]
pub(crate) fn insert_one(
    memtable: &Memtable,
    op: &Op<'_>,
    seq: SeqNo,
    first: SeqNo,
    horizon: impl FnOnce() -> SeqNo,
) -> InsertOutcome {
    match *op {
        Op::Put { key, value } => memtable.update(key, seq, EntryKind::Value, value, horizon),
        Op::Delete { key } => memtable.update(key, seq, EntryKind::Tombstone, &[], horizon),
        Op::DeleteRange { start, end } => {
            memtable.insert_range_tombstone(start, end, seq, first);
            InsertOutcome::default()
        }
    }
}
