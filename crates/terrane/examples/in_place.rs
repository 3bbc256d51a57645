//! How often memtables are flushed when the same keys are overwritten: `cargo run --release -p terrane
//! --example in_place -- [PUTS]`, 300,000 puts for each line by default.
//!
//! The hot set is given in percent of the entries that a memtable holds, which is measured first. The
//! log is on. Counts do not depend on the speed of the machine.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example")]

use terrane::{Background, Db, Durability, Options};
use terrane_testkit::Rng;

const VALUE: (u64, u64) = (256, 256);

/// A database in a temporary directory, with the entries that its memtables hold.
struct Bench {
    db: Db,
    _dir: tempfile::TempDir,
    rng: Rng,
    sizes: (u64, u64),
}

impl Bench {
    fn new(memtable: &str, buffer: &str, sizes: (u64, u64), background: Background) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let design = format!("balanced; buffer={buffer}; memtable={memtable}").parse().unwrap();
        let options = Options::new().design(design).durability(Durability::Process);
        let options = options.background(background);
        let db = options.open(dir.path().join("db")).unwrap();
        Self { db, _dir: dir, rng: Rng::new(1), sizes }
    }

    fn put(&mut self, key: u64) {
        let value = vec![7; self.rng.between(self.sizes.0, self.sizes.1) as usize];
        self.db.put(key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), value).unwrap();
    }

    /// Returns the number of new keys that fill a memtable.
    fn capacity(memtable: &str, buffer: &str, sizes: (u64, u64)) -> u64 {
        let mut bench = Self::new(memtable, buffer, sizes, Background::Inline);
        let mut keys = 0;
        while bench.db.stats().flushes == 0 {
            (keys..keys + 64).for_each(|key| bench.put(key));
            keys += 64;
            // Writes a full memtable, which would otherwise wait for others.
            while bench.db.run_background_job().unwrap() {}
        }
        keys - 64
    }

    /// Overwrites `keys` keys at random, after each was put once. Returns the flushes and the updates
    /// in place of these puts, and the bytes of memtables at the end.
    fn overwrite(mut self, keys: u64, puts: u64, is_held: bool) -> (u64, u64, u64) {
        (0..keys).for_each(|key| self.put(key));
        let _snapshot = is_held.then(|| self.db.snapshot());
        let before = self.db.stats();
        for _ in 0..puts {
            let key = self.rng.below(keys);
            self.put(key);
        }
        let after = self.db.stats();
        let in_place = after.membuffer.updates_in_place - before.membuffer.updates_in_place;
        (after.flushes - before.flushes, in_place, after.memory.memtable_bytes)
    }
}

fn main() {
    let puts = std::env::args().nth(1).map_or(300_000, |puts| puts.parse().unwrap());
    println!("buffer  memtable            values      snapshot  hot  flushes  in place    bytes");
    let line = |buffer: &str, memtable: &str, sizes: (u64, u64), is_held: bool, percent: u64| {
        let keys = Bench::capacity(memtable, buffer, sizes) * percent / 100;
        let bench = Bench::new(memtable, buffer, sizes, Background::Threads);
        let (flushes, in_place, bytes) = bench.overwrite(keys, puts, is_held);
        let (values, held) =
            (format!("{}..={}", sizes.0, sizes.1), if is_held { "held" } else { "" });
        println!(
            "{buffer:7} {memtable:19} {values:11} {held:8} {percent:3} % {flushes:7} {in_place:9} {bytes:9}"
        );
    };
    for memtable in ["flodb", "flodb(membuffer=0%)", "btree"] {
        for percent in [5, 10, 20, 30, 50, 70, 90] {
            line("8MiB", memtable, VALUE, false, percent);
        }
    }
    for memtable in ["flodb", "flodb(membuffer=0%)"] {
        for sizes in [(16, 1000), (100, 4000)] {
            for percent in [8, 50, 80, 90] {
                line("8MiB", memtable, sizes, false, percent);
            }
        }
        for percent in [5, 20, 40, 45] {
            line("8MiB", memtable, VALUE, true, percent);
        }
    }
    skewed(puts);
}

/// The paper's skew: 98 % of the operations go to a contiguous 2 % of the keys; half of them read.
fn skewed(puts: u64) {
    println!("\nbuffer  memtable            flushes  in place");
    let keys = puts;
    for buffer in ["4MiB", "8MiB", "16MiB"] {
        for memtable in ["btree", "flodb", "flodb(partition-bits=0)"] {
            let mut bench = Bench::new(memtable, buffer, VALUE, Background::Threads);
            for _ in 0..2 * puts {
                let is_hot = bench.rng.percent(98);
                let key = if is_hot { bench.rng.below(keys / 50) } else { bench.rng.below(keys) };
                let name = (key * (u64::MAX / keys)).to_be_bytes();
                if bench.rng.percent(50) {
                    bench.db.put(name, vec![7; 256]).unwrap();
                } else {
                    bench.db.get(name).unwrap();
                }
            }
            let stats = bench.db.stats();
            let in_place = stats.membuffer.updates_in_place;
            println!("{buffer:7} {memtable:23} {:4} {in_place:9}", stats.flushes);
        }
    }
}
