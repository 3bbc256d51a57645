//! The maintenance of indexes, a value with a text form: `eager(3)`, `lazy`.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// The maximum number of indexes.
const COUNT_MAX: u32 = 16;

/// The treatment of index entries that a write made stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// A write reads the old record first, and deletes the index entries of that record.
    Eager,
    /// A write only adds index entries, so stale entries remain; a query checks that the record
    /// still has the secondary key.
    Lazy,
}

/// The secondary indexes of a database's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Indexes {
    /// How the indexes are maintained.
    pub maintenance: Maintenance,
    /// The number of indexes.
    pub count: u32,
}

impl Indexes {
    /// The accepted texts, for messages and help.
    pub const SYNTAX: &str =
        "eager or lazy, with a number of indexes from 1 to 16 such as eager(3)";
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.maintenance {
            Maintenance::Eager => "eager",
            Maintenance::Lazy => "lazy",
        };
        write!(f, "{word}({})", self.count)
    }
}

impl FromStr for Indexes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("indexes", text, Self::SYNTAX);
        let text = text.trim();
        let (word, count) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((word, count)) => (word, count.trim().parse().map_err(|_| bad())?),
            None => (text, 1),
        };
        let maintenance = match word {
            "eager" => Maintenance::Eager,
            "lazy" => Maintenance::Lazy,
            _ => return Err(bad()),
        };
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(bad());
        }
        Ok(Self { maintenance, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_parse_and_print_back() {
        for text in ["eager(1)", "lazy(3)", "eager(16)"] {
            assert_eq!(text.parse::<Indexes>().unwrap().to_string(), text);
        }
        assert_eq!("lazy".parse::<Indexes>().unwrap().to_string(), "lazy(1)");
        for text in ["", "eagerly", "eager(", "eager()", "eager(0)", "lazy(17)", "lazy(-1)"] {
            assert!(text.parse::<Indexes>().is_err(), "{text}");
        }
    }
}
