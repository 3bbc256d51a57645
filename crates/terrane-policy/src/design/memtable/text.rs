//! The text form of a memtable kind.

use std::fmt::{self, Display};
use std::str::FromStr;

use super::{
    BRANCHING_USUAL, FloDb, HEIGHT_USUAL, MemtableKind, OrderedView, PREFIX_USUAL, THRESHOLD_USUAL,
    VectorQuery,
};
use crate::error::ParseError;
use crate::units::{format_bytes, parse_bytes, parse_count};

/// The accepted forms, for messages.
const FORMS: &str = "auto, btree, skiplist(branching=4,height=12), vector(prealloc=8MiB,query=resort), \
                     hash-skiplist(prefix=6,buckets=100000), \
                     hash-linkedlist(prefix=6,buckets=100000,threshold=256), \
                     hash-vector(buckets=100000,prefix=255) or \
                     flodb(membuffer=25%,partition-bits=4,drain-threads=1)";

const QUERIES: &str = "resort, copy or scan";

/// Writes a name, and settings in parentheses if there are any.
fn write_form(f: &mut fmt::Formatter<'_>, name: &str, settings: &[String]) -> fmt::Result {
    match settings {
        [] => f.write_str(name),
        settings => write!(f, "{name}({})", settings.join(",")),
    }
}

/// Formats a setting, unless it has its default value.
fn unless<T: PartialEq + Display>(key: &str, value: &T, usual: &T) -> Option<String> {
    (value != usual).then(|| format!("{key}={value}"))
}

impl Display for MemtableKind {
    /// The name, and the settings that differ from their defaults.
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

/// The settings of a text form, which the parser consumes one by one.
struct SettingList<'t> {
    left: Vec<(&'t str, &'t str)>,
}

impl<'t> SettingList<'t> {
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

    /// Takes the value of a key, or `usual` if the key is missing. A missing key without a default
    /// is an error.
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

    /// Takes the number of buckets, which is required. `form` is an example for the error message.
    fn buckets(&mut self, form: &str) -> Result<u32, ParseError> {
        let expected = format!("a number of buckets, as in '{form}'");
        let Some(value) = self.text("buckets") else {
            return Err(ParseError::new("memtable", "no buckets", expected));
        };
        let count = parse_count(value).ok().and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| ParseError::new("memtable", format!("buckets={value}"), expected))
    }

    /// Checks that no setting is left, because a remaining one is unknown to the kind.
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
        let mut settings = SettingList::parse(arguments)?;
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
