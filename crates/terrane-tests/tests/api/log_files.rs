//! The files that the log keeps.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Crash, MemoryStorage, Storage};
use terrane::{Background, Db, Design, Options};

use crate::support::DIR;

fn options(storage: &MemoryStorage, background: Background) -> Options {
    let design: Design = "balanced; buffer=2MiB".parse().unwrap();
    let options = Options::new().storage(Arc::new(storage.clone())).background(background);
    options.log_segment_bytes(16 << 20).design(design)
}

fn log_bytes(storage: &MemoryStorage) -> u64 {
    let names = storage.list(Path::new(DIR)).unwrap();
    let logs = names.iter().filter(|name| name.ends_with(".log"));
    logs.map(|name| storage.len(&Path::new(DIR).join(name)).unwrap()).sum()
}

fn fill(db: &Db, keys: std::ops::Range<u32>) {
    for number in keys {
        db.put(number.to_be_bytes(), [number as u8; 10_000]).unwrap();
    }
}

/// A database of 230 MB used to keep 190 MB of spare log files.
#[test]
fn an_idle_log_is_small_next_to_its_tables() {
    let storage = MemoryStorage::new(1);
    let db = options(&storage, Background::Inline).open(DIR).unwrap();
    for round in 1..3_u32 {
        fill(&db, 0..round * 2000);
        assert!(log_bytes(&storage) >= 16 << 20, "{}", log_bytes(&storage));
        db.flush().unwrap();
        assert!(log_bytes(&storage) <= 5 << 20, "{}", log_bytes(&storage));
    }
    // The next write goes to the new segment, and no earlier segment is needed.
    fill(&db, 4000..4100);
    let image = storage.crash_point().image(Crash::Process);
    let db = options(&image, Background::Inline).open(DIR).unwrap();
    assert_eq!(db.iter().unwrap().count(), 4100);
    assert_eq!(db.stats().replayed_writes, 100);
}

/// Spares that are freed or created while the log becomes idle are removed as well.
#[test]
fn threads_leave_no_spare_files() {
    let storage = MemoryStorage::new(1);
    let db = options(&storage, Background::Threads).open(DIR).unwrap();
    for round in 0..3 {
        fill(&db, round * 1500..(round + 1) * 1500);
        db.flush().unwrap();
    }
    db.wait_for_compactions().unwrap();
    // Other threads remove the files. A hang guard ends the test if they do not.
    while log_bytes(&storage) > 5 << 20 {
        db.flush().unwrap();
        std::thread::yield_now();
    }
    assert_eq!(db.iter().unwrap().count(), 4500);
    db.close().unwrap();
}
