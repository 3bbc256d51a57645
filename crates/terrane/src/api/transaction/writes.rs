//! What a transaction wrote: the newest operation on each key, and the ranges that it deleted before.

use std::collections::BTreeMap;
use std::collections::btree_map::{self, Entry};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;
use std::time::Duration;

use super::by_keyspace::ByKeyspace;
use super::key_ranges::KeyRanges;
use crate::base::clock::Clock;
use crate::base::error::Result;
use crate::base::expiry::micros_of;
use crate::base::memory_ledger::{MemoryLedger, SteppedCharge};
use crate::base::types::{KeyspaceId, SeqNo};
use crate::engine::{Engine, Tree, WrittenKeys};
use crate::files::batch::{Batch, Op};
use crate::files::value::{Key, Value};

/// The writes of a transaction in all keyspaces.
#[derive(Debug, Clone)]
pub(super) struct Writes {
    trees: ByKeyspace<TreeWrites>,
    charge: SteppedCharge,
}

/// The assumed memory of an entry of a map besides its key and value.
pub(super) const ENTRY_BYTES: usize = 64;

/// The writes in one keyspace.
#[derive(Debug, Clone, Default)]
pub(super) struct TreeWrites {
    /// The value of each key; `None` if it was deleted.
    keys: BTreeMap<Key, Option<Value>>,
    /// The expiry times of values that have one.
    expiries: BTreeMap<Key, ValueExpiry>,
    /// The operands of keys whose value below them expires. They outlast it, as after the same operations in
    /// a batch.
    merged: BTreeMap<Key, Merged>,
    /// Deleted before `keys` were written.
    deleted: KeyRanges,
}

/// Operands, and the value below them that this transaction wrote; `None` if it wrote none.
#[derive(Debug, Clone)]
struct Merged {
    base: Option<(Value, Option<ValueExpiry>)>,
    operands: Vec<Value>,
}

impl Merged {
    /// Returns the memory of the operands and of the value below them.
    fn bytes(&self, key: &[u8]) -> usize {
        let base = self.base.as_ref().map_or(0, |(value, _)| entry_bytes(key, Some(value)));
        base + self.operands.iter().map(|operand| operand_bytes(operand)).sum::<usize>()
    }
}

/// When a written value expires.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueExpiry {
    /// After this time, counted from the commit.
    After(Duration),
    /// At this time, in microseconds since the Unix epoch.
    At(u64),
}

impl ValueExpiry {
    /// Returns the expiry time of a value that is committed at `now_micros`.
    pub(super) fn micros(self, now_micros: u64) -> u64 {
        match self {
            Self::After(ttl) => now_micros.saturating_add(micros_of(ttl)),
            Self::At(micros) => micros,
        }
    }
}

/// Adds a put to a batch. With the time of the commit, times to live become expiry times.
fn add_put(
    batch: &mut Batch,
    id: KeyspaceId,
    (key, value): (&[u8], &[u8]),
    expiry: Option<ValueExpiry>,
    now_micros: Option<u64>,
) {
    match (expiry, now_micros) {
        (None, _) => batch.add(id, Op::Put { key, value }),
        (Some(ValueExpiry::After(ttl)), None) => batch.add_with_ttl(id, (key, value), ttl),
        (Some(expiry), now_micros) => {
            batch.add_expiring(id, (key, value), expiry.micros(now_micros.unwrap_or(0)));
        }
    }
}

/// The written keys of a range, in order.
pub(super) type WrittenEntries<'a> = btree_map::Range<'a, Key, Option<Value>>;

impl TreeWrites {
    /// Returns the value of a key after these writes; `None` if they do not affect it.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Value>> {
        let written = self.keys.get(key).cloned();
        written.or_else(|| self.deleted.contains(key).then_some(None))
    }

    /// Returns when the written value of a key expires.
    pub(super) fn expiry(&self, key: &[u8]) -> Option<ValueExpiry> {
        self.expiries.get(key).copied()
    }

    /// Returns whether a put or the value below a merge has an operand that outlasts it.
    pub(super) fn has_operands(&self, key: &[u8]) -> bool {
        self.merged.contains_key(key)
    }

    fn has_fixed_expiries(&self) -> bool {
        let below = self.merged.values().filter_map(|merged| merged.base.as_ref()?.1);
        let mut expiries = self.expiries.values().copied().chain(below);
        expiries.any(|expiry| matches!(expiry, ValueExpiry::At(_)))
    }

    pub(super) fn deleted(&self) -> &KeyRanges {
        &self.deleted
    }

    /// Drops the operands of a key whose value was `before`. Returns the memory that both took.
    fn drop_operands(&mut self, key: &[u8], before: Option<Option<Value>>) -> usize {
        let value = before.map_or(0, |value| entry_bytes(key, value.as_deref()));
        value + self.merged.remove(key).map_or(0, |merged| merged.bytes(key))
    }

    /// Returns the written keys from `start` to the exclusive `end`.
    pub(super) fn range(&self, start: &[u8], end: Option<&[u8]>) -> WrittenEntries<'_> {
        match end {
            // An empty range, for which `BTreeMap::range` may panic.
            Some(end) if end <= start => self.keys.range::<[u8], _>((Unbounded, Excluded(&[][..]))),
            _ => self.keys.range::<[u8], _>((Included(start), end.map_or(Unbounded, Excluded))),
        }
    }
}

/// Returns the memory of a written key.
fn entry_bytes(key: &[u8], value: Option<&[u8]>) -> usize {
    ENTRY_BYTES + key.len() + value.map_or(0, <[u8]>::len)
}

/// Returns the memory of an operand.
fn operand_bytes(operand: &[u8]) -> usize {
    size_of::<Value>() + operand.len()
}

impl Writes {
    pub(super) fn new(ledger: &Arc<MemoryLedger>) -> Self {
        let charge = SteppedCharge::new(ledger, |ledger| &ledger.transactions);
        Self { trees: ByKeyspace::default(), charge }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.trees.iter().all(|(_, writes)| writes.keys.is_empty() && writes.deleted.is_empty())
    }

    /// Returns the writes in a keyspace.
    pub(super) fn in_tree(&self, tree: &Tree) -> Option<&TreeWrites> {
        self.trees.get(tree.id)
    }

    /// Notes a put.
    pub(super) fn put(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        value: &[u8],
        expiry: Option<ValueExpiry>,
    ) {
        self.charge.add(entry_bytes(key, Some(value)));
        let writes = self.trees.get_or_insert(tree);
        let before = writes.keys.insert(key.into(), Some(value.into()));
        self.charge.remove(writes.drop_operands(key, before));
        match expiry {
            Some(expiry) => writes.expiries.insert(key.into(), expiry),
            None => writes.expiries.remove(key),
        };
    }

    /// Notes an operand on a value that expires, and the value that results until then.
    pub(super) fn merge(&mut self, tree: &Arc<Tree>, key: &[u8], combined: &[u8], operand: &[u8]) {
        self.charge.add(entry_bytes(key, Some(combined)) + operand_bytes(operand));
        let writes = self.trees.get_or_insert(tree);
        let below = writes.keys.insert(key.into(), Some(combined.into()));
        let expiry = writes.expiries.remove(key);
        let merged = match writes.merged.entry(key.into()) {
            Entry::Vacant(entry) => {
                let base = below.flatten().map(|value| (value, expiry));
                entry.insert(Merged { base, operands: Vec::new() })
            }
            Entry::Occupied(entry) => {
                self.charge.remove(entry_bytes(key, below.flatten().as_deref()));
                entry.into_mut()
            }
        };
        merged.operands.push(operand.into());
    }

    /// Notes the deletion of a key.
    pub(super) fn delete(&mut self, tree: &Arc<Tree>, key: &[u8]) {
        self.charge.add(entry_bytes(key, None));
        let writes = self.trees.get_or_insert(tree);
        let before = writes.keys.insert(key.into(), None);
        self.charge.remove(writes.drop_operands(key, before));
    }

    /// Notes the deletion of the keys from `start` to the exclusive `end`.
    pub(super) fn delete_range(&mut self, tree: &Arc<Tree>, start: &[u8], end: Option<&[u8]>) {
        let writes = self.trees.get_or_insert(tree);
        let hidden: Vec<Key> = writes.range(start, end).map(|(key, _)| key.clone()).collect();
        for key in &hidden {
            let before = writes.keys.remove(key);
            self.charge.remove(writes.drop_operands(key, before));
        }
        writes.deleted.add(start, end);
        self.charge.add(entry_bytes(start, end));
    }

    /// Returns the operations as a batch that is committed at the time of `clock`.
    pub(super) fn to_batch(&self, clock: &dyn Clock) -> Batch {
        let mut batch = Batch::default();
        // A batch has either times to live or fixed expiry times, not both.
        let has_fixed = self.trees.iter().any(|(_, writes)| writes.has_fixed_expiries());
        let now_micros = has_fixed.then(|| clock.now_micros());
        for (tree, TreeWrites { keys, expiries, merged, deleted }) in self.trees.iter() {
            let id = tree.id;
            deleted.iter().for_each(|(start, end)| batch.add(id, Op::DeleteRange { start, end }));
            for (key, value) in keys {
                match (merged.get(key), value) {
                    (Some(Merged { base, operands }), _) => {
                        if let Some((value, expiry)) = base {
                            add_put(&mut batch, id, (key, value), *expiry, now_micros);
                        }
                        for operand in operands {
                            batch.add(id, Op::Merge { key, operand });
                        }
                    }
                    (None, Some(value)) => {
                        let expiry = expiries.get(key).copied();
                        add_put(&mut batch, id, (key, value), expiry, now_micros);
                    }
                    (None, None) => batch.add(id, Op::Delete { key }),
                }
            }
        }
        batch
    }

    /// Returns whether another write since `since` changed a key that these writes change.
    pub(super) fn is_changed(&self, engine: &Engine, since: SeqNo) -> Result<bool> {
        for (tree, TreeWrites { keys, deleted, .. }) in self.trees.iter() {
            if tree.last_seq() <= since {
                continue;
            }
            for key in keys.keys() {
                // As if a read had found the key, so that deletions count as well.
                if engine.reader.is_key_changed(tree, key, true, since)? {
                    return Ok(true);
                }
            }
            for range in deleted.iter() {
                if engine.reader.is_range_changed(tree, range, since)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns whether a write changes a key that these writes change.
    pub(super) fn concerns(&self, written: &WrittenKeys) -> bool {
        let (WrittenKeys::One(id, _) | WrittenKeys::Range(id, ..)) = written;
        self.trees.get(*id).is_some_and(|writes| match written {
            WrittenKeys::One(_, key) => writes.get(key).is_some(),
            WrittenKeys::Range(_, start, end) => {
                let end = end.as_deref();
                writes.range(start, end).next().is_some() || writes.deleted.overlaps(start, end)
            }
        })
    }
}
