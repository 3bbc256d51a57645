//! Random operations on a database and its model.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::Storage;
use terrane::{
    Clock, Db, Error, ErrorKind, Ingest, Iter, Keyspace, KeyspaceOptions, Options, Snapshot,
    WriteBatch, WriteOptions,
};
use terrane_testkit::{HangGuard, Rng, print_counts};

use crate::config::{Config, small_design};
use crate::model::{Change, Map, State, apply, range, within};

/// How often each kind of operation is chosen.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    pub writes: u64,
    pub range_deletes: u64,
    pub ingests: u64,
    pub reads: u64,
    pub scans: u64,
    pub snapshots: u64,
    pub maintenance: u64,
    pub reopens: u64,
    pub keyspaces: u64,
}

impl Weights {
    pub const BALANCED: Weights = Weights {
        writes: 60,
        range_deletes: 2,
        ingests: 2,
        reads: 15,
        scans: 8,
        snapshots: 6,
        maintenance: 5,
        reopens: 1,
        keyspaces: 2,
    };

    /// Weights that delete ranges often.
    pub const RANGES: Weights = Weights { writes: 40, range_deletes: 20, ..Self::BALANCED };
}

/// The entries that an iterator should return, in order.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Counts of a script's work, for the summary of a soak.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub operations: u64,
    /// Design changes while the database is open.
    pub switches: u64,
    pub reopens: u64,
    pub checkpoints: u64,
    /// Committed ingests that had entries.
    pub ingests: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.operations += other.operations;
        self.switches += other.switches;
        self.reopens += other.reopens;
        self.checkpoints += other.checkpoints;
        self.ingests += other.ingests;
    }

    pub fn print(&self) {
        print_counts(&[
            ("operations", self.operations),
            ("switches", self.switches),
            ("reopens", self.reopens),
            ("checkpoints", self.checkpoints),
            ("ingests", self.ingests),
        ]);
    }
}

/// When a value expires, and the operands above it.
type ExpiryAndOperands = (u64, Option<Vec<u8>>);

/// The entries of an ingest, with the times at which values expire.
type Ingested = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// A database, its model, and the settings of both.
pub struct Script {
    pub rng: Rng,
    pub config: Config,
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    db: Option<Db>,
    pub state: State,
    snapshots: Vec<(Snapshot, State)>,
    iterators: Vec<(Iter, Entries)>,
    /// Ingests that are not committed, with their keyspaces.
    ingests: Vec<(Ingest, String, Ingested)>,
    /// When values expire, and the operands above them, by keyspace and key.
    expiries: BTreeMap<(String, Vec<u8>), ExpiryAndOperands>,
    key_space: u64,
    pub counts: Counts,
    pub story: String,
}

pub const DEFAULT: &str = "default";

impl Script {
    pub fn new(seed: u64, config: Config, storage: Arc<dyn Storage>, dir: PathBuf) -> Self {
        let db = config.create(Arc::clone(&storage), &dir);
        let default = db.keyspace(DEFAULT, KeyspaceOptions::new()).unwrap();
        default.set_merge_operator("append").unwrap();
        let story = format!("seed {seed}, {config:?}");
        let mut rng = Rng::new(seed);
        let key_space = *rng.pick(&[20, 200, 2000]);
        Self {
            rng,
            config,
            storage,
            dir,
            db: Some(db),
            state: BTreeMap::from([(DEFAULT.to_owned(), Map::new())]),
            snapshots: Vec::new(),
            iterators: Vec::new(),
            ingests: Vec::new(),
            expiries: BTreeMap::new(),
            key_space,
            counts: Counts::default(),
            story,
        }
    }

    pub fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    pub fn key(&mut self) -> Vec<u8> {
        match self.rng.below(100) {
            0 => Vec::new(),
            1 => vec![0xff; self.rng.index(4)],
            2 => vec![b'x'; 300],
            3..=30 => format!("common/prefix/{}", self.rng.below(self.key_space)).into_bytes(),
            _ => self.rng.below(self.key_space).to_be_bytes()[6..].to_vec(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.below(300) {
            0 => 40_000,
            1..=10 => 1000,
            11..=20 => 0,
            _ => self.rng.index(60),
        };
        let byte = self.rng.bits() as u8;
        (0..len).map(|at| byte.wrapping_add(at as u8)).collect()
    }

    fn bounds(&mut self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let (mut a, mut b) = (self.key(), self.key());
        if a > b && self.rng.percent(90) {
            std::mem::swap(&mut a, &mut b);
        }
        let start = match self.rng.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(a),
            _ => Bound::Included(a),
        };
        let end = match self.rng.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Included(b),
            _ => Bound::Excluded(b),
        };
        (start, end)
    }

    fn narrow_bounds(&mut self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let key = self.key();
        let mut end = key.clone();
        match end.last_mut() {
            Some(last) => *last = last.saturating_add(self.rng.below(20) as u8),
            None => end.push(3),
        }
        (Bound::Included(key), Bound::Excluded(end))
    }

    fn any_keyspace(&mut self) -> String {
        let names: Vec<&String> = self.state.keys().collect();
        (*self.rng.pick(&names)).clone()
    }

    fn keyspace(&self, name: &str) -> Keyspace {
        self.db().keyspace(name, KeyspaceOptions::new()).unwrap()
    }

    /// Runs one random operation.
    pub fn step(&mut self, weights: &Weights) {
        let Weights {
            writes,
            range_deletes,
            ingests,
            reads,
            scans,
            snapshots,
            maintenance,
            reopens,
            keyspaces,
        } = *weights;
        self.counts.operations += 1;
        let kinds = [
            writes,
            range_deletes,
            reads,
            scans,
            snapshots,
            maintenance,
            reopens,
            ingests,
            keyspaces,
        ];
        let mut at = self.rng.below(kinds.iter().sum());
        let kind = kinds.iter().position(|&weight| {
            let hit = at < weight;
            at = at.wrapping_sub(weight);
            hit
        });
        match kind.unwrap() {
            0 => self.write(),
            1 => self.delete_range(),
            2 => self.read(),
            3 => self.scan(),
            4 => self.snapshot(),
            5 => self.maintain(),
            6 => self.reopen(),
            7 => self.ingest(),
            _ => self.change_keyspaces(),
        }
    }

    fn write(&mut self) {
        if self.rng.percent(15) {
            return self.batch();
        }
        let name = self.any_keyspace();
        let key = self.key();
        let keyspace = self.keyspace(&name);
        let change = if self.rng.percent(25) {
            Change::Delete(key)
        } else if self.rng.percent(15) {
            Change::Merge(key, self.value())
        } else if self.rng.percent(15) {
            Change::PutFor(key, self.value(), self.ttl())
        } else {
            Change::Put(key, self.value())
        };
        match &change {
            Change::Delete(key) => keyspace.delete(key).unwrap(),
            Change::PutFor(key, value, ttl) => {
                keyspace.put_with(key, value, WriteOptions::new().ttl(*ttl)).unwrap();
            }
            Change::Merge(key, operand) => keyspace.merge(key, operand).unwrap(),
            Change::Put(key, value) => keyspace.put(key, value).unwrap(),
            Change::DeleteRange(..) => unreachable!(),
        }
        self.apply(&name, &change);
    }

    fn ttl(&mut self) -> Duration {
        match self.rng.below(10) {
            0 => Duration::MAX,
            1 => Duration::ZERO,
            _ => Duration::from_millis(self.rng.below(6000)),
        }
    }

    fn now(&self) -> u64 {
        self.config.clock.now_micros()
    }

    /// Applies a change to the model.
    pub fn apply(&mut self, name: &str, change: &Change) {
        apply(self.state.get_mut(name).unwrap(), change);
        let of = |key: &Vec<u8>| (name.to_owned(), key.clone());
        match change {
            Change::Put(key, _) | Change::Delete(key) => drop(self.expiries.remove(&of(key))),
            Change::PutFor(key, _, ttl) => {
                let ttl = u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX);
                let expires_at = self.now().saturating_add(ttl);
                self.expiries.insert(of(key), (expires_at, None));
            }
            // An operand outlives the value below it.
            Change::Merge(key, operand) => {
                if let Some((_, above)) = self.expiries.get_mut(&of(key)) {
                    above.get_or_insert_default().extend(operand);
                }
            }
            Change::DeleteRange(start, end) => {
                self.expiries
                    .retain(|(keyspace, key), _| keyspace != name || !within(key, start, end));
            }
        }
        self.expire();
    }

    /// Removes the values from the model that have expired.
    fn expire(&mut self) {
        let now = self.now();
        let Self { expiries, state, .. } = self;
        expiries.retain(|(name, key), (expires_at, above)| {
            if *expires_at <= now {
                let map = state.get_mut(name).unwrap();
                match above.take() {
                    Some(above) => map.insert(key.clone(), above),
                    None => map.remove(key),
                };
            }
            *expires_at > now
        });
    }

    fn advance(&mut self) {
        self.config.clock.advance(Duration::from_millis(self.rng.below(3000)));
        self.expire();
    }

    pub fn random_changes(&mut self) -> Vec<(String, Change)> {
        let count = if self.rng.percent(5) { 300 } else { self.rng.index(8) };
        let mut changes = Vec::new();
        for _ in 0..count {
            let name = self.any_keyspace();
            let change = match self.rng.below(10) {
                0..=4 => Change::Put(self.key(), self.value()),
                5 => Change::Merge(self.key(), self.value()),
                6 => Change::PutFor(self.key(), self.value(), self.ttl()),
                7..=8 => Change::Delete(self.key()),
                _ => {
                    let (start, end) = self.narrow_bounds();
                    Change::DeleteRange(start, end)
                }
            };
            changes.push((name, change));
        }
        changes
    }

    fn batch(&mut self) {
        let changes = self.random_changes();
        let batch = self.encode(&changes);
        self.db().write(&batch).unwrap();
        for (name, change) in &changes {
            self.apply(name, change);
        }
    }

    pub fn encode(&self, changes: &[(String, Change)]) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for (name, change) in changes {
            let keyspace = self.keyspace(name);
            match change {
                Change::Put(key, value) => batch.put_in(&keyspace, key, value),
                Change::Merge(key, operand) => batch.merge_in(&keyspace, key, operand),
                Change::PutFor(key, value, ttl) => {
                    batch.put_with_ttl_in(&keyspace, key, value, *ttl)
                }
                Change::Delete(key) => batch.delete_in(&keyspace, key),
                Change::DeleteRange(start, end) => {
                    batch.delete_range_in(&keyspace, (start.clone(), end.clone()))
                }
            };
        }
        batch
    }

    fn delete_range(&mut self) {
        let name = self.any_keyspace();
        let (start, end) = if self.rng.percent(80) { self.narrow_bounds() } else { self.bounds() };
        self.keyspace(&name).delete_range((start.clone(), end.clone())).unwrap();
        self.apply(&name, &Change::DeleteRange(start, end));
    }

    /// Begins an ingest, and commits or drops one that has begun.
    fn ingest(&mut self) {
        if self.ingests.len() < 3 {
            let name = self.any_keyspace();
            let mut ingest = self.keyspace(&name).begin_ingest().unwrap();
            let entries = self.random_entries();
            for (key, (value, expires_at)) in &entries {
                match expires_at {
                    Some(expires_at) => ingest.put_with_expiry(key, value, *expires_at).unwrap(),
                    None => ingest.put(key, value).unwrap(),
                }
            }
            self.ingests.push((ingest, name, entries));
        }
        if self.rng.percent(30) {
            return;
        }
        let (ingest, name, entries) = self.ingests.swap_remove(self.rng.index(self.ingests.len()));
        if self.rng.percent(10) {
            return;
        }
        ingest.commit().unwrap();
        self.counts.ingests += u64::from(!entries.is_empty());
        for (key, (value, expires_at)) in entries {
            self.state.get_mut(&name).unwrap().insert(key.clone(), value);
            match expires_at {
                Some(expires_at) => {
                    drop(self.expiries.insert((name.clone(), key), (expires_at, None)));
                }
                None => drop(self.expiries.remove(&(name.clone(), key))),
            }
        }
        self.expire();
    }

    fn random_entries(&mut self) -> Ingested {
        let count = if self.rng.percent(5) { 300 } else { self.rng.index(30) };
        let mut entries = Ingested::new();
        for _ in 0..count {
            let expires_at = self.rng.percent(15).then(|| self.now() + self.rng.below(6_000_000));
            entries.insert(self.key(), (self.value(), expires_at));
        }
        entries
    }

    fn read(&mut self) {
        let name = self.any_keyspace();
        let keyspace = self.keyspace(&name);
        if self.rng.percent(80) {
            let key = self.key();
            let expected = self.state[&name].get(&key);
            let found = keyspace.get(&key).unwrap();
            assert_eq!(
                found.as_deref(),
                expected.map(|value| &value[..]),
                "{key:?} in {}",
                self.story
            );
            assert_eq!(keyspace.contains(&key).unwrap(), expected.is_some(), "{}", self.story);
        } else {
            let keys: Vec<Vec<u8>> = (0..self.rng.index(40)).map(|_| self.key()).collect();
            let found = keyspace.multi_get(&keys).unwrap();
            for (key, found) in keys.iter().zip(found) {
                let expected = self.state[&name].get(key);
                assert_eq!(
                    found.as_deref(),
                    expected.map(|value| &value[..]),
                    "{key:?} in {}",
                    self.story
                );
            }
        }
    }

    fn scan(&mut self) {
        let name = self.any_keyspace();
        let (start, end) = self.bounds();
        let expected = range(&self.state[&name], &start, &end);
        let iter = self.keyspace(&name).range((start, end)).unwrap();
        if self.rng.percent(20) {
            // The iterator is kept, so that it can be walked after the tree has changed.
            self.iterators.push((iter, expected));
            if self.iterators.len() > 5 {
                let (iter, expected) = self.iterators.remove(0);
                self.walk(iter, &expected);
            }
        } else {
            self.walk(iter, &expected);
        }
        if self.rng.percent(20) {
            let prefix = {
                let mut key = self.key();
                key.truncate(self.rng.index(3));
                key
            };
            let expected: Vec<_> = self.state[&name]
                .iter()
                .filter(|(key, _)| key.starts_with(&prefix))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let iter = self.keyspace(&name).prefix(&prefix).unwrap();
            self.walk(iter, &expected);
        }
    }

    /// Walks an iterator from its ends and by seeks, and compares.
    fn walk(&mut self, mut iter: Iter, expected: &[(Vec<u8>, Vec<u8>)]) {
        let story = &self.story;
        if self.rng.percent(25) {
            return self.walk_by_seeks(iter, expected);
        }
        let mut rest = expected;
        let style = self.rng.below(3);
        loop {
            let from_front = match style {
                0 => true,
                1 => false,
                _ => self.rng.percent(50),
            };
            let found = if from_front { iter.next() } else { iter.next_back() };
            let wanted = if from_front { rest.split_first() } else { rest.split_last() };
            let found = found.map(|entry| entry.unwrap());
            let found = found.map(|(key, value)| (key.to_vec(), value.to_vec()));
            assert_eq!(
                found.as_ref(),
                wanted.map(|(entry, _)| entry),
                "from front: {from_front} in {story}"
            );
            match wanted {
                Some((_, remaining)) => rest = remaining,
                None => break,
            }
        }
        assert!(iter.next().is_none() && iter.next_back().is_none(), "{story}");
    }

    fn walk_by_seeks(&mut self, mut iter: Iter, expected: &[(Vec<u8>, Vec<u8>)]) {
        for _ in 0..5 {
            let key = self.key();
            let at = expected.partition_point(|(found, _)| *found < key);
            iter.seek(&key).unwrap();
            for wanted in expected[at..].iter().take(4) {
                assert!(iter.advance().unwrap(), "{}", self.story);
                assert_eq!(
                    (iter.key(), iter.value()),
                    (&wanted.0[..], &wanted.1[..]),
                    "{}",
                    self.story
                );
            }
            if expected.len() - at <= 4 {
                assert!(!iter.advance().unwrap() || expected.len() - at > 4, "{}", self.story);
            }
        }
    }

    fn snapshot(&mut self) {
        match self.rng.below(4) {
            0 if self.snapshots.len() < 6 => {
                self.snapshots.push((self.db().snapshot(), self.state.clone()));
            }
            1 if !self.snapshots.is_empty() => {
                let at = self.rng.index(self.snapshots.len());
                self.snapshots.remove(at);
            }
            _ => self.read_snapshot(),
        }
    }

    fn read_snapshot(&mut self) {
        if self.snapshots.is_empty() {
            return;
        }
        let at = self.rng.index(self.snapshots.len());
        let (snapshot, state) = self.snapshots[at].clone();
        for _ in 0..5 {
            let key = self.key();
            let found = snapshot.get(&key).unwrap();
            assert_eq!(
                found.as_deref(),
                state[DEFAULT].get(&key).map(|value| &value[..]),
                "{}",
                self.story
            );
        }
        let name = self.any_keyspace();
        // The snapshot's model has no keyspace that was created later. A keyspace that was dropped
        // and created again is a different keyspace.
        let Some(map) = state.get(&name) else { return };
        if name != DEFAULT {
            return;
        }
        let (start, end) = self.bounds();
        let expected = range(map, &start, &end);
        let iter = snapshot.range_in(&self.keyspace(&name), (start, end)).unwrap();
        self.walk(iter, &expected);
    }

    fn maintain(&mut self) {
        match self.rng.below(14) {
            0..=1 => self.db().flush().unwrap(),
            10 => self.read_only(),
            9 => self.checkpoint(),
            8 | 11..=13 => self.advance(),
            2 => self.db().wait_for_compactions().unwrap(),
            3..=4 => {
                let name = self.any_keyspace();
                let bounds = self.bounds();
                self.keyspace(&name).compact_range(bounds).unwrap();
            }
            5 => drop(self.db().run_background_job().unwrap()),
            6 => {
                let name = self.any_keyspace();
                let design = small_design(&mut self.rng);
                self.keyspace(&name).set_design(design).unwrap();
                self.counts.switches += 1;
            }
            _ => self.check_report(),
        }
    }

    /// Opens the database a second time, for reading only, and compares it with the model.
    fn read_only(&mut self) {
        let mut config = Config::random(&mut self.rng);
        config.clock = Arc::clone(&self.config.clock);
        let options = config.options(Arc::clone(&self.storage));
        let reader = open_read_only(&options, &self.dir, &self.story);
        check_state(&reader, &self.state, &format!("a reader of {}", self.story));
    }

    /// Makes a checkpoint, and compares it with the model.
    fn checkpoint(&mut self) {
        self.counts.checkpoints += 1;
        let target = self.dir.with_extension(format!("checkpoint-{}", self.counts.checkpoints));
        self.db().checkpoint(&target).unwrap();
        let copy = self.config.options(Arc::clone(&self.storage)).open(&target).unwrap();
        check_state(&copy, &self.state, &format!("checkpoint of {}", self.story));
        drop(copy);
        for name in self.storage.list(&target).unwrap() {
            self.storage.remove(&target.join(name)).unwrap();
        }
    }

    fn check_report(&mut self) {
        let tree = self.db().tree();
        tree.shape.check().unwrap();
        assert!(!tree.to_string().is_empty() && !self.db().stats().to_string().is_empty());
        let memory = self.db().stats().memory;
        let allowed = self.config.memory_budget * 2 + (8 << 20);
        assert!(memory.total_bytes() < allowed, "{memory:?} in {}", self.story);
    }

    pub fn reopen(&mut self) {
        self.counts.reopens += 1;
        self.snapshots.clear();
        self.iterators.clear();
        self.ingests.clear();
        let db = self.db.take().unwrap();
        if self.rng.percent(50) {
            db.close().unwrap();
        } else {
            drop(db);
        }
        if self.rng.percent(50) {
            // Opens the same files under other settings.
            let design = self.config.design.clone();
            let clock = Arc::clone(&self.config.clock);
            self.config = Config { design, clock, ..Config::random(&mut self.rng) };
        }
        self.db = Some(self.config.options(Arc::clone(&self.storage)).open(&self.dir).unwrap());
        self.check_everything();
    }

    fn change_keyspaces(&mut self) {
        let name = format!("k{}", self.rng.below(4));
        if self.state.contains_key(&name) && self.rng.percent(40) {
            assert!(self.db().drop_keyspace(&name).unwrap());
            self.state.remove(&name);
            self.expiries.retain(|(keyspace, _), _| *keyspace != name);
            self.ingests.retain(|(_, keyspace, _)| *keyspace != name);
        } else if self.state.len() < 4 {
            let mut options = KeyspaceOptions::new();
            if self.rng.percent(50) && !self.state.contains_key(&name) {
                options = options.design(small_design(&mut self.rng));
            }
            let keyspace = self.db().keyspace(&name, options).unwrap();
            keyspace.set_merge_operator("append").unwrap();
            self.state.entry(name).or_default();
        }
        let mut names = self.db().keyspaces();
        names.sort();
        assert_eq!(names, self.state.keys().cloned().collect::<Vec<_>>(), "{}", self.story);
    }

    /// Compares the whole database with the whole model.
    pub fn check_everything(&self) {
        check_state(self.db(), &self.state, &self.story);
        check_feed(self.db(), self.counts.ingests, &self.story);
    }

    /// Closes the database, and returns the arguments for reopening it.
    pub fn finish(mut self) -> (Arc<dyn Storage>, PathBuf, State) {
        self.check_everything();
        self.snapshots.clear();
        self.iterators.clear();
        self.ingests.clear();
        self.db.take().unwrap().close().unwrap();
        (self.storage, self.dir, self.state)
    }
}

/// Opens a database for reading while others use it. Retries while a writer is too busy.
pub fn open_read_only(options: &Options, dir: &Path, story: &str) -> Db {
    let guard = HangGuard::new();
    loop {
        match options.open_read_only(dir) {
            Ok(db) => return db,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error} in {story}"),
        }
        guard.check(|| format!("the writer stays too busy in {story}"));
    }
}

/// Checks that the change feed, if the log is kept for it, has all batches from some position up to
/// the last one. Only ingests are not in the log.
fn check_feed(db: &Db, ingests: u64, story: &str) {
    let Ok(mut changes) = db.changes(0) else { return };
    let mut first = changes.next();
    if let Some(Err(Error::ChangesGone(gone))) = &first {
        changes = db.changes(gone.oldest).unwrap();
        first = changes.next();
    }
    let (mut position, mut unlogged) = (None, 0);
    for batch in first.into_iter().chain(&mut changes) {
        let batch = batch.unwrap_or_else(|error| panic!("{error} in {story}"));
        assert_eq!(position.unwrap_or(batch.first() - 1) + 1, batch.first(), "{story}");
        let is_unlogged = batch.iter().any(|change| change == terrane::Change::NotLogged);
        unlogged += u64::from(is_unlogged);
        position = Some(batch.position());
    }
    assert!(unlogged <= ingests, "{unlogged} batches are not logged in {story}");
    assert_eq!(changes.position(), db.snapshot().sequence_number(), "{story}");
}

/// Compares a database with a model, in both directions.
pub fn check_state(db: &Db, state: &State, story: &str) {
    let mut names = db.keyspaces();
    names.sort();
    assert_eq!(names, state.keys().cloned().collect::<Vec<_>>(), "{story}");
    for (name, map) in state {
        let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
        let found: Vec<_> = keyspace
            .iter()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect();
        let expected: Vec<_> =
            map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(found.len(), expected.len(), "{name} in {story}");
        assert_eq!(found, expected, "{name} in {story}");
        let mut backward: Vec<_> =
            keyspace.iter().unwrap().rev().map(|entry| entry.unwrap().0.to_vec()).collect();
        backward.reverse();
        assert!(backward.iter().eq(map.keys()), "{name} backward in {story}");
        for (key, value) in map.iter().step_by(7) {
            assert_eq!(
                keyspace.get(key).unwrap().as_deref(),
                Some(&value[..]),
                "{name} in {story}"
            );
        }
    }
}
