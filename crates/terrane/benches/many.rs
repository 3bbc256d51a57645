//! Many of everything: keyspaces, ingests of one key, and queues in one keyspace.
//!
//! `cargo bench -p terrane --bench many -- keyspaces|ingests|queues COUNT DIR`
//!
//! - `keyspaces`: creates `COUNT` keyspaces by one call, and a hundredth of them by one call each, then
//!   opens, writes to, flushes and closes all of them. Prints the time and the resident memory.
//! - `ingests`: `COUNT` ingests of one key each, ascending. Prints the time of one by tenths.
//! - `queues`: `COUNT` pops of each kind of queue. Prints the time of one by tenths.
//!
//! What grows by tenths grows with the database. `DIR` is created, and removed at the end.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a benchmark removes its files")]

use std::path::Path;
use std::time::Instant;

use terrane::{Db, KeyspaceOptions, Options, WriteBatch};

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn lap(what: &str, start: &mut Instant) {
    println!("{what:<26} {:8.3} s {:6} MiB", start.elapsed().as_secs_f64(), resident_mib());
    *start = Instant::now();
}

fn keyspaces(count: usize, dir: &Path) {
    let names: Vec<String> = (0..count).map(|number| format!("keyspace {number}")).collect();
    let mut start = Instant::now();
    let db = Options::new().open(dir).unwrap();
    let (one_by_one, at_once) = names.split_at(count / 100);
    KeyspaceOptions::new().open_all(&db, at_once).unwrap();
    lap("create at once", &mut start);
    for name in one_by_one {
        db.keyspace(name, KeyspaceOptions::new()).unwrap();
    }
    lap("create a hundredth singly", &mut start);
    db.close().unwrap();
    lap("close", &mut start);
    let db = Options::new().open(dir).unwrap();
    lap("open", &mut start);
    let all = KeyspaceOptions::new().open_all(&db, &names).unwrap();
    all.iter().for_each(|keyspace| keyspace.put("key", "value").unwrap());
    lap("put in each", &mut start);
    db.flush().unwrap();
    lap("flush", &mut start);
    all.iter().for_each(|keyspace| keyspace.put("key", "value").unwrap());
    lap("put in each again", &mut start);
    drop(all);
    db.close().unwrap();
    lap("close", &mut start);
    drop(Options::new().open(dir).unwrap());
    lap("open", &mut start);
}

/// Calls `operate` with each number, and prints the microseconds per call by tenths.
fn by_tenths(what: &str, count: u64, mut operate: impl FnMut(u64)) {
    let tenth = (count / 10).max(1);
    let times = (0..10).map(|part| {
        let start = Instant::now();
        (part * tenth..(part + 1) * tenth).for_each(&mut operate);
        format!("{:.1}", start.elapsed().as_secs_f64() * 1e6 / tenth as f64)
    });
    println!("{what:<26} us by tenths: {}", times.collect::<Vec<_>>().join(" "));
}

fn ingests(count: u64, dir: &Path) {
    let db = Options::new().open(dir).unwrap();
    by_tenths("ingest of one key", count, |number| {
        db.ingest([(number.to_be_bytes(), "value")]).unwrap();
    });
    db.wait_for_compactions().unwrap();
    println!("{} tables", db.tree().shape.table_count());
}

fn filled(dir: &Path, count: u64, key: impl Fn(u64) -> Vec<u8>) -> Db {
    let _ = std::fs::remove_dir_all(dir);
    let design = "1-leveling T=10; buffer=4MiB".parse().unwrap();
    let db = Options::new().design(design).open(dir).unwrap();
    let mut batch = WriteBatch::new();
    for number in 0..count {
        batch.put(key(number), [b'v'; 100]);
        if batch.len() == 1000 {
            db.write(&batch).unwrap();
            batch.clear();
        }
    }
    db.write(&batch).unwrap();
    db.flush().unwrap();
    db
}

fn queues(count: u64, dir: &Path) {
    let key = |number: u64| number.to_be_bytes().to_vec();
    let db = filled(dir, count, |number| format!("{:03}/{number:08}", number % 100).into_bytes());
    by_tenths("a hundred queues", count, |number| {
        let entry = db.prefix(format!("{:03}/", number % 100)).unwrap().next().unwrap();
        db.delete(entry.unwrap().0).unwrap();
    });
    drop(db);
    let db = filled(dir, count, key);
    by_tenths("delete_range of one key", count, |number| {
        db.delete_range(key(number)..key(number + 1)).unwrap();
        db.put(key(count + number), [b'v'; 100]).unwrap();
        assert!(db.first().unwrap().is_some());
    });
    drop(db);
    let db = filled(dir, count, key);
    by_tenths("delete_range from the start", count, |number| {
        db.delete_range(..key(number + 1)).unwrap();
        db.put(key(count + number), [b'v'; 100]).unwrap();
        assert!(db.first().unwrap().is_some());
    });
    drop(db);
    let db = filled(dir, 0, key);
    by_tenths("priority queue", count, |number| {
        let priority = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        for second in 0..2 {
            let priority = key(priority.wrapping_add(second * 7919));
            db.put([priority, key(number * 2 + second)].concat(), [b'v'; 50]).unwrap();
        }
        let (first, _) = db.first().unwrap().unwrap();
        db.delete(first).unwrap();
    });
}

fn main() {
    // Cargo passes `--bench` to every benchmark.
    let given: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    let [what, count, dir] = &given[..] else {
        println!("usage: many keyspaces|ingests|queues COUNT DIR");
        return;
    };
    let (count, dir) = (count.parse::<u64>().unwrap(), Path::new(dir));
    match what.as_str() {
        "keyspaces" => keyspaces(count as usize, dir),
        "ingests" => ingests(count, dir),
        "queues" => queues(count, dir),
        other => println!("unknown measurement '{other}'"),
    }
    std::fs::remove_dir_all(dir).unwrap();
}
