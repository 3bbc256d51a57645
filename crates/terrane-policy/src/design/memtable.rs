//! The structure that buffers writes, and its text form: a name, followed in parentheses by the
//! settings that differ from their defaults.
//!
//! ```text
//! auto
//! btree
//! skiplist(branching=4,height=12)
//! vector(prealloc=8MiB,query=resort)
//! hash-skiplist(prefix=6,buckets=100000,height=12,view=kept)
//! hash-linkedlist(prefix=6,buckets=100000,threshold=256,view=kept)
//! hash-vector(buckets=100000,prefix=255,view=kept)
//! flodb(membuffer=25%,partition-bits=4,drain-threads=1)
//! ```

mod text;

use super::flodb::FloDb;
use crate::error::ParseError;
use crate::units::format_bytes;

/// The structure that buffers writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemtableKind {
    /// Chosen at each rotation from the operations since the previous one, by
    /// [`choose`](crate::memtable_choice::choose).
    Auto,
    /// A concurrent B-link tree: adjacent keys share nodes, so inserts and lookups have few cache
    /// misses.
    BTree,
    /// A concurrent skip-list.
    SkipList {
        /// One in `branching` nodes that reach a height also reaches the next height; 2 to 16.
        branching: u8,
        /// The maximum height of a node; 1 to 20.
        height: u8,
    },
    /// An array of entries in order of arrival: inserts are cheapest and memory use is lowest, but
    /// reads must sort.
    Vector {
        /// Bytes allocated when the memtable is created; 0 for an array that doubles.
        prealloc_bytes: u64,
        /// How reads find entries.
        query: VectorQuery,
    },
    /// A skip-list in each bucket of a hash table. Reads within one prefix search one bucket; ranges
    /// that span prefixes sort.
    HashSkipList {
        /// The number of leading bytes of a key that choose its bucket; 0 to 255.
        prefix: u8,
        /// The number of buckets; each takes 8 bytes even if it is empty.
        buckets: u32,
        /// The maximum height of a node; 1 to 20.
        height: u8,
        /// How a range that spans prefixes is read.
        view: OrderedView,
    },
    /// A sorted linked list in each bucket of a hash table.
    HashLinkedList {
        /// The number of leading bytes of a key that choose its bucket; 0 to 255.
        prefix: u8,
        /// The number of buckets; each takes 8 bytes even if it is empty.
        buckets: u32,
        /// The length at which a list becomes a skip-list; 0 means never.
        threshold: u32,
        /// How a range that spans prefixes is read.
        view: OrderedView,
    },
    /// Entries in order of arrival in each bucket of a hash table: inserts search nothing, lookups
    /// search one bucket, ranges sort.
    HashVector {
        /// The number of leading bytes of a key that choose its bucket; 0 to 255.
        prefix: u8,
        /// The number of buckets; each takes 8 bytes even if it is empty.
        buckets: u32,
        /// How a range that spans prefixes is read.
        view: OrderedView,
    },
    /// A hash table in front of an ordered structure.
    FloDb(FloDb),
}

/// How reads of a vector find entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VectorQuery {
    /// Sorted entries stay sorted; a read sorts the entries added since.
    #[default]
    Resort,
    /// Every read copies and sorts everything, as RocksDB does.
    Copy,
    /// Lookups compare two bytes of a hash of each unsorted key; only ranges sort.
    Scan,
}

/// What a hashed memtable reads for a range that spans prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OrderedView {
    /// A sorted view of all entries that is built once and then updated.
    #[default]
    Kept,
    /// A copy of all entries, sorted each time, as RocksDB does.
    Copy,
}

/// The bytes that an empty bucket takes.
const BUCKET_BYTES: u64 = 8;

const BRANCHING_USUAL: u8 = 4;
const HEIGHT_USUAL: u8 = 12;

/// The threshold at which RocksDB turns a list into a skip-list.
const THRESHOLD_USUAL: u32 = 256;

/// In a hash vector the whole key, up to 255 bytes, chooses the bucket.
const PREFIX_USUAL: u8 = u8::MAX;

impl MemtableKind {
    /// The skip-list with default settings.
    ///
    /// Branching 4 costs 1.33 links per node. Because each link stores the head of the next key
    /// (its first bytes), a search rarely visits a node only to find that the node's key is too
    /// large.
    pub const SKIP_LIST: MemtableKind =
        MemtableKind::SkipList { branching: BRANCHING_USUAL, height: HEIGHT_USUAL };

    /// Returns the number of threads that drain memtables of this kind.
    pub fn drain_threads(&self) -> usize {
        match self {
            Self::FloDb(flodb) => usize::from(flodb.drain_threads),
            // FloDB may be chosen at any time.
            Self::Auto => usize::from(FloDb::DEFAULT.drain_threads),
            _ => 0,
        }
    }

    /// Examples of every kind, from which tests draw. They are small enough for a buffer of a
    /// kilobyte.
    pub const EXAMPLES: &[&str] = &[
        "auto",
        "btree",
        "skiplist",
        "skiplist(branching=2,height=3)",
        "vector",
        "vector(prealloc=2KiB)",
        "vector(query=copy)",
        "vector(query=scan)",
        "hash-vector(buckets=50)",
        "hash-vector(buckets=3,prefix=1)",
        "hash-skiplist(prefix=2,buckets=20)",
        "hash-skiplist(prefix=0,buckets=1,view=copy)",
        "hash-linkedlist(prefix=3,buckets=50)",
        "hash-linkedlist(prefix=1,buckets=3,threshold=5)",
        "hash-linkedlist(prefix=200,buckets=30,threshold=0)",
        "flodb",
        "flodb(membuffer=90%,partition-bits=0,drain-threads=2)",
        "flodb(membuffer=50%,partition-bits=2,drain-threads=0,insert=single,update=versions)",
        "flodb(membuffer=25%,partition-bits=4,drain-threads=2,update=versions,scan=restart)",
        "flodb(membuffer=50%,partition-bits=1,drain-threads=1,lower=skiplist,scan=restart,restarts-max=1,moment=fresh,chain-max=3)",
    ];

    /// The vector with default settings.
    pub const VECTOR: MemtableKind =
        MemtableKind::Vector { prealloc_bytes: 0, query: VectorQuery::Resort };

    /// Describes what the kind is good for, in a sentence or two; `docs/papers/memtables.md` has the details.
    pub const fn about(&self) -> &'static str {
        match self {
            Self::Auto => {
                "chosen at each rotation from the operations since the previous one, and changed \
                 only if that is expected to save more than a twentieth"
            }
            Self::BTree => {
                "fast inserts, lookups and ranges: the best choice unless one of them dominates"
            }
            Self::SkipList { .. } => {
                "the memtable of most LSM engines: even costs, but a cache miss per search step"
            }
            Self::Vector { prealloc_bytes: 0, query: VectorQuery::Resort } => {
                "the cheapest inserts and the least memory, for many writes and few reads: a read \
                 sorts the entries added since the previous one. With prealloc, no insert waits \
                 while the array doubles"
            }
            Self::Vector { query: VectorQuery::Resort, .. } => {
                "the cheapest inserts and the least memory, for many writes and few reads: a read \
                 sorts the entries added since the previous one"
            }
            Self::Vector { query: VectorQuery::Scan, .. } => {
                "the cheapest inserts, and lookups that compare two bytes of each unsorted entry \
                 but never sort: for many writes and few lookups. A range sorts the entries added \
                 since the previous one"
            }
            Self::Vector { query: VectorQuery::Copy, .. } => {
                "copies and sorts everything at every read: only for comparison with other engines"
            }
            Self::HashSkipList { .. } | Self::HashLinkedList { .. } => {
                "lookups and ranges within a prefix search one bucket; other ranges sort. Choose a \
                 prefix no longer than the one that the keys of a range share, and about as many \
                 buckets as prefixes or as entries of a full buffer, whichever is less"
            }
            Self::HashVector { .. } => {
                "inserts search nothing and lookups search one bucket: for writes and point \
                 lookups without ranges, which sort. Choose about as many buckets as entries of a \
                 full buffer, and a prefix only if ranges stay within one"
            }
            Self::FloDb(_) => {
                "a write to a key that is still in the Membuffer updates it in place: for few keys \
                 that are overwritten again and again. Other writes cost more than in the B-link \
                 tree alone, and ranges drain the partitions that they read"
            }
        }
    }

    /// Checks that the settings fit a buffer of this size.
    pub(super) fn validate(&self, buffer_bytes: u64) -> Result<(), ParseError> {
        let refuse =
            |found: String, expected: String| Err(ParseError::new("memtable", found, expected));
        match *self {
            Self::Auto | Self::BTree => Ok(()),
            Self::SkipList { branching, height } => {
                if !(2..=16).contains(&branching) {
                    return refuse(format!("branching={branching}"), "2 to 16".into());
                }
                check_height(height)
            }
            Self::Vector { prealloc_bytes, .. }
                if prealloc_bytes > buffer_bytes.saturating_mul(2) =>
            {
                refuse(
                    format!("prealloc={}", format_bytes(prealloc_bytes)),
                    format!(
                        "at most twice the buffer of {}; most of a larger array would stay unused",
                        format_bytes(buffer_bytes)
                    ),
                )
            }
            Self::Vector { .. } => Ok(()),
            Self::HashSkipList { buckets, height, .. } => {
                check_height(height)?;
                check_buckets(buckets, buffer_bytes)
            }
            Self::HashLinkedList { buckets, .. } | Self::HashVector { buckets, .. } => {
                check_buckets(buckets, buffer_bytes)
            }
            Self::FloDb(flodb) => flodb.validate(),
        }
    }
}

fn check_height(height: u8) -> Result<(), ParseError> {
    if (1..=20).contains(&height) {
        return Ok(());
    }
    Err(ParseError::new("memtable", format!("height={height}"), "1 to 20"))
}

fn check_buckets(buckets: u32, buffer_bytes: u64) -> Result<(), ParseError> {
    let most = buffer_bytes / 2 / BUCKET_BYTES;
    if (1..=most).contains(&u64::from(buckets)) {
        return Ok(());
    }
    let expected = format!(
        "1 to {most}: each takes {BUCKET_BYTES} bytes, and half of the buffer of {} must remain for entries",
        format_bytes(buffer_bytes)
    );
    Err(ParseError::new("memtable", format!("buckets={buckets}"), expected))
}
