//! Half-open ranges of keys.
//!
//! Every range in Terrane is `[start, end)`, even if it includes its last key: the smallest key
//! above `k` in bytewise order is `k` followed by a zero byte, so `[a, k]` is `[a, k\0)`. With only
//! one form of range, one overlap test is enough, and range tombstones, whose ends are exclusive,
//! need no second kind of bound.

use std::fmt;
use std::sync::Arc;

/// A contiguous set of keys: all `k` with `start <= k`, and `k < end` if there is an end.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The first key of the range.
    pub start: Arc<[u8]>,
    /// The first key after the range; `None` if the range has no end.
    pub end: Option<Arc<[u8]>>,
}

impl KeyRange {
    /// Returns the range `[start, end)`.
    pub fn new(start: &[u8], end: Option<&[u8]>) -> Self {
        Self { start: start.into(), end: end.map(Into::into) }
    }

    /// Returns the range `[first, last]`, which includes its last key.
    pub fn inclusive(first: &[u8], last: &[u8]) -> Self {
        Self { start: first.into(), end: Some(successor(last)) }
    }

    /// Returns the range of all keys.
    pub fn all() -> Self {
        Self { start: Arc::from(&[][..]), end: None }
    }

    /// Returns true if no key lies in the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| **end <= *self.start)
    }

    /// Returns true if `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    /// Returns true if every key of `other` lies in this range.
    pub fn covers(&self, other: &KeyRange) -> bool {
        self.start <= other.start
            && match (&self.end, &other.end) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(mine), Some(theirs)) => theirs <= mine,
            }
    }

    /// Returns true if some key lies in both ranges.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        self.starts_before_end_of(other) && other.starts_before_end_of(self)
    }

    /// Returns true if this range begins before `other` ends.
    pub fn starts_before_end_of(&self, other: &KeyRange) -> bool {
        other.end.as_ref().is_none_or(|end| *self.start < **end)
    }

    /// Returns the smallest range that covers both ranges.
    #[must_use]
    pub fn hull(&self, other: &KeyRange) -> KeyRange {
        let end = match (&self.end, &other.end) {
            (Some(a), Some(b)) => Some(a.max(b).clone()),
            _ => None,
        };
        KeyRange { start: (&self.start).min(&other.start).clone(), end }
    }

    /// Returns the smallest range that covers all of `ranges`; `None` if `ranges` is empty.
    pub fn hull_of<'a>(ranges: impl IntoIterator<Item = &'a KeyRange>) -> Option<KeyRange> {
        let mut ranges = ranges.into_iter();
        let first = ranges.next()?;
        // Compactions can have thousands of tables, so only the bounds of the result are copied.
        let (mut start, mut end) = (&first.start, first.end.as_ref());
        for range in ranges {
            start = start.min(&range.start);
            end = end.zip(range.end.as_ref()).map(|(a, b)| a.max(b));
        }
        Some(KeyRange { start: start.clone(), end: end.cloned() })
    }
}

/// Returns the smallest key above `key`.
pub fn successor(key: &[u8]) -> Arc<[u8]> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

/// Formats a key for display: printable ASCII unchanged, every other byte as `\xNN`.
pub fn escape(key: &[u8]) -> String {
    use fmt::Write;
    let mut text = String::with_capacity(key.len());
    for &byte in key {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'!'..=b'~' => text.push(char::from(byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text
}

impl fmt::Display for KeyRange {
    /// `[start, end)`, or `[start, last]` where the end is the successor of a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, ", escape(&self.start))?;
        match self.end.as_deref() {
            None => f.write_str("∞)"),
            Some([last @ .., 0]) => write!(f, "{}]", escape(last)),
            Some(end) => write!(f, "{})", escape(end)),
        }
    }
}

impl fmt::Debug for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &str, end: &str) -> KeyRange {
        KeyRange::new(start.as_bytes(), Some(end.as_bytes()))
    }

    #[test]
    fn touching_ranges_do_not_overlap() {
        assert!(!range("a", "c").overlaps(&range("c", "d")));
        assert!(range("a", "c\0").overlaps(&range("c", "d")));
        assert!(KeyRange::inclusive(b"a", b"c").overlaps(&range("c", "d")));
        assert!(KeyRange::new(b"b", None).overlaps(&range("x", "y")));
        assert!(!KeyRange::new(b"z", None).overlaps(&range("x", "y")));
    }

    #[test]
    fn a_range_contains_its_start_and_not_its_end() {
        let held = |range: &KeyRange| [b"a", b"b", b"c", b"d"].map(|key| range.contains(key));
        assert_eq!(held(&range("b", "d")), [false, true, true, false]);
        assert_eq!(held(&KeyRange::new(b"c", None)), [false, false, true, true]);
        assert!(range("b", "b").is_empty() && range("b", "a").is_empty());
        assert!(!range("b", "b\0").is_empty() && !KeyRange::all().is_empty());
    }

    #[test]
    fn covering_respects_missing_ends() {
        assert!(KeyRange::all().covers(&range("a", "b")));
        assert!(KeyRange::all().covers(&KeyRange::all()));
        assert!(!range("a", "b").covers(&KeyRange::new(b"a", None)));
        assert!(range("a", "c").covers(&range("a", "c")));
    }

    #[test]
    fn hull_spans_gaps() {
        assert_eq!(range("a", "b").hull(&range("x", "y")), range("a", "y"));
        assert_eq!(KeyRange::hull_of([]), None);
        assert_eq!(range("a", "b").hull(&KeyRange::new(b"b", None)), KeyRange::new(b"a", None));
    }

    #[test]
    fn ranges_print_with_their_last_key() {
        assert_eq!(KeyRange::inclusive(b"a", b"k\xff").to_string(), "[a, k\\xff]");
        assert_eq!(range("a", "k").to_string(), "[a, k)");
        assert_eq!(KeyRange::all().to_string(), "[, ∞)");
        assert_eq!(format!("{:?}", range("a", "k")), "[a, k)");
    }
}
