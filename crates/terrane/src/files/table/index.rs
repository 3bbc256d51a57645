//! The index of a table: fence pointers, searched in place.
//!
//! ```text
//! +-------+------------+-------------+-------------------+-------------+------------+--------+-------+
//! | count | prefix len | heads       | block offsets     | rest ends   | head lens  | prefix | rests |
//! | u32   | u32        | count × u64 | (count + 1) × u64 | count × u32 | count × u8 | bytes  | bytes |
//! +-------+------------+-------------+-------------------+-------------+------------+--------+-------+
//! ```
//!
//! Block `i` has a separator: the shortest key above the last key of block `i - 1` and not above
//! its own first key; for block 0 its first key. All separators begin with `prefix`. The next up to
//! eight bytes of a separator, padded with zeros, are its head; the remaining bytes are its rest,
//! which ends at its offset in `rests`. Block `i` ends at the offset of the next one. The top bit
//! of an offset is set if the block begins with versions of the previous block's last key.
//!
//! A search compares heads first. Every sixteenth head is copied to memory when the index is
//! parsed. These copies are few enough to stay in the processor's cache: 4 KiB for a table of 32
//! MiB. The remaining heads are adjacent, and are fetched together with their offsets.

use std::cmp::Ordering::{self, Equal, Greater};
use std::ops::Range;

use terrane_memtable::{head_of, prefetch_lines};

use crate::base::bytes::after_prefix;
use crate::base::codec::{Decoded, Reader};
use crate::base::types::MAX_KEY_LEN;

const CONTINUES: u64 = 1 << 63;
const HEAD_BYTES: usize = 8;

/// Collects fence pointers.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    separators: Vec<u8>,
    ends: Vec<usize>,
    offsets: Vec<u64>,
}

impl IndexBuilder {
    /// Adds the block at `offset` with first key `first`; `last` is the last key before it.
    pub(super) fn add(&mut self, last: Option<&[u8]>, first: &[u8], offset: u64) {
        let continues = last == Some(first);
        let separator = match last {
            Some(last) if !continues => shortest_separator(last, first),
            _ => first,
        };
        self.separators.extend_from_slice(separator);
        self.ends.push(self.separators.len());
        self.offsets.push(offset | if continues { CONTINUES } else { 0 });
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.separators.capacity()
            + (self.ends.capacity() + self.offsets.capacity()) * size_of::<u64>()
    }

    fn separator(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.separators[start..self.ends[index]]
    }

    /// Encodes the index; the last block ends at `end`.
    pub(super) fn finish(self, end: u64) -> Vec<u8> {
        let count = self.offsets.len();
        let prefix = match count {
            0 => &[],
            _ => shared_prefix(self.separator(0), self.separator(count - 1)),
        };
        let suffix = |index| &self.separator(index)[prefix.len()..];
        let mut out = Vec::with_capacity(16 + count * 21 + self.separators.len());
        out.extend_from_slice(&(count as u32).to_le_bytes());
        out.extend_from_slice(&(prefix.len() as u32).to_le_bytes());
        for index in 0..count {
            out.extend_from_slice(&head_of(suffix(index)).to_le_bytes());
        }
        for offset in self.offsets.iter().chain([&end]) {
            out.extend_from_slice(&offset.to_le_bytes());
        }
        let mut rests = Vec::new();
        for index in 0..count {
            rests.extend_from_slice(suffix(index).get(HEAD_BYTES..).unwrap_or_default());
            out.extend_from_slice(&(rests.len() as u32).to_le_bytes());
        }
        out.extend((0..count).map(|index| suffix(index).len().min(HEAD_BYTES) as u8));
        out.extend_from_slice(prefix);
        out.extend_from_slice(&rests);
        out
    }
}

fn shared_prefix<'a>(a: &'a [u8], b: &[u8]) -> &'a [u8] {
    let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    &a[..shared]
}

/// Returns the shortest prefix of `first` that is above `last`. Requires `last < first`.
fn shortest_separator<'a>(last: &[u8], first: &'a [u8]) -> &'a [u8] {
    let shared = shared_prefix(last, first).len();
    &first[..(shared + 1).min(first.len())]
}

/// The offsets of an index's parts.
#[derive(Debug, Clone, Default)]
pub(super) struct IndexLayout {
    count: usize,
    offsets: usize,
    rest_ends: usize,
    head_lens: usize,
    prefix: Range<usize>,
    /// The heads of blocks 0, [`SAMPLED`], 2 × [`SAMPLED`] and so on.
    samples: Box<[u64]>,
    /// The blocks that begin with versions of the previous block's last key, in order: few, or none.
    /// With this list, checks for such blocks need not load offsets from cache lines that nothing else
    /// reads.
    continuing: Box<[u32]>,
}

/// The distance between two sampled heads. The heads between them fill two cache lines.
const SAMPLED: usize = 16;

/// The number of cache lines that `SAMPLED` heads or offsets may span.
const SAMPLED_LINES: usize = 3;

const HEADS_START: usize = 8;

impl IndexLayout {
    /// Checks that an index is complete, and that its blocks are in order below `end_max`.
    pub(super) fn parse(bytes: &[u8], end_max: u64) -> Decoded<Self> {
        let mut reader = Reader::new(bytes);
        let count = reader.u32("index")? as usize;
        let prefix_len = reader.u32("index")? as usize;
        let too_many = reader.error("index");
        let times = |size: usize| count.checked_mul(size).ok_or(too_many);
        let heads = reader.bytes(times(8)?, "index heads")?;
        let samples = heads.chunks(8 * SAMPLED).map(|heads| u64_at(heads, 0)).collect();
        let offsets = reader.position();
        let mut before = 0;
        let mut continuing = Vec::new();
        for index in 0..=count {
            let word = reader.u64("block offset")?;
            let offset = word & !CONTINUES;
            if offset < before || offset > end_max {
                return Err(reader.error("block offset"));
            }
            if word & CONTINUES != 0 && index < count {
                continuing.push(index as u32);
            }
            before = offset;
        }
        let rest_ends = reader.position();
        reader.bytes(times(4)?, "index rests")?;
        let head_lens = reader.position();
        let lens = reader.bytes(count, "index head lengths")?;
        let prefix_start = reader.position();
        reader.bytes(prefix_len, "index prefix")?;
        if prefix_len > MAX_KEY_LEN || lens.iter().any(|&len| usize::from(len) > HEAD_BYTES) {
            return Err(reader.error("index"));
        }
        let prefix = prefix_start..reader.position();
        let continuing = continuing.into();
        Ok(Self { count, offsets, rest_ends, head_lens, prefix, samples, continuing })
    }

    /// Returns the number of blocks.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the bytes outside the index that describe it.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.samples) + size_of_val(&*self.continuing)
    }

    /// Returns true if block `index` exists and begins with versions of the last key of the block before
    /// it.
    #[inline]
    pub(super) fn continues(&self, index: usize) -> bool {
        !self.continuing.is_empty()
            && u32::try_from(index).is_ok_and(|index| self.continuing.binary_search(&index).is_ok())
    }
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

/// An index in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index<'a> {
    bytes: &'a [u8],
    layout: &'a IndexLayout,
}

impl<'a> Index<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], layout: &'a IndexLayout) -> Self {
        Self { bytes, layout }
    }

    #[inline]
    fn u64_at(&self, at: usize) -> u64 {
        u64_at(self.bytes, at)
    }

    /// Returns the location of block `index` in the file.
    #[inline]
    pub(super) fn block(&self, index: usize) -> Range<u64> {
        let at = self.layout.offsets + index * 8;
        (self.u64_at(at) & !CONTINUES)..(self.u64_at(at + 8) & !CONTINUES)
    }

    #[inline]
    fn head(&self, index: usize) -> u64 {
        self.u64_at(HEADS_START + index * 8)
    }

    fn rest_end(&self, index: usize) -> usize {
        let at = self.layout.rest_ends + index * 4;
        let bytes = self.bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or_default()) as usize
    }

    /// Compares `suffix` with the suffix of separator `index`. Both have the same head.
    fn compare(&self, index: usize, suffix: &[u8]) -> Ordering {
        let rests = self.bytes.get(self.layout.prefix.end..).unwrap_or_default();
        let start = index.checked_sub(1).map_or(0, |before| self.rest_end(before));
        let rest = rests.get(start..self.rest_end(index)).unwrap_or_default();
        let head_len = self.bytes.get(self.layout.head_lens + index).copied().unwrap_or_default();
        let wanted_rest = suffix.get(HEAD_BYTES..).unwrap_or_default();
        let len = usize::from(head_len) + rest.len();
        rest.cmp(wanted_rest).then_with(|| len.cmp(&suffix.len()))
    }

    /// Returns the separator of block `index`.
    pub(super) fn separator(&self, index: usize) -> Vec<u8> {
        let part = |range: Range<usize>| self.bytes.get(range).unwrap_or_default();
        let head_len = self.bytes.get(self.layout.head_lens + index).copied().unwrap_or_default();
        let head = self.head(index).to_be_bytes();
        let rests = self.layout.prefix.end;
        let start = index.checked_sub(1).map_or(0, |before| self.rest_end(before));
        let rest = part(rests + start..rests + self.rest_end(index));
        let head = head.get(..usize::from(head_len)).unwrap_or_default();
        [part(self.layout.prefix.clone()), head, rest].concat()
    }

    /// Returns the first block that may have versions of `key`. All versions of the key are in this
    /// block and in the following blocks that continue the key.
    #[cfg(any(test, fuzzing))]
    pub(super) fn search(&self, key: &[u8]) -> usize {
        self.search_with(key, |_, _| ())
    }

    /// Does the same, and calls `narrowed` with the first candidate block and the number of
    /// candidates while the memory that decides between them is being fetched.
    #[inline]
    pub(super) fn search_with(&self, key: &[u8], narrowed: impl Fn(usize, usize)) -> usize {
        match self.suffix_of(key) {
            Ok(suffix) => {
                let group = self.group_of(head_of(suffix));
                self.prefetch_group(group, narrowed);
                self.search_in(suffix, group)
            }
            Err(block) => block,
        }
    }

    /// Does the first part of [`Index::search_with`].
    pub(super) fn narrow(&self, key: &[u8], narrowed: impl Fn(usize, usize)) -> Narrowed {
        let group = self.suffix_of(key).ok().and_then(|suffix| self.group_of(head_of(suffix)));
        self.prefetch_group(group, narrowed);
        Narrowed(group)
    }

    /// Does the rest of [`Index::search_with`] after [`Index::narrow`] for the same key.
    pub(super) fn search_narrowed(&self, key: &[u8], narrowed: Narrowed) -> usize {
        self.suffix_of(key).map_or_else(|block| block, |suffix| self.search_in(suffix, narrowed.0))
    }

    /// Returns the part of a key after the prefix, or the block to search if the key lacks the prefix.
    #[inline]
    fn suffix_of<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], usize> {
        after_prefix(key, self.prefix()).ok_or_else(|| self.beside_prefix(key))
    }

    #[cold]
    fn beside_prefix(&self, key: &[u8]) -> usize {
        if *key < *self.prefix() { 0 } else { self.layout.count.saturating_sub(1) }
    }

    #[inline]
    fn prefix(&self) -> &'a [u8] {
        self.bytes.get(self.layout.prefix.clone()).unwrap_or_default()
    }

    /// Searches for a suffix whose head is in `group`.
    #[inline]
    fn search_in(&self, suffix: &[u8], group: Option<usize>) -> usize {
        let mut at = self.count_not_above(suffix, group);
        // Blocks that begin with exactly this key may continue it from an earlier block.
        while at > 1 && self.layout.continues(at - 1) && self.is_separator(at - 1, suffix) {
            at -= 1;
        }
        at.saturating_sub(1)
    }

    /// Returns true if block `index` exists and may begin with versions of `key`, which is the last
    /// key of the previous block.
    pub(super) fn continues_in(&self, index: usize, key: &[u8]) -> bool {
        self.layout.continues(index)
            && key
                .strip_prefix(self.prefix())
                .is_some_and(|suffix| self.is_separator(index, suffix))
    }

    fn is_separator(&self, index: usize, suffix: &[u8]) -> bool {
        self.head(index) == head_of(suffix) && self.compare(index, suffix) == Equal
    }

    /// Returns the number of separators that are not above the key with this suffix.
    #[inline]
    fn count_not_above(&self, suffix: &[u8], group: Option<usize>) -> usize {
        let head = head_of(suffix);
        let mut low = self.lower_bound(head, group);
        if low == self.layout.count || self.head(low) != head {
            return low;
        }
        let next = head.checked_add(1);
        let below = |next| self.lower_bound(next, self.group_of(next));
        let mut high = next.map_or(self.layout.count, below);
        while low < high {
            let middle = low.midpoint(high);
            if self.compare(middle, suffix) == Greater { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Returns the last group of [`SAMPLED`] heads that begins below `target`; `None` if all heads are
    /// at or above it.
    #[inline]
    fn group_of(&self, target: u64) -> Option<usize> {
        self.layout.samples.partition_point(|&head| head < target).checked_sub(1)
    }

    /// Returns the heads of a group.
    #[inline]
    fn heads(&self, group: usize) -> &'a [u8] {
        let from = group * SAMPLED;
        let to = (from + SAMPLED).min(self.layout.count);
        self.bytes.get(HEADS_START + from * 8..HEADS_START + to * 8).unwrap_or_default()
    }

    #[inline]
    fn prefetch_group(&self, group: Option<usize>, narrowed: impl Fn(usize, usize)) {
        if let Some(group) = group {
            let heads = self.heads(group);
            narrowed(group * SAMPLED, heads.len() / 8);
            prefetch_lines(heads, SAMPLED_LINES);
        }
    }

    /// Returns the number of heads below `target`, whose group is `group`.
    #[inline]
    fn lower_bound(&self, target: u64, group: Option<usize>) -> usize {
        let Some(group) = group else { return 0 };
        // Counts without branches.
        let heads = self.heads(group).chunks_exact(8);
        let below = heads.map(|head| usize::from(u64_at(head, 0) < target)).sum::<usize>();
        group * SAMPLED + below
    }
}

/// The group of heads to which the search for a key was narrowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrowed(Option<usize>);

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_testkit::{Rng, seed_from_env};

    /// Sorted keys divided into blocks, where a key may continue in the next block.
    fn random_blocks(rng: &mut Rng) -> Vec<Vec<Vec<u8>>> {
        let prefix: &[u8] = rng.pick::<&[u8]>(&[&b""[..], b"shared-prefix-"]);
        let alphabet: &[u8] = rng.pick::<&[u8]>(&[&b"ab"[..], b"\0\x01\xff", b"0123456789"]);
        let key = |rng: &mut Rng| {
            let len = rng.index(14);
            prefix.iter().copied().chain((0..len).map(|_| *rng.pick(alphabet))).collect::<Vec<u8>>()
        };
        let mut keys: Vec<Vec<u8>> = (0..rng.between(1, 300)).map(|_| key(rng)).collect();
        keys.sort();
        let mut blocks = vec![];
        while !keys.is_empty() {
            let rest = keys.split_off(rng.index(5).min(keys.len() - 1) + 1);
            blocks.push(std::mem::replace(&mut keys, rest));
        }
        blocks
    }

    #[test]
    fn searches_find_the_first_block_of_a_key() {
        let seed = seed_from_env(31);
        for round in 0..300 {
            let mut rng = Rng::new(seed + round);
            let blocks = random_blocks(&mut rng);
            let mut builder = IndexBuilder::default();
            let mut last: Option<&Vec<u8>> = None;
            for (number, block) in blocks.iter().enumerate() {
                builder.add(last.map(|key| &key[..]), &block[0], number as u64 * 100);
                last = block.last();
            }
            let bytes = builder.finish(blocks.len() as u64 * 100);
            let layout = IndexLayout::parse(&bytes, 1 << 40).unwrap();
            let index = Index::new(&bytes, &layout);
            assert_eq!(layout.len(), blocks.len());
            assert_eq!(index.block(0), 0..100);
            for (number, block) in blocks.iter().enumerate() {
                let separator = index.separator(number);
                let before = number.checked_sub(1).and_then(|before| blocks[before].last());
                assert!(separator <= block[0], "seed {}", seed + round);
                assert!(before.is_none_or(|last| *last < separator || *last == block[0]));
            }
            for block in &blocks {
                for key in block {
                    let first = blocks.iter().position(|block| block.contains(key)).unwrap();
                    assert_eq!(index.search(key), first, "seed {} key {key:?}", seed + round);
                    let narrowed = index.narrow(key, |_, _| ());
                    assert_eq!(index.search_narrowed(key, narrowed), first);
                    // An absent key lies in the range of the found block, or next to it.
                    let mut absent = key.clone();
                    absent.push(0);
                    if !blocks.iter().any(|block| block.contains(&absent)) {
                        let found = index.search(&absent);
                        let below = found
                            .checked_sub(1)
                            .is_none_or(|at| *blocks[at].last().unwrap() < absent);
                        let above = blocks.get(found + 1).is_none_or(|next| next[0] > absent);
                        assert!(below && above, "seed {}", seed + round);
                    }
                }
            }
            index.search(b"");
            index.search(b"\xff\xff");
        }
    }

    #[test]
    fn damaged_indexes_give_errors_or_answers_and_never_panic() {
        let seed = seed_from_env(32);
        for round in 0..200 {
            let mut rng = Rng::new(seed + round);
            let mut builder = IndexBuilder::default();
            for number in 0..20u64 {
                builder.add(None, &number.to_be_bytes(), number * 10);
            }
            let mut bytes = builder.finish(200);
            for _ in 0..3 {
                let at = rng.index(bytes.len());
                bytes[at] = rng.bits() as u8;
            }
            bytes.truncate(rng.index(bytes.len() + 1));
            if let Ok(layout) = IndexLayout::parse(&bytes, 200) {
                let index = Index::new(&bytes, &layout);
                index.search(&7u64.to_be_bytes());
                index.search(b"\0\0\0");
                (0..layout.len()).for_each(|number| drop(index.separator(number)));
            }
        }
        assert!(IndexLayout::parse(&[0xff; 400], 200).is_err());
    }
}
