//! Converts key ranges with any bounds to half-open ranges.

use std::ops::{Bound, RangeBounds};

use terrane_policy::key_range::successor;

/// Returns the smallest key in a range and the smallest key after the range; the latter is `None`
/// if the range has no upper bound.
pub(crate) fn bounds_of<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> (Vec<u8>, Option<Vec<u8>>) {
    let start = match range.start_bound() {
        Bound::Included(key) => key.as_ref().to_vec(),
        Bound::Excluded(key) => successor(key.as_ref()).to_vec(),
        Bound::Unbounded => Vec::new(),
    };
    let end = match range.end_bound() {
        Bound::Included(key) => Some(successor(key.as_ref()).to_vec()),
        Bound::Excluded(key) => Some(key.as_ref().to_vec()),
        Bound::Unbounded => None,
    };
    (start, end)
}

/// Returns the range of all keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut end = prefix.to_vec();
    // The smallest key above every key with this prefix: drop trailing 0xff bytes, then increment
    // the last byte.
    while end.last() == Some(&0xff) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Some(end)
        }
        None => None,
    };
    (prefix.to_vec(), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_half_open() {
        assert_eq!(bounds_of(&("a".."b")), (b"a".to_vec(), Some(b"b".to_vec())));
        assert_eq!(bounds_of(&("a"..="b")), (b"a".to_vec(), Some(b"b\0".to_vec())));
        assert_eq!(bounds_of::<&str>(&(..)), (vec![], None));
        let excluded = (Bound::Excluded("a"), Bound::Unbounded);
        assert_eq!(bounds_of::<&str>(&excluded), (b"a\0".to_vec(), None));
    }

    #[test]
    fn prefixes_end_before_the_next_key_without_them() {
        assert_eq!(prefix_bounds(b"ab"), (b"ab".to_vec(), Some(b"ac".to_vec())));
        assert_eq!(prefix_bounds(b"a\xff\xff").1, Some(b"b".to_vec()));
        assert_eq!(prefix_bounds(b"\xff").1, None);
        assert_eq!(prefix_bounds(b"").1, None);
    }
}
