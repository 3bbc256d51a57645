//! Tables: data blocks, filter, range tombstones, index, properties, footer.

use crate::walk::{Walk, little, place};

const MAGIC: &[u8; 8] = b"TERRTABL";

/// The position of a part, without its trailer.
#[derive(Clone, Copy)]
struct Handle {
    offset: usize,
    len: usize,
}

struct Table<'a> {
    bytes: &'a [u8],
    walk: Walk<'a>,
    file: u64,
}

pub(crate) fn dump(bytes: &[u8]) -> String {
    let footer = bytes.len() - 84;
    let handle = |number: usize| {
        let at = footer + number * 12;
        let (offset, len) = (little(&bytes[at..at + 8]), little(&bytes[at + 8..at + 12]));
        Handle { offset: offset as usize, len: len as usize }
    };
    let [filter, ranges, index, properties] = [0, 1, 2, 3].map(handle);
    let (number, writer) = (little(&bytes[footer + 48..][..8]), little(&bytes[footer + 56..][..8]));
    let file = number ^ writer.rotate_left(32);
    let mut table = Table { bytes, walk: Walk::new(bytes), file };
    for (start, end) in blocks(bytes, index) {
        assert_eq!(table.walk.at(), start);
        table.data_block(end - 9);
        table.trailer(start);
    }
    if filter.len > 0 {
        table.walk.zeros(filter.offset - table.walk.at(), "up to a multiple of 64");
        table.filter(filter);
    }
    if ranges.len > 0 {
        table.range_tombstones(ranges);
    }
    table.index(index);
    table.properties(properties);
    table.footer(footer);
    table.walk.finish()
}

/// The start and the end of each data block, with its trailer.
fn blocks(bytes: &[u8], index: Handle) -> Vec<(usize, usize)> {
    let count = little(&bytes[index.offset..][..4]) as usize;
    let offsets = index.offset + 8 + count * 8;
    let offset = |at: usize| (little(&bytes[offsets + at * 8..][..8]) & !(1 << 63)) as usize;
    (0..count).map(|at| (offset(at), offset(at + 1))).collect()
}

impl Table<'_> {
    fn data_block(&mut self, end: usize) {
        let walk = &mut self.walk;
        walk.title("data block");
        let count = walk.number(4, "entries") as usize;
        let shape = walk.number(4, "shape");
        assert_eq!(shape >> 31, 0, "narrow offsets");
        let mut heads = Vec::new();
        for _ in 0..count {
            let head = (little(walk.take(4, "head")) as u32).to_be_bytes();
            heads.push(head);
        }
        for number in 0..count {
            walk.number(2, &format!("offset of entry {number}:"));
        }
        let base = walk.varint("base sequence number");
        walk.take((shape & 0x7fff_ffff) as usize, "prefix");
        let starts = self.walk.at();
        let offsets = starts_of(&self.bytes[..starts], count, shape, base);
        for (number, head) in heads.iter().enumerate() {
            assert_eq!(self.walk.at() - starts, offsets[number]);
            let next = offsets.get(number + 1).map_or(end, |next| starts + next);
            let walk = &mut self.walk;
            let (packed, _) = crate::walk::leb128(&self.bytes[walk.at()..]);
            let kind = if packed & 1 == 1 { "value" } else { "tombstone" };
            walk.varint(&format!("entry {number}: {} << 1, {kind}:", base + (packed >> 1)));
            let suffix = walk.varint("suffix length") as usize;
            let shown = head[..suffix.min(4)].escape_ascii().to_string();
            let rest = suffix.saturating_sub(4);
            if rest > 0 {
                walk.take(rest, &format!("suffix after \"{shown}\""));
            }
            if next > walk.at() {
                walk.take(next - walk.at(), "value");
            }
        }
        assert_eq!(self.walk.at(), end);
    }

    /// The compression and the checksum of the part that began at `start`.
    fn trailer(&mut self, start: usize) {
        assert_eq!(self.walk.number(1, "compression"), 0);
        let summed = &self.bytes[start..self.walk.at()];
        self.walk.checksum(summed, place(self.file, start as u64));
    }

    fn filter(&mut self, handle: Handle) {
        self.walk.title("filter");
        assert_eq!(self.walk.at(), handle.offset);
        for _ in 0..handle.len / 64 {
            self.walk.take(64, "line");
        }
        self.walk.number(1, "probes");
        self.trailer(handle.offset);
    }

    fn range_tombstones(&mut self, handle: Handle) {
        self.walk.title("range tombstones");
        assert_eq!(self.walk.at(), handle.offset);
        for _ in 0..self.walk.varint("fragments") {
            self.walk.slice("first key");
            if self.walk.number(1, "has an end") == 1 {
                self.walk.slice("end");
            }
            for _ in 0..self.walk.varint("tombstones") {
                self.walk.varint("sequence number");
            }
        }
        self.trailer(handle.offset);
    }

    fn index(&mut self, handle: Handle) {
        let walk = &mut self.walk;
        walk.title("index");
        assert_eq!(walk.at(), handle.offset);
        let count = walk.number(4, "blocks") as usize;
        let prefix = walk.number(4, "prefix length") as usize;
        for _ in 0..count {
            walk.take(8, "head");
        }
        for block in 0..count {
            walk.number(8, &format!("block {block} at"));
        }
        walk.number(8, "blocks end at");
        let mut rests = 0;
        for _ in 0..count {
            rests = walk.number(4, "rest ends at");
        }
        for _ in 0..count {
            walk.number(1, "head length");
        }
        walk.take(prefix, "prefix");
        walk.take(rests as usize, "rests");
        self.trailer(handle.offset);
    }

    fn properties(&mut self, handle: Handle) {
        self.walk.title("properties");
        assert_eq!(self.walk.at(), handle.offset);
        while self.walk.at() < handle.offset + handle.len {
            let tag = self.walk.varint("tag");
            if tag == 24 || tag == 26 {
                self.walk.slice(if tag == 24 { "first key" } else { "end" });
                continue;
            }
            let what = match tag {
                2 => "entries",
                4 => "tombstones",
                6 => "range tombstones",
                8 => "keys",
                10 => "bytes of keys",
                12 => "bytes of values",
                14 => "data blocks",
                16 => "smallest sequence number",
                18 => "largest sequence number",
                20 => "made at",
                22 => "oldest tombstone at",
                28 => "keyspace",
                unknown => panic!("property {unknown}"),
            };
            self.walk.varint("length");
            self.walk.varint(what);
        }
        self.trailer(handle.offset);
    }

    fn footer(&mut self, at: usize) {
        let walk = &mut self.walk;
        walk.title("footer");
        assert_eq!(walk.at(), at);
        for part in ["filter", "range tombstones", "index", "properties"] {
            walk.number(8, &format!("{part} at"));
            walk.number(4, &format!("{part} length"));
        }
        walk.number(8, "table");
        walk.number(8, "writer");
        assert_eq!(walk.number(4, "version"), 1);
        walk.checksum(&self.bytes[at..at + 68], little(MAGIC));
        assert_eq!(walk.take(8, "magic \"TERRTABL\""), MAGIC);
    }
}

/// The narrow offsets of a block whose entries begin where `before` ends.
fn starts_of(before: &[u8], count: usize, shape: u64, base: u64) -> Vec<usize> {
    let prefix = (shape & 0x7fff_ffff) as usize;
    let base_len = (64 - (base | 1).leading_zeros() as usize).div_ceil(7);
    let offsets = before.len() - prefix - base_len - count * 2;
    (0..count).map(|at| little(&before[offsets + at * 2..][..2]) as usize).collect()
}
