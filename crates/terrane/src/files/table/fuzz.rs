//! Fuzz targets for the decoders of a table.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use terrane_memtable::Fragment;
use terrane_policy::{Compression, TableInfo};

use super::block::{Block, BlockBuilder, Layout};
use super::filter::{self, Filter};
use super::footer::{FOOTER_BYTES, Footer, Handle};
use super::index::{Index, IndexBuilder, IndexLayout};
use super::packing::{self, Packing};
use super::padding::PADDED;
use super::properties::Properties;
use super::stored::{self, TRAILER_BYTES, TableFileId};
use super::{
    SalvageCursor, Table, TableConfig, TableCursor, TableEnvironment, TableWriter, filter_hash,
    range_block,
};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::types::{EntryKind, MAX_SEQ};
use crate::files::buffer::BufferPool;
use crate::files::storage::{Access, MemoryStorage, Storage};
use crate::files::value_pointer::ValuePointer;

const ID: TableFileId = TableFileId { number: 7, writer: 0xabc };
const DIR: &str = ".";

/// More entries than any fuzzer input can hold; a longer scan does not terminate.
const STEPS_MAX: usize = 1 << 20;

const COMPRESSIONS: [(Packing, Compression); 2] =
    [(Packing::Lz4, Compression::Lz4), (Packing::Zstd, Compression::Zstd)];

const KEYS: [&[u8]; 5] = [b"", b"key03", b"key1", b"key1\0", b"\xff\xff"];

pub(crate) fn footer(bytes: &[u8]) {
    for file_bytes in [bytes.len() as u64, 0, u64::MAX] {
        if let Ok(footer) = Footer::decode(bytes, Path::new("t"), file_bytes) {
            let again = Footer::decode(&footer.encode(), Path::new("t"), file_bytes);
            assert_eq!(again.ok(), Some(footer));
        }
    }
}

pub(crate) fn properties(bytes: &[u8]) {
    if let Ok(properties) = Properties::decode(bytes) {
        assert_eq!(Properties::decode(&properties.encode()), Ok(properties));
    }
}

pub(crate) fn index(bytes: &[u8]) {
    let end_max = 1 << 40;
    let Ok(layout) = IndexLayout::parse(bytes, end_max) else { return };
    let index = Index::new(bytes, &layout);
    assert!(layout.len() <= bytes.len());
    for number in 0..layout.len() {
        let place = index.block(number);
        assert!(place.start <= place.end && place.end <= end_max);
    }
    for key in KEYS.into_iter().chain([bytes.get(..20).unwrap_or(bytes)]) {
        let found = index.search(key);
        assert!(found <= layout.len());
        let _ = index.continues_in(found, key);
        let _ = index.continues_in(layout.len(), key);
    }
}

pub(crate) fn block(bytes: &[u8]) {
    let Ok(layout) = Layout::parse(bytes) else { return };
    let block = Block::new(bytes, &layout);
    assert!(block.len() <= bytes.len());
    for number in 0..=block.len() {
        if let Ok(entry) = block.entry(number) {
            let end = entry.value_start + entry.value.len();
            assert_eq!(bytes.get(entry.value_start..end), Some(entry.value));
            assert!(entry.seq <= MAX_SEQ);
        }
        if let Some(usual) = block.usual_entry(number) {
            assert_eq!(block.entry(number), Ok(usual));
        }
    }
    for key in KEYS.into_iter().chain([bytes.get(..20).unwrap_or(bytes)]) {
        for seq in [0, 5, MAX_SEQ] {
            let low = block.prefetch(key);
            let found = block.search_from(low, key, seq);
            assert!(found.is_err() || found.is_ok_and(|at| at <= block.len()));
            let entry = block.find(None, key, seq);
            assert_eq!(block.find(Some(low), key, seq), entry);
            if let Ok(Some(entry)) = entry {
                assert!(entry.seq <= seq, "find returned an entry newer than the given number");
            }
        }
    }
}

pub(crate) fn filter(bytes: &[u8]) {
    if let Ok(filter) = Filter::parse(bytes) {
        for hash in [0, 1, u64::MAX, filter_hash(bytes)] {
            assert!(filter::line_within(bytes.len(), hash).end < bytes.len());
            let _ = filter.may_contain(hash);
        }
    }
}

pub(crate) fn range_tombstones(bytes: &[u8]) {
    if let Ok(fragments) = range_block::decode(bytes) {
        assert_eq!(range_block::decode(&range_block::encode(&fragments)), Ok(fragments));
    }
}

pub(crate) fn compressed_block(bytes: &[u8]) {
    let (path, what) = (Path::new("t"), "data block");
    let unpack = |packed: &[u8], packing: Packing| {
        let mut block = vec![0; packing::unpacked_len(packed, packing, path, 0, what)?];
        packing::unpack(packed, packing, &mut block, path, 0, what).map(|()| block)
    };
    for (packing, compression) in COMPRESSIONS {
        let Ok(unpacked) = unpack(bytes, packing) else { continue };
        assert!(unpacked.len() <= bytes.len() * 255);
        if let Some((packed, packing)) = packing::compress(&unpacked, compression) {
            assert_eq!(unpack(&packed, packing).ok(), Some(unpacked));
        }
    }
}

/// Reads arbitrary bytes as a table file.
pub(crate) fn file(bytes: &[u8]) {
    let sample = sample();
    read_everything(bytes, &sample.info);
}

/// Reads a table with changed bytes and recomputed checksums: four bytes of input give the position
/// and the value. Damage that a checksum would catch thus reaches the decoders.
pub(crate) fn sealed_file(bytes: &[u8]) {
    let sample = sample();
    let mut file = sample.bytes.clone();
    let mut footer = sample.footer;
    for edit in bytes.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        let value = edit[3];
        if at < file.len() - FOOTER_BYTES {
            file[at] = if edit[2] % 2 == 0 { value } else { file[at].wrapping_add(value) };
            continue;
        }
        let parts = [
            &mut footer.filter,
            &mut footer.range_tombstones,
            &mut footer.index,
            &mut footer.properties,
        ];
        if let Some(handle) = parts.into_iter().nth(usize::from(edit[2] % 4)) {
            handle.offset ^= u64::from(value & 0xf0) >> 1;
            handle.len ^= u32::from(value & 0x0f);
        }
    }
    for place in &sample.sealed {
        let (tag, offset) = (file[place.end], place.start as u64);
        let packing = Packing::of_tag(tag % 3).unwrap_or(Packing::Plain);
        let trailer = if tag & PADDED == 0 {
            stored::trailer(&[&file[place.clone()]], packing, ID, offset).to_vec()
        } else {
            let mut padded = file[place.clone()].to_vec();
            stored::seal_padded(&mut padded, packing, ID, offset);
            padded.split_off(place.len())
        };
        file[place.end..place.end + TRAILER_BYTES].copy_from_slice(&trailer);
    }
    let at = file.len() - FOOTER_BYTES;
    file[at..].copy_from_slice(&footer.encode());
    read_everything(&file, &sample.info);
}

/// A valid table, and its parts that are followed by a checksum.
struct Sample {
    bytes: Vec<u8>,
    info: Arc<TableInfo>,
    footer: Footer,
    sealed: Vec<Range<usize>>,
}

fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(|| make_sample().unwrap_or_else(|error| unreachable!("{error}")))
}

fn make_sample() -> Result<Sample> {
    let storage = MemoryStorage::new(1);
    let path = Path::new(DIR).join(ID.file_name());
    let config = TableConfig {
        block_bytes: 200,
        filter_bits: 8.0,
        filter_probes: None,
        compression: Compression::None,
        keyspace: 1,
        sync_bytes: 0,
        access: Access::Buffered,
    };
    let mut writer = TableWriter::create(&storage, &path, ID, config)?;
    for number in 0..30u64 {
        let key = format!("key{number:02}");
        let (kind, value) = match number % 7 {
            3 => (EntryKind::Tombstone, Vec::new()),
            5 => (EntryKind::Separated, place(number)),
            _ => (EntryKind::Value, vec![7; number as usize]),
        };
        for seq in [100 + number, 40, 3].into_iter().take(1 + number as usize % 3) {
            writer.add(key.as_bytes(), seq, kind, &value)?;
        }
    }
    let end = Some(b"key09".as_slice().into());
    writer.add_range_tombstone(Fragment {
        start: b"key05".as_slice().into(),
        end,
        seqs: vec![90, 2],
    });
    let finished = writer.finish(77, None)?;
    let io = |error| Error::io("read", &path, error);
    let bytes = storage.read(&path).map_err(io)?;
    let footer = Footer::decode(&bytes[bytes.len() - FOOTER_BYTES..], &path, bytes.len() as u64)?;
    let part =
        |handle: Handle| handle.offset as usize..handle.offset as usize + handle.len as usize;
    let parts = [footer.filter, footer.range_tombstones, footer.index, footer.properties];
    let mut sealed: Vec<Range<usize>> = parts.into_iter().map(part).collect();
    let table = open(&storage, &finished.info, Access::Buffered);
    for number in 0..table.block_count()? {
        let place = table.block_place(number)?;
        sealed.push(place.start as usize..place.end as usize - TRAILER_BYTES);
    }
    Ok(Sample { bytes, info: finished.info, footer, sealed })
}

/// Returns the environment for reading tables and value files in `storage`.
pub(crate) fn environment(storage: &MemoryStorage, access: Access) -> Arc<TableEnvironment> {
    let buffer = BufferPool::new(1 << 16);
    Arc::new(TableEnvironment::alone(Arc::new(storage.clone()), access, buffer))
}

fn open(storage: &MemoryStorage, info: &Arc<TableInfo>, access: Access) -> Arc<Table> {
    Table::new(ID, Arc::clone(info), Path::new(DIR), &environment(storage, access))
}

/// Reads a file as a table through every read path.
fn read_everything(bytes: &[u8], info: &Arc<TableInfo>) {
    let storage = MemoryStorage::new(1);
    let path = Path::new(DIR).join(ID.file_name());
    let written = storage.create(&path, Access::Buffered).and_then(|mut file| file.append(bytes));
    assert!(written.is_ok());
    for access in [Access::Buffered, Access::Direct] {
        let table = open(&storage, info, access);
        check(table.properties().map(|_| ()));
        check(table.fragments().map(|_| ()));
        for key in KEYS {
            check(table.may_contain(filter_hash(key)).map(|_| ()));
            check(table.get(key, MAX_SEQ).map(|_| ()));
            check(
                table
                    .prefetch_block(key)
                    .and_then(|block| table.prefetch_entry(block, key))
                    .map(drop),
            );
        }
        let mut cursor = TableCursor::new(Arc::clone(&table));
        let first = cursor.seek_first();
        check(walk(&mut cursor, first, TableCursor::next));
        let last = cursor.seek_last();
        check(walk(&mut cursor, last, TableCursor::previous));
        for key in KEYS {
            let found = cursor.seek(key, 50);
            check(walk(&mut cursor, found, TableCursor::next_key));
            check(cursor.seek_before(key, MAX_SEQ));
        }
        check(table.verify());
        let mut salvage = SalvageCursor::new(table);
        let mut steps = 0;
        loop {
            salvage.step(|error| check(Err(error)));
            if !salvage.is_valid() {
                break;
            }
            steps += 1;
            assert!(steps < STEPS_MAX, "salvage does not end");
        }
    }
}

fn walk(
    cursor: &mut TableCursor,
    mut outcome: Result<()>,
    step: fn(&mut TableCursor) -> Result<()>,
) -> Result<()> {
    let mut steps = 0;
    while outcome.is_ok() && cursor.is_valid() {
        let _ = (cursor.key().len(), cursor.value().len(), cursor.seq(), cursor.kind());
        outcome = step(cursor);
        steps += 1;
        assert!(steps < STEPS_MAX, "a walk does not end");
    }
    outcome
}

/// Checks that bad bytes give an error of the right kind.
fn check(outcome: Result<()>) {
    if let Err(error) = outcome {
        let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}

/// Returns the encoded place of a value.
fn place(number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let (file, offset) = (number % 3 + 1, number << 12);
    ValuePointer { file, offset, len: 1000, checksum: 3 }.encode(&mut out);
    out
}

/// Returns a block with a separated value.
pub(crate) fn block_with_separated_values() -> Vec<u8> {
    let mut builder = BlockBuilder::default();
    builder.add(b"key1", 9, EntryKind::Separated, &place(4));
    builder.add(b"key1", 7, EntryKind::Value, b"value");
    builder.add(b"key2", 8, EntryKind::Tombstone, b"");
    let mut block = Vec::new();
    builder.finish(&mut block);
    block
}

/// Valid input for each decoder of a part: footer, properties, index, block, filter, range
/// tombstones, blocks compressed by LZ4 and by Zstandard.
pub(crate) fn parts() -> [Vec<u8>; 8] {
    let sample = sample();
    let mut builder = BlockBuilder::default();
    let mut index = IndexBuilder::default();
    for number in 0..20u64 {
        let key = format!("key{number:02}");
        builder.add(key.as_bytes(), 20 - number % 3, EntryKind::Value, &vec![1; number as usize]);
        index.add(None, key.as_bytes(), number * 100);
    }
    let mut block = Vec::new();
    builder.finish(&mut block);
    let hashes: Vec<u64> = KEYS.into_iter().map(filter_hash).collect();
    let end = Some(b"b".as_slice().into());
    let fragment = Fragment { start: b"a".as_slice().into(), end, seqs: vec![9, 3] };
    [
        sample.footer.encode(),
        Properties { entries: 3, end: Some(b"x".to_vec()), ..Properties::default() }.encode(),
        index.finish(2000),
        block.clone(),
        filter::build(&hashes, 10.0, None).unwrap_or_default(),
        range_block::encode(&[fragment]),
        packing::compress(&block.repeat(3), Compression::Lz4)
            .map(|(packed, _)| packed)
            .unwrap_or_default(),
        packing::ZSTD_SAMPLE.to_vec(),
    ]
}

/// A valid file.
pub(crate) fn good_file() -> Vec<u8> {
    sample().bytes.clone()
}
