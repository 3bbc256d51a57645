//! The first bytes of a key, and the keys that share them.

use crate::head::head_of;
use crate::skiplist::mix;

/// The prefix of a key: the bytes that choose its bucket, or the whole key if it is shorter.
///
/// Keys that share a prefix of full length are neighbours in key order. A shorter key shares its
/// prefix with no other key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix<'k> {
    bytes: &'k [u8],
    len_full: usize,
}

impl<'k> Prefix<'k> {
    #[inline]
    pub(super) fn of(key: &'k [u8], len_full: usize) -> Self {
        Self { bytes: &key[..key.len().min(len_full)], len_full }
    }

    /// Returns true if `key` has this prefix.
    #[inline]
    pub(super) fn is_of(self, key: &[u8]) -> bool {
        Prefix::of(key, self.len_full) == self
    }

    /// Returns which of `buckets` holds the keys of this prefix.
    #[inline]
    pub(super) fn bucket(self, buckets: usize) -> usize {
        let mut hash = self.bytes.len() as u64;
        for bytes in self.bytes.chunks(8) {
            hash = mix(hash ^ head_of(bytes));
        }
        // The upper half of the product is below the number of buckets, and evenly distributed.
        ((u128::from(hash) * buckets as u128) >> 64) as usize
    }

    /// Returns true if every key before `end` that is not smaller than this prefix has this prefix.
    pub(super) fn is_last_before(self, end: Option<&[u8]>) -> bool {
        if self.len_full == 0 {
            return true;
        }
        let Some(end) = end else { return false };
        if self.bytes.len() < self.len_full {
            // A short prefix has one key, whose successor is that key plus a zero byte.
            return end <= self.bytes || end.strip_prefix(self.bytes) == Some(&[0]);
        }
        Prefix::of(end, self.len_full).bytes <= self.bytes || self.is_followed_by(end)
    }

    /// Returns true if `end` is the smallest key after all keys of this prefix, which is of full
    /// length.
    fn is_followed_by(self, end: &[u8]) -> bool {
        let raised = self.bytes.iter().rposition(|&byte| byte != u8::MAX);
        raised.is_some_and(|last| {
            end.len() == last + 1
                && end[..last] == self.bytes[..last]
                && end[last] == self.bytes[last] + 1
        })
    }

    /// Returns true if every key from `first` on, up to the last key of this prefix, has this
    /// prefix.
    pub(super) fn is_first_from(self, first: Option<&[u8]>) -> bool {
        self.bytes.is_empty() || first.is_some_and(|first| first >= self.bytes)
    }
}

#[cfg(all(test, not(any(loom, miri))))] // No unsafe code, and much arithmetic.
mod tests {
    use super::*;

    /// All keys of up to three letters of a small alphabet, in order.
    fn keys() -> Vec<Vec<u8>> {
        let alphabet = [0, 1, b'a', 0xfe, 0xff];
        let mut keys = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..3 {
            let until = keys.len();
            for index in from..until {
                keys.extend(alphabet.map(|byte| [&keys[index][..], &[byte]].concat()));
            }
            from = until;
        }
        keys.sort();
        keys
    }

    #[test]
    fn what_is_last_before_an_end_has_nothing_behind_it_before_that_end() {
        let keys = keys();
        for len in 0..4 {
            for (index, key) in keys.iter().enumerate() {
                let prefix = Prefix::of(key, len);
                for end in &keys {
                    let behind = keys[index..].iter().filter(|other| *other < end);
                    let leaves = behind.into_iter().any(|other| !prefix.is_of(other));
                    if prefix.is_last_before(Some(end)) {
                        assert!(!leaves, "{key:?} by {len} before {end:?}");
                    }
                }
                assert!(prefix.is_last_before(Some(key)));
            }
        }
        assert!(Prefix::of(b"ab9", 2).is_last_before(Some(b"ac")));
        assert!(Prefix::of(b"a\xff9", 2).is_last_before(Some(b"b")));
        assert!(!Prefix::of(b"ab9", 2).is_last_before(Some(b"ac\0")));
        assert!(!Prefix::of(b"ab9", 2).is_last_before(None));
        assert!(Prefix::of(b"a", 2).is_last_before(Some(b"a\0")));
        assert!(!Prefix::of(b"a", 2).is_last_before(Some(b"a\x01")));
    }

    #[test]
    fn what_is_first_from_a_key_has_nothing_before_it_from_that_key() {
        let keys = keys();
        for len in 0..4 {
            for (index, key) in keys.iter().enumerate() {
                let prefix = Prefix::of(key, len);
                for first in keys.iter().filter(|first| prefix.is_first_from(Some(first))) {
                    let before = keys[..index].iter().filter(|other| *other >= first);
                    assert!(before.into_iter().all(|other| prefix.is_of(other)));
                }
            }
        }
    }

    #[test]
    fn buckets_are_used_evenly() {
        let mut counts = [0; 10];
        for number in 0..1000u32 {
            counts[Prefix::of(format!("{number:08}").as_bytes(), 8).bucket(10)] += 1;
        }
        assert!(counts.iter().all(|count| (60..150).contains(count)), "{counts:?}");
    }
}
