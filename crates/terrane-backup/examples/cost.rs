//! What a backup costs the writers of a database: `cargo run --release -p terrane-backup --example cost`.
//!
//! One thread writes values of 1 KiB at random keys, and notes how long each call takes: for some seconds
//! without a backup, during a first backup, a second one, and a first one with a rate. The arguments are
//! optional: a directory, the MiB of the database, and the writes per second.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use terrane::Db;
use terrane_backup::{CreateOptions, Directory, create};

/// The rate of the slow backup.
const RATE: u64 = 20 << 20;

/// A generator of keys and values, good enough for data that does not compress.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn value(&mut self) -> Vec<u8> {
        (0..128).flat_map(|_| self.next().to_le_bytes()).collect()
    }
}

/// Writes until `is_done`, and prints what the calls took.
fn write(db: &Db, keys: u64, writes: u32, is_done: &AtomicBool, name: &str) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut took = Vec::new();
    let begun = Instant::now();
    while !is_done.load(Ordering::Relaxed) {
        let (key, value) = (random.next() % keys, random.value());
        let call = Instant::now();
        db.put(key.to_be_bytes(), value).unwrap();
        took.push(call.elapsed());
        let due = begun + Duration::from_secs(1) * u32::try_from(took.len()).unwrap() / writes;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    let seconds = begun.elapsed().as_secs_f64();
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    println!(
        "{name}: {seconds:.1} s, {:.0} writes/s, p50 {:?}, p99 {:?}, p99.9 {:?}, longest {:?}",
        took.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// Runs something while another thread writes.
fn beside(db: &Db, keys: u64, writes: u32, name: &str, run: impl FnOnce()) {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| write(db, keys, writes, &is_done, name));
        run();
        is_done.store(true, Ordering::Relaxed);
    });
}

fn main() {
    let mut args = std::env::args().skip(1);
    let temporary = tempfile::tempdir().unwrap();
    let dir = args.next().map_or_else(|| temporary.path().to_owned(), Into::into);
    let megabytes: u64 = args.next().map_or(256, |text| text.parse().unwrap());
    let writes: u32 = args.next().map_or(5000, |text| text.parse().unwrap());
    let keys = megabytes << 10;
    let db = Db::open(dir.join("db")).unwrap();
    let mut random = Random(1);
    for key in 0..keys {
        db.put(key.to_be_bytes(), random.value()).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    beside(&db, keys, writes, "no backup", || std::thread::sleep(Duration::from_secs(8)));
    let back_up = |repository: &Path, options: &CreateOptions| {
        let begun = Instant::now();
        let created = create(&db, &Directory::new(repository), options).unwrap();
        let (bytes, seconds) = (created.stored_bytes >> 20, begun.elapsed().as_secs_f64());
        println!("  stored {bytes} MiB of {} MiB in {seconds:.2} s", created.backup.bytes >> 20);
    };
    let (fast, slow) = (dir.join("fast"), dir.join("slow"));
    beside(&db, keys, writes, "backup", || back_up(&fast, &CreateOptions::new()));
    beside(&db, keys, writes, "second backup", || back_up(&fast, &CreateOptions::new()));
    beside(&db, keys, writes, "backup at 20 MiB/s", || {
        back_up(&slow, &CreateOptions::new().rate(RATE));
    });
}
