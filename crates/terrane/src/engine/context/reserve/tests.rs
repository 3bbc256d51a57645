//! The files of the reserve, and when it is released.

use super::*;
use crate::files::storage::{Fault, FaultStorage, MemoryStorage, Operation};

const DIR: &str = "db";

fn full() -> Error {
    Error::io("append to", Path::new("7.sst"), ErrorKind::StorageFull.into())
}

/// A directory, its reserve, and a storage that can be made to refuse its files.
struct Fixture {
    memory: MemoryStorage,
    storage: FaultStorage,
    reserve: DiskReserve,
    health: Health,
}

impl Fixture {
    fn new() -> Self {
        let memory = MemoryStorage::new(1);
        memory.create_dir_all(Path::new(DIR)).unwrap();
        let storage = FaultStorage::new(Arc::new(memory.clone()));
        let shared: Arc<dyn Storage> = Arc::new(storage.clone());
        let reserve = DiskReserve::in_dir(&shared, Path::new(DIR));
        let reserve = reserve.with_background(Background::Inline);
        Self { memory, storage, reserve, health: Health::default() }
    }

    fn fill(&self, bytes: u64) {
        self.reserve.fill(bytes, &self.health);
    }

    /// Makes every attempt to create a file fail.
    fn refuse_files(&self, error: ErrorKind) {
        self.refuse(Operation::Create, error);
    }

    fn refuse(&self, operation: Operation, error: ErrorKind) {
        let operation = Some(operation);
        let path_contains = RESERVE.to_owned();
        let fault = Fault { operation, path_contains, after: 0, is_permanent: true, error };
        self.storage.set(Some(fault));
    }

    fn set_free_bytes(&self, bytes: u64) {
        self.memory.set_capacity(Some(self.memory.used_bytes() + bytes));
    }

    /// The lengths of the files that exist.
    fn lens(&self) -> Vec<(String, u64)> {
        let dir = Path::new(DIR);
        let names = self.memory.list(dir).unwrap();
        names
            .into_iter()
            .map(|name| (name.clone(), self.memory.len(&dir.join(name)).unwrap()))
            .collect()
    }
}

fn lens(reserve: u64, manifest: u64) -> Vec<(String, u64)> {
    vec![(RESERVE.to_owned(), reserve), (MANIFEST_RESERVE.to_owned(), manifest)]
}

/// A database whose disk had much space accepted only deletes under `ulimit -f`.
#[test]
fn a_limit_for_the_size_of_files_is_no_shortage() {
    let fixture = Fixture::new();
    fixture.refuse_files(ErrorKind::FileTooLarge);
    fixture.fill(1000);
    assert!(fixture.storage.fired() > 0 && fixture.health.is_sound());
    fixture.storage.set(None);
    fixture.fill(1000);
    let too_large = Error::io("append to", Path::new("7.sst"), ErrorKind::FileTooLarge.into());
    assert!(!fixture.reserve.release(&too_large, &fixture.health));
    assert!(fixture.health.is_sound());
    assert_eq!(fixture.lens(), lens(1000, 500));
}

/// The shorter file was removed first, and writes were refused if there was no space for the longer one.
#[test]
fn a_reserve_that_cannot_grow_stays() {
    let fixture = Fixture::new();
    fixture.fill(1000);
    fixture.fill(2000);
    assert_eq!(fixture.lens(), lens(1000, 500), "long enough");
    // No file of either length has space, then the one for the manifest, then both.
    for (free, expected) in
        [(1000, lens(1000, 500)), (2000, lens(1000, 2000)), (4000, lens(4000, 2000))]
    {
        fixture.set_free_bytes(free);
        fixture.fill(4000);
        assert_eq!(fixture.lens(), expected, "{free}");
        assert!(fixture.health.is_sound() && !fixture.reserve.is_released());
    }
    // The storage does not know that the attempt must fail.
    fixture.set_free_bytes(100_000);
    fixture.refuse_files(ErrorKind::StorageFull);
    fixture.fill(10_000);
    assert!(fixture.storage.fired() > 0 && fixture.health.is_sound());
    assert_eq!(fixture.lens(), lens(4000, 2000));
    // Writes resume with the length that was released, and the reserve grows later.
    fixture.storage.set(None);
    assert!(fixture.reserve.release(&full(), &fixture.health));
    fixture.fill(10_000);
    fixture.set_free_bytes(4000);
    assert!(fixture.reserve.shortage(&fixture.health).is_none());
    assert_eq!(fixture.lens(), lens(4000, 2000));
}

#[test]
fn a_crash_while_the_reserve_grows_leaves_no_file_for_long() {
    let fixture = Fixture::new();
    fixture.fill(1000);
    drop(fixture.memory.create_segment(&Path::new(DIR).join(NEW_RESERVE), 4000).unwrap());
    fixture.fill(4000);
    assert_eq!(fixture.lens(), lens(4000, 2000));
}

#[test]
fn a_reserve_that_could_not_be_removed_is_filled() {
    let fixture = Fixture::new();
    fixture.fill(1000);
    fixture.refuse(Operation::Name, ErrorKind::PermissionDenied);
    assert!(fixture.reserve.release(&full(), &fixture.health));
    fixture.set_free_bytes(0);
    assert!(fixture.reserve.shortage(&fixture.health).is_none() && fixture.health.is_sound());
}

/// The space was asked for by allocating it, which took it from deletes.
#[test]
fn the_room_for_a_job_is_asked_for_without_taking_it() {
    let fixture = Fixture::new();
    fixture.fill(1000);
    assert!(fixture.reserve.release(&full(), &fixture.health));
    assert!(!fixture.reserve.release(&full(), &fixture.health), "released already");
    fixture.set_free_bytes(300);
    fixture.refuse_files(ErrorKind::StorageFull);
    assert!(fixture.reserve.check_room(300).is_ok());
    assert!(matches!(fixture.reserve.check_room(301), Err(Error::DiskFull(_))));
    // Neither does an attempt to fill the reserve take the space, which is too little for it.
    assert!(fixture.reserve.shortage(&fixture.health).is_some());
    assert_eq!(fixture.storage.fired(), 0, "a file was created");
    fixture.storage.set(None);
    fixture.set_free_bytes(1000);
    assert!(fixture.reserve.shortage(&fixture.health).is_none() && fixture.health.is_sound());
}

/// One thread filled the reserve and another one released it. The database then accepted every write
/// without a reserve, because the flag was changed without the lock.
#[test]
fn writes_are_refused_exactly_while_the_reserve_is_released() {
    let fixture = &Fixture::new();
    fixture.fill(1000);
    for round in 0..300 {
        std::thread::scope(|scope| {
            scope.spawn(|| fixture.reserve.shortage(&fixture.health));
            scope.spawn(|| fixture.reserve.release(&full(), &fixture.health));
        });
        assert_eq!(fixture.reserve.is_released(), !fixture.health.is_sound(), "round {round}");
    }
}

/// A thread that created a segment in advance took the space that a delete had just released for itself.
#[test]
fn work_in_advance_leaves_the_released_space_alone() {
    let fixture = Fixture::new();
    fixture.fill(1000);
    let (reserve, health) = (&fixture.reserve, &fixture.health);
    assert_eq!(reserve.run_beside(|| Ok(7)).unwrap(), 7);
    let begun = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let releases = scope.spawn(|| {
            begun.wait();
            reserve.release(&full(), health)
        });
        let created = reserve.run_beside(|| {
            begun.wait();
            std::thread::sleep(Duration::from_millis(20));
            fixture.memory.create_segment(&Path::new(DIR).join("9.log"), 10).map(drop).unwrap();
            assert!(health.is_sound(), "released meanwhile");
            Ok(())
        });
        created.unwrap();
        assert!(releases.join().unwrap());
    });
    let refused = reserve.run_beside(|| -> Result<()> { panic!("the reserve is released") });
    assert!(matches!(refused, Err(Error::DiskFull(_))), "{refused:?}");
}
