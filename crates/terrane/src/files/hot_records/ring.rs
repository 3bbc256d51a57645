//! Records in the order of their arrival, in segments: blocks of the pool.
//!
//! ```text
//! record, at a multiple of 16:
//! | table | next table | sequence number | hash | value length | key length | kind | used | key | value | padding |
//! | u32   | u32        | u64             | u64  | u32          | u16        | u8   | u8   |     |       |         |
//! ```

use std::collections::VecDeque;

use terrane_memtable::prefetch_line;

use super::index::{POSITIONS, Position};
use super::record::RecordKey;
use crate::base::types::{EntryKind, SeqNo};
use crate::files::buffer::BlockMut;

const UNIT: usize = 16;

/// The size of a segment: a block of this size has memory of its own, which returns to the system when the
/// segment is released.
pub(super) const SEGMENT_BYTES: usize = 512 << 10;

const UNITS: usize = SEGMENT_BYTES / UNIT;

/// The number of segments that positions can express.
pub(super) const SEGMENTS_MAX: usize = POSITIONS / UNITS;

const HEADER_BYTES: usize = 32;
const USED_AT: usize = 31;

/// The maximum size of a record, so that segments are filled well.
pub(super) const RECORD_BYTES_MAX: usize = SEGMENT_BYTES / 16;

/// Returns the size of a record.
pub(super) fn record_bytes(key_len: usize, value_len: usize) -> usize {
    (HEADER_BYTES + key_len + value_len).next_multiple_of(UNIT)
}

/// The place of the record's segment, and its unit there.
impl Position {
    fn new(place: usize, offset: usize) -> Self {
        Self((place * UNITS + offset / UNIT) as u32)
    }

    fn place(self) -> usize {
        self.0 as usize / UNITS
    }

    fn offset(self) -> usize {
        self.0 as usize % UNITS * UNIT
    }
}

/// A record in a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) at: RecordKey<'a>,
    /// The number of the table to which a compaction writes the same version; that of its own table if none does.
    pub(super) next: u64,
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) is_used: bool,
    pub(super) value: &'a [u8],
}

/// Returns the fields for the numbers of two tables; `None` if they are beyond 32 bits.
fn encode_tables(table: u64, next: u64) -> Option<[u8; 8]> {
    let (table, next) = (u32::try_from(table).ok()?, u32::try_from(next).ok()?);
    Some((u64::from(table) | u64::from(next) << 32).to_le_bytes())
}

impl Record<'_> {
    /// Returns true if the record is the newest version of its key in this table.
    pub(super) fn is_of(&self, table: u64) -> bool {
        self.at.table == table || self.next == table
    }

    fn bytes(&self) -> usize {
        record_bytes(self.at.key.len(), self.value.len())
    }

    /// Writes the record to the start of `to`. Returns `None` if it cannot be written.
    fn write(&self, to: &mut [u8]) -> Option<()> {
        let (key, value) = (self.at.key, self.value);
        let mut fields = Vec::with_capacity(self.bytes());
        fields.extend_from_slice(&encode_tables(self.at.table, self.next)?);
        fields.extend_from_slice(&self.seq.to_le_bytes());
        fields.extend_from_slice(&self.at.hash.to_le_bytes());
        fields.extend_from_slice(&(value.len() as u32).to_le_bytes());
        fields.extend_from_slice(&(key.len() as u16).to_le_bytes());
        fields.extend_from_slice(&[self.kind as u8, u8::from(self.is_used)]);
        fields.extend_from_slice(key);
        fields.extend_from_slice(value);
        to.get_mut(..fields.len())?.copy_from_slice(&fields);
        Some(())
    }

    /// Reads the record at the start of `bytes`.
    fn read(bytes: &[u8]) -> Option<Record<'_>> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let value_len = u32_at(24)? as usize;
        let key_len = usize::from(u16::from_le_bytes(*bytes.get(28..)?.first_chunk()?));
        let kind = EntryKind::from_u8(*bytes.get(30)?)?;
        let is_used = *bytes.get(USED_AT)? != 0;
        let (key, rest) = bytes.get(HEADER_BYTES..)?.split_at_checked(key_len)?;
        let at = RecordKey { table: u32_at(0)?.into(), key, hash: u64_at(16)? };
        let (next, seq) = (u32_at(4)?.into(), u64_at(8)?);
        Some(Record { at, next, seq, kind, is_used, value: rest.get(..value_len)? })
    }
}

/// A block of records.
struct Segment {
    bytes: BlockMut,
    /// The records end here.
    end: usize,
    /// The records up to here have left.
    passed: usize,
}

/// Segments, oldest first, each at a place that it keeps.
#[derive(Default)]
pub(super) struct Ring {
    places: Vec<Option<Segment>>,
    order: VecDeque<usize>,
    /// The number of segments that were ever removed.
    removed: u64,
    /// For each place, the number of segments that were added before its segment.
    added: Vec<u64>,
}

impl Ring {
    /// The number of segments.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    fn segment(&self, place: Option<&usize>) -> Option<&Segment> {
        self.places.get(*place?)?.as_ref()
    }

    /// The bytes of the oldest segment whose records have left, and the bytes of the newest one that records
    /// take.
    pub(super) fn passed_and_filled(&self) -> (usize, usize) {
        let passed = self.segment(self.order.front()).map_or(0, |oldest| oldest.passed);
        (passed, self.segment(self.order.back()).map_or(0, |newest| newest.end))
    }

    /// Returns true if the newest segment has room for `bytes` bytes.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.segment(self.order.back()).is_some_and(|newest| newest.end + bytes <= SEGMENT_BYTES)
    }

    /// Adds an empty segment, the newest.
    pub(super) fn add_segment(&mut self, bytes: BlockMut) {
        let vacant = self.places.iter().position(Option::is_none);
        let place = vacant.unwrap_or_else(|| {
            self.places.push(None);
            self.added.push(0);
            self.places.len() - 1
        });
        self.added[place] = self.removed + self.order.len() as u64;
        self.places[place] = Some(Segment { bytes, end: 0, passed: 0 });
        self.order.push_back(place);
    }

    /// Removes the oldest segment.
    pub(super) fn remove_oldest(&mut self) -> Option<BlockMut> {
        let place = self.order.pop_front()?;
        self.removed += 1;
        Some(self.places.get_mut(place)?.take()?.bytes)
    }

    /// Appends a record to the newest segment, if there is room.
    pub(super) fn append(&mut self, record: Record<'_>) -> Option<Position> {
        let place = *self.order.back()?;
        let segment = self.places.get_mut(place)?.as_mut()?;
        let (start, end) = (segment.end, segment.end + record.bytes());
        record.write(segment.bytes.get_mut(start..end)?)?;
        segment.end = end;
        Some(Position::new(place, start))
    }

    /// Returns the record at a position.
    pub(super) fn record(&self, position: Position) -> Option<Record<'_>> {
        let segment = self.segment(Some(&position.place()))?;
        Record::read(segment.bytes.get(position.offset()..segment.end)?)
    }

    /// Prefetches the header and the key of the record at a position.
    pub(super) fn prefetch(&self, position: Position) {
        let segment = self.segment(Some(&position.place()));
        if let Some(record) = segment.and_then(|it| it.bytes.get(position.offset()..)) {
            prefetch_line(record.as_ptr());
        }
    }

    fn bytes_from(&mut self, position: Position) -> Option<&mut [u8]> {
        let segment = self.places.get_mut(position.place())?.as_mut()?;
        segment.bytes.get_mut(position.offset()..segment.end)
    }

    /// Changes the numbers of the tables of the record at a position. Returns `None` if they cannot be stored.
    pub(super) fn set_tables(&mut self, position: Position, table: u64, next: u64) -> Option<()> {
        let tables = encode_tables(table, next)?;
        self.bytes_from(position)?.get_mut(..tables.len())?.copy_from_slice(&tables);
        Some(())
    }

    /// Replaces the record at a position by one of the same size. Returns `None` if its size is another one.
    pub(super) fn replace(&mut self, position: Position, record: Record<'_>) -> Option<()> {
        let has_room = self.record(position)?.bytes() == record.bytes();
        if has_room { record.write(self.bytes_from(position)?) } else { None }
    }

    pub(super) fn set_used(&mut self, position: Position) {
        let segment = self.places.get_mut(position.place()).and_then(Option::as_mut);
        let used = segment.and_then(|it| it.bytes.get_mut(position.offset() + USED_AT));
        if let Some(used) = used {
            *used = 1;
        }
    }

    /// Returns how many bytes of records leave before the one at this position.
    pub(super) fn bytes_before(&self, position: Position) -> usize {
        let added = self.added.get(position.place()).copied().unwrap_or_default();
        let segments = added.saturating_sub(self.removed) as usize;
        let (passed, _) = self.passed_and_filled();
        (segments * SEGMENT_BYTES + position.offset()).saturating_sub(passed)
    }

    /// Passes the oldest record, and returns its position; `None` if the oldest segment has no more.
    pub(super) fn pass_oldest(&mut self) -> Option<Position> {
        let place = *self.order.front()?;
        let segment = self.places.get_mut(place)?.as_mut()?;
        let start = segment.passed;
        let record = Record::read(segment.bytes.get(start..segment.end)?)?;
        segment.passed += record.bytes();
        Some(Position::new(place, start))
    }

    /// Appends the record at a position, as one that was not used, to the newest segment. Returns its new
    /// position, if there is room for it in another segment.
    pub(super) fn move_to_end(&mut self, position: Position) -> Option<Position> {
        let newest = *self.order.back()?;
        if newest == position.place() {
            return None;
        }
        let bytes = self.record(position)?.bytes();
        let [from, to] = self.places.get_disjoint_mut([position.place(), newest]).ok()?;
        let (from, to) = (from.as_ref()?, to.as_mut()?);
        let (start, end) = (to.end, to.end + bytes);
        let source = from.bytes.get(position.offset()..position.offset() + bytes)?;
        let target = to.bytes.get_mut(start..end)?;
        target.copy_from_slice(source);
        target[USED_AT] = 0;
        to.end = end;
        Some(Position::new(newest, start))
    }
}
