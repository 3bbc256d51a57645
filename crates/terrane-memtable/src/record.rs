//! Entries in an arena: header, key, value, written once.
//!
//! ```text
//! +--------+---------+-----------+-----+-------+
//! | packed | key len | value len | key | value |
//! | u64    | u32     | u32       |     |       |
//! +--------+---------+-----------+-----+-------+
//! ```

use std::cmp::Ordering::{self, Equal};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::arena::Arena;
use crate::entry::{Entry, EntryKind, SeqNo, kind_of, pack, seq_of};
use crate::sync::WrittenOnce;

/// The header of an entry; key and value follow it in memory.
#[repr(C)]
pub(crate) struct Record {
    packed: u64,
    key_len: u32,
    value_len: u32,
    all: WrittenOnce,
}

impl Record {
    /// An entry in the arena.
    pub(crate) fn allocate(
        arena: &Arena,
        key: &[u8],
        seq: SeqNo,
        kind: EntryKind,
        value: &[u8],
    ) -> NonNull<Record> {
        let start = arena.allocate(size_of::<Record>() + key.len() + value.len());
        let record = start.cast::<Record>();
        // Lengths are checked where a memtable is entered.
        let header = Record {
            packed: pack(seq, kind),
            key_len: key.len() as u32,
            value_len: value.len() as u32,
            all: WrittenOnce::new(),
        };
        // SAFETY: freshly allocated for an entry of this size, and aligned to 8.
        unsafe { record.write(header) };
        // SAFETY: the key lies behind the header, within the allocation.
        let key_start = unsafe { record.add(1) }.cast::<u8>();
        // SAFETY: `key.len()` bytes were allocated there, and fresh memory overlaps nothing.
        unsafe { ptr::copy_nonoverlapping(key.as_ptr(), key_start.as_ptr(), key.len()) };
        // SAFETY: the value lies behind the key, within the allocation.
        let value_start = unsafe { key_start.add(key.len()) };
        // SAFETY: `value.len()` bytes were allocated there.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), value_start.as_ptr(), value.len()) };
        // SAFETY: the header was just written.
        unsafe { record.as_ref() }.all.write();
        record
    }
}

/// An entry whose arena is alive for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct RecordRef<'a> {
    record: NonNull<Record>,
    arena: PhantomData<&'a Arena>,
}

impl<'a> RecordRef<'a> {
    /// # Safety
    /// `record` was made by [`Record::allocate`] in an arena that lives for `'a`.
    #[inline]
    pub(crate) unsafe fn new(record: NonNull<Record>) -> Self {
        Self { record, arena: PhantomData }
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> NonNull<Record> {
        self.record
    }

    #[inline]
    fn header(self) -> &'a Record {
        // SAFETY: by `new`, and entries are never written again.
        let header: &'a Record = unsafe { self.record.as_ref() };
        header.all.read();
        header
    }

    #[inline]
    fn bytes(self, start: usize, len: usize) -> &'a [u8] {
        // SAFETY: key and value lie behind the header, within the allocation.
        let payload = unsafe { self.record.add(1) }.cast::<u8>();
        // SAFETY: as above.
        let start = unsafe { payload.add(start) };
        // SAFETY: `len` bytes there were written in `allocate`, and never again.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    #[inline]
    pub(crate) fn key(self) -> &'a [u8] {
        self.bytes(0, self.header().key_len as usize)
    }

    #[inline]
    pub(crate) fn seq(self) -> SeqNo {
        seq_of(self.header().packed)
    }

    #[inline]
    pub(crate) fn entry(self) -> Entry<'a> {
        let Record { packed, key_len, value_len, .. } = self.header();
        let value = self.bytes(*key_len as usize, *value_len as usize);
        Entry { key: self.key(), seq: seq_of(*packed), kind: kind_of(*packed), value }
    }

    /// The order of this entry against `(key, seq)`: by key, then newer first.
    #[inline]
    pub(crate) fn compare(self, key: &[u8], seq: SeqNo) -> Ordering {
        match self.key().cmp(key) {
            Equal => seq.cmp(&self.seq()),
            other => other,
        }
    }
}
