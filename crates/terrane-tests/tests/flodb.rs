//! FloDB's memtable in a database: in-place updates never show in a snapshot, and the order of
//! writes survives drains, design switches, crashes and replays.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use terrane::storage::{Crash, MemoryStorage, Storage};
use terrane::{Background, Db, Design, Durability, ErrorKind, Options, WriteBatch};
use terrane_testkit::{HangGuard, Rng, seed_from_env};

fn design(text: &str) -> Design {
    text.parse().unwrap()
}

/// Opens a database whose memtables follow this design from the next rotation on, or from the start
/// if the database is new.
fn open(storage: &Arc<MemoryStorage>, memtable: &str, buffer: &str) -> Db {
    let shape = format!("balanced L0=2; buffer={buffer}; table=64KiB; memtable={memtable}");
    let is_new = storage.list("db".as_ref()).map_or(true, |names| names.is_empty());
    let storage: Arc<dyn Storage> = Arc::clone(storage) as _;
    let mut options = Options::new().storage(storage).durability(Durability::Process);
    if is_new {
        options = options.design(design(&shape));
    }
    let db = options.log_segment_bytes(1 << 20).open("db").unwrap();
    db.set_design(design(&shape)).unwrap();
    db
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

/// Keys spread over the whole key space.
fn spread(key: u64) -> [u8; 8] {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

#[test]
fn rewritten_keys_do_not_fill_the_memtable() {
    for (memtable, is_in_place) in [
        ("flodb", true),
        ("flodb(membuffer=25%,partition-bits=4,drain-threads=1,update=versions)", false),
        ("btree", false),
    ] {
        let db = open(&Arc::new(MemoryStorage::new(1)), memtable, "1MiB");
        for round in 0..200_u64 {
            for key in 0..200_u64 {
                let value = [&round.to_be_bytes()[..], &[7; 100]].concat();
                db.put(spread(key), value).unwrap();
            }
        }
        let stats = db.stats();
        assert_eq!(stats.flushes > 0, !is_in_place, "{memtable}: {stats}");
        assert_eq!(stats.membuffer.updates_in_place > 35_000, is_in_place, "{memtable}: {stats}");
        assert_eq!(stats.membuffer.writes > 0, memtable != "btree", "{memtable}: {stats}");
        for key in 0..200_u64 {
            assert_eq!(number(&db.get(spread(key)).unwrap().unwrap()), 199);
        }
        assert_eq!(db.iter().unwrap().count(), 200);
    }
}

/// A snapshot keeps one more version of each key besides the newest, and values of varying sizes reuse
/// each other's memory.
#[test]
fn rewritten_keys_do_not_fill_the_memtable_while_a_snapshot_is_held() {
    for (least, most) in [(100, 100), (16, 1000)] {
        let db = open(&Arc::new(MemoryStorage::new(7)), "flodb(membuffer=50%)", "2MiB");
        let mut rng = Rng::new(seed_from_env(70));
        // Learns the distribution of the keys.
        (0..2000_u64).for_each(|key| db.put(spread(key), []).unwrap());
        let mut put = |round: u64, key: u64| {
            let filler = vec![7; rng.between(least, most) as usize];
            db.put(spread(key), [&round.to_be_bytes()[..], &filler].concat()).unwrap();
        };
        (0..200_u64).for_each(|key| put(0, key));
        let snapshot = db.snapshot();
        for round in 1..300 {
            (0..200_u64).for_each(|key| put(round, key));
        }
        let stats = db.stats();
        assert_eq!(stats.flushes, 0, "{least} to {most} bytes: {stats}");
        for key in 0..200_u64 {
            assert_eq!(number(&snapshot.get(spread(key)).unwrap().unwrap()), 0);
            assert_eq!(number(&db.get(spread(key)).unwrap().unwrap()), 299);
        }
    }
}

/// Returns the number of new keys that fill a memtable.
fn capacity(memtable: &str, put: &dyn Fn(&Db, u64, u64)) -> u64 {
    let shape = format!("balanced; buffer=1MiB; memtable={memtable}");
    let options = Options::new().storage(Arc::new(MemoryStorage::new(8))).design(design(&shape));
    let db = options.background(Background::Inline).open("db").unwrap();
    let mut keys = 0;
    while db.stats().flushes == 0 {
        put(&db, keys, 0);
        keys += 1;
        while db.run_background_job().unwrap() {}
    }
    keys - 1
}

/// This holds with the log on, and after a crash too.
#[test]
fn a_hot_set_of_most_of_the_buffer_is_never_flushed() {
    for memtable in ["flodb", "flodb(membuffer=0%)"] {
        for ((least, most), is_held) in
            [(100, 100), (16, 1000)].into_iter().flat_map(|sizes| [(sizes, false), (sizes, true)])
        {
            let put = |db: &Db, key: u64, round: u64| {
                let len = Rng::new(key * 1000 + round).between(least, most) as usize;
                let value = [&round.to_be_bytes()[..], &vec![7; len]].concat();
                db.put(spread(key), value).unwrap();
            };
            let keys = capacity(memtable, &put) * if is_held { 44 } else { 88 } / 100;
            let storage = Arc::new(MemoryStorage::new(9));
            let db = open(&storage, memtable, "1MiB");
            let mut rounds = vec![0; keys as usize];
            (0..keys).for_each(|key| put(&db, key, 0));
            let snapshot = is_held.then(|| db.snapshot());
            let mut rng = Rng::new(seed_from_env(75));
            for round in 1..20_000 {
                let key = rng.index(rounds.len());
                put(&db, key as u64, round);
                rounds[key] = round;
            }
            let stats = db.stats();
            assert_eq!(stats.flushes, 0, "{memtable}, {least} to {most}, {is_held}: {stats}");
            let crashed: Arc<dyn Storage> = Arc::new(storage.crash_point().image(Crash::Process));
            let after = Options::new().storage(crashed).open("db").unwrap();
            for (key, round) in (0..).zip(&rounds) {
                for db in [&db, &after] {
                    assert_eq!(number(&db.get(spread(key)).unwrap().unwrap()), *round);
                }
                if let Some(snapshot) = &snapshot {
                    assert_eq!(number(&snapshot.get(spread(key)).unwrap().unwrap()), 0);
                }
            }
        }
    }
}

#[test]
fn the_first_memtable_learns_the_distribution_of_keys_with_a_common_prefix() {
    let db = open(&Arc::new(MemoryStorage::new(6)), "flodb(membuffer=75%)", "16MiB");
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let db = &db;
            scope.spawn(move || {
                let mut rng = Rng::new(seed_from_env(60) + thread);
                // Each thread reads its own last write before, during and after the Membuffer is enabled.
                for round in 0..20_000_u64 {
                    let key = format!("user{:08}-{thread}", rng.below(4000));
                    db.put(&key, round.to_be_bytes()).unwrap();
                    assert_eq!(number(&db.get(&key).unwrap().unwrap()), round);
                }
            });
        }
    });
    let stats = db.stats();
    assert_eq!(stats.flushes, 0);
    // These are all writes since the memtable learned the key distribution. A single partition of
    // the Membuffer would be too small for most of these keys.
    assert!(stats.membuffer.writes > 50_000, "{stats}");
    let keys: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0).collect();
    assert!(keys.is_sorted() && keys.len() > 11_000);
}

#[test]
fn snapshots_and_iterators_do_not_change() {
    let db = open(&Arc::new(MemoryStorage::new(2)), "flodb", "1MiB");
    let mut kept = Vec::new();
    for round in 0..300_u64 {
        for key in 0..20_u64 {
            db.put(key.to_be_bytes(), round.to_be_bytes()).unwrap();
        }
        if round % 50 == 7 {
            kept.push((round, db.snapshot(), db.iter().unwrap(), db.iter().unwrap()));
        }
    }
    for (round, snapshot, forward, backward) in kept {
        for key in 0..20_u64 {
            assert_eq!(number(&snapshot.get(key.to_be_bytes()).unwrap().unwrap()), round);
        }
        let keys: Vec<[u8; 8]> = (0..20_u64).map(u64::to_be_bytes).collect();
        let found = snapshot.multi_get(&keys).unwrap();
        assert!(found.into_iter().all(|value| number(&value.unwrap()) == round));
        let numbers = |iter: &mut dyn Iterator<Item = terrane::Result<(_, terrane::Value)>>| {
            iter.map(|entry: terrane::Result<(terrane::Key, _)>| number(&entry.unwrap().1))
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers(&mut { forward }), [round; 20]);
        assert_eq!(numbers(&mut { backward }.rev()), [round; 20]);
    }
}

/// The first drains after a replay ignored readers, and removed versions that a snapshot needed.
#[test]
fn snapshots_taken_after_a_replay_do_not_change() {
    for replayed in [1001, 1040] {
        let storage = Arc::new(MemoryStorage::new(8));
        let put = |db: &Db, key: u64, round: u64| db.put(spread(key), round.to_be_bytes());
        let db = open(&storage, "flodb", "8MiB");
        (0..replayed).for_each(|key| put(&db, key, 1).unwrap());
        drop(db);
        let db = open(&storage, "flodb", "8MiB");
        let snapshot = db.snapshot();
        (0..20).for_each(|key| put(&db, key, 2).unwrap());
        // A scan drains the partitions that it reaches.
        assert_eq!(db.iter().unwrap().count() as u64, replayed);
        let seen: Vec<_> =
            (0..20).map(|key| snapshot.get(spread(key)).unwrap().map(|v| number(&v))).collect();
        assert_eq!(seen, [Some(1); 20], "{replayed} replayed");
        assert!((0..20).all(|key| number(&db.get(spread(key)).unwrap().unwrap()) == 2));
    }
}

#[test]
fn a_database_with_data_refuses_a_design_that_discards_it() {
    let storage = Arc::new(MemoryStorage::new(3));
    let discard = design(
        "balanced; buffer=64KiB; memtable=flodb(membuffer=25%,partition-bits=4,drain-threads=1,flush=discard)",
    );
    let db = open(&storage, "flodb", "64KiB");
    db.put("a", "1").unwrap();
    let refused = db.set_design(discard.clone()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    db.flush().unwrap();
    assert!(db.set_design(discard.clone()).is_err());
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    drop(db);
    // An empty database accepts the design; it then discards full memtables and writes no table.
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new(4));
    let db = Options::new().storage(storage).design(discard).open("db").unwrap();
    for key in 0..5000_u64 {
        db.put(key.to_be_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    let stats = db.stats();
    assert!(stats.flushes > 3 && stats.table_bytes == 0, "{stats}");
    assert_eq!(db.iter().unwrap().count(), 0);
}

/// The sum of all accounts never changes, so a reader that sees half of a transfer computes another
/// sum.
#[test]
fn readers_see_batches_whole_while_they_are_overwritten_in_place() {
    transfer("flodb");
}

#[test]
fn restarting_scans_see_batches_whole_as_well() {
    transfer("flodb(membuffer=10%,partition-bits=1,drain-threads=1,scan=restart)");
    transfer("flodb(membuffer=0%,partition-bits=0,drain-threads=0,scan=restart)");
    transfer(
        "flodb(membuffer=30%,partition-bits=2,drain-threads=1,scan=restart,restarts-max=0,moment=reused)",
    );
}

/// Returns settings with FloDB's scans whose first memtable has a Membuffer as soon as it has learned
/// the key distribution.
fn restarting(more: &str) -> String {
    format!("flodb(membuffer=50%,partition-bits=2,drain-threads=0,scan=restart{more})")
}

/// Opens a database and puts `keys` keys with the value 0 into its Membuffer.
fn filled(memtable: &str, keys: u64) -> Db {
    let db = open(&Arc::new(MemoryStorage::new(8)), memtable, "16MiB");
    // The first memtable uses its Membuffer once it has learned the distribution of a thousand keys.
    for key in 0..2000_u64 {
        db.put([&spread(key)[..], b"sample"].concat(), [7; 8]).unwrap();
    }
    let before = db.stats().membuffer.writes;
    for key in 0..keys {
        db.put(spread(key), 0_u64.to_be_bytes()).unwrap();
    }
    assert!(db.stats().membuffer.writes > before + keys / 2, "{}", db.stats());
    db
}

/// The numbers of master scans, piggybacking scans, reuses, restarts and fallbacks so far.
fn scan_counts(db: &Db) -> [u64; 5] {
    let stats = db.stats().membuffer;
    let shared = [stats.scan_masters, stats.scan_piggybacks, stats.scan_reuses];
    [shared[0], shared[1], shared[2], stats.scan_restarts, stats.scan_fallbacks]
}

#[test]
fn a_restarting_scan_sees_the_membuffer_and_both_ends() {
    let db = filled(&restarting(""), 100);
    let keys = || {
        db.range([0; 8]..[0xff; 8]).unwrap().filter(|entry| entry.as_ref().unwrap().0.len() == 8)
    };
    assert_eq!(keys().count(), 100);
    assert_eq!(scan_counts(&db), [1, 0, 0, 0, 0]);
    db.put(spread(3), 1_u64.to_be_bytes()).unwrap();
    db.delete(spread(4)).unwrap();
    let found: Vec<_> = keys().map(Result::unwrap).collect();
    assert!(found.is_sorted_by_key(|entry| entry.0.clone()) && found.len() == 99);
    let value_of =
        |key| found.iter().find(|entry| entry.0 == spread(key)).map(|entry| number(&entry.1));
    assert_eq!((value_of(3), value_of(4), value_of(5)), (Some(1), None, Some(0)));
    let mut backward: Vec<_> =
        db.range([0; 8]..[0xff; 8]).unwrap().rev().map(Result::unwrap).collect();
    backward.retain(|entry| entry.0.len() == 8);
    backward.reverse();
    assert_eq!(backward, found);
    // An iterator does not change once it exists.
    let mut iter = db.range([0; 8]..[0xff; 8]).unwrap();
    db.delete_range([0; 8]..[0xff; 8]).unwrap();
    iter.seek(spread(7)).unwrap();
    assert!(iter.advance().unwrap() && iter.key() == spread(7));
    assert_eq!(keys().count(), 0);
    // A range without an end does not use the protocol, because it may return everything.
    assert_eq!(db.iter().unwrap().count(), 0);
    assert_eq!(scan_counts(&db), [5, 0, 0, 0, 0]);
}

#[test]
fn results_larger_than_the_buffer_are_read_at_a_held_snapshot() {
    let db = open(&Arc::new(MemoryStorage::new(8)), &restarting(""), "64KiB");
    for key in 0..2000_u64 {
        db.put(spread(key), [7; 100]).unwrap();
    }
    let mut iter = db.range([0; 8]..[0xff; 8]).unwrap();
    assert_eq!(db.stats().snapshots, 1);
    for key in 0..2000_u64 {
        db.put(spread(key), [8; 100]).unwrap();
    }
    assert!(iter.all(|entry| *entry.unwrap().1 == [7; 100]));
    drop(iter);
    assert_eq!(db.stats().snapshots, 0);
}

#[test]
fn an_ended_master_s_moment_is_reused_until_the_memtable_is_replaced() {
    let db = filled(&restarting(",moment=reused,chain-max=2"), 10);
    let count = |value: u64| {
        let range = db.range([0; 8]..[0xff; 8]).unwrap().map(|entry| entry.unwrap().1);
        range.filter(|found| found.len() == 8 && number(found) == value).count()
    };
    assert_eq!((count(0), scan_counts(&db)), (10, [1, 0, 0, 0, 0]));
    // The put stays in the Membuffer: a scan that reuses a moment does not drain it.
    db.put(spread(3), 1_u64.to_be_bytes()).unwrap();
    assert_eq!((count(0), scan_counts(&db)), (10, [1, 0, 1, 0, 0]));
    assert_eq!((count(1), scan_counts(&db)), (0, [1, 0, 2, 0, 0]));
    // No more than two scans share a moment.
    assert_eq!((count(1), scan_counts(&db)), (1, [2, 0, 2, 0, 0]));
    db.put(spread(3), 2_u64.to_be_bytes()).unwrap();
    assert_eq!(db.stats().snapshots, 1);
    db.flush().unwrap();
    assert_eq!(db.stats().snapshots, 0);
    assert_eq!((count(2), scan_counts(&db)), (1, [3, 0, 2, 0, 0]));
    // A version that has since been drained is newer than the moment, so the scan restarts.
    db.put(spread(3), 3_u64.to_be_bytes()).unwrap();
    assert_eq!(db.iter().unwrap().count(), 2010);
    assert_eq!((count(3), scan_counts(&db)), (1, [4, 0, 3, 1, 0]));
}

#[test]
fn a_scan_that_restarts_too_often_blocks_writers() {
    const KEYS: u64 = 100_000;
    let memtable =
        "flodb(membuffer=0%,partition-bits=0,drain-threads=0,scan=restart,restarts-max=3)";
    let db = open(&Arc::new(MemoryStorage::new(9)), memtable, "64MiB");
    // One scan takes several time slices of a busy machine, so the writer runs during each.
    for key in 0..KEYS {
        db.put(spread(key), [7; 8]).unwrap();
    }
    let (is_over, guard) = (AtomicBool::new(false), HangGuard::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in (0..KEYS).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                db.put(spread(key), [8; 8]).unwrap();
                guard.check(|| "the scans did not end".into());
            }
        });
        while db.stats().membuffer.scan_fallbacks == 0 {
            guard.check(|| format!("{:?}", db.stats().membuffer));
            let all = db.range(&[0; 8][..]..&[0xff; 9][..]).unwrap();
            assert_eq!(all.count() as u64, KEYS);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let stats = db.stats();
    assert!(stats.membuffer.scan_restarts >= stats.membuffer.scan_fallbacks * 3, "{stats}");
}

#[test]
fn scans_that_run_together_share_a_moment_up_to_the_limit_of_a_chain() {
    const SCANNERS: u64 = 8;
    for chain_max in [0, 1, 10_000] {
        let db = filled(&restarting(&format!(",chain-max={chain_max}")), 5000);
        let (barrier, guard) = (Barrier::new(SCANNERS as usize), HangGuard::new());
        let (masters, shared) = loop {
            std::thread::scope(|scope| {
                for _ in 0..SCANNERS {
                    scope.spawn(|| {
                        barrier.wait();
                        db.range([0; 8]..[0xff; 8]).unwrap().for_each(|entry| drop(entry.unwrap()));
                    });
                }
            });
            let [masters, shared, ..] = scan_counts(&db);
            // How many scans overlap depends on the machine.
            let (count, enough) = if chain_max == 0 { (masters, 80) } else { (shared, 8) };
            if count >= enough {
                break (masters, shared);
            }
            guard.check(|| format!("chain-max={chain_max}: {masters} masters, {shared} shared"));
        };
        assert!(shared <= masters * chain_max, "chain-max={chain_max}: {masters}, {shared}");
    }
}

fn transfer(memtable: &str) {
    const ACCOUNTS: u64 = 20;
    let db = open(&Arc::new(MemoryStorage::new(5)), memtable, "256KiB");
    let account = |number: u64| number.to_be_bytes();
    let put = |batch: &mut WriteBatch, key: u64, balance: u64| {
        batch.put(account(key), [&balance.to_be_bytes()[..], &[1; 40]].concat());
    };
    let mut batch = WriteBatch::new();
    (0..ACCOUNTS).for_each(|key| put(&mut batch, key, 100));
    db.write(&batch).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..2_u64)
            .map(|half| {
                let (db, put) = (&db, &put);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed_from_env(0) + half);
                    for _ in 0..5000 {
                        let (from, to) = (rng.below(10) * 2 + half, rng.below(10) * 2 + half);
                        if from == to {
                            continue;
                        }
                        let balance = |key| number(&db.get(account(key)).unwrap().unwrap());
                        let (mine, theirs) = (balance(from), balance(to));
                        let amount = rng.below(mine + 1);
                        let mut batch = WriteBatch::new();
                        put(&mut batch, from, mine - amount);
                        put(&mut batch, to, theirs + amount);
                        db.write(&batch).unwrap();
                    }
                })
            })
            .collect();
        for way in 0..3 {
            let (db, is_over) = (&db, &is_over);
            scope.spawn(move || {
                let keys: Vec<[u8; 8]> = (0..ACCOUNTS).map(account).collect();
                while !is_over.load(Ordering::Relaxed) {
                    let sum: u64 = match way {
                        0 => {
                            let all = db.range(account(0)..account(ACCOUNTS)).unwrap();
                            all.map(|entry| number(&entry.unwrap().1)).sum()
                        }
                        1 => {
                            let found = db.multi_get(&keys).unwrap();
                            found.iter().map(|value| number(value.as_ref().unwrap())).sum()
                        }
                        _ => {
                            let snapshot = db.snapshot();
                            let get = |key| number(&snapshot.get(key).unwrap().unwrap());
                            keys.iter().map(get).sum()
                        }
                    };
                    assert_eq!(sum, ACCOUNTS * 100, "way {way}");
                }
            });
        }
        movers.into_iter().for_each(|mover| mover.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Several threads write the same keys. The final contents survive a crash, and no reader sees the
/// value of a key decrease.
#[test]
fn the_order_of_writes_is_the_same_after_drains_switches_crashes_and_replays() {
    const KEYS: u64 = 16;
    let storage = Arc::new(MemoryStorage::new(6));
    let memtables = [
        ("flodb", "32KiB"),
        ("btree", "32KiB"),
        ("flodb(membuffer=90%,partition-bits=2,drain-threads=2)", "1MiB"),
        ("flodb(membuffer=10%,partition-bits=0,drain-threads=1,insert=single)", "8KiB"),
        ("skiplist", "32KiB"),
        ("flodb(membuffer=0%,partition-bits=0,drain-threads=0)", "32KiB"),
    ];
    let seed = seed_from_env(9);
    let mut expected: Vec<Option<Vec<u8>>> = vec![None; KEYS as usize];
    for round in 0..12_usize {
        let (memtable, buffer) = memtables[round % memtables.len()];
        let db = open(&storage, memtable, buffer);
        let read = |db: &Db| -> Vec<Option<Vec<u8>>> {
            (0..KEYS).map(|key| db.get([key as u8]).unwrap().map(|value| value.to_vec())).collect()
        };
        assert_eq!(read(&db), expected, "{memtable} in round {round}");
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (db, memtables) = (&db, &memtables);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed * 100 + round as u64 * 10 + thread);
                    for step in 0..600_u64 {
                        let key = [rng.below(KEYS) as u8];
                        // Each thread writes increasing values, and no reader may see them fall.
                        let value = [&step.to_be_bytes()[..], &[thread as u8; 30]].concat();
                        if rng.percent(10) {
                            db.delete(key).unwrap();
                        } else {
                            db.put(key, value).unwrap();
                        }
                        db.put([200, rng.bits() as u8, rng.bits() as u8], [7; 30]).unwrap();
                        if thread == 0 && step % 200 == 150 {
                            let (memtable, buffer) = *rng.pick(memtables);
                            let text =
                                format!("balanced L0=2; buffer={buffer}; memtable={memtable}");
                            db.set_design(design(&text)).unwrap();
                        }
                    }
                });
            }
        });
        expected = read(&db);
        let scanned: Vec<_> = db.range(..[KEYS as u8]).unwrap().map(|e| e.unwrap()).collect();
        let alive: Vec<_> = expected.iter().flatten().map(|value| &value[..]).collect();
        assert!(scanned.iter().map(|(_, value)| &value[..]).eq(alive), "{memtable}");
        // The next round replays the memtables from the log.
        drop(scanned);
        drop(db);
    }
}

#[test]
fn inline_work_drains_at_flushes_and_scans() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new(7));
    let options = Options::new().storage(storage).background(Background::Inline);
    let db = options.design(design("balanced; buffer=64KiB; memtable=flodb")).open("db").unwrap();
    for number in 0..5000_u64 {
        db.put((number * 7919 % 5000).to_be_bytes(), number.to_be_bytes()).unwrap();
    }
    let stats = db.stats();
    assert!(stats.flushes > 0 && stats.membuffer.writes > 0, "{stats}");
    let keys: Vec<u64> = db.iter().unwrap().map(|entry| number(&entry.unwrap().0)).collect();
    assert!(keys.into_iter().eq(0..5000));
}
