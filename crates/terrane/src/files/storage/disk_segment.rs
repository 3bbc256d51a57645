//! Creates and opens segments on disk, and chooses how they are written.
//!
//! A segment is a preallocated file. Writing through a memory map is cheapest
//! ([`mapped_segment`](super::mapped_segment)), but a store to a page that has no disk space raises
//! SIGBUS and ends the process. Preallocation prevents that only on file systems that overwrite
//! allocated blocks in place. A file system that copies on write needs new space for each overwritten
//! block: always (Btrfs, ZFS, bcachefs, F2FS, NILFS), or once a reflink copy or a snapshot shares the
//! block (XFS). Segments are therefore mapped only on the file systems that [`overwrites_in_place`]
//! lists, and written with system calls everywhere else
//! ([`written_segment`](super::written_segment)). The format of the file is the same.
#![allow(clippy::disallowed_methods, reason = "this module makes file system calls")]
#![allow(clippy::disallowed_types, reason = "this module makes file system calls")]

use std::fs::File;
use std::io::{self, Write};

#[cfg(target_os = "linux")]
use super::mapped_segment::MappedSegment;
use super::place::Place;
use super::system::{self, Opening};
use super::written_segment::WrittenSegment;
use super::{Segment, size_limit};

/// Makes a segment of a file whose first `len` bytes are allocated.
type Make = fn(file: File, len: u64) -> io::Result<Box<dyn Segment>>;

/// Creates a segment of `len` zero bytes.
pub(super) fn create(place: Place<'_>, len: u64) -> io::Result<Box<dyn Segment>> {
    create_as(place, len, of_file)
}

/// Opens a segment for overwriting.
pub(super) fn open(place: Place<'_>) -> io::Result<Box<dyn Segment>> {
    open_as(place, of_file)
}

fn create_as(place: Place<'_>, len: u64, make: Make) -> io::Result<Box<dyn Segment>> {
    let mut file = system::open(place, Opening::Create)?;
    let made = allocate(&mut file, len).and_then(|()| make(file, len));
    if made.is_err() {
        // A partly allocated file would waste disk space that is already short.
        let _ = system::remove(place);
    }
    made
}

fn open_as(place: Place<'_>, make: Make) -> io::Result<Box<dyn Segment>> {
    let file = system::open(place, Opening::Overwrite)?;
    let len = file.metadata()?.len();
    make(file, len)
}

#[cfg(target_os = "linux")]
fn of_file(file: File, len: u64) -> io::Result<Box<dyn Segment>> {
    if overwrites_in_place(&file) { mapped(file, len) } else { written(file, len) }
}

#[cfg(not(target_os = "linux"))]
fn of_file(file: File, len: u64) -> io::Result<Box<dyn Segment>> {
    written(file, len)
}

#[cfg(target_os = "linux")]
fn mapped(file: File, len: u64) -> io::Result<Box<dyn Segment>> {
    // The file may have holes: a copy of a database has holes where the original was allocated but
    // not written.
    match reserve(&file, len) {
        Ok(()) => Ok(Box::new(MappedSegment::new(file, len))),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => written(file, len),
        Err(error) => Err(error),
    }
}

fn written(file: File, len: u64) -> io::Result<Box<dyn Segment>> {
    Ok(Box::new(WrittenSegment::new(file, len)))
}

/// Returns true if the file system never needs disk space to overwrite an allocated block:
///
/// - ext2, ext3 and ext4 (which share a number) have neither reflinks nor snapshots, and ext4 keeps
///   a reserve of clusters to split extents;
/// - tmpfs keeps its blocks in memory and swap, where an allocated block stays accounted for.
///
/// Unknown file systems count as needing it. So does overlayfs, which reports its own number whatever
/// file system is below it.
#[cfg(target_os = "linux")]
fn overwrites_in_place(file: &File) -> bool {
    const EXT: u64 = 0xef53;
    const TMPFS: u64 = 0x0102_1994;
    rustix::fs::fstatfs(file).is_ok_and(|found| [EXT, TMPFS].contains(&(found.f_type as u64)))
}

fn allocate(file: &mut File, len: u64) -> io::Result<()> {
    size_limit::check(len)?;
    match reserve(file, len) {
        // Zeros allocate the space on a file system without `fallocate`.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => write_zeros(file, len)?,
        // On a full disk, every write that needs a segment would fill the remaining space with zeros.
        reserved => reserved?,
    }
    // The length must be durable before any record in the file is acknowledged as durable.
    file.sync_all()
}

#[cfg(target_os = "linux")]
fn reserve(file: &File, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(()); // The system call refuses a length of 0.
    }
    let flags = rustix::fs::FallocateFlags::empty();
    Ok(rustix::io::retry_on_intr(|| rustix::fs::fallocate(file, flags, 0, len))?)
}

#[cfg(not(target_os = "linux"))]
fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn write_zeros(file: &mut File, len: u64) -> io::Result<()> {
    let zeros = vec![0; 256 << 10];
    let mut left = len;
    while left > 0 {
        let count = left.min(zeros.len() as u64);
        file.write_all(&zeros[..count as usize])?;
        left -= count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    const KINDS: [Make; 3] = [mapped, written, of_file];
    #[cfg(not(target_os = "linux"))]
    const KINDS: [Make; 2] = [written, of_file];

    type Write = fn(&mut dyn Segment, u64, &[u8]) -> io::Result<()>;
    const WRITES: [Write; 2] = [
        |segment, offset, bytes| segment.write(offset, bytes),
        |segment, offset, bytes| segment.write_through(offset, bytes),
    ];

    #[test]
    fn writes_of_every_kind_are_in_the_file_at_once_and_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        for (make, write) in KINDS.into_iter().flat_map(|make| WRITES.map(|write| (make, write))) {
            let mut segment = create_as(Place::by_path(&path), 10_000, make).unwrap();
            assert_eq!(segment.len(), 10_000);
            write(&mut *segment, 9_990, b"0123456789").unwrap();
            assert!(write(&mut *segment, 9_991, b"0123456789").is_err());
            assert!(write(&mut *segment, u64::MAX, b"0").is_err());
            segment.syncer().sync().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!((bytes.len(), &bytes[9_990..], bytes[0]), (10_000, &b"0123456789"[..], 0));
            let mut again = open_as(Place::by_path(&path), make).unwrap();
            write(&mut *again, 0, b"x").unwrap();
            assert_eq!(std::fs::read(&path).unwrap()[0], b'x');
            assert!(create_as(Place::by_path(&path), 10_000, make).is_err(), "the file exists");
            std::fs::remove_file(&path).unwrap();
        }
    }

    /// A process was killed while it created a segment, and the next opening failed.
    #[test]
    fn an_empty_file_is_a_segment_without_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        File::create(&path).unwrap();
        for make in KINDS {
            let mut segment = open_as(Place::by_path(&path), make).unwrap();
            assert!(segment.is_empty() && segment.write(0, b"x").is_err());
            segment.syncer().sync().unwrap();
        }
    }

    #[test]
    fn both_ways_of_writing_change_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        for (number, make) in KINDS.into_iter().enumerate() {
            let path = dir.path().join(number.to_string());
            let mut segment = create_as(Place::by_path(&path), 8192, make).unwrap();
            segment.write(0, b"map").unwrap();
            segment.write_through(3, b"call").unwrap();
            segment.write(7, b"map").unwrap();
            segment.syncer().sync_start(512).unwrap();
            if let Some(writer) = segment.record_writer() {
                segment.write(10, &[b'x'; 6000]).unwrap();
                writer.write_zeros(10, 8182).unwrap();
                assert!(writer.write_zeros(10, 8183).is_err());
            }
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!((bytes.len(), &bytes[..10]), (8192, &b"mapcallmap"[..]));
            assert!(bytes[10..].iter().all(|byte| *byte == 0));
        }
    }

    /// Large pieces are written with a system call also by a mapped segment.
    #[test]
    fn large_and_small_pieces_follow_each_other() {
        const LARGE: usize = 300_000;
        let dir = tempfile::tempdir().unwrap();
        for (number, make) in KINDS.into_iter().enumerate() {
            let path = dir.path().join(number.to_string());
            let mut segment = create_as(Place::by_path(&path), 1 << 20, make).unwrap();
            segment.write(90, b"before").unwrap();
            segment.write(96, &[b'x'; LARGE]).unwrap();
            segment.write(96 + LARGE as u64, b"after").unwrap();
            segment.syncer().sync().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!((bytes.len(), &bytes[90..97]), (1 << 20, &b"beforex"[..]));
            assert!(bytes[96..96 + LARGE].iter().all(|byte| *byte == b'x'));
            assert_eq!(&bytes[95 + LARGE..101 + LARGE], b"xafter");
            assert!(segment.write((1 << 20) - 299_999, &[b'x'; LARGE]).is_err());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_large_piece_does_not_lengthen_a_shortened_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        let mut segment = create_as(Place::by_path(&path), 1 << 20, mapped).unwrap();
        segment.write(0, b"x").unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert!(segment.write(8192, &[b'x'; 300_000]).is_err());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4096);
        assert!(segment.write(16, b"x").is_err(), "the loss is remembered");
    }

    /// A copy of a database has holes where the log was allocated but not written. A store to a hole
    /// on a full disk ended the process.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_segment_with_holes_is_allocated_before_it_is_mapped() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        let allocated = || file.metadata().unwrap().blocks() * 512;
        if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 1 << 20, 1).is_err()
        {
            return; // The file system cannot allocate blocks without writing them.
        }
        assert!(allocated() < 1 << 20, "the file has holes");
        open_as(Place::by_path(&path), mapped).unwrap();
        assert!(allocated() >= 1 << 20);
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
    }
}
