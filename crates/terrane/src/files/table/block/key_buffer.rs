//! The key of a cursor's current entry, assembled from the prefix of the block and a suffix.
//!
//! Keys of usual length are stored in the buffer itself, so that a scan allocates nothing, and are
//! copied in pieces of fixed length, which compile to single instructions.

use std::cmp::Ordering;

use super::HEAD_BYTES;

/// The maximum length of keys stored in the buffer itself.
pub(super) const INLINE_BYTES: usize = 64;

/// The length of the pieces in which suffixes are copied.
const PIECE_BYTES: usize = 16;

/// A key whose prefix is kept while the rest is replaced.
#[derive(Debug)]
pub(super) struct KeyBuffer {
    inline: [u8; INLINE_BYTES],
    /// The key, if it is too long for `inline`. Contains the prefix if the prefix is too long, or
    /// once a key with this prefix has been too long.
    long: Vec<u8>,
    len: usize,
    prefix_len: usize,
    /// The first eight bytes of the prefix, as in [`terrane_memtable::head_of`].
    prefix_head: u64,
    /// The first eight bytes of the key.
    head: u64,
}

impl Default for KeyBuffer {
    fn default() -> Self {
        Self {
            inline: [0; INLINE_BYTES],
            long: Vec::new(),
            len: 0,
            prefix_len: 0,
            prefix_head: 0,
            head: 0,
        }
    }
}

/// Copies a suffix to the bytes after a prefix, unless it is too long, or so near the end of the block that a piece
/// could extend beyond it.
#[inline(always)]
pub(super) fn copy_pieces(after: &mut [u8], head: u32, rest_len: usize, rest: &[u8]) -> Option<()> {
    let (first, mut to) = after.split_first_chunk_mut::<HEAD_BYTES>()?;
    // Copies all four bytes; the length excludes the padding of a shorter suffix.
    *first = head.to_be_bytes();
    let mut from = rest;
    let mut copied = 0;
    while copied < rest_len {
        let (piece, next_from) = from.split_first_chunk::<PIECE_BYTES>()?;
        let (target, next_to) = to.split_first_chunk_mut::<PIECE_BYTES>()?;
        *target = *piece;
        (from, to) = (next_from, next_to);
        copied += PIECE_BYTES;
    }
    Some(())
}

/// Does the same, with fewer checks for short suffixes.
#[inline(always)]
pub(super) fn copy_suffix(after: &mut [u8], head: u32, rest_len: usize, rest: &[u8]) -> Option<()> {
    if rest_len <= PIECE_BYTES
        && let Some(to) = after.first_chunk_mut::<{ HEAD_BYTES + PIECE_BYTES }>()
        && let Some(piece) = rest.first_chunk::<PIECE_BYTES>()
    {
        to[..HEAD_BYTES].copy_from_slice(&head.to_be_bytes());
        to[HEAD_BYTES..].copy_from_slice(piece);
        return Some(());
    }
    copy_pieces(after, head, rest_len, rest)
}

impl KeyBuffer {
    /// Replaces the key by `prefix`, which the following keys share.
    pub(super) fn set_prefix(&mut self, prefix: &[u8]) {
        self.long.clear();
        match self.inline.get_mut(..prefix.len()) {
            Some(inline) => inline.copy_from_slice(prefix),
            None => self.long.extend_from_slice(prefix),
        }
        self.prefix_len = prefix.len();
        self.len = prefix.len();
        self.prefix_head = terrane_memtable::head_of(prefix);
        self.head = self.prefix_head;
    }

    /// Replaces the part after the prefix by a suffix of `suffix_len` bytes. `head` contains its
    /// first four bytes, padded with zeros. `rest` begins with the remaining bytes, and may be
    /// longer. `key_head` is what [`KeyBuffer::head_with`] returned for this suffix.
    #[inline(always)]
    pub(super) fn set_suffix(&mut self, key_head: u64, head: u32, suffix_len: usize, rest: &[u8]) {
        self.len = self.prefix_len + suffix_len;
        self.head = key_head;
        let rest_len = suffix_len.saturating_sub(HEAD_BYTES);
        let after = self.inline.get_mut(self.prefix_len..).unwrap_or_default();
        if copy_suffix(after, head, rest_len, rest).is_none() {
            self.set_long(head, suffix_len, rest.get(..rest_len).unwrap_or_default());
        }
    }

    /// Returns the first eight bytes of the key with this suffix. They are computed rather than loaded from the
    /// buffer, because a load must wait for the several stores that have just filled it.
    #[inline(always)]
    pub(super) fn head_with(&self, head: u32, suffix_len: usize, rest: &[u8]) -> u64 {
        if self.prefix_len >= 8 {
            return self.prefix_head;
        }
        let next = match rest.first_chunk::<HEAD_BYTES>() {
            Some(next) if suffix_len >= 2 * HEAD_BYTES => u32::from_be_bytes(*next),
            _ => {
                let len = suffix_len.saturating_sub(HEAD_BYTES);
                super::head_of_suffix(rest.get(..len).unwrap_or_default())
            }
        };
        let suffix = u64::from(head) << 32 | u64::from(next);
        self.prefix_head | suffix >> (8 * self.prefix_len)
    }

    /// Does the same as [`copy_pieces`], for any key.
    #[cold]
    fn set_long(&mut self, head: u32, suffix_len: usize, rest: &[u8]) {
        let first = head.to_be_bytes();
        let first = first.get(..suffix_len.min(HEAD_BYTES)).unwrap_or_default();
        if self.len <= INLINE_BYTES {
            let target = self.inline.get_mut(self.prefix_len..self.len).unwrap_or_default();
            if let Some((to_first, to_rest)) = target.split_at_mut_checked(first.len()) {
                to_first.copy_from_slice(first);
                to_rest.copy_from_slice(rest);
            }
            return;
        }
        if self.long.len() < self.prefix_len {
            self.long.clear();
            let prefix = self.inline.get(..self.prefix_len).unwrap_or_default();
            self.long.extend_from_slice(prefix);
        }
        self.long.truncate(self.prefix_len);
        self.long.extend_from_slice(first);
        self.long.extend_from_slice(rest);
    }

    /// Replaces the key by another one with the prefix: the first `len` bytes of `key`.
    #[inline]
    pub(super) fn set_short(&mut self, key: &[u8; INLINE_BYTES], len: usize) {
        self.inline = *key;
        self.len = len;
        self.head = terrane_memtable::head_of(self.as_slice());
    }

    /// Returns bytes that begin with the prefix, and its length, if it is short.
    #[inline]
    pub(super) fn short_prefix(&self) -> Option<(&[u8; INLINE_BYTES], usize)> {
        (self.prefix_len < INLINE_BYTES).then_some((&self.inline, self.prefix_len))
    }

    /// Returns a bound for the first four bytes of a suffix: the first eight bytes of a key with this prefix and a
    /// suffix below the bound are below `below`. Where four bytes do not decide, it is lower than necessary.
    #[inline]
    pub(super) fn head_below(&self, below: u64) -> u64 {
        let suffix_bits = 64_usize.saturating_sub(8 * self.prefix_len);
        let prefix_of = |head: u64| head.checked_shr(suffix_bits as u32).unwrap_or(0);
        match prefix_of(self.prefix_head).cmp(&prefix_of(below)) {
            Ordering::Less => u64::MAX,
            Ordering::Equal if suffix_bits > 0 => below << (64 - suffix_bits) >> 32,
            Ordering::Equal | Ordering::Greater => 0,
        }
    }

    /// Returns the key.
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        self.inline.get(..self.len).unwrap_or(&self.long)
    }

    /// Returns the first eight bytes of the key, as in [`terrane_memtable::head_of`].
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.head
    }
}

#[cfg(test)]
mod tests {
    use terrane_memtable::head_of;

    use super::super::head_of_suffix;
    use super::*;

    /// Keys around every boundary: the head, a piece, the inline bytes; with and without bytes of
    /// the block after them.
    #[test]
    fn keys_of_all_lengths_are_assembled() {
        let bytes: Vec<u8> = (1..=200).collect();
        let mut buffer = KeyBuffer::default();
        for prefix_len in (0..12).chain([59, 60, 61, 63, 64, 65, 90]) {
            let (prefix, suffixes) = bytes.split_at(prefix_len);
            buffer.set_prefix(prefix);
            assert_eq!(buffer.as_slice(), prefix);
            assert_eq!(buffer.head(), head_of(prefix));
            // From short to long and back, so that keys follow both longer and shorter ones.
            for suffix_len in (0..80).chain((0..80).rev()) {
                for slack in [0, 3, 40] {
                    let suffix = &suffixes[..suffix_len];
                    let from = suffix_len.min(HEAD_BYTES);
                    let rest = &suffixes[from..(suffix_len + slack).min(suffixes.len())];
                    let head = head_of_suffix(suffix);
                    let key_head = buffer.head_with(head, suffix_len, rest);
                    buffer.set_suffix(key_head, head, suffix_len, rest);
                    let key = &bytes[..prefix_len + suffix_len];
                    assert_eq!(buffer.as_slice(), key, "{prefix_len} + {suffix_len}, {slack}");
                    assert_eq!(buffer.head(), head_of(key), "{prefix_len} + {suffix_len}");
                }
            }
        }
    }
    #[test]
    fn bounds_of_heads_are_those_of_keys() {
        let words: Vec<Vec<u8>> = [0, 1, 0x7f, 0xff]
            .iter()
            .flat_map(|byte| (0..=12).map(|len| vec![*byte; len]))
            .chain((0..12).map(|len| b"abcdefghijkl"[..len].to_vec()))
            .collect();
        let (mut inside, mut exact) = (0, 0);
        for prefix in &words {
            let mut buffer = KeyBuffer::default();
            buffer.set_prefix(prefix);
            for (bound, suffix) in
                words.iter().flat_map(|bound| words.iter().map(move |word| (bound, word)))
            {
                let below = head_of(bound);
                let head = u64::from(head_of_suffix(suffix));
                let key = [&prefix[..], suffix].concat();
                let is_inside = head < buffer.head_below(below);
                assert!(!is_inside || head_of(&key) < below, "{prefix:?} {suffix:?} {bound:?}");
                // Four bytes decide unless they are equal to those of the bound.
                let decided = prefix.len() + HEAD_BYTES >= 8
                    || key.get(..prefix.len() + HEAD_BYTES)
                        != bound.get(..prefix.len() + HEAD_BYTES);
                if decided && suffix.len() >= HEAD_BYTES && bound.len() >= 8 {
                    assert_eq!(is_inside, head_of(&key) < below, "{prefix:?} {suffix:?} {bound:?}");
                    exact += 1;
                }
                inside += usize::from(is_inside);
            }
        }
        assert!(inside > 1000 && exact > 1000, "{inside} {exact}");
    }
}
