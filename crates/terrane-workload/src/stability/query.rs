//! Queries that run concurrently with writes (paper §5.2.3).

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// Entries of the paper's short scans.
const SHORT_ENTRIES: u32 = 100;
/// Entries of the paper's long scans.
const LONG_ENTRIES: u32 = 1_000_000;

/// One kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A lookup of an existing key: `point`.
    Point,
    /// A scan from an existing key: `short` of 100 entries, `long` of a million, or `scan:N`.
    Scan {
        /// The maximum number of entries.
        entries: u32,
    },
    /// Reads records in the order of the first secondary index, from a random secondary key:
    /// `index` for 100, or `index:N`.
    Index {
        /// The maximum number of records.
        entries: u32,
    },
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point => f.write_str("point"),
            Self::Scan { entries: SHORT_ENTRIES } => f.write_str("short"),
            Self::Scan { entries: LONG_ENTRIES } => f.write_str("long"),
            Self::Scan { entries } => write!(f, "scan:{entries}"),
            Self::Index { entries: SHORT_ENTRIES } => f.write_str("index"),
            Self::Index { entries } => write!(f, "index:{entries}"),
        }
    }
}

impl FromStr for Query {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || {
            ParseError::new(
                "query",
                text,
                "point, short, long, scan:ENTRIES, index or index:ENTRIES",
            )
        };
        match text {
            "point" => Ok(Self::Point),
            "short" => Ok(Self::Scan { entries: SHORT_ENTRIES }),
            "long" => Ok(Self::Scan { entries: LONG_ENTRIES }),
            "index" => Ok(Self::Index { entries: SHORT_ENTRIES }),
            _ => {
                let (word, count) = text.split_once(':').ok_or_else(bad)?;
                let count = count.parse().ok().filter(|entries| *entries > 0);
                let entries = count.ok_or_else(bad)?;
                match word {
                    "scan" => Ok(Self::Scan { entries }),
                    "index" => Ok(Self::Index { entries }),
                    _ => Err(bad()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_parse_and_print_back() {
        for text in ["point", "short", "long", "scan:17", "index", "index:5"] {
            assert_eq!(text.parse::<Query>().unwrap().to_string(), text);
        }
        assert_eq!("scan:100".parse::<Query>().unwrap().to_string(), "short");
        for text in ["", "points", "scan", "scan:0", "scan:-1", "scan:x", "index:", "range:3"] {
            assert!(text.parse::<Query>().is_err(), "{text}");
        }
    }
}
