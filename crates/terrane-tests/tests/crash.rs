//! Crashes at every sync, rename, creation and removal of a script, from its first call on.
//!
//! A script runs on a storage that records the state of all files before each such operation. From
//! each state the test makes images of a process crash or a power failure, with the unsynced part
//! lost, kept or torn. Each image must open and hold a prefix of the script's writes: at least
//! those that were promised to survive that crash, and none that was not written.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{Crash, CrashPoint, MemoryStorage, Storage, Survival};
use terrane::{
    Background, CacheWarming, Db, Durability, KeyspaceOptions, ReadMode, WriteBatch, WriteMode,
    WritePath,
};
use terrane_testkit::{Rng, print_counts, seed_from_env};
use terrane_tests::config::{Config, LOG_DIRS, small_design};
use terrane_tests::model::{Change, Map, State, apply};
use terrane_tests::script::DEFAULT;

const DIR: &str = "db";

/// How many openings in a row a crash interrupts.
const RECOVERY_DEPTH: u32 = 3;

fn config(rng: &mut Rng, durability: Durability) -> Config {
    Config {
        design: small_design(rng),
        durability,
        read_mode: *rng.pick(&[ReadMode::Cached, ReadMode::Direct]),
        write_mode: *rng.pick(&[WriteMode::Buffered, WriteMode::Direct]),
        write_path: *rng.pick(&[WritePath::Concurrent, WritePath::Queue]),
        cache_warming: *rng.pick(&[CacheWarming::None, CacheWarming::All]),
        background: Background::Inline,
        memory_budget: 1 << 20,
        log_segment_bytes: 64 << 10,
        log_bytes_max: 1 << 20,
        log_dir: rng.pick::<&str>(LOG_DIRS),
        flush_threads: rng.between(1, 3) as usize,
        compaction_threads: 1,
        merge_threads: 3,
        io_budget: terrane::IoBudget::Unlimited,
        read_threads: 0,
        delete_persistence: rng.percent(30).then(|| Duration::from_secs(2)),
        clock: Arc::new(terrane::ManualClock::new(1_000_000)),
    }
}

/// One run of a script, with the state after each write.
struct Run {
    config: Config,
    dir: PathBuf,
    /// The state after each write, beginning with the state before the first write.
    states: Vec<State>,
    /// How many of the writes are in tables or synced, whatever durability they asked for: after
    /// each write, and after the background work before the next write.
    durable: Vec<usize>,
    points: Vec<CrashPoint>,
    story: String,
}

fn random_batch(rng: &mut Rng, state: &State) -> Vec<(String, Change)> {
    let names: Vec<String> = state.keys().cloned().collect();
    let key = |rng: &mut Rng| format!("{:03}", rng.below(60)).into_bytes();
    let count = if rng.percent(5) { 40 } else { rng.between(1, 3) };
    let change = |rng: &mut Rng, name: &str| match rng.below(14) {
        12..=13 if name == DEFAULT => Change::Merge(key(rng), vec![rng.bits() as u8; rng.index(9)]),
        0 => {
            let (a, b) = (key(rng), key(rng));
            Change::DeleteRange(
                std::ops::Bound::Included(a.clone().min(b.clone())),
                std::ops::Bound::Excluded(a.max(b)),
            )
        }
        1..=3 => Change::Delete(key(rng)),
        _ => {
            let len = if rng.percent(3) { 3000 } else { rng.index(90) };
            let value = vec![rng.bits() as u8; len];
            // A value with a time to live expires long after the test.
            match rng.percent(20) {
                true => Change::PutFor(key(rng), value, Duration::from_secs(1 << 20)),
                false => Change::Put(key(rng), value),
            }
        }
    };
    let one = |rng: &mut Rng| {
        let name = rng.pick(&names).clone();
        let change = change(rng, &name);
        (name, change)
    };
    (0..count).map(|_| one(rng)).collect()
}

fn encode(db: &Db, changes: &[(String, Change)]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (name, change) in changes {
        let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
        match change {
            Change::Put(key, value) => batch.put_in(&keyspace, key, value),
            Change::Merge(key, operand) => batch.merge_in(&keyspace, key, operand),
            Change::PutFor(key, value, ttl) => batch.put_with_ttl_in(&keyspace, key, value, *ttl),
            Change::Delete(key) => batch.delete_in(&keyspace, key),
            Change::DeleteRange(start, end) => {
                batch.delete_range_in(&keyspace, (start.clone(), end.clone()))
            }
        };
    }
    batch
}

/// Performs a write; a single put is not made a batch, which takes another way to the memtable.
fn write(db: &Db, changes: &[(String, Change)]) {
    match changes {
        [(name, Change::Put(key, value))] => {
            db.keyspace(name, KeyspaceOptions::new()).unwrap().put(key, value).unwrap();
        }
        _ => db.write(&encode(db, changes)).unwrap(),
    }
}

fn run(seed: u64, durability: Durability, writes: usize) -> Run {
    let mut rng = Rng::new(seed);
    let config = config(&mut rng, durability);
    run_with(rng, config, seed, writes)
}

fn run_with(mut rng: Rng, config: Config, seed: u64, writes: usize) -> Run {
    let durability = config.durability;
    let storage = MemoryStorage::new(seed);
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let dir = PathBuf::from(*rng.pick(&["db", "./db", "a/b/db", "/a/db"]));
    let story = format!("seed {seed}, {durability}, {}, {}", dir.display(), config.design);
    storage.track_crash_points();
    let mut db = config.create(Arc::clone(&shared), &dir);
    let default = db.keyspace(DEFAULT, KeyspaceOptions::new()).unwrap();
    default.set_merge_operator("append").unwrap();
    drop(default);
    let mut state = State::from([(DEFAULT.to_owned(), Map::new())]);
    let mut states = vec![state.clone()];
    let mut durable = vec![0, 0];
    let mut safe = 0;
    // Trees are flushed one by one, so unlogged writes survive as a prefix of each tree only.
    if durability != Durability::None && rng.percent(60) {
        db.keyspace("other", KeyspaceOptions::new()).unwrap();
        state.insert("other".to_owned(), Map::new());
        // This counts as a write that is durable at once.
        states.push(state.clone());
        safe = 1;
        durable.extend([1, 1]);
        storage.mark(3);
    }
    for number in states.len()..=writes {
        let changes = random_batch(&mut rng, &state);
        write(&db, &changes);
        changes.iter().for_each(|(name, change)| apply(state.get_mut(name).unwrap(), change));
        states.push(state.clone());
        durable.push(safe);
        storage.mark(number as u64 * 2);
        match rng.below(60) {
            0 => {
                db.flush().unwrap();
                safe = number;
            }
            1 if durability != Durability::None => {
                db.sync().unwrap();
                safe = number;
            }
            2 => db.compact_range(..).unwrap(),
            3 => db.wait_for_compactions().unwrap(),
            4 => {
                db.close().unwrap();
                safe = number;
                db = config.options(Arc::clone(&shared)).open(&dir).unwrap();
            }
            5 => db.set_design(small_design(&mut rng)).unwrap(),
            7 => config.clock.advance(Duration::from_millis(700)),
            6 => {
                let target = PathBuf::from(format!("copies/of-{number}"));
                db.checkpoint(&target).unwrap();
                let copy = config.options(Arc::clone(&shared)).open(&target).unwrap();
                terrane_tests::script::check_state(&copy, &state, &story);
                safe = number;
            }
            _ => {}
        }
        durable.push(safe);
        storage.mark(number as u64 * 2 + 1);
    }
    let points = storage.take_crash_points();
    Run { config, dir, states, durable, points, story }
}

fn read_all(db: &Db) -> State {
    let read = |name: String| {
        let keyspace = db.keyspace(&name, KeyspaceOptions::new()).unwrap();
        let map: Map = keyspace
            .iter()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect();
        (name, map)
    };
    db.keyspaces().into_iter().map(read).collect()
}

impl Run {
    /// Opens the image; its state must be one of the script's, and not earlier than `at_least`.
    fn check(&self, image: &MemoryStorage, at_least: usize, at_most: usize, what: &str) -> usize {
        let options = self.config.options(Arc::new(image.clone()));
        let db = options
            .open(&self.dir)
            .unwrap_or_else(|error| panic!("{error}\n{what} in {}", self.story));
        let found = read_all(&db);
        let matching = (at_least..=at_most.min(self.states.len() - 1))
            .rev()
            .find(|&at| self.states[at] == found);
        let earlier = (0..at_least).rev().find(|&at| self.states[at] == found);
        let at = matching.unwrap_or_else(|| {
            panic!("{what}: found the state after {earlier:?} writes, wanted {at_least} to {at_most} in {}", self.story)
        });
        drop(db);
        at
    }

    /// Returns the number of images checked, and how many of them crashed in recovery.
    fn crash_everywhere(&self, rng: &mut Rng) -> (u64, u64) {
        let (mut images, mut in_recovery) = (0, 0);
        for (number, point) in self.points.iter().enumerate() {
            let acked = point.mark() as usize / 2;
            let durable = self.durable[point.mark() as usize];
            let what =
                format!("crash {number} before '{}' after {acked} writes", point.operation());
            let process = match self.config.durability {
                Durability::None => durable,
                _ => acked,
            };
            self.check(&point.image(Crash::Process), process, acked + 1, &what);
            let power = match self.config.durability {
                Durability::Sync | Durability::Interval(_) => acked,
                _ => durable,
            };
            for percent in [0, 100, rng.between(5, 95)] {
                let crash = Crash::Power(Survival { percent, seed: rng.bits() });
                let what = format!("{what}, {crash:?}");
                let image = point.image(crash);
                let at = self.check(&image, power, acked + 1, &what);
                // The recovered database also survives a crash during recovery.
                if number % 11 == 0 {
                    let image = point.image(crash);
                    in_recovery += self.crash_in_recovery(&image, at..=acked + 1, &what, 1, rng);
                }
            }
            images += 4;
        }
        (images + in_recovery, in_recovery)
    }

    /// Crashes again while the database opens, and once more at one point of that opening; recovery
    /// must not lose any contents of the image. Returns the number of crashes.
    fn crash_in_recovery(
        &self,
        image: &MemoryStorage,
        allowed: RangeInclusive<usize>,
        what: &str,
        depth: u32,
        rng: &mut Rng,
    ) -> u64 {
        let (at_least, at_most) = (*allowed.start(), *allowed.end());
        image.track_crash_points();
        self.check(image, at_least, at_most, what);
        let points = image.take_crash_points();
        let again = rng.index(points.len());
        let mut crashes = points.len() as u64;
        for (number, point) in points.iter().enumerate() {
            let crash =
                Crash::Power(Survival { percent: *rng.pick(&[0, 50, 100]), seed: rng.bits() });
            let what = format!("{what}, then before '{}' {crash:?}", point.operation());
            self.check(&point.image(crash), at_least, at_most, &what);
            if number == again && depth < RECOVERY_DEPTH {
                let image = point.image(crash);
                crashes += self.crash_in_recovery(&image, allowed.clone(), &what, depth + 1, rng);
            }
        }
        crashes
    }
}

fn rounds(default: u64) -> u64 {
    std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn crash_all(durability: Durability, seed: u64) {
    let (mut images, mut in_recovery) = (0, 0);
    for round in 0..rounds(2) {
        let run = run(seed + round, durability, 120);
        assert!(run.points.len() > 20, "{}", run.story);
        let counts = run.crash_everywhere(&mut Rng::new(seed + round));
        images += counts.0;
        in_recovery += counts.1;
    }
    print_counts(&[("images", images), ("recovery_images", in_recovery)]);
}

#[test]
fn synced_writes_survive_every_crash() {
    crash_all(Durability::Sync, seed_from_env(1000));
}

#[test]
fn process_writes_survive_the_process_and_leave_a_prefix_without_power() {
    crash_all(Durability::Process, seed_from_env(2000));
}

#[test]
fn unlogged_writes_survive_up_to_the_last_flush() {
    crash_all(Durability::None, seed_from_env(3000));
}

/// Memtables point to a third of the values in the log. A flush keeps these values there, or moves them if the
/// segment has much else.
#[test]
fn values_in_the_log_survive_every_crash() {
    let seed = seed_from_env(5000);
    let rounds = rounds(1);
    for (number, garbage) in (0..rounds).flat_map(|round| [(2 * round, 100), (2 * round + 1, 20)]) {
        for durability in [Durability::Sync, Durability::Process] {
            let mut rng = Rng::new(seed + number);
            let design = format!(
                "1-leveling T=3 L0=2 base=8KiB; memtable=btree; buffer=1KiB; table=1KiB; block=512B; \
                 values=separate(32,garbage={garbage}%)"
            );
            let config = Config {
                design: design.parse().unwrap(),
                delete_persistence: None,
                log_dir: LOG_DIRS[0],
                ..config(&mut rng, durability)
            };
            let run = run_with(rng, config, seed + number, 64);
            run.crash_everywhere(&mut Rng::new(seed + number));
        }
    }
}

#[test]
fn databases_survive_repeated_crashes() {
    const LIVES: u64 = 12;
    let seed = seed_from_env(4000);
    let rounds = rounds(5);
    for round in 0..rounds {
        let mut rng = Rng::new(seed + round);
        let durability = *rng.pick(&[Durability::Sync, Durability::Process]);
        let config = config(&mut rng, durability);
        let mut storage = MemoryStorage::new(round);
        let mut state = State::from([(DEFAULT.to_owned(), Map::new())]);
        let db = config.create(Arc::new(storage.clone()), Path::new(DIR));
        let default = db.keyspace(DEFAULT, KeyspaceOptions::new()).unwrap();
        default.set_merge_operator("append").unwrap();
        drop((db, default));
        for life in 0..LIVES {
            let db = config.options(Arc::new(storage.clone())).open(DIR).unwrap();
            terrane_tests::script::check_state(
                &db,
                &state,
                &format!("seed {} life {life}", seed + round),
            );
            let mut states = vec![state.clone()];
            for _ in 0..rng.below(60) {
                let changes = random_batch(&mut rng, &state);
                write(&db, &changes);
                changes
                    .iter()
                    .for_each(|(name, change)| apply(state.get_mut(name).unwrap(), change));
                states.push(state.clone());
            }
            let crash = if rng.percent(40) {
                Crash::Process
            } else {
                Crash::Power(Survival { percent: rng.below(101), seed: rng.bits() })
            };
            let image = storage.crash_point().image(crash);
            drop(db);
            // The next opening must have every write that this one promised to keep.
            let db = config.options(Arc::new(image.clone())).open(DIR).unwrap();
            let found = read_all(&db);
            let at = states.iter().rposition(|state| *state == found);
            let keeps_all = crash == Crash::Process || durability == Durability::Sync;
            let at = at.unwrap_or_else(|| panic!("seed {} life {life} {crash:?}", seed + round));
            assert!(
                !keeps_all || at == states.len() - 1,
                "seed {} life {life} {crash:?}",
                seed + round
            );
            state = states.swap_remove(at);
            drop(db);
            storage = image;
        }
    }
    print_counts(&[("images", rounds * LIVES)]);
}

/// A replay used to flush a full memtable in the middle of a batch, before the log was durable. A
/// power failure during that opening left only part of the batch in the tree.
#[test]
fn a_batch_is_whole_after_a_loss_of_power_while_its_log_is_replayed() {
    const BATCHES: usize = 4;
    const EACH: usize = 100;
    const BUDGET: u64 = 1 << 20;
    let storage = MemoryStorage::new(1);
    // Memtables rotate at a quarter of the budget: with the smaller one, at each replayed batch.
    let options = |storage: &MemoryStorage, budget| {
        terrane::Options::new()
            .storage(Arc::new(storage.clone()))
            .background(Background::Inline)
            .memory_budget(budget)
            .log_segment_bytes(256 << 10)
    };
    let db = options(&storage, 16 << 20).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for number in 0..BATCHES {
        let mut batch = WriteBatch::new();
        for key in 0..EACH {
            batch.put(format!("{number} {key}"), [b'x'; 3000]);
            batch.put_in(&other, format!("{number} {key}"), [b'x'; 3000]);
        }
        db.write(&batch).unwrap();
    }
    let after_death = storage.crash_point().image(Crash::Process);
    drop((other, db));
    after_death.track_crash_points();
    drop(options(&after_death, BUDGET).open(DIR).unwrap());
    let points = after_death.take_crash_points();
    let mut found_all = 0;
    for point in &points {
        let image = point.image(Crash::Power(Survival { percent: 0, seed: 1 }));
        let db = options(&image, BUDGET).open(DIR).unwrap();
        let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
        let (count, others) = (db.iter().unwrap().count(), other.iter().unwrap().count());
        assert_eq!(count, others, "before {}", point.operation());
        assert!(count.is_multiple_of(EACH), "{count} entries before {}", point.operation());
        found_all += usize::from(count == BATCHES * EACH);
    }
    assert!(found_all > 0 && points.len() > found_all, "{found_all} of {}", points.len());
}
