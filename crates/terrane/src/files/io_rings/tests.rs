use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::files::storage::{Access, DiskStorage, MemoryStorage, Storage};

fn bytes() -> Vec<u8> {
    (0..300_001u32).map(|number| (number % 251) as u8).collect()
}

fn file(storage: &dyn Storage, path: &Path, access: Access) -> Arc<dyn RandomReader> {
    let mut file = storage.create(path, Access::Buffered).unwrap();
    file.append(&bytes()).unwrap();
    file.sync().unwrap();
    storage.open(path, access).unwrap()
}

/// Reads parts of a file, each with its offset and length, and returns which were done. Those contain what the file
/// has there.
fn read(rings: &IoRings, reader: &dyn RandomReader, parts: &[(usize, usize)]) -> Vec<bool> {
    let mut buffers: Vec<Vec<u8>> = parts.iter().map(|(_, len)| vec![0xff; *len]).collect();
    let part = |((offset, _), buffer): (&(usize, usize), _)| {
        let offset = *offset as u64;
        FileRead { reader, offset, buffer, is_done: false }
    };
    let all = parts.iter().zip(buffers.iter_mut().map(|buffer| &mut buffer[..]));
    let mut reads: Vec<_> = all.map(part).collect();
    rings.lease().expect("this system has rings").read(&mut reads);
    let done: Vec<bool> = reads.iter().map(|read| read.is_done).collect();
    drop(reads);
    let file = bytes();
    for (((offset, len), buffer), _) in
        parts.iter().zip(&buffers).zip(&done).filter(|(_, is_done)| **is_done)
    {
        assert!(buffer[..] == file[*offset..offset + len], "{len} bytes at {offset}");
    }
    done
}

/// Whether this system has rings: containers often forbid them.
fn has_rings() -> bool {
    let has = IoRings::default().lease().is_some();
    if !has {
        println!("this system refuses rings");
    }
    has
}

#[test]
fn a_ring_reads_what_the_file_contains() {
    if !has_rings() {
        return;
    }
    let (dir, rings) = (tempfile::tempdir().unwrap(), IoRings::default());
    // More parts than a ring has in flight at once, of any alignment and length.
    let many: Vec<(usize, usize)> = (0..200).map(|n| (n * 1499, n * 7 % 900 + 1)).collect();
    for access in [Access::Buffered, Access::Direct] {
        let path = dir.path().join(format!("{access:?}"));
        let reader = file(&DiskStorage, &path, access);
        assert!(read(&rings, &*reader, &many).iter().all(|is_done| *is_done), "{access:?}");
        // The end of the file, beyond it, and nothing.
        let parts = [(300_000, 1), (299_990, 12), (400_000, 1), (0, 300_001), (5, 0)];
        assert_eq!(read(&rings, &*reader, &parts), [true, false, false, true, true], "{access:?}");
    }
    assert_eq!(format!("{rings:?}"), "IoRings(0 of 1 in use)");
}

#[test]
fn files_without_a_descriptor_are_left_to_the_caller() {
    if !has_rings() {
        return;
    }
    let rings = IoRings::default();
    let reader = file(&MemoryStorage::new(1), Path::new("file"), Access::Buffered);
    assert_eq!(read(&rings, &*reader, &[(0, 10), (7, 0)]), [false; 2]);
}

#[test]
fn threads_beyond_the_rings_get_none() {
    if !has_rings() {
        return;
    }
    let rings = IoRings::default();
    let leases: Vec<_> = (0..RINGS_MAX).map(|_| rings.lease().unwrap()).collect();
    assert!(rings.lease().is_none());
    assert_eq!(format!("{rings:?}"), "IoRings(8 of 8 in use)");
    drop(leases);
    assert!(rings.lease().is_some());
    assert!(IoRings::none().lease().is_none());
}

#[test]
fn a_ring_that_failed_is_the_last() {
    if !has_rings() {
        return;
    }
    let rings = IoRings::default();
    let mut lease = rings.lease().unwrap();
    lease.ring = None;
    lease.read(&mut []);
    drop(lease);
    assert!(rings.lease().is_none());
    // Memory or descriptors may only be short for a while.
    assert!(is_shortage(&io::ErrorKind::OutOfMemory.into()));
    assert!(is_shortage(&rustix::io::Errno::MFILE.into()));
    assert!(!is_shortage(&io::ErrorKind::PermissionDenied.into()));
}

#[test]
fn threads_read_with_rings_of_their_own() {
    if !has_rings() {
        return;
    }
    let (dir, rings) = (tempfile::tempdir().unwrap(), IoRings::default());
    let reader = file(&DiskStorage, &dir.path().join("file"), Access::Buffered);
    std::thread::scope(|scope| {
        for thread in 0..RINGS_MAX {
            let (rings, reader) = (&rings, &*reader);
            scope.spawn(move || {
                let parts: Vec<_> = (0..50).map(|n| (n * 5000 + thread, 4096 + thread)).collect();
                (0..20).for_each(|_| assert!(!read(rings, reader, &parts).contains(&false)));
            });
        }
    });
}
