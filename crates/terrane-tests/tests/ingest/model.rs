//! Random operations and ingests on random designs, compared with a sorted map.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{Db, Ingest, KeyspaceOptions, Snapshot};
use terrane_testkit::{Rng, print_counts, seed_from_env};

use terrane_tests::config::{Config, small_design};
use terrane_tests::model::{Map, State};

const DIR: &str = "db";

pub(crate) fn read(db: &Db) -> State {
    let map = |name: String| {
        let keyspace = db.keyspace(&name, KeyspaceOptions::new()).unwrap();
        let entries = keyspace.iter().unwrap().map(Result::unwrap);
        (name, entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect::<Map>())
    };
    db.keyspaces().into_iter().map(map).collect()
}

pub(crate) fn random_entries(rng: &mut Rng) -> Map {
    let (first, last) = (rng.below(200), rng.below(200));
    let dense = rng.percent(50);
    let keys = first.min(last)..=first.max(last);
    let keys = keys.filter(|_| dense || rng.percent(20)).collect::<Vec<_>>();
    keys.into_iter().map(|key| (key_of(key), value(rng))).collect()
}

fn key_of(number: u64) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let len = if rng.percent(3) { 3000 } else { rng.index(90) };
    vec![rng.bits() as u8; len]
}

fn check(found: &State, expected: &State, story: &str) {
    for (name, map) in expected {
        let found = &found[name];
        let differs = |key: &&Vec<u8>| found.get(*key) != map.get(*key);
        let first = map.keys().chain(found.keys()).find(differs);
        assert!(first.is_none(), "{name} differs at {:?}\n{story}", first.unwrap().escape_ascii());
    }
}

fn check_reads(db: &Db, state: &State, rng: &mut Rng, story: &str) {
    for (name, map) in state {
        let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
        let keys: Vec<_> = (0..20).map(|_| key_of(rng.below(200))).collect();
        let found = keyspace.multi_get(&keys).unwrap();
        for (key, found) in keys.iter().zip(found) {
            let expected = map.get(key).map(|value| &value[..]);
            assert_eq!(found.as_deref(), expected, "multi_get {}\n{story}", key.escape_ascii());
            let found = keyspace.get(key).unwrap();
            assert_eq!(found.as_deref(), expected, "get {}\n{story}", key.escape_ascii());
        }
        let backward = keyspace.iter().unwrap().rev().count();
        assert_eq!(backward, map.len(), "{story}");
    }
}

struct Script {
    config: Config,
    storage: MemoryStorage,
    db: Option<Db>,
    state: State,
    snapshots: Vec<(Snapshot, State)>,
    /// Ingests that are not committed, with their keyspaces and entries.
    open: Vec<(Ingest, String, Map)>,
    ingests: u64,
    story: String,
}

impl Script {
    fn step(&mut self, rng: &mut Rng) {
        let db = self.db.clone().unwrap();
        let name = if rng.percent(70) { "default" } else { "other" }.to_owned();
        let keyspace = db.keyspace(&name, KeyspaceOptions::new()).unwrap();
        let map = self.state.get_mut(&name).unwrap();
        match rng.below(40) {
            0..=11 => {
                let (key, value) = (key_of(rng.below(200)), value(rng));
                keyspace.put(&key, &value).unwrap();
                map.insert(key, value);
            }
            12..=15 => {
                let key = key_of(rng.below(200));
                keyspace.delete(&key).unwrap();
                map.remove(&key);
            }
            16 => {
                let (a, b) = (key_of(rng.below(200)), key_of(rng.below(200)));
                keyspace.delete_range(&a..&b).unwrap();
                map.retain(|key, _| !(a <= *key && *key < b));
            }
            17..=20 => {
                let entries = random_entries(rng);
                keyspace.ingest(&entries).unwrap();
                map.extend(entries);
                self.ingests += 1;
            }
            21 => {
                let (mut ingest, entries) = (keyspace.begin_ingest().unwrap(), random_entries(rng));
                entries.iter().for_each(|(key, value)| ingest.put(key, value).unwrap());
                self.open.push((ingest, name, entries));
            }
            22 | 23 if !self.open.is_empty() => {
                let at = rng.index(self.open.len());
                let (ingest, name, entries) = self.open.swap_remove(at);
                if rng.percent(80) {
                    ingest.commit().unwrap();
                    self.state.get_mut(&name).unwrap().extend(entries);
                    self.ingests += 1;
                }
            }
            24 => self.snapshots.push((db.snapshot(), self.state.clone())),
            25 if !self.snapshots.is_empty() => {
                let at = rng.index(self.snapshots.len());
                let (snapshot, state) = self.snapshots.swap_remove(at);
                for (name, map) in &state {
                    let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
                    let entries = snapshot.iter_in(&keyspace).unwrap().map(Result::unwrap);
                    let found: Map =
                        entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                    assert!(found == *map, "a snapshot of {name} changed\n{}", self.story);
                }
            }
            26 => db.flush().unwrap(),
            27 => keyspace.compact_range(..).unwrap(),
            28 => db.wait_for_compactions().unwrap(),
            29 => keyspace.set_design(small_design(rng)).unwrap(),
            30 => self.config.clock.advance(Duration::from_millis(700)),
            31 => {
                drop((keyspace, db));
                self.reopen(rng);
            }
            32 => check(&read(&db), &self.state, &self.story),
            _ => check_reads(&db, &self.state, rng, &self.story),
        }
    }

    fn reopen(&mut self, rng: &mut Rng) {
        self.snapshots.clear();
        self.open.clear();
        let db = self.db.take().unwrap();
        if rng.percent(50) {
            db.close().unwrap();
        } else {
            drop(db);
        }
        let options = self.config.options(Arc::new(self.storage.clone()));
        let db = options.open(DIR).unwrap_or_else(|error| panic!("{error}\n{}", self.story));
        check(&read(&db), &self.state, &self.story);
        self.db = Some(db);
    }
}

#[test]
fn ingests_agree_with_a_map_on_every_design() {
    let seed = seed_from_env(7000);
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok());
    let mut ingests = 0;
    for seed in seed..seed + rounds.unwrap_or(40) {
        let mut rng = Rng::new(seed);
        let config = Config::random(&mut rng);
        let storage = MemoryStorage::new(seed);
        let story = format!("seed {seed}: {}", config.design);
        let db = config.create(Arc::new(storage.clone()), Path::new(DIR));
        db.keyspace("other", KeyspaceOptions::new()).unwrap();
        let state = ["default", "other"].map(|name| (name.to_owned(), Map::new())).into();
        let (snapshots, open) = (Vec::new(), Vec::new());
        let mut script =
            Script { config, storage, db: Some(db), state, snapshots, open, ingests: 0, story };
        for _ in 0..200 {
            script.step(&mut rng);
        }
        script.reopen(&mut rng);
        ingests += script.ingests;
    }
    print_counts(&[("ingests", ingests)]);
}
