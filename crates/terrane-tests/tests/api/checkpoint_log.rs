//! Tests that the part of the log that a checkpoint copies does not change meanwhile.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, Options};

use crate::support::{DIR, small_design};

/// A function that runs once.
type Hook = Box<dyn FnOnce() + Send>;

/// Files in memory. The hook runs before a file is linked.
#[derive(Clone)]
struct HookedStorage {
    inner: MemoryStorage,
    before_link: Arc<Mutex<Option<Hook>>>,
}

impl fmt::Debug for HookedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Storage for HookedStorage {
    terrane_tests::forward_storage! {
        create_dir_all list len create open create_segment open_segment rename remove sync_dir
        lock boot_id entropy
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let hook = self.before_link.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        self.inner.hard_link(from, to)
    }
}

#[test]
fn segments_are_not_freed_or_used_again_while_a_checkpoint_copies_them() {
    let storage = HookedStorage { inner: MemoryStorage::new(1), before_link: Arc::default() };
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .log_segment_bytes(64 << 10);
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    for number in 0..300u32 {
        db.put(number.to_be_bytes(), [1; 100]).unwrap();
    }
    // While the tables are linked, the whole log is flushed, freed and reused.
    let other = db.clone();
    let go_round = move || {
        for number in 0..3000u32 {
            other.put(number.to_be_bytes(), [2; 100]).unwrap();
            if number % 500 == 0 {
                other.flush().unwrap();
            }
        }
    };
    *storage.before_link.lock().unwrap() = Some(Box::new(go_round));
    db.checkpoint("copy").unwrap();
    assert!(storage.before_link.lock().unwrap().is_none(), "the log went round");
    let copy = options.open("copy").unwrap();
    let found: Vec<u8> = copy.iter().unwrap().map(|entry| entry.unwrap().1[0]).collect();
    assert_eq!(found, [1; 300], "as it was when the checkpoint was made");
    assert_eq!(db.iter().unwrap().count(), 3000);
    // Afterwards the segments are freed.
    db.flush().unwrap();
    let logs = |dir: &str| {
        let names = storage.list(Path::new(dir)).unwrap();
        names.iter().filter(|name| name.ends_with(".log")).count()
    };
    assert!(logs(DIR) <= 4, "{} files of log", logs(DIR));
}
