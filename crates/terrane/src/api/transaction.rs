//! Transactions: reads and writes that happen as one, or not at all.
//!
//! A transaction is optimistic (Kung and Robinson, TODS 1981, backward validation): it reads from a
//! snapshot, collects its writes in memory, and takes no lock before its commit. The commit checks, under
//! the writer lock, that what the transaction read has not changed since (`engine/write/commit.rs`). Its
//! writes then directly follow every write that it read, which is a serial order.
//!
//! | module | one line |
//! |---|---|
//! | `options` | isolation, durability, attempts |
//! | `by_keyspace` | reads or writes by keyspace |
//! | `key_ranges` | a set of keys, as disjoint ranges |
//! | `reads` | what the transaction read |
//! | `writes` | what it wrote |
//! | `reading` | lookups and iterators |
//! | `expiry` | values that expire |
//! | `iter` | iterators over a snapshot and the transaction's own writes |
//! | `gate` | lets a transaction that failed often go first |
//! | `retry` | runs a function until its transaction succeeds |
//! | `single` | transactions on one key |

mod by_keyspace;
mod expiry;
pub(crate) mod gate;
mod iter;
mod key_ranges;
mod options;
mod reading;
mod reads;
mod retry;
mod single;
mod writes;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use crate::api::db::Db;
use crate::api::handle::Handle;
use crate::api::keyspace::Keyspace;
use crate::api::transaction::gate::GatePass;
use crate::base::error::{Error, Result};
use crate::base::merge_operator::{OperandChain, no_merge_operator};
use crate::base::range::{KeyBounds, bounds_of};
use crate::base::stats::{Sample, Timed};
use crate::engine::snapshot_pin::SnapshotPin;
use crate::engine::{Commit, CommitCondition, Engine, Tree, WrittenKeys};
use reads::Reads;
use writes::{ValueExpiry, Writes};

pub use iter::TransactionIter;
pub use options::{Isolation, TransactionOptions};

/// Reads and writes that happen as one, or not at all.
///
/// [`Db::transaction`] runs a function with a transaction and commits it, again if it conflicts with
/// another write. [`Db::begin`] returns a transaction to be committed by [`Self::commit`]; dropping it
/// rolls it back.
///
/// Reads return the state at the beginning of the transaction, plus its own writes. A value whose
/// time to live expires before the commit still counts as read. Nobody else sees the writes before
/// the commit. The transaction keeps its reads and writes in memory, and the versions that it could
/// read on disk, so it should be short.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// let taken = db.transaction(|tx| {
///     if tx.contains("seat 12")? {
///         return Ok(false);
///     }
///     tx.put("seat 12", "Ada");
///     Ok(true)
/// })?;
/// assert!(taken);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    handle: Arc<Handle>,
    default: Arc<Tree>,
    snapshot: Arc<SnapshotPin>,
    options: TransactionOptions,
    reads: RefCell<Reads>,
    writes: Writes,
    savepoints: Vec<Writes>,
    /// Held by a transaction that goes first.
    pass: Option<GatePass>,
    _open: OpenTransaction,
}

/// Counts an open transaction until it is dropped.
#[derive(Debug)]
struct OpenTransaction(Arc<Engine>);

impl OpenTransaction {
    fn new(engine: &Arc<Engine>) -> Self {
        engine.pipeline.begin_transaction();
        Self(Arc::clone(engine))
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.0.pipeline.end_transaction();
    }
}

impl Db {
    /// Begins a serializable transaction, with the durability of the database.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let mut tx = db.begin();
    /// let count: u64 = tx.get("count")?.map_or(0, |count| count.len() as u64);
    /// tx.put("count", "x".repeat(count as usize + 1));
    /// tx.commit()?;
    /// assert_eq!(db.get("count")?.unwrap(), "x");
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&self) -> Transaction {
        self.begin_with(TransactionOptions::new())
    }

    /// Begins a transaction.
    pub fn begin_with(&self, options: TransactionOptions) -> Transaction {
        let Keyspace { handle, tree } = self.default_keyspace();
        Transaction::begin(handle, tree, options)
    }
}

impl Transaction {
    fn begin(handle: &Arc<Handle>, default: &Arc<Tree>, options: TransactionOptions) -> Self {
        // Counted before the snapshot is taken, so that writers after the snapshot note their keys.
        let open = OpenTransaction::new(&handle.engine);
        let ledger = &handle.engine.context.ledger;
        Self {
            handle: Arc::clone(handle),
            default: Arc::clone(default),
            snapshot: SnapshotPin::new(&handle.engine),
            options,
            reads: RefCell::new(Reads::new(ledger)),
            writes: Writes::new(ledger),
            savepoints: Vec::new(),
            pass: None,
            _open: open,
        }
    }

    /// Sets the value of a key.
    #[doc(alias("insert", "set", "upsert"))]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.writes.put(&self.default, key.as_ref(), value.as_ref(), None);
    }

    /// Sets the value of a key of a keyspace.
    ///
    /// # Errors
    /// The keyspace belongs to another database.
    #[doc(alias("insert_in", "set_in"))]
    pub fn put_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        keyspace.check_of(&self.handle)?;
        self.writes.put(&keyspace.tree, key.as_ref(), value.as_ref(), None);
        Ok(())
    }

    /// Sets the value of a key, which expires when `ttl` has passed since the commit; see
    /// [`WriteOptions::ttl`](crate::WriteOptions::ttl).
    pub fn put_with_ttl(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) {
        self.writes.put(&self.default, key.as_ref(), value.as_ref(), Some(ValueExpiry::After(ttl)));
    }

    /// Sets the value of a key of a keyspace, which expires after a time, as with [`Self::put_with_ttl`].
    ///
    /// # Errors
    /// The keyspace belongs to another database.
    pub fn put_with_ttl_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        keyspace.check_of(&self.handle)?;
        self.writes.put(
            &keyspace.tree,
            key.as_ref(),
            value.as_ref(),
            Some(ValueExpiry::After(ttl)),
        );
        Ok(())
    }

    /// Combines the value of a key with an operand by the operator of the default keyspace; see
    /// [`Keyspace::merge`]. In a transaction this reads the key. As outside of transactions, the operand does
    /// not expire: once the value below it has expired, the key has the value that the operand alone yields.
    ///
    /// # Errors
    /// The keyspace has no operator, the operator cannot combine the operand with the value, a table
    /// could not be read, or the database was closed.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let default = Arc::clone(&self.default);
        self.merge_into(&default, key.as_ref(), operand.as_ref())
    }

    /// Combines the value of a key of a keyspace with an operand, as [`Self::merge`] does.
    ///
    /// # Errors
    /// Those of [`Self::merge`], or the keyspace belongs to another database.
    pub fn merge_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        keyspace.check_of(&self.handle)?;
        self.merge_into(&keyspace.tree, key.as_ref(), operand.as_ref())
    }

    fn merge_into(&mut self, tree: &Arc<Tree>, key: &[u8], operand: &[u8]) -> Result<()> {
        let operator =
            tree.functions.merge_operator().get().ok_or_else(|| no_merge_operator(tree.name()))?;
        let (value, expires_at) = self.get_with_expiry_of(tree, key)?.unzip();
        let mut chain = OperandChain::default();
        chain.push(Some(&**operator), key, (1, operand));
        let combined = chain.value(Some(&**operator), key, value.as_deref())?;
        let written = self.writes.in_tree(tree);
        let is_written = written.is_some_and(|writes| writes.get(key).is_some());
        let has_default_ttl = tree.default_ttl().get().is_some();
        let expires = value.is_some()
            && (expires_at.flatten().is_some()
                || written.is_some_and(|writes| writes.has_operands(key))
                || is_written
                    && has_default_ttl
                    && written.is_some_and(|writes| writes.expiry(key).is_none()));
        if expires {
            self.writes.merge(tree, key, &combined, operand);
            return Ok(());
        }
        // Like an operand, the result does not expire.
        let expiry = tree.default_ttl().get().map(|_| ValueExpiry::After(Duration::MAX));
        self.writes.put(tree, key, &combined, expiry);
        Ok(())
    }

    /// Removes a key, whether it exists or not.
    #[doc(alias("remove", "erase", "del"))]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.writes.delete(&self.default, key.as_ref());
    }

    /// Removes a key of a keyspace.
    ///
    /// # Errors
    /// The keyspace belongs to another database.
    #[doc(alias = "remove_in")]
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        keyspace.check_of(&self.handle)?;
        self.writes.delete(&keyspace.tree, key.as_ref());
        Ok(())
    }

    /// Removes all keys of a range.
    #[doc(alias = "remove_range")]
    pub fn delete_range(&mut self, range: impl KeyBounds) {
        let (start, end) = bounds_of(&range);
        self.writes.delete_range(&self.default, &start, end.as_deref());
    }

    /// Removes all keys of a range of a keyspace.
    ///
    /// # Errors
    /// The keyspace belongs to another database.
    pub fn delete_range_in(&mut self, keyspace: &Keyspace, range: impl KeyBounds) -> Result<()> {
        keyspace.check_of(&self.handle)?;
        let (start, end) = bounds_of(&range);
        self.writes.delete_range(&keyspace.tree, &start, end.as_deref());
        Ok(())
    }

    /// Marks the current writes, for [`Self::roll_back_to_savepoint`]. Savepoints nest.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let mut tx = db.begin();
    /// tx.put("a", "1");
    /// tx.savepoint();
    /// tx.put("b", "2");
    /// tx.roll_back_to_savepoint();
    /// tx.commit()?;
    /// assert!(db.contains("a")? && !db.contains("b")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn savepoint(&mut self) {
        self.savepoints.push(self.writes.clone());
    }

    /// Undoes the writes since the last savepoint, and removes it. Returns false if there is none. The
    /// transaction still depends on all its reads since then.
    pub fn roll_back_to_savepoint(&mut self) -> bool {
        let last = self.savepoints.pop();
        let is_any = last.is_some();
        if let Some(writes) = last {
            self.writes = writes;
        }
        is_any
    }

    /// Removes the last savepoint and keeps the writes since. Returns false if there is none.
    pub fn release_savepoint(&mut self) -> bool {
        self.savepoints.pop().is_some()
    }

    /// Discards the writes, as dropping the transaction does.
    pub fn roll_back(self) {}

    /// Performs the writes, unless the transaction conflicts with another write since it began. Returns
    /// once all readers see them and they have the requested durability. A transaction without writes
    /// never conflicts.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let mut tx = db.begin();
    /// let stock = tx.get("stock")?;
    /// tx.put("seen", stock.as_deref().unwrap_or(b"nothing"));
    /// // Another write changes the value that the transaction read.
    /// db.put("stock", "7")?;
    /// assert_eq!(tx.commit().unwrap_err().kind(), terrane::ErrorKind::Conflict);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Conflict`](crate::ErrorKind::Conflict): the transaction conflicts. Nothing changed.
    /// - Those of [`Db::write`]; reading tables for the check may fail as well.
    pub fn commit(self) -> Result<()> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let sample = Sample::begin();
        let engine = &self.handle.engine;
        engine.context.health.check_process()?;
        let durability =
            self.options.durability.unwrap_or_else(|| engine.context.settings.durability);
        let batch = self.writes.to_batch(&*engine.context.clock);
        let batch = engine.prepared(&batch)?;
        if self.pass.is_none() {
            self.handle.gate.wait();
        }
        match engine.writer.commit(&batch, durability, &self)? {
            Commit::Done => {
                sample.end(&engine.context.counters.durations, Timed::Commit);
                Ok(())
            }
            Commit::Conflict => Err(Error::Conflict { attempts: 1 }),
        }
    }

    /// Returns the sequence number of the newest write that the transaction reads.
    pub fn sequence_number(&self) -> u64 {
        self.snapshot.seq()
    }
}

impl CommitCondition for Transaction {
    fn is_violated(&self) -> Result<bool> {
        let (engine, since) = (&self.handle.engine, self.snapshot.seq());
        match self.options.isolation {
            Isolation::Serializable => self.reads.borrow().is_changed(engine, since),
            Isolation::Snapshot => self.writes.is_changed(engine, since),
        }
    }

    fn is_violated_by(&self, keys: &WrittenKeys) -> bool {
        match self.options.isolation {
            Isolation::Serializable => self.reads.borrow().concerns(keys),
            Isolation::Snapshot => self.writes.concerns(keys),
        }
    }
}
