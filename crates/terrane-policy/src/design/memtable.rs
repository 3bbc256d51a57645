//! Which structure takes writes in memory, and its text form: a name, and in brackets what differs
//! from its usual settings.
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

use std::fmt::{self, Display};
use std::str::FromStr;

use super::flodb::FloDb;
use crate::error::ParseError;
use crate::units::{format_bytes, parse_bytes, parse_count};

/// Which structure takes writes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemtableKind {
    /// Chosen at each rotation from the operations since the one before, by
    /// [`choose`](crate::memtable_choice::choose).
    Auto,
    /// A concurrent B-link tree: neighbouring keys share nodes, so that inserts and lookups miss
    /// the cache a few times only.
    BTree,
    /// A concurrent skip-list.
    SkipList {
        /// One in `branching` nodes of a height also has the next height; 2 to 16.
        branching: u8,
        /// The largest height of a node; 1 to 20.
        height: u8,
    },
    /// An array in the order of arrival: the cheapest insert and the least memory; reads sort.
    Vector {
        /// Bytes taken when the memtable is made; 0 for an array that doubles.
        prealloc_bytes: u64,
        /// How reads find their order.
        query: VectorQuery,
    },
    /// A skip-list in each bucket of a hash table. Reads of one prefix search one bucket; ranges
    /// that leave a prefix sort.
    HashSkipList {
        /// The first bytes of a key, by which its bucket is chosen; 0 to 255.
        prefix: u8,
        /// The number of buckets; each takes 8 bytes even if it is empty.
        buckets: u32,
        /// The largest height of a node; 1 to 20.
        height: u8,
        /// What is read where a range leaves a prefix.
        view: OrderedView,
    },
    /// A sorted linked list in each bucket of a hash table.
    HashLinkedList {
        /// The first bytes of a key, by which its bucket is chosen; 0 to 255.
        prefix: u8,
        /// The number of buckets; each takes 8 bytes even if it is empty.
        buckets: u32,
        /// The length from which on a list becomes a skip-list; 0 for never.
        threshold: u32,
        /// What is read where a range leaves a prefix.
        view: OrderedView,
    },
    /// Entries in the order of arrival in each bucket of a hash table: inserts search nothing,
    /// lookups look into one bucket, ranges sort.
    HashVector {
        /// The first bytes of a key, by which its bucket is chosen; 0 to 255.
        prefix: u8,
        /// The number of buckets; each takes 8 bytes even if it is empty.
        buckets: u32,
        /// What is read where a range leaves a prefix.
        view: OrderedView,
    },
    /// A hash table in front of an ordered structure.
    FloDb(FloDb),
}

/// How reads of a vector find their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VectorQuery {
    /// What is sorted stays sorted; a read sorts what came since.
    #[default]
    Resort,
    /// Every read copies and sorts everything, as RocksDB does.
    Copy,
    /// Lookups search what is not sorted by two bytes of a hash of each key; only ranges sort.
    Scan,
}

/// What a hashed memtable reads where a range leaves a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OrderedView {
    /// An order of all entries that is made once and then brought up to date.
    #[default]
    Kept,
    /// A copy of all entries, sorted each time, as RocksDB does.
    Copy,
}

/// The forms that are accepted, for messages.
const FORMS: &str = "auto, btree, skiplist(branching=4,height=12), vector(prealloc=8MiB,query=resort), \
                     hash-skiplist(prefix=6,buckets=100000), \
                     hash-linkedlist(prefix=6,buckets=100000,threshold=256), \
                     hash-vector(buckets=100000,prefix=255) or \
                     flodb(membuffer=25%,partition-bits=4,drain-threads=1)";

const QUERIES: &str = "resort, copy or scan";

/// Bytes of a bucket without entries.
const BUCKET_BYTES: u64 = 8;

const BRANCHING_USUAL: u8 = 4;
const HEIGHT_USUAL: u8 = 12;

/// Where RocksDB turns a list into a skip-list.
const THRESHOLD_USUAL: u32 = 256;

/// Of a hash vector the whole key chooses the bucket, as far as keys are usual.
const PREFIX_USUAL: u8 = u8::MAX;

impl MemtableKind {
    /// The skip-list that is used unless its settings are given.
    ///
    /// Branching 4 costs 1.33 links a node; with the next key's head beside each link, a search
    /// visits few nodes that it does not pass.
    pub const SKIP_LIST: MemtableKind =
        MemtableKind::SkipList { branching: BRANCHING_USUAL, height: HEIGHT_USUAL };

    /// The array that is used unless its settings are given.
    pub const VECTOR: MemtableKind =
        MemtableKind::Vector { prealloc_bytes: 0, query: VectorQuery::Resort };

    /// What it is good for, in a sentence or two: the short form of `docs/memtables.md`.
    pub const fn about(&self) -> &'static str {
        match self {
            Self::Auto => {
                "chosen at each rotation from the operations since the one before, and changed \
                 only where that is worth a tenth"
            }
            Self::BTree => {
                "inserts, lookups and ranges are all fast: what to have unless one of them is \
                 everything"
            }
            Self::SkipList { .. } => {
                "what most LSM engines have: even costs, but a cache miss for every step of a search"
            }
            Self::Vector { prealloc_bytes: 0, query: VectorQuery::Resort } => {
                "the cheapest inserts and the least memory, for much writing and little reading: a \
                 read sorts what came since the last one. With prealloc no insert has to wait while \
                 it doubles"
            }
            Self::Vector { query: VectorQuery::Resort, .. } => {
                "the cheapest inserts and the least memory, for much writing and little reading: a \
                 read sorts what came since the last one"
            }
            Self::Vector { query: VectorQuery::Scan, .. } => {
                "the cheapest inserts, and lookups that take as long as it takes to look at two \
                 bytes of each entry, never longer: for much writing and few lookups. A range sorts \
                 what came since the last one"
            }
            Self::Vector { query: VectorQuery::Copy, .. } => {
                "copies and sorts everything at every read: only for comparison with other programs"
            }
            Self::HashSkipList { .. } | Self::HashLinkedList { .. } => {
                "a lookup searches one bucket, and so does a range within a prefix; other ranges \
                 sort. The prefix no longer than what ranges share, buckets about as many as \
                 prefixes or entries in a full buffer, whichever is less"
            }
            Self::HashVector { .. } => {
                "inserts search nothing and lookups look into one bucket: for writing and point \
                 lookups without ranges, which sort. Buckets about as many as entries in a full \
                 buffer; a prefix only where ranges stay in one"
            }
            Self::FloDb(_) => {
                "writes of keys that are still in its front level take the place of what was there: \
                 for few keys that are written again and again. Other writes cost more than those \
                 of the B-link tree alone, and ranges drain what they come to"
            }
        }
    }

    /// Checks that the settings make sense for a buffer of this size.
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
                        "at most twice the buffer of {}, or most of it would never be used",
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
        "1 to {most}: each takes {BUCKET_BYTES} bytes, and half of the buffer of {} is for entries",
        format_bytes(buffer_bytes)
    );
    Err(ParseError::new("memtable", format!("buckets={buckets}"), expected))
}

/// Writes a name, and settings in brackets if there are any.
fn write_form(f: &mut fmt::Formatter<'_>, name: &str, settings: &[String]) -> fmt::Result {
    match settings {
        [] => f.write_str(name),
        settings => write!(f, "{name}({})", settings.join(",")),
    }
}

/// A setting as text, unless it is the usual one.
fn unless<T: PartialEq + Display>(key: &str, value: &T, usual: &T) -> Option<String> {
    (value != usual).then(|| format!("{key}={value}"))
}

impl Display for MemtableKind {
    /// The name, and the settings that are not the usual ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |prefix: u8, buckets: u32| {
            vec![format!("prefix={prefix}"), format!("buckets={buckets}")]
        };
        match *self {
            Self::Auto => f.write_str("auto"),
            Self::BTree => f.write_str("btree"),
            Self::SKIP_LIST => f.write_str("skiplist"),
            Self::SkipList { branching, height } => {
                write!(f, "skiplist(branching={branching},height={height})")
            }
            Self::Vector { prealloc_bytes, query } => {
                let prealloc = (prealloc_bytes > 0)
                    .then(|| format!("prealloc={}", format_bytes(prealloc_bytes)));
                let query = unless("query", &query, &VectorQuery::default());
                write_form(f, "vector", &prealloc.into_iter().chain(query).collect::<Vec<_>>())
            }
            Self::HashSkipList { prefix, buckets, height, view } => {
                let mut settings = place(prefix, buckets);
                settings.extend(unless("height", &height, &HEIGHT_USUAL));
                settings.extend(unless("view", &view, &OrderedView::default()));
                write_form(f, "hash-skiplist", &settings)
            }
            Self::HashLinkedList { prefix, buckets, threshold, view } => {
                let mut settings = place(prefix, buckets);
                settings.extend(unless("threshold", &threshold, &THRESHOLD_USUAL));
                settings.extend(unless("view", &view, &OrderedView::default()));
                write_form(f, "hash-linkedlist", &settings)
            }
            Self::HashVector { prefix, buckets, view } => {
                let mut settings = vec![format!("buckets={buckets}")];
                settings.extend(unless("prefix", &prefix, &PREFIX_USUAL));
                settings.extend(unless("view", &view, &OrderedView::default()));
                write_form(f, "hash-vector", &settings)
            }
            Self::FloDb(flodb) => flodb.fmt(f),
        }
    }
}

/// The settings of a text form, which are taken out one by one.
struct Settings<'t> {
    left: Vec<(&'t str, &'t str)>,
}

impl<'t> Settings<'t> {
    fn parse(text: &'t str) -> Result<Self, ParseError> {
        let mut left: Vec<(&str, &str)> = Vec::new();
        for setting in text.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                ParseError::new("memtable", setting, "settings such as 'prefix=6'")
            })?;
            let (key, value) = (key.trim(), value.trim());
            if left.iter().any(|(other, _)| *other == key) {
                return Err(ParseError::new("memtable", setting, format!("{key} once")));
            }
            left.push((key, value));
        }
        Ok(Self { left })
    }

    fn text(&mut self, key: &str) -> Option<&'t str> {
        let at = self.left.iter().position(|(other, _)| *other == key)?;
        Some(self.left.remove(at).1)
    }

    /// The value of a key; `usual` if it is not given, and an error if there is no usual one.
    fn take<T: FromStr>(
        &mut self,
        key: &str,
        usual: Option<T>,
        expected: &str,
    ) -> Result<T, ParseError> {
        match (self.text(key), usual) {
            (Some(value), _) => value
                .parse()
                .map_err(|_| ParseError::new("memtable", format!("{key}={value}"), expected)),
            (None, Some(usual)) => Ok(usual),
            (None, None) => Err(ParseError::new("memtable", format!("no {key}"), expected)),
        }
    }

    fn bytes(&mut self, key: &str) -> Result<u64, ParseError> {
        let Some(value) = self.text(key) else { return Ok(0) };
        let wrong = |error: ParseError| {
            ParseError::new("memtable", format!("{key}={value}"), error.expected)
        };
        parse_bytes(value).map_err(wrong)
    }

    /// How many buckets there are, which is not left to chance: `form` shows where it is said.
    fn buckets(&mut self, form: &str) -> Result<u32, ParseError> {
        let expected = format!("a number of buckets, as in '{form}'");
        let Some(value) = self.text("buckets") else {
            return Err(ParseError::new("memtable", "no buckets", expected));
        };
        let count = parse_count(value).ok().and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| ParseError::new("memtable", format!("buckets={value}"), expected))
    }

    /// No setting is left that the kind does not have.
    fn end(self, kind: MemtableKind) -> Result<MemtableKind, ParseError> {
        match self.left.first() {
            None => Ok(kind),
            Some((key, value)) => Err(ParseError::new("memtable", format!("{key}={value}"), FORMS)),
        }
    }
}

impl FromStr for MemtableKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("memtable", text, FORMS);
        let (name, arguments) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(bad)?),
            None => (text, ""),
        };
        let mut settings = Settings::parse(arguments)?;
        const PREFIX: &str =
            "how many of the first bytes of a key choose its bucket, 0 to 255, as in 'prefix=6'";
        let kind = match name.trim() {
            "auto" => Self::Auto,
            "btree" => Self::BTree,
            "skiplist" => Self::SkipList {
                branching: settings.take("branching", Some(BRANCHING_USUAL), "2 to 16")?,
                height: settings.take("height", Some(HEIGHT_USUAL), "1 to 20")?,
            },
            "vector" => Self::Vector {
                prealloc_bytes: settings.bytes("prealloc")?,
                query: settings.take("query", Some(VectorQuery::default()), QUERIES)?,
            },
            "hash-skiplist" => Self::HashSkipList {
                prefix: settings.take("prefix", None, PREFIX)?,
                buckets: settings.buckets("hash-skiplist(prefix=6,buckets=100000)")?,
                height: settings.take("height", Some(HEIGHT_USUAL), "1 to 20")?,
                view: settings.take("view", Some(OrderedView::default()), "kept or copy")?,
            },
            "hash-linkedlist" => Self::HashLinkedList {
                prefix: settings.take("prefix", None, PREFIX)?,
                buckets: settings.buckets("hash-linkedlist(prefix=6,buckets=100000)")?,
                threshold: settings.take(
                    "threshold",
                    Some(THRESHOLD_USUAL),
                    "0 for never, or a length",
                )?,
                view: settings.take("view", Some(OrderedView::default()), "kept or copy")?,
            },
            "hash-vector" => Self::HashVector {
                prefix: settings.take("prefix", Some(PREFIX_USUAL), PREFIX)?,
                buckets: settings.buckets("hash-vector(buckets=100000)")?,
                view: settings.take("view", Some(OrderedView::default()), "kept or copy")?,
            },
            "flodb" => return FloDb::parse(arguments).map(Self::FloDb),
            _ => return Err(bad()),
        };
        settings.end(kind)
    }
}

impl Display for VectorQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resort => "resort",
            Self::Copy => "copy",
            Self::Scan => "scan",
        })
    }
}

impl FromStr for VectorQuery {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "resort" => Ok(Self::Resort),
            "copy" => Ok(Self::Copy),
            "scan" => Ok(Self::Scan),
            _ => Err(ParseError::new("query", text, QUERIES)),
        }
    }
}

impl Display for OrderedView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "kept",
            Self::Copy => "copy",
        })
    }
}

impl FromStr for OrderedView {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "kept" => Ok(Self::Kept),
            "copy" => Ok(Self::Copy),
            _ => Err(ParseError::new("view", text, "kept or copy")),
        }
    }
}
