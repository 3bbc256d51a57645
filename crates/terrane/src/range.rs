//! Converts key ranges with any bounds to half-open ranges.

use std::borrow::Cow;
use std::ops::{Bound, RangeBounds};

use terrane_policy::key_range::successor;

/// The smallest key in a range and the smallest key after it; `None` if there is no upper bound.
pub(crate) type HalfOpen<'a> = (Cow<'a, [u8]>, Option<Cow<'a, [u8]>>);

/// The range of all keys.
pub(crate) const ALL_KEYS: HalfOpen<'static> = (Cow::Borrowed(&[]), None);

/// Returns the smallest key in a range and the smallest key after the range; the latter is `None`
/// if the range has no upper bound.
pub(crate) fn bounds_of<'a, K: AsRef<[u8]> + 'a>(range: &'a impl RangeBounds<K>) -> HalfOpen<'a> {
    let start = match range.start_bound() {
        Bound::Included(key) => Cow::Borrowed(key.as_ref()),
        Bound::Excluded(key) => Cow::Owned(successor(key.as_ref()).to_vec()),
        Bound::Unbounded => Cow::Borrowed(&[][..]),
    };
    let end = match range.end_bound() {
        Bound::Included(key) => Some(Cow::Owned(successor(key.as_ref()).to_vec())),
        Bound::Excluded(key) => Some(Cow::Borrowed(key.as_ref())),
        Bound::Unbounded => None,
    };
    (start, end)
}

/// Returns the range of all keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> HalfOpen<'_> {
    let mut end = prefix.to_vec();
    // The smallest key above every key with this prefix: drop trailing 0xff bytes, then increment
    // the last byte.
    while end.last() == Some(&0xff) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Some(Cow::Owned(end))
        }
        None => None,
    };
    (Cow::Borrowed(prefix), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_half_open() {
        let key = |bytes: &'static [u8]| Cow::Borrowed(bytes);
        assert_eq!(bounds_of(&("a".."b")), (key(b"a"), Some(key(b"b"))));
        assert_eq!(bounds_of(&("a"..="b")), (key(b"a"), Some(key(b"b\0"))));
        assert_eq!(bounds_of::<&str>(&(..)), (key(b""), None));
        let excluded = (Bound::Excluded("a"), Bound::Unbounded);
        assert_eq!(bounds_of::<&str>(&excluded), (key(b"a\0"), None));
    }

    #[test]
    fn prefixes_end_before_the_next_key_without_them() {
        let key = |bytes: &'static [u8]| Cow::Borrowed(bytes);
        assert_eq!(prefix_bounds(b"ab"), (key(b"ab"), Some(key(b"ac"))));
        assert_eq!(prefix_bounds(b"a\xff\xff").1, Some(key(b"b")));
        assert_eq!(prefix_bounds(b"\xff").1, None);
        assert_eq!(prefix_bounds(b"").1, None);
    }
}
