//! Random operations and options: the feed against the operations, and a follower against a model.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::MemoryStorage;
use terrane::{Db, KeepChanges, KeyspaceOptions, Options, WriteBatch};
use terrane_testkit::{Rng, print_counts, seed_from_env};

use crate::{all, follow, position};
use terrane_tests::config::Config;

const DIR: &str = "db";
const KEYSPACES: [&str; 2] = ["default", "other"];

/// Random options of a database that keeps its changes.
pub(crate) fn config(rng: &mut Rng) -> Config {
    let mut config = Config::random(rng);
    config.delete_persistence = None;
    config
}

pub(crate) fn options(config: &Config, storage: &MemoryStorage) -> Options {
    config.options(Arc::new(storage.clone())).keep_changes(KeepChanges::bytes(1 << 30))
}

/// Returns a random write, and the texts of its changes.
pub(crate) fn random_write(rng: &mut Rng, db: &Db, number: usize) -> (WriteBatch, Vec<String>) {
    let (mut batch, mut texts) = (WriteBatch::new(), Vec::new());
    // Some batches are longer than a window of the log, and some values longer than a segment.
    let len = if rng.percent(3) { 3000 } else { rng.between(1, 5) };
    for at in 0..len {
        let name = *rng.pick(&KEYSPACES);
        let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
        let key = format!("{:03}", rng.below(100));
        match rng.below(10) {
            0 => {
                batch.delete_in(&keyspace, &key);
                texts.push(format!("{name}: delete {key}"));
            }
            1 => {
                let end = format!("{key}5");
                batch.delete_range_in(&keyspace, &key[..]..&end[..]);
                texts.push(format!("{name}: delete {key}..{end}"));
            }
            _ => {
                let is_long = len < 10 && rng.percent(2);
                let bytes = if is_long { 100_000 } else { rng.index(60) };
                let value = format!("{number}.{at} {}", "v".repeat(bytes));
                batch.put_in(&keyspace, &key, &value);
                texts.push(format!("{name}: {key} = {value}"));
            }
        }
    }
    (batch, texts)
}

/// Returns all entries but the position of a follower.
fn entries(db: &Db) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    for name in KEYSPACES {
        let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
        let all = keyspace.iter().unwrap().map(|entry| entry.unwrap());
        let all = all.filter(|(key, _)| key[..] != *crate::POSITION);
        found.extend(all.map(|(key, value)| (name.to_owned(), key.to_vec(), value.to_vec())));
    }
    found
}

fn run(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let (config, other) = (config(&mut rng), config(&mut rng));
    let story = format!("seed {seed}, {}, {}", config.durability, config.design);
    let [storage, following] = [1, 2].map(|number| MemoryStorage::new(seed * 2 + number));
    let create = |config: &Config, storage: &MemoryStorage| {
        let options = options(config, storage).design(config.design.clone());
        options.open(Path::new(DIR)).unwrap()
    };
    let (mut db, mut follower) = (create(&config, &storage), create(&other, &following));
    let (mut written, mut next) = (Vec::new(), 1);
    let mut changes = None;
    for number in 0..150 {
        let (batch, texts) = random_write(&mut rng, &db, number);
        db.write(&batch).unwrap();
        written.push((next, next + texts.len() as u64 - 1, texts.join(", ")));
        next += texts.len() as u64;
        match rng.below(40) {
            0 => db.flush().unwrap(),
            1 => {
                changes = None;
                db.close().unwrap();
                db = options(&config, &storage).open(DIR).unwrap();
            }
            2 => {
                changes = None;
                drop(db);
                db = options(&config, &storage).open(DIR).unwrap();
            }
            3 => {
                drop(follower);
                follower = options(&other, &following).open(DIR).unwrap();
                changes = None;
            }
            4..=12 => {
                let feed = changes.take();
                let mut feed = feed.unwrap_or_else(|| db.changes(position(&follower)).unwrap());
                if rng.percent(30) {
                    feed = feed.include_unsynced();
                }
                follow(&mut feed, &follower).unwrap();
                assert_eq!(position(&follower), next - 1, "{story}");
                changes = Some(feed);
            }
            _ => {}
        }
    }
    assert_eq!(all(&mut db.changes(0).unwrap()), written, "{story}");
    follow(&mut db.changes(position(&follower)).unwrap(), &follower).unwrap();
    assert_eq!(entries(&db), entries(&follower), "{story}");
    written.len() as u64
}

#[test]
fn a_follower_has_what_its_leader_has() {
    let seed = seed_from_env(4100);
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok());
    let batches = (seed..seed + rounds.unwrap_or(10)).map(run).sum();
    print_counts(&[("batches", batches)]);
}
