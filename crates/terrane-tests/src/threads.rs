//! Threads that own parts of the keys of one database, and a thread that disturbs them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use terrane::storage::Storage;
use terrane::{
    Clock, Db, Durability, ErrorKind, Event, IoBudget, Iter, Keyspace, KeyspaceOptions, Options,
    Snapshot, WriteBatch, WriteOptions,
};
use terrane_testkit::{HangGuard, Rng};

use crate::config::{Config, small_design};
use crate::model::{Change, Map, State, apply, range};
use crate::outside::JumpingClock;
use crate::script::{Counts, DEFAULT, check_state, open_read_only};

/// The number of threads with keys of their own.
const OWNERS: u8 = 4;

/// A keyspace that all owners write, besides the default one.
const SHARED: &str = "shared";

/// The byte after the owner's number in the key of the owner's last batch number. Every batch writes
/// that key to both keyspaces, and nothing deletes it.
const BATCHES: u8 = 0xfe;

/// Keys that begin with this byte belong to the listener. Their values never change, because the
/// listener writes at any time.
const LISTENER: u8 = 0xf0;
const LISTENER_KEYS: u8 = 50;

/// The location of a database, and its clock if the configuration's clock is not used.
pub struct Environment {
    pub storage: Arc<dyn Storage>,
    pub clock: Option<Arc<JumpingClock>>,
    pub dir: PathBuf,
}

/// Entries in the order of their keys.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The handle that a listener uses while the database is open.
type ListenerHandle = Arc<Mutex<Option<Db>>>;

/// What a listener does with the database that calls it.
#[derive(Debug, Clone, Copy)]
enum Listener {
    None,
    Reads,
    Writes,
    Redesigns,
    Panics,
}

/// A database, the threads that use it, and their models.
pub struct Crowd {
    rng: Rng,
    config: Config,
    environment: Environment,
    db: Option<Db>,
    handle: ListenerHandle,
    owners: Vec<Mutex<Owner>>,
    disturber: Disturber,
    counts: Counts,
    story: String,
}

/// A thread that owns the keys that begin with its number, and keyspaces of its own.
struct Owner {
    number: u8,
    rng: Rng,
    state: State,
    key_space: u64,
    batches: u64,
    operations: u64,
    snapshots: Vec<(Snapshot, State)>,
    iterators: Vec<(Iter, Entries)>,
    durabilities: Vec<Durability>,
    story: String,
}

/// The thread that changes everything that has no owner.
struct Disturber {
    rng: Rng,
    /// The keyspaces that it has created.
    state: State,
    counts: Counts,
}

/// The state that all threads of a phase share.
struct Phase<'a> {
    db: &'a Db,
    config: &'a Config,
    environment: &'a Environment,
    owners: &'a [Mutex<Owner>],
    /// For each owner, the numbers of the last batch that it began and of the last that succeeded.
    begun: [AtomicU64; OWNERS as usize],
    acknowledged: [AtomicU64; OWNERS as usize],
    is_over: AtomicBool,
    /// True if every write goes to the log.
    is_logged: bool,
    story: &'a str,
}

impl Crowd {
    pub fn new(seed: u64, config: Config, environment: Environment) -> Self {
        let mut rng = Rng::new(seed);
        let is_jumping = environment.clock.is_some();
        let story = format!("seed {seed}, clock jumps: {is_jumping}, {config:?}");
        let owners = (0..OWNERS).map(|number| Mutex::new(Owner::new(number, &mut rng, &story)));
        let owners = owners.collect();
        let disturber =
            Disturber { rng: rng.fork(), state: State::new(), counts: Counts::default() };
        let (handle, counts) = (ListenerHandle::default(), Counts::default());
        let mut crowd =
            Self { rng, config, environment, db: None, handle, owners, disturber, counts, story };
        crowd.open(true);
        crowd
    }

    fn open(&mut self, is_new: bool) {
        let listeners = [
            Listener::None,
            Listener::None,
            Listener::Reads,
            Listener::Writes,
            Listener::Redesigns,
            Listener::Panics,
        ];
        let listener = *self.rng.pick(&listeners);
        let mut options = options(&self.config, &self.environment);
        if is_new {
            options = options.design(self.config.design.clone());
        }
        let (handle, seed) = (Arc::clone(&self.handle), self.rng.bits());
        options = match listener {
            Listener::None => options,
            other => {
                let rng = Mutex::new(Rng::new(seed));
                options.on_event(move |event| listen(other, &handle, &rng, &event.event))
            }
        };
        // A listener may still hold the last handle of the previous opening.
        let guard = HangGuard::new();
        let db = loop {
            match options.open(&self.environment.dir) {
                Ok(db) => break db,
                Err(error) if error.kind() == ErrorKind::Locked => std::thread::yield_now(),
                Err(error) => panic!("{error} in {}", self.story),
            }
            guard.check(|| format!("the directory stays locked in {}", self.story));
        };
        db.keyspace(SHARED, KeyspaceOptions::new()).unwrap();
        if is_new {
            (0..LISTENER_KEYS).for_each(|key| db.put([LISTENER, key], [LISTENER, key]).unwrap());
        }
        *self.handle.lock().unwrap() = Some(db.clone());
        self.db = Some(db);
    }

    /// Lets all threads use the database, then reopens it and compares everything.
    pub fn run_phase(&mut self, steps: u64) {
        let is_closed = self.rng.percent(50);
        let phase = Phase {
            db: self.db.as_ref().unwrap(),
            config: &self.config,
            environment: &self.environment,
            owners: &self.owners,
            begun: Default::default(),
            acknowledged: Default::default(),
            is_over: AtomicBool::new(false),
            is_logged: !is_closed,
            story: &self.story,
        };
        for owner in &self.owners {
            // Unlogged writes survive only if the database is closed.
            let unlogged = is_closed.then_some(Durability::None);
            let interval = Durability::Interval(Duration::from_millis(1));
            let logged = [Durability::Process, Durability::Sync, interval];
            let mut owner = owner.lock().unwrap();
            owner.durabilities = logged.into_iter().chain(unlogged).collect();
            let (number, batches) = (usize::from(owner.number), owner.batches);
            phase.begun[number].store(batches, Ordering::SeqCst);
            phase.acknowledged[number].store(batches, Ordering::SeqCst);
        }
        let disturber = &mut self.disturber;
        std::thread::scope(|scope| {
            let phase = &phase;
            let owning: Vec<_> = phase
                .owners
                .iter()
                .map(|owner| scope.spawn(move || (0..steps).for_each(|_| phase.step(owner))))
                .collect();
            let disturbing = scope.spawn(move || {
                while !phase.is_over.load(Ordering::SeqCst) {
                    disturber.step(phase);
                    std::thread::yield_now();
                }
            });
            let results: Vec<_> = owning.into_iter().map(ScopedJoinHandle::join).collect();
            phase.is_over.store(true, Ordering::SeqCst);
            disturbing.join().unwrap();
            assert!(results.iter().all(Result::is_ok), "a thread panicked in {}", phase.story);
        });
        self.reopen(is_closed);
    }

    fn reopen(&mut self, is_closed: bool) {
        let db = self.db.take().unwrap();
        self.check(&db);
        for owner in &mut self.owners {
            let owner = owner.get_mut().unwrap();
            if self.rng.percent(50) {
                // The threads that created the iterators are gone, but the pins remain.
                owner.walk_all();
            }
            owner.snapshots.clear();
            owner.iterators.clear();
        }
        drop(self.handle.lock().unwrap().take());
        if is_closed {
            db.close().unwrap();
        } else {
            drop(db);
        }
        if self.rng.percent(50) {
            let (design, clock) = (self.config.design.clone(), Arc::clone(&self.config.clock));
            let background = self.config.background;
            let config = Config::random(&mut self.rng);
            self.config = Config { design, clock, background, ..config };
        }
        self.counts.reopens += 1;
        self.open(false);
        self.check(self.db.as_ref().unwrap());
    }

    /// Compares everything, while no thread writes.
    fn check(&self, db: &Db) {
        let owners: Vec<_> = self.owners.iter().map(|owner| owner.lock().unwrap()).collect();
        check_all(db, &owners, &self.disturber.state, &self.story);
    }

    /// Closes the database, and returns the counts.
    pub fn finish(mut self) -> Counts {
        let db = self.db.take().unwrap();
        drop(self.handle.lock().unwrap().take());
        self.owners.iter_mut().for_each(|owner| owner.get_mut().unwrap().walk_all());
        self.check(&db);
        db.close().unwrap();
        let mut counts = self.counts;
        counts.add(self.disturber.counts);
        let done = self.owners.iter_mut().map(|owner| owner.get_mut().unwrap().operations);
        counts.operations += done.sum::<u64>();
        counts
    }
}

fn options(config: &Config, environment: &Environment) -> Options {
    let options = config.options(Arc::clone(&environment.storage));
    match &environment.clock {
        Some(clock) => options.clock(Arc::clone(clock) as Arc<dyn Clock>),
        None => options,
    }
}

/// Uses the database that reported an event, on the thread that reported it.
fn listen(listener: Listener, handle: &ListenerHandle, rng: &Mutex<Rng>, event: &Event) {
    // The lock is not held meanwhile. This may become the last handle, which this thread then drops.
    let Some(db) = handle.lock().unwrap().clone() else { return };
    let (key, choice) = {
        let mut rng = rng.lock().unwrap();
        (vec![LISTENER, rng.below(LISTENER_KEYS.into()) as u8], rng.below(40))
    };
    let is_ok = |error: terrane::Error| {
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    };
    match listener {
        Listener::None => {}
        Listener::Reads => {
            let found = db.get(&key).and_then(|_| Ok(db.iter()?.take(20).count()));
            found.map_or_else(is_ok, drop);
            let snapshot = db.snapshot();
            snapshot.get(&key).map_or_else(is_ok, drop);
            assert!(!event.to_string().is_empty() && !db.events().is_empty());
        }
        // Writing at every event would make flushes of these writes cause ever more events.
        Listener::Writes if choice < 4 => db.put(&key, &key).unwrap_or_else(is_ok),
        Listener::Writes => {}
        Listener::Redesigns if choice == 0 && !matches!(event, Event::DesignChanged { .. }) => {
            let design = small_design(&mut rng.lock().unwrap());
            db.set_design(design).unwrap_or_else(is_ok);
        }
        Listener::Redesigns => drop(db.stats().to_string()),
        Listener::Panics if choice == 0 => panic!("a listener that panics on purpose"),
        Listener::Panics => {}
    }
}

/// Compares a database with the models of all threads.
fn check_all(db: &Db, owners: &[MutexGuard<'_, Owner>], disturbed: &State, story: &str) {
    let mut state = disturbed.clone();
    for owner in owners {
        for (name, map) in &owner.state {
            let all = state.entry(name.clone()).or_default();
            all.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
    }
    let of_listener = (0..LISTENER_KEYS).map(|key| (vec![LISTENER, key], vec![LISTENER, key]));
    state.get_mut(DEFAULT).unwrap().extend(of_listener);
    check_state(db, &state, story);
}

impl Phase<'_> {
    fn step(&self, owner: &Mutex<Owner>) {
        let mut owner = owner.lock().unwrap();
        owner.operations += 1;
        match owner.rng.below(100) {
            0..=39 => owner.write(self.db),
            40..=49 => owner.batch(self),
            50..=52 => owner.delete_range(self.db),
            53..=69 => owner.read(self.db),
            70..=78 => owner.scan(self.db),
            79..=88 => owner.snapshot(self.db),
            89..=96 => owner.change_keyspaces(self.db),
            97 => self.db.flush().unwrap(),
            98 => owner.compact(self.db),
            _ => drop(self.db.run_background_job().unwrap()),
        }
    }

    fn acknowledged(&self) -> Vec<u64> {
        self.acknowledged.iter().map(|number| number.load(Ordering::SeqCst)).collect()
    }

    /// Checks a copy or view of the database from a moment after `before`. It must hold the batches
    /// of every owner up to some number, in both keyspaces, and no batch that began later.
    fn check_batches(&self, copy: &Db, before: &[u64], what: &str) {
        let begun = self.begun.iter().map(|number| number.load(Ordering::SeqCst));
        for ((number, before), after) in (0..OWNERS).zip(before).zip(begun) {
            let read = |name: &str| {
                let value = keyspace(copy, name).get([number, BATCHES]).unwrap();
                value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
            };
            let (default, shared) = (read(DEFAULT), read(SHARED));
            let what = format!("{what} of owner {number} in {}", self.story);
            assert_eq!(default, shared, "{what}");
            assert!((*before..=after).contains(&default), "{before} {default} {after}: {what}");
        }
        let keys: Vec<_> = copy.iter().unwrap().map(|entry| entry.unwrap().0.to_vec()).collect();
        assert!(keys.is_sorted(), "{what} in {}", self.story);
    }
}

impl Owner {
    fn new(number: u8, rng: &mut Rng, story: &str) -> Self {
        let maps = [DEFAULT, SHARED].map(|name| (name.to_owned(), Map::new()));
        Self {
            number,
            rng: rng.fork(),
            state: BTreeMap::from(maps),
            key_space: *rng.pick(&[20, 200, 2000]),
            batches: 0,
            operations: 0,
            snapshots: Vec::new(),
            iterators: Vec::new(),
            durabilities: Vec::new(),
            story: format!("owner {number}, {story}"),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let rest = match self.rng.below(100) {
            0 => Vec::new(),
            1 => vec![b'x'; 300],
            2..=30 => format!("common/prefix/{}", self.rng.below(self.key_space)).into_bytes(),
            _ => (self.rng.below(self.key_space) as u16).to_be_bytes().to_vec(),
        };
        [vec![self.number], rest].concat()
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.below(1000) {
            0 => 40_000,
            1..=20 => 1000,
            _ => self.rng.index(60),
        };
        vec![self.rng.bits() as u8; len]
    }

    /// Bounds within the keys of this owner, without the count of its batches.
    fn bounds(&mut self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let (a, b) = (self.key(), self.key());
        let (first, last) = (a.clone().min(b.clone()), a.max(b));
        let start = match self.rng.below(4) {
            0 => Bound::Included(vec![self.number]),
            1 => Bound::Excluded(first),
            _ => Bound::Included(first),
        };
        let end = match self.rng.below(4) {
            0 => Bound::Excluded(vec![self.number, BATCHES]),
            1 => Bound::Included(last),
            _ => Bound::Excluded(last),
        };
        (start, end)
    }

    fn any_keyspace(&mut self) -> String {
        let names: Vec<&String> = self.state.keys().collect();
        (*self.rng.pick(&names)).clone()
    }

    fn options(&mut self) -> WriteOptions {
        let options = WriteOptions::new();
        if self.rng.percent(70) {
            return options;
        }
        options.durability(*self.rng.pick(&self.durabilities))
    }

    fn write(&mut self, db: &Db) {
        let name = self.any_keyspace();
        let (key, options) = (self.key(), self.options());
        let keyspace = keyspace(db, &name);
        let change = if self.rng.percent(75) {
            let value = self.value();
            keyspace.put_with(&key, &value, options).unwrap();
            Change::Put(key, value)
        } else {
            keyspace.delete_with(&key, options).unwrap();
            Change::Delete(key)
        };
        apply(self.state.get_mut(&name).unwrap(), &change);
    }

    fn batch(&mut self, phase: &Phase<'_>) {
        self.batches += 1;
        let number = self.batches.to_be_bytes().to_vec();
        let counted = Change::Put(vec![self.number, BATCHES], number);
        let mut changes = vec![(DEFAULT.to_owned(), counted.clone()), (SHARED.to_owned(), counted)];
        let count = if self.rng.percent(2) { 200 } else { self.rng.index(8) };
        for _ in 0..count {
            let change = match self.rng.below(10) {
                0..=6 => Change::Put(self.key(), self.value()),
                7..=8 => Change::Delete(self.key()),
                _ => {
                    let (start, end) = self.bounds();
                    Change::DeleteRange(start, end)
                }
            };
            changes.push((self.any_keyspace(), change));
        }
        let mut batch = WriteBatch::new();
        for (name, change) in &changes {
            let keyspace = keyspace(phase.db, name);
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
        let at = usize::from(self.number);
        phase.begun[at].store(self.batches, Ordering::SeqCst);
        phase.db.write(&batch).unwrap();
        phase.acknowledged[at].store(self.batches, Ordering::SeqCst);
        for (name, change) in &changes {
            apply(self.state.get_mut(name).unwrap(), change);
        }
    }

    fn delete_range(&mut self, db: &Db) {
        let name = self.any_keyspace();
        let (start, end) = self.bounds();
        keyspace(db, &name).delete_range((start.clone(), end.clone())).unwrap();
        apply(self.state.get_mut(&name).unwrap(), &Change::DeleteRange(start, end));
    }

    fn read(&mut self, db: &Db) {
        let name = self.any_keyspace();
        let keyspace = keyspace(db, &name);
        let count = if self.rng.percent(80) { 1 } else { self.rng.index(30) };
        let keys: Vec<Vec<u8>> = (0..count).map(|_| self.key()).collect();
        let found = match &keys[..] {
            [key] => vec![keyspace.get(key).unwrap()],
            keys => keyspace.multi_get(keys).unwrap(),
        };
        for (key, found) in keys.iter().zip(found) {
            let wanted = self.state[&name].get(key).map(|value| &value[..]);
            assert_eq!(found.as_deref(), wanted, "{key:?} of {name} in {}", self.story);
            assert_eq!(keyspace.contains(key).unwrap(), wanted.is_some(), "{}", self.story);
        }
    }

    fn scan(&mut self, db: &Db) {
        let name = self.any_keyspace();
        let keyspace = keyspace(db, &name);
        if self.rng.percent(5) {
            return self.scan_everyone(&name, keyspace.iter().unwrap());
        }
        let (start, end) = self.bounds();
        let wanted = range(&self.state[&name], &start, &end);
        let iter = keyspace.range((start, end)).unwrap();
        match self.rng.below(10) {
            0..=1 => {
                self.iterators.push((iter, wanted));
                if self.iterators.len() > 4 {
                    let (iter, wanted) = self.iterators.remove(0);
                    self.walk(iter, &wanted);
                }
            }
            2 => {
                let wanted: Vec<_> = self.state[&name].clone().into_iter().collect();
                self.walk(keyspace.prefix([self.number]).unwrap(), &wanted);
            }
            3..=4 => self.seek(iter, &wanted),
            _ => self.walk(iter, &wanted),
        }
    }

    /// The keys of all owners are in order, and those of this owner are as in its model.
    fn scan_everyone(&mut self, name: &str, iter: Iter) {
        let is_forward = self.rng.percent(50);
        let collect = |entry: terrane::Result<(terrane::Key, terrane::Value)>| {
            let (key, value) = entry.unwrap();
            (key.to_vec(), value.to_vec())
        };
        let mut all: Vec<(Vec<u8>, Vec<u8>)> = if is_forward {
            iter.map(collect).collect()
        } else {
            iter.rev().map(collect).collect()
        };
        if !is_forward {
            all.reverse();
        }
        assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0), "{}", self.story);
        let own = all.iter().filter(|(key, _)| key.first() == Some(&self.number));
        let wanted = &self.state[name];
        let own = own.map(|(key, value)| (key, value));
        assert!(own.eq(wanted.iter()), "{name}, forward: {is_forward}, in {}", self.story);
    }

    /// Walks an iterator from its ends, and compares.
    fn walk(&mut self, mut iter: Iter, wanted: &[(Vec<u8>, Vec<u8>)]) {
        let mut rest = wanted;
        let style = self.rng.below(3);
        loop {
            let from_front = style == 0 || style == 2 && self.rng.percent(50);
            let found = if from_front { iter.next() } else { iter.next_back() };
            let next = if from_front { rest.split_first() } else { rest.split_last() };
            let found = found.map(|entry| entry.unwrap());
            let found = found.as_ref().map(|(key, value)| (&key[..], &value[..]));
            let wanted = next.map(|((key, value), _)| (&key[..], &value[..]));
            assert_eq!(found, wanted, "from front: {from_front} in {}", self.story);
            match next {
                Some((_, remaining)) => rest = remaining,
                None => return,
            }
        }
    }

    fn seek(&mut self, mut iter: Iter, wanted: &[(Vec<u8>, Vec<u8>)]) {
        for _ in 0..4 {
            let key = self.key();
            let at = wanted.partition_point(|(found, _)| *found < key);
            iter.seek(&key).unwrap();
            for next in wanted[at..].iter().take(4) {
                assert!(iter.advance().unwrap(), "{}", self.story);
                assert_eq!(
                    (iter.key(), iter.value()),
                    (&next.0[..], &next.1[..]),
                    "{}",
                    self.story
                );
            }
        }
    }

    fn snapshot(&mut self, db: &Db) {
        match self.rng.below(8) {
            0 if self.snapshots.len() < 4 => {
                self.snapshots.push((db.snapshot(), self.state.clone()));
            }
            1 if !self.snapshots.is_empty() => {
                let at = self.rng.index(self.snapshots.len());
                self.snapshots.remove(at);
            }
            _ if self.snapshots.is_empty() => {}
            _ => {
                let at = self.rng.index(self.snapshots.len());
                let (snapshot, state) = self.snapshots[at].clone();
                let name = *self.rng.pick(&[DEFAULT, SHARED]);
                let keyspace = keyspace(db, name);
                let key = self.key();
                let found = snapshot.get_in(&keyspace, &key).unwrap();
                let wanted = state[name].get(&key).map(|value| &value[..]);
                assert_eq!(found.as_deref(), wanted, "{key:?} of a snapshot in {}", self.story);
                let (start, end) = self.bounds();
                let wanted = range(&state[name], &start, &end);
                let iter = snapshot.range_in(&keyspace, (start, end)).unwrap();
                self.walk(iter, &wanted);
            }
        }
    }

    fn change_keyspaces(&mut self, db: &Db) {
        let name = format!("own-{}-{}", self.number, self.rng.below(2));
        if self.state.contains_key(&name) {
            if self.rng.percent(30) {
                assert!(db.drop_keyspace(&name).unwrap(), "{}", self.story);
                self.state.remove(&name);
            }
        } else if self.rng.percent(30) {
            let options = KeyspaceOptions::new().design(small_design(&mut self.rng));
            db.keyspace(&name, options).unwrap();
            self.state.insert(name, Map::new());
        }
    }

    fn compact(&mut self, db: &Db) {
        let name = self.any_keyspace();
        let bounds = self.bounds();
        keyspace(db, &name).compact_range(bounds).unwrap();
    }

    /// Walks the iterators that were kept.
    fn walk_all(&mut self) {
        for (iter, wanted) in std::mem::take(&mut self.iterators) {
            self.walk(iter, &wanted);
        }
    }
}

impl Disturber {
    fn step(&mut self, phase: &Phase<'_>) {
        let db = phase.db;
        match self.rng.below(30) {
            0..=11 => self.switch(db),
            12..=13 => db.flush().unwrap(),
            14 => db.wait_for_compactions().unwrap(),
            15 => db.compact_range(..).unwrap(),
            16 => self.checkpoint(phase),
            17 => self.check_everything(phase),
            27 => self.read_only(phase),
            18..=20 => self.change_keyspaces(db),
            21..=23 => match &phase.environment.clock {
                Some(clock) => clock.jump(&mut self.rng),
                None => {
                    let millis = self.rng.below(3000);
                    phase.config.clock.advance(Duration::from_millis(millis));
                }
            },
            24 => {
                let total = IoBudget::Total(200 << 20);
                let budgets = [IoBudget::Unlimited, total, IoBudget::Leftover(200 << 20)];
                db.set_io_budget(*self.rng.pick(&budgets)).unwrap();
            }
            25 => db.sync().unwrap(),
            26 => self.forecast(db),
            _ => self.read_reports(db),
        }
    }

    /// Changes the design of a keyspace, which its owner may drop meanwhile.
    fn switch(&mut self, db: &Db) {
        let names = db.keyspaces();
        let name = self.rng.pick(&names).clone();
        let design = small_design(&mut self.rng);
        if name.starts_with("own") {
            // If its owner has dropped it, opening it by name would create it again.
            return;
        }
        keyspace(db, &name).set_design(design).unwrap();
        self.counts.switches += 1;
    }

    fn forecast(&mut self, db: &Db) {
        let design = small_design(&mut self.rng);
        db.forecast(&design).unwrap();
    }

    fn read_reports(&mut self, db: &Db) {
        let tree = db.tree();
        tree.shape.check().unwrap();
        let texts = [tree.to_string(), db.stats().to_string()];
        assert!(texts.iter().all(|text| !text.is_empty()));
        let events = db.events();
        assert!(events.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
        assert!(db.stats().error.is_none(), "{:?}", db.stats().error);
    }

    fn change_keyspaces(&mut self, db: &Db) {
        let name = format!("disturber-{}", self.rng.below(3));
        if self.state.contains_key(&name) && self.rng.percent(40) {
            assert!(db.drop_keyspace(&name).unwrap());
            self.state.remove(&name);
            return;
        }
        let mut options = KeyspaceOptions::new();
        if !self.state.contains_key(&name) && self.rng.percent(50) {
            options = options.design(small_design(&mut self.rng));
        }
        let keyspace = db.keyspace(&name, options).unwrap();
        let map = self.state.entry(name).or_default();
        for _ in 0..self.rng.index(60) {
            let key = self.rng.below(500).to_be_bytes().to_vec();
            keyspace.put(&key, &key).unwrap();
            map.insert(key.clone(), key);
        }
    }

    /// Makes a checkpoint while the owners write.
    fn checkpoint(&mut self, phase: &Phase<'_>) {
        let before = phase.acknowledged();
        let copy = self.copy(phase);
        phase.check_batches(&copy, &before, "checkpoint");
        self.remove(phase, copy);
    }

    /// Opens the database for reading while the owners write.
    fn read_only(&mut self, phase: &Phase<'_>) {
        let before = phase.acknowledged();
        let reader = self.reader(phase);
        phase.check_batches(&reader, &before, "reader");
    }

    /// Compares the database, a checkpoint of it and a reader with all models, while the owners
    /// wait.
    fn check_everything(&mut self, phase: &Phase<'_>) {
        let owners: Vec<_> = phase.owners.iter().map(|owner| owner.lock().unwrap()).collect();
        check_all(phase.db, &owners, &self.state, phase.story);
        if !phase.is_logged {
            phase.db.flush().unwrap();
        }
        let reader = self.reader(phase);
        check_all(&reader, &owners, &self.state, &format!("reader in {}", phase.story));
        drop(reader);
        let copy = self.copy(phase);
        check_all(&copy, &owners, &self.state, &format!("checkpoint in {}", phase.story));
        self.remove(phase, copy);
    }

    fn reader(&mut self, phase: &Phase<'_>) -> Db {
        let config = Config::random(&mut self.rng);
        let options = options(&config, phase.environment);
        open_read_only(&options, &phase.environment.dir, phase.story)
    }

    /// Makes a checkpoint, and opens it with other options.
    fn copy(&mut self, phase: &Phase<'_>) -> Db {
        self.counts.checkpoints += 1;
        let name = format!("checkpoint-{}", self.counts.checkpoints);
        let target = phase.environment.dir.with_file_name(name);
        phase.db.checkpoint(&target).unwrap();
        let config = Config::random(&mut self.rng);
        let copy = options(&config, phase.environment).open(&target);
        copy.unwrap_or_else(|error| panic!("{error} of a checkpoint in {}", phase.story))
    }

    fn remove(&mut self, phase: &Phase<'_>, copy: Db) {
        let target = copy.path().to_owned();
        copy.close().unwrap();
        let storage = &phase.environment.storage;
        for name in storage.list(&target).unwrap() {
            storage.remove(&target.join(name)).unwrap();
        }
    }
}

fn keyspace(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name, KeyspaceOptions::new()).unwrap()
}
