//! Background work in the threads of callers, of which there are several.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads of their own")]

use std::sync::Arc;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, IoBudget, Options, WritePath};
use terrane_testkit::{Rng, run_guarded, seed_from_env};

const THREADS: u64 = 4;

/// Designs that stop writers after a few kilobytes, each for another reason.
const DESIGNS: &[&str] = &[
    "leveling; buffer=2KiB; table=2KiB; buffers=1",
    "balanced L0=1 base=8KiB; buffer=1KiB; table=1KiB; delay=1; stop=2; buffers=1",
    "balanced L0=2 base=8KiB; buffer=2KiB; table=2KiB; flush=merge; delay=2; stop=3; buffers=1",
    "tiering T=3; buffer=1KiB; table=4KiB; limit=global(2x); violation=stop; buffers=2",
    "leveling; buffer=2KiB; table=1KiB; stall=full; scheduler=gear; buffers=1",
    "leveling; buffer=2KiB; table=1KiB; stall=full; scheduler=single; buffers=2; memtable=flodb",
    "lazy-leveling T=2 L0=1; buffer=1KiB; table=1KiB; scheduler=greedy(2); buffers=1; delay=1; stop=2",
];

fn puts() -> u64 {
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok());
    rounds.unwrap_or(1u64) * 1500
}

/// Each thread writes keys of its own and reads them back.
fn write(db: &Db, thread: u64, seed: u64) {
    let mut rng = Rng::new(seed * 10 + thread);
    for number in 0..puts() {
        let key = [thread, rng.below(400)].map(u64::to_be_bytes).concat();
        let value = [&number.to_be_bytes()[..], &vec![1; rng.index(60)]].concat();
        let story = || format!("put {number} of thread {thread}, {}", db.design());
        db.put(&key, &value).unwrap_or_else(|error| panic!("{error} in {}", story()));
        match rng.below(400) {
            0 => db.flush().unwrap(),
            1 => db.compact_range::<&[u8]>(..).unwrap(),
            2 => db.wait_for_compactions().unwrap(),
            3 => drop(db.run_background_job().unwrap()),
            _ => {}
        }
        if rng.percent(10) {
            assert_eq!(db.get(&key).unwrap().unwrap(), value, "{}", story());
        }
    }
}

/// A writer that found no job to do, because another thread was doing it, and then found nobody at
/// work, because that thread was done, used to fail its write with an internal error.
#[test]
fn writers_that_stall_at_the_same_time_wait_for_each_other() {
    let seed = seed_from_env(1);
    for (design, number) in DESIGNS.iter().zip(0u64..) {
        for write_path in [WritePath::Concurrent, WritePath::Queue] {
            let mut options = Options::new()
                .storage(Arc::new(MemoryStorage::new(seed)))
                .background(Background::Inline)
                .write_path(write_path)
                .compaction_threads(1 + number as usize % 2)
                .design(design.parse().unwrap_or_else(|error| panic!("{design}: {error}")));
            if number.is_multiple_of(3) {
                options = options.io_budget(IoBudget::Total(400 << 20));
            }
            let options = options.log_segment_bytes(64 << 10u64);
            run_guarded(move || {
                let db = options.open("db").unwrap();
                std::thread::scope(|scope| {
                    for thread in 0..THREADS {
                        let db = &db;
                        scope.spawn(move || write(db, thread, seed + number));
                    }
                });
                let count = db.iter().unwrap().count();
                db.close().unwrap();
                let db = options.open("db").unwrap();
                assert_eq!(db.iter().unwrap().count(), count);
            });
        }
    }
}
