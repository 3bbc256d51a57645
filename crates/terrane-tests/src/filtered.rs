//! Random operations on a keyspace with a compaction filter, and their model.
//!
//! A compaction may apply the filter to a value at any time, so a read finds the value that was put or
//! the filter's result for it. A snapshot always repeats its first answer. After a full compaction
//! without a snapshot, every value is filtered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use terrane::storage::Storage;
use terrane::{
    CompactionFilter, Db, FilterDecision, Iter, Keyspace, KeyspaceOptions, Snapshot, Transaction,
};
use terrane_testkit::Rng;

use crate::config::{Config, small_design};
use crate::model::Map;

/// Removes a third of all values, and marks another third.
#[derive(Debug)]
pub struct Thirds;

const MARK: u8 = b'!';

impl CompactionFilter for Thirds {
    fn name(&self) -> &'static str {
        "thirds"
    }

    fn decide_by_key(&self, key: &[u8]) -> Option<FilterDecision> {
        key.ends_with(b"k").then_some(FilterDecision::Keep)
    }

    fn decide(&self, _key: &[u8], value: &[u8]) -> FilterDecision {
        match value.first().map(|first| first % 3) {
            Some(0) => FilterDecision::Remove,
            Some(1) if !value.ends_with(&[MARK]) => {
                FilterDecision::Replace([value, &[MARK]].concat())
            }
            _ => FilterDecision::Keep,
        }
    }
}

/// Returns the filter's result for a value.
fn filtered(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    match Thirds.decide_by_key(key).unwrap_or_else(|| Thirds.decide(key, value)) {
        FilterDecision::Keep => Some(value.to_vec()),
        FilterDecision::Remove => None,
        FilterDecision::Replace(new) => Some(new),
    }
}

/// A reader, and the answers that it got the first time.
enum Reader {
    Snapshot(Snapshot, Map),
    Transaction(Box<Transaction>, Map),
    /// The model when the iterator was created.
    Iter(Box<Iter>, Map),
}

/// A database whose default keyspace has the filter, and its model.
pub struct FilteredScript {
    rng: Rng,
    config: Config,
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    db: Option<Db>,
    /// The values that were put.
    written: Map,
    readers: Vec<Reader>,
    story: String,
    /// The values that reads found filtered.
    pub found_filtered: u64,
}

fn all(iter: Iter) -> Map {
    iter.map(|entry| entry.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

impl FilteredScript {
    pub fn new(seed: u64, storage: Arc<dyn Storage>, dir: PathBuf) -> Self {
        let mut rng = Rng::new(seed);
        let config = Config::random(&mut rng);
        let story = format!("seed {seed}, {config:?}");
        let options = config.options(Arc::clone(&storage)).compaction_filter(Thirds);
        let db = options.design(config.design.clone()).open(&dir).unwrap();
        let script = Self {
            rng,
            config,
            storage,
            dir,
            db: Some(db),
            written: Map::new(),
            readers: Vec::new(),
            story,
            found_filtered: 0,
        };
        script.keyspace().set_compaction_filter(Some("thirds")).unwrap();
        script
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn keyspace(&self) -> Keyspace {
        self.db().keyspace("default", KeyspaceOptions::new()).unwrap()
    }

    fn key(&mut self) -> Vec<u8> {
        let suffix = if self.rng.percent(10) { "k" } else { "" };
        format!("key {:03}{suffix}", self.rng.below(300)).into_bytes()
    }

    fn put(&mut self) {
        let len = *self.rng.pick(&[1, 10, 60, 400]);
        let (key, value) = (self.key(), vec![self.rng.below(100) as u8; len]);
        self.db().put(&key, &value).unwrap();
        self.written.insert(key, value);
    }

    /// Runs one random operation.
    pub fn step(&mut self) {
        match self.rng.below(100) {
            0..=64 => self.put(),
            65..=71 => {
                let key = self.key();
                self.db().delete(&key).unwrap();
                self.written.remove(&key);
            }
            72..=73 => {
                let (a, b) = (self.key(), self.key());
                let (a, b) = (a.clone().min(b.clone()), a.max(b));
                self.db().delete_range(&a[..]..&b[..]).unwrap();
                self.written.retain(|key, _| *key < a || *key >= b);
            }
            74..=79 => self.read(),
            80..=81 => {
                let found = all(self.db().iter().unwrap());
                self.check(&found);
            }
            82..=87 => self.begin_reader(),
            88..=92 => self.check_reader(),
            93 => self.db().flush().unwrap(),
            94 => self.compact(),
            95 => drop(self.db().run_background_job().unwrap()),
            96 => self.db().wait_for_compactions().unwrap(),
            97 if self.rng.percent(50) => {
                let design = small_design(&mut self.rng);
                self.db().set_design(design).unwrap();
            }
            98 if self.rng.percent(50) => {
                let name = if self.rng.percent(70) { Some("thirds") } else { None };
                self.keyspace().set_compaction_filter(name).unwrap();
            }
            99 if self.rng.percent(30) => self.reopen(),
            _ => {}
        }
    }

    fn read(&mut self) {
        let key = self.key();
        let found = self.db().get(&key).unwrap().map(|value| value.to_vec());
        self.check_value(&key, found.as_deref());
    }

    /// Checks a value that was just read. A filtered value stays filtered.
    fn check_value(&mut self, key: &[u8], found: Option<&[u8]>) {
        let Some(value) = self.written.get(key) else {
            assert_eq!(found, None, "{key:?} in {}", self.story);
            return;
        };
        if found == Some(&value[..]) {
            return;
        }
        let filtered = filtered(key, value);
        assert_eq!(found, filtered.as_deref(), "{key:?} with {value:?} in {}", self.story);
        self.found_filtered += 1;
        match filtered {
            None => self.written.remove(key),
            Some(value) => self.written.insert(key.to_vec(), value),
        };
    }

    /// Checks contents that were just read.
    fn check(&mut self, found: &Map) {
        for key in found.keys() {
            assert!(self.written.contains_key(key), "{key:?} in {}", self.story);
        }
        for key in self.written.keys().cloned().collect::<Vec<_>>() {
            self.check_value(&key, found.get(&key).map(|value| &value[..]));
        }
    }

    fn begin_reader(&mut self) {
        if self.readers.len() >= 6 {
            let at = self.rng.index(self.readers.len());
            self.readers.remove(at);
        }
        let reader = match self.rng.below(3) {
            0 => {
                let snapshot = self.db().snapshot();
                let found = all(snapshot.iter().unwrap());
                Reader::Snapshot(snapshot, found)
            }
            1 => {
                let transaction = self.db().begin();
                let found = transaction.iter().unwrap().map(|entry| entry.unwrap());
                let found = found.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                Reader::Transaction(Box::new(transaction), found)
            }
            _ => Reader::Iter(Box::new(self.db().iter().unwrap()), self.written.clone()),
        };
        if let Reader::Snapshot(_, found) | Reader::Transaction(_, found) = &reader {
            self.check(&found.clone());
        }
        self.readers.push(reader);
    }

    fn check_reader(&mut self) {
        if self.readers.is_empty() {
            return;
        }
        let at = self.rng.index(self.readers.len());
        let key = self.key();
        match self.readers.remove(at) {
            Reader::Snapshot(snapshot, first) => {
                assert_eq!(all(snapshot.iter().unwrap()), first, "{}", self.story);
                let backward: BTreeMap<_, _> = all_backward(snapshot.iter().unwrap());
                assert_eq!(backward, first, "{}", self.story);
                let found = snapshot.get(&key).unwrap();
                assert_eq!(found.as_deref(), first.get(&key).map(|value| &value[..]));
                let many = snapshot.multi_get(first.keys()).unwrap();
                let many = many.iter().map(|value| value.as_deref().unwrap());
                assert!(many.eq(first.values().map(|value| &value[..])), "{}", self.story);
                assert_eq!(snapshot.contains(&key).unwrap(), first.contains_key(&key));
                self.readers.push(Reader::Snapshot(snapshot, first));
            }
            Reader::Transaction(mut transaction, first) => {
                let found = transaction.get(&key).unwrap();
                assert_eq!(found.as_deref(), first.get(&key).map(|value| &value[..]));
                assert_eq!(transaction.iter().unwrap().count(), first.len(), "{}", self.story);
                if self.rng.percent(50) {
                    // A commit fails only if another write intervened; filtering is not a write.
                    transaction.put("other", "value");
                    let _ = transaction.commit();
                    self.db().delete("other").unwrap();
                } else {
                    self.readers.push(Reader::Transaction(transaction, first));
                }
            }
            Reader::Iter(iter, model) => {
                let found = all(*iter);
                assert!(found.keys().all(|key| model.contains_key(key)), "{}", self.story);
                for (key, value) in &model {
                    let found = found.get(key);
                    let is_filtered = found == filtered(key, value).as_ref();
                    assert!(is_filtered || found == Some(value), "{key:?} in {}", self.story);
                }
            }
        }
    }

    fn compact(&mut self) {
        if self.rng.percent(50) {
            let (a, b) = (self.key(), self.key());
            self.db().compact_range(&a[..]..&b[..]).unwrap();
            return;
        }
        self.readers.clear();
        self.db().compact_range(..).unwrap();
        let found = all(self.db().iter().unwrap());
        if self.keyspace().compaction_filter().is_some() {
            for (key, value) in &self.written {
                assert_eq!(found.get(key), filtered(key, value).as_ref(), "{}", self.story);
            }
        }
        self.check(&found);
    }

    fn reopen(&mut self) {
        self.readers.clear();
        let db = self.db.take().unwrap();
        let filter = self.rng.percent(80);
        if self.rng.percent(50) {
            db.close().unwrap();
        } else {
            drop(db);
        }
        let mut options = self.config.options(Arc::clone(&self.storage));
        if filter {
            options = options.compaction_filter(Thirds);
        }
        let db = options.open(&self.dir).unwrap();
        if !filter {
            // An opening without the function filters nothing.
            let before = all(db.iter().unwrap());
            db.compact_range(..).unwrap();
            assert_eq!(all(db.iter().unwrap()), before, "{}", self.story);
            drop(db);
            return self.reopen_with(self.config.options(Arc::clone(&self.storage)));
        }
        self.db = Some(db);
        let found = all(self.db().iter().unwrap());
        self.check(&found);
    }

    fn reopen_with(&mut self, options: terrane::Options) {
        self.db = Some(options.compaction_filter(Thirds).open(&self.dir).unwrap());
        let found = all(self.db().iter().unwrap());
        self.check(&found);
    }
}

fn all_backward(iter: Iter) -> Map {
    let entries = iter.rev().map(|entry| entry.unwrap());
    entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}
