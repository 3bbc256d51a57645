//! Configures memtables of every kind.

use std::sync::Arc;

use terrane_memtable::{
    BTreeConfig, Config, DrainInsert, ExpectedKeys, FloDbConfig, HashLinkedListConfig,
    HashSkipListConfig, HashVectorConfig, HashView, LowerLevel, Memtable, SkipListConfig, Update,
    VectorConfig, VectorQuery,
};
use terrane_policy::flodb::{self, FloDb};
use terrane_policy::{self as policy, Design, MemtableKind, OrderedView};

use crate::engine::context::MemtableMemory;

/// The size of a bucket of the Membuffer, and its capacity in keys.
const BUCKET_BYTES: u64 = 64;
const BUCKET_KEYS: u64 = 6;

/// The assumed size of an entry until a memtable has entries.
const ENTRY_BYTES_GUESS: u64 = 200;

/// Buckets fill unevenly, so the Membuffer gets space for three keys for every two that it should
/// hold.
const SPARE: (u64, u64) = (3, 2);

/// Creates an empty memtable for a design, to replace `before`.
pub(crate) fn new_memtable(
    design: &Design,
    memory: &MemtableMemory,
    before: Option<&Memtable>,
) -> Arc<Memtable> {
    let Design { memtable, buffer_bytes, .. } = memory.fitted(design);
    memtable_of(memtable, buffer_bytes, memory, before)
}

pub(super) fn memtable_of(
    kind: MemtableKind,
    buffer_bytes: u64,
    memory: &MemtableMemory,
    before: Option<&Memtable>,
) -> Arc<Memtable> {
    let config = memtable_config(kind, buffer_bytes, before);
    let keys = before.map_or(ExpectedKeys::Unknown, ExpectedKeys::Like);
    Memtable::with_keys(config, memory.pool(), keys)
}

/// Returns the configuration of a memtable of a kind. If the design leaves the kind open, the
/// default kind is used until enough operations are known for a choice.
pub(crate) fn memtable_config(
    kind: MemtableKind,
    buffer_bytes: u64,
    before: Option<&Memtable>,
) -> Config {
    let in_memory = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let hash_view = |view| match view {
        OrderedView::Kept => HashView::Kept,
        OrderedView::Copy => HashView::Copy,
    };
    match kind {
        MemtableKind::Auto | MemtableKind::BTree => Config::BTree(BTreeConfig),
        MemtableKind::SkipList { branching, height } => {
            Config::SkipList(SkipListConfig { branching, height })
        }
        MemtableKind::Vector { prealloc_bytes, query } => Config::Vector(VectorConfig {
            prealloc_bytes: in_memory(prealloc_bytes),
            query: match query {
                policy::VectorQuery::Resort => VectorQuery::Resort,
                policy::VectorQuery::Copy => VectorQuery::Copy,
                policy::VectorQuery::Scan => VectorQuery::Scan,
            },
        }),
        MemtableKind::HashSkipList { prefix, buckets, height, view } => {
            Config::HashSkipList(HashSkipListConfig {
                prefix: prefix.into(),
                buckets: buckets as usize,
                height,
                view: hash_view(view),
            })
        }
        MemtableKind::HashLinkedList { prefix, buckets, threshold, view } => {
            Config::HashLinkedList(HashLinkedListConfig {
                prefix: prefix.into(),
                buckets: buckets as usize,
                threshold: threshold as usize,
                view: hash_view(view),
            })
        }
        MemtableKind::HashVector { prefix, buckets, view } => {
            Config::HashVector(HashVectorConfig {
                prefix: prefix.into(),
                buckets: buckets as usize,
                view: hash_view(view),
            })
        }
        MemtableKind::FloDb(flodb) => Config::FloDb(flodb_config(flodb, buffer_bytes, before)),
    }
}

/// Returns the configuration of a FloDB memtable. The Membuffer is sized by the entries of the
/// previous memtable.
fn flodb_config(flodb: FloDb, buffer_bytes: u64, before: Option<&Memtable>) -> FloDbConfig {
    let seen = before.filter(|before| before.len() > 100);
    let entry_bytes = seen
        .map_or(ENTRY_BYTES_GUESS, |before| (before.filled_bytes() / before.len()).max(1) as u64);
    let front_bytes = buffer_bytes / 100 * u64::from(flodb.membuffer_percent);
    let keys = front_bytes / entry_bytes * SPARE.0 / SPARE.1;
    // The hash table itself takes at most half of the Membuffer, even if entries are small.
    let most = front_bytes / 2 / BUCKET_BYTES;
    let buckets =
        if flodb.membuffer_percent == 0 { 0 } else { (keys / BUCKET_KEYS).min(most).max(1) };
    FloDbConfig {
        buckets: usize::try_from(buckets).unwrap_or(usize::MAX),
        partition_bits: flodb.partition_bits,
        lower: match flodb.lower {
            flodb::LowerLevel::BTree => LowerLevel::BTree,
            flodb::LowerLevel::SkipList => LowerLevel::SkipList,
        },
        insert: match flodb.insert {
            flodb::DrainInsert::Single => DrainInsert::Single,
            flodb::DrainInsert::Multi => DrainInsert::Multi,
        },
        update: match flodb.update {
            flodb::UpdateMode::InPlace => Update::InPlace,
            flodb::UpdateMode::Versions => Update::Versions,
        },
    }
}
