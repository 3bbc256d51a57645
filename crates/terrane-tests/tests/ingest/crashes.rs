//! A crash at each operation of a script with ingests.
//!
//! The state after the crash is a prefix of the script's writes. A committed ingest is durable, and so
//! is everything before it, whatever the durability of other writes.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Crash, CrashPoint, MemoryStorage, Storage, Survival};
use terrane::{Background, Durability, KeyspaceOptions};
use terrane_testkit::{Rng, print_counts, seed_from_env};

use crate::model::{random_entries, read};
use terrane_tests::config::Config;
use terrane_tests::model::{Map, State};

const DIR: &str = "db";

fn config(rng: &mut Rng) -> Config {
    let mut config = Config::random(rng);
    config.background = Background::Inline;
    config.durability = *rng.pick(&[Durability::Process, Durability::Sync]);
    (config.memory_budget, config.log_segment_bytes) = (1 << 20, 64 << 10);
    config
}

/// A script that ran.
struct Script {
    config: Config,
    /// The state before the first write, and after each write.
    states: Vec<State>,
    /// How many writes are durable, by mark.
    durable: Vec<usize>,
    points: Vec<CrashPoint>,
    story: String,
}

fn run(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let config = config(&mut rng);
    let storage = MemoryStorage::new(seed);
    let story = format!("seed {seed}, {}, {}", config.durability, config.design);
    storage.track_crash_points();
    let db = config.create(Arc::new(storage.clone()), Path::new(DIR));
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    let mut state: State = ["default", "other"].map(|name| (name.to_owned(), Map::new())).into();
    let mut states = vec![state.clone()];
    let (mut durable, mut safe) = (vec![0, 0], 0);
    for write in 1..=60_usize {
        let (name, keyspace) = match rng.percent(60) {
            true => ("default", db.keyspace("default", KeyspaceOptions::new()).unwrap()),
            false => ("other", other.clone()),
        };
        let map = state.get_mut(name).unwrap();
        match rng.below(10) {
            0..=2 => {
                let entries = random_entries(&mut rng);
                keyspace.ingest(&entries).unwrap();
                safe = if entries.is_empty() { safe } else { write };
                map.extend(entries);
            }
            3 => {
                let key = format!("{:03}", rng.below(200)).into_bytes();
                keyspace.delete(&key).unwrap();
                map.remove(&key);
            }
            _ => {
                let key = format!("{:03}", rng.below(200)).into_bytes();
                keyspace.put(&key, [write as u8; 50]).unwrap();
                map.insert(key, vec![write as u8; 50]);
            }
        }
        states.push(state.clone());
        if config.durability == Durability::Sync {
            safe = write;
        }
        durable.push(safe);
        storage.mark(write as u64 * 2);
        match rng.below(25) {
            0 => db.flush().unwrap(),
            1 => keyspace.compact_range(..).unwrap(),
            2 => db.wait_for_compactions().unwrap(),
            _ => {}
        }
        durable.push(safe);
        storage.mark(write as u64 * 2 + 1);
    }
    let points = storage.take_crash_points();
    Script { config, states, durable, points, story }
}

/// Checks all crashes of a script. Returns the number of images, and how many of them have files of
/// an uncommitted ingest.
fn crash_everywhere(seed: u64) -> (u64, u64) {
    let Script { config, states, durable, points, story } = run(seed);
    let mut rng = Rng::new(seed);
    let (mut images, mut unfinished) = (0, 0);
    for (number, point) in points.iter().enumerate() {
        let acked = point.mark() as usize / 2;
        let safe = durable[point.mark() as usize];
        let power =
            [0, 100, rng.between(5, 95)].map(|percent| Survival { percent, seed: rng.bits() });
        for crash in [Crash::Process].into_iter().chain(power.map(Crash::Power)) {
            let at_least = if crash == Crash::Process { acked } else { safe };
            let what = format!("{crash:?} {number} before '{}', {acked} done", point.operation());
            let image = point.image(crash);
            let is_new =
                image.list(Path::new(DIR)).is_ok_and(|names| names.contains(&"CURRENT".into()));
            let before = if is_new { tables(&image) } else { 0 };
            let opened = config.options(Arc::new(image.clone())).open(DIR);
            let db = opened.unwrap_or_else(|error| panic!("{error}\n{what}\n{story}"));
            // At the first crash points, the keyspace does not exist yet.
            db.keyspace("other", KeyspaceOptions::new()).unwrap();
            let found = read(&db);
            let allowed = at_least..=(acked + 1).min(states.len() - 1);
            let is_allowed = allowed.clone().any(|at| states[at] == found);
            let at = states.iter().rposition(|state| *state == found);
            assert!(
                is_allowed,
                "found the state after {at:?} writes, not {allowed:?}\n{what}\n{story}"
            );
            // The opening has removed the files that no tree needs.
            let in_trees: usize = db
                .keyspaces()
                .iter()
                .map(|name| db.keyspace(name, KeyspaceOptions::new()).unwrap())
                .map(|keyspace| keyspace.tree().shape.tables().count())
                .sum();
            assert_eq!(tables(&image), in_trees, "{what}\n{story}");
            unfinished += u64::from(before > in_trees);
            images += 1;
        }
    }
    (images, unfinished)
}

fn tables(image: &MemoryStorage) -> usize {
    let names = image.list(Path::new(DIR)).unwrap();
    names.iter().filter(|name| name.ends_with(".sst")).count()
}

#[test]
fn a_crash_leaves_all_of_an_ingest_or_nothing() {
    let seed = seed_from_env(7100);
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok());
    let (mut images, mut unfinished) = (0, 0);
    for seed in seed..seed + rounds.unwrap_or(2) {
        let counts = crash_everywhere(seed);
        images += counts.0;
        unfinished += counts.1;
    }
    print_counts(&[("images", images), ("unfinished", unfinished)]);
    assert!(unfinished > 0, "some images have files of unfinished ingests");
}
