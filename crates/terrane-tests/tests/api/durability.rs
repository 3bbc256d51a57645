//! What survives a crash, per database and per write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use terrane::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Survival};
use terrane::{Background, Db, Durability, Options, WriteOptions};
use terrane_testkit::wait_until;

use crate::support::{DIR, in_memory, keys};

const NOTHING: Crash = Crash::Power(Survival { percent: 0, seed: 0 });

fn after(options: &Options, storage: &MemoryStorage, crash: Crash) -> Vec<String> {
    let image = storage.crash_point().image(crash);
    let db = options.clone().storage(Arc::new(image)).open(DIR).unwrap();
    keys(db.iter().unwrap())
}

fn put(db: &Db, key: &str, durability: Durability) {
    db.put_with(key, "v", WriteOptions::new().durability(durability)).unwrap();
}

#[test]
fn each_durability_survives_the_promised_crashes() {
    let hour = Durability::Interval(Duration::from_secs(3600));
    for (durability, by_process, by_power) in [
        (Durability::None, false, false),
        (Durability::Process, true, false),
        (hour, true, false),
        (Durability::Sync, true, true),
    ] {
        let (options, storage) = in_memory();
        // With inline background work there is no thread that could sync after the interval, so
        // each write syncs.
        let options = options.background(Background::Threads).durability(durability);
        let db = options.open(DIR).unwrap();
        db.put("k", "v").unwrap();
        let survived = |crash| after(&options, &storage, crash) == ["k"];
        assert_eq!(survived(Crash::Process), by_process, "{durability} and the process");
        assert_eq!(survived(NOTHING), by_power, "{durability} and the power");
        assert_eq!(db.get("k").unwrap().unwrap(), "v");
    }
}

#[test]
fn a_durable_write_carries_all_earlier_logged_writes() {
    let (options, storage) = in_memory();
    let db = options.open(DIR).unwrap();
    put(&db, "a none", Durability::None);
    put(&db, "b process", Durability::Process);
    assert_eq!(after(&options, &storage, NOTHING), Vec::<String>::new());
    put(&db, "c sync", Durability::Sync);
    put(&db, "d process", Durability::Process);
    assert_eq!(after(&options, &storage, NOTHING), ["b process", "c sync"]);
    assert_eq!(after(&options, &storage, Crash::Process), ["b process", "c sync", "d process"]);
    db.sync().unwrap();
    assert_eq!(after(&options, &storage, NOTHING), ["b process", "c sync", "d process"]);
    db.flush().unwrap();
    assert_eq!(after(&options, &storage, NOTHING), ["a none", "b process", "c sync", "d process"]);
}

#[test]
fn an_interval_syncs_by_itself_and_shares_its_syncs() {
    let (options, storage) = in_memory();
    let interval = Durability::Interval(Duration::from_millis(20));
    let options = options.background(Background::Threads).durability(interval);
    let db = options.open(DIR).unwrap();
    let (before, start) = (db.stats().log_syncs, Instant::now());
    for number in 0..500u32 {
        db.put(number.to_be_bytes(), "v").unwrap();
    }
    let survivors = || after(&options, &storage, NOTHING).len();
    wait_until(|| survivors() == 500, || format!("{} of 500 writes are synced", survivors()));
    let syncs = db.stats().log_syncs - before;
    // There is at most one sync per interval, however long the writes took.
    let intervals = start.elapsed().as_millis() as u64 / 20;
    assert!((1..=intervals + 2).contains(&syncs), "{syncs} syncs in {intervals} intervals");
}

/// After closing, no thread is left that could sync within the promised interval.
#[test]
fn dropping_the_last_handle_syncs_pending_interval_writes() {
    let (options, storage) = in_memory();
    let hour = Durability::Interval(Duration::from_secs(3600));
    let options = options.background(Background::Threads).durability(hour);
    let db = options.open(DIR).unwrap();
    db.put("k", "v").unwrap();
    drop(db);
    assert_eq!(after(&options, &storage, NOTHING), ["k"]);
}

#[test]
fn writers_at_once_share_syncs() {
    let (options, storage) = in_memory();
    let db = options.durability(Durability::Sync).open(DIR).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let db = &db;
            scope
                .spawn(move || (0..50u8).for_each(|number| db.put([thread, number], "v").unwrap()));
        }
    });
    let stats = db.stats();
    assert!(stats.log_syncs <= 210, "{}", stats.log_syncs);
    assert_eq!(after(&in_memory().0, &storage, NOTHING).len(), 200);
}

/// Synced writes are inserted before their sync.
#[test]
fn no_reader_sees_a_write_before_its_sync() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone()));
    let db = options.durability(Durability::Sync).open(DIR).unwrap();
    db.put("a", "old").unwrap();
    storage.delay_log_syncs(Duration::from_millis(60));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| db.put("a", "new").unwrap());
        let deadline = Instant::now() + Duration::from_millis(30);
        while Instant::now() < deadline {
            assert_eq!(db.get("a").unwrap().unwrap(), "old");
            assert_eq!(db.iter().unwrap().next().unwrap().unwrap().1, "old");
        }
        writer.join().unwrap();
    });
    assert_eq!(db.get("a").unwrap().unwrap(), "new");
    // After a failed sync, the write never becomes visible, nor do later ones.
    storage.set(Some(Fault {
        operation: Some(Operation::Sync),
        path_contains: ".log".into(),
        after: 0,
        is_permanent: false,
        error: std::io::ErrorKind::Other,
    }));
    assert!(db.put("a", "failed").is_err());
    assert!(db.put("b", "refused").is_err());
    assert_eq!(db.get("a").unwrap().unwrap(), "new");
    assert_eq!(db.iter().unwrap().count(), 1);
}
