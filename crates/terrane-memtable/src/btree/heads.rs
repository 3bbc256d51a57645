//! The heads of the keys of a tree.
//!
//! Keys often begin with one of a few prefixes, such as `user:` and `order:`, that fill the first eight
//! bytes. A head of these bytes decides nothing, so every comparison follows a pointer to a key. A tree that
//! expects prefixes builds a head from a number for the prefix and the seven bytes after the prefix.
//!
//! No prefix begins with another one, so each key has at most one. The first byte of a head is
//! twice the number of prefixes that sort at or before the key, less one if the key begins with the
//! last of them. The head of a key without a prefix contains its first seven bytes.
//!
//! Invariant: `a < b` implies `of(a) <= of(b)`, for all keys, because keys between two prefixes have a first
//! byte of their own.

use crate::head::head_of;
use crate::key_span::KeySpan;

/// The largest number of prefixes. Twice this number fits into a byte; each head costs a search.
const PREFIXES_MAX: usize = 32;

/// How many of the last bytes of a common prefix remain in the heads, because later keys, for
/// example ascending ones, may differ there.
const SPARED_BYTES: usize = 1;

/// The bytes after a prefix that a head contains.
const BYTES_AFTER: usize = 7;

/// A prefix gets a number only if at least one in this many keys has it.
const RAREST: usize = 64;

/// Computes the heads of the keys of a tree.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// In order; none begins with another one.
    prefixes: Box<[Box<[u8]>]>,
}

impl Heads {
    /// Returns the heads for keys that are expected to be in a span.
    pub(super) fn expecting(span: &KeySpan) -> Self {
        Self::after(span.prefixes().to_vec())
    }

    /// Returns heads for keys with prefixes that [`common_prefixes`] has found.
    pub(super) fn after(prefixes: Vec<Vec<u8>>) -> Self {
        Self { prefixes: prefixes.into_iter().map(Vec::into_boxed_slice).collect() }
    }

    /// Returns how many pairs of neighbours among sorted keys have different heads.
    pub(super) fn count_different(&self, keys: &[&[u8]]) -> usize {
        keys.windows(2).filter(|pair| self.of(pair[0]) != self.of(pair[1])).count()
    }

    /// Returns the head of a key.
    #[inline(always)]
    pub(super) fn of(&self, key: &[u8]) -> u64 {
        if self.prefixes.is_empty() { head_of(key) } else { self.of_prefixed(key) }
    }

    /// As [`Self::of`], for nodes that do not have the newest heads yet.
    #[cold]
    pub(super) fn of_late(&self, key: &[u8]) -> u64 {
        self.of(key)
    }

    #[inline(never)]
    fn of_prefixed(&self, key: &[u8]) -> u64 {
        let before = self.prefixes.partition_point(|prefix| **prefix <= *key);
        let prefix = before.checked_sub(1).and_then(|last| self.prefixes.get(last));
        let (rank, rest) = match prefix.and_then(|prefix| key.strip_prefix(&**prefix)) {
            Some(rest) => (2 * before - 1, rest),
            None => (2 * before, key),
        };
        (rank as u64) << 56 | head_of(rest) >> 8
    }
}

/// Returns sorted prefixes of keys such that the heads after them differ. None begins with another one.
pub(super) fn common_prefixes(mut keys: Vec<&[u8]>) -> Vec<Vec<u8>> {
    keys.sort_unstable();
    keys.dedup();
    let mut found = Vec::new();
    find(&keys, 0, (keys.len() / RAREST).max(2), &mut found);
    if found.len() > PREFIXES_MAX {
        found.sort_unstable_by_key(|(_, keys)| std::cmp::Reverse(*keys));
        found.truncate(PREFIXES_MAX);
        found.sort_unstable();
    }
    found.into_iter().map(|(prefix, _)| prefix.to_vec()).collect()
}

/// Finds the prefixes of sorted keys that begin with the same `len_min` bytes. Each prefix is at least that
/// long, and is returned with the number of its keys.
fn find<'k>(keys: &[&'k [u8]], len_min: usize, rarest: usize, found: &mut Vec<(&'k [u8], usize)>) {
    let ([first, .., last], true) = (keys, keys.len() >= rarest) else { return };
    let shared = first.iter().zip(*last).take_while(|(a, b)| a == b).count();
    // If the rest of the longest key would not fill the heads, more bytes are spared: later keys may differ
    // there, and the heads of these keys lose nothing.
    let longest = keys.iter().map(|key| key.len()).max().unwrap_or(0);
    let spared = shared.saturating_sub(SPARED_BYTES).min(longest.saturating_sub(BYTES_AFTER));
    let len = spared.max(len_min);
    let head = |key: &[u8]| head_of(&key[len..]) >> 8;
    let distinct = 1 + keys.windows(2).filter(|pair| head(pair[0]) != head(pair[1])).count();
    if distinct * 2 >= keys.len() {
        if len > 0 {
            found.push((&first[..len], keys.len()));
            return;
        }
        // Most keys need no prefix, but the others may have one in common.
        for run in keys.chunk_by(|a, b| head(a) == head(b)) {
            // Shorter keys, whose padded head is the same, precede the others.
            let long = &run[run.partition_point(|key| key.len() < BYTES_AFTER)..];
            if run.len() < keys.len() && long.len() > 2 {
                find(long, BYTES_AFTER, rarest, found);
            }
        }
        return;
    }
    for keys in keys.chunk_by(|a, b| a.get(shared) == b.get(shared)) {
        // A key that ends here has no more bytes.
        if keys[0].len() > shared {
            find(keys, shared + 1, rarest, found);
        }
    }
}

#[cfg(all(test, not(any(loom, miri))))] // No unsafe code, and much arithmetic.
mod tests {
    use super::*;
    use terrane_testkit::Rng;

    fn heads(keys: &[Vec<u8>]) -> Heads {
        let span =
            KeySpan::all().with_prefixes(common_prefixes(keys.iter().map(Vec::as_slice).collect()));
        Heads::expecting(&span)
    }

    #[test]
    fn heads_of_random_keys_never_contradict_them() {
        let mut rng = Rng::new(terrane_testkit::seed_from_env(3));
        for _ in 0..300 {
            let prefixes = ["", "user:", "user:00000000", "order:0000", "z", "\u{ff}\u{ff}"];
            let mut key = || {
                let mut key = rng.pick(&prefixes).as_bytes().to_vec();
                (0..rng.index(6)).for_each(|_| key.push(*rng.pick(b"\x0001:\xff")));
                key
            };
            let expected: Vec<Vec<u8>> = (0..100).map(|_| key()).collect();
            let heads = heads(&expected);
            let is_prefix_free = |pair: &[Box<[u8]>]| !pair[1].starts_with(&pair[0]);
            assert!(heads.prefixes.is_sorted() && heads.prefixes.windows(2).all(is_prefix_free));
            let mut keys: Vec<Vec<u8>> = (0..100).map(|_| key()).chain(expected).collect();
            keys.sort();
            let of_keys: Vec<u64> = keys.iter().map(|key| heads.of(key)).collect();
            assert!(of_keys.is_sorted(), "{heads:?} {keys:?}");
        }
    }

    #[test]
    fn heads_of_keys_with_several_prefixes_differ() {
        let numbered = |name: &str| {
            let key = |number: u32| format!("{name}:{:012}", number * 7919 % 1_000_000);
            (0..500).map(key).map(String::into_bytes).collect::<Vec<_>>()
        };
        let keys = [numbered("key"), numbered("counter")].concat();
        let heads = heads(&keys);
        let prefixes: Vec<&[u8]> = heads.prefixes.iter().map(|prefix| &**prefix).collect();
        assert_eq!(prefixes, [&b"counter:00000"[..], b"key:00000"]);
        let mut of_keys: Vec<u64> = keys.iter().map(|key| heads.of(key)).collect();
        of_keys.sort_unstable();
        of_keys.dedup();
        assert_eq!(of_keys.len(), 1000);
    }

    #[test]
    fn heads_of_a_few_keys_with_a_common_prefix_differ() {
        let others = (0..700_u64).map(|number| {
            let bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{bits:016x}").into_bytes()
        });
        let alike = (0..300).map(|number| format!("counter:{:012}", number * 7919).into_bytes());
        let short = [&b"counter"[..], b"coun", b""].map(<[u8]>::to_vec);
        let mut keys: Vec<Vec<u8>> = others.chain(alike).chain(short).collect();
        let heads = heads(&keys);
        keys.sort();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        assert!(keys.is_sorted_by_key(|key| heads.of(key)));
        assert!(heads.count_different(&keys) > 990, "{heads:?}");
    }

    #[test]
    fn heads_without_a_common_prefix_are_the_first_bytes() {
        let keys: Vec<Vec<u8>> = (0..500_u64)
            .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec())
            .collect();
        let heads = heads(&keys);
        assert!(heads.prefixes.is_empty());
        assert_eq!(heads.of(b"user:0000"), head_of(b"user:0000"));
        assert!(common_prefixes(vec![b"a"; 100]).is_empty());
        assert!(common_prefixes(Vec::new()).is_empty());
    }
}
