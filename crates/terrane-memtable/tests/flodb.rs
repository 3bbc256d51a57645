//! FloDB's memtable: which versions it reclaims, which it must keep, and the order of writes
//! through it.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests have threads")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use terrane_memtable::{
    Config, DrainInsert, EntryKind, ExpectedKeys, FloDbConfig, FrontLevel, Lookup, LowerLevel,
    MAX_SEQ, Memtable, Pool, Readers, SeqBounds, SeqNo, Update,
};
use terrane_testkit::{HangGuard, Rng, seed_from_env};

fn config(lower: LowerLevel, buckets: usize, partition_bits: u8, insert: DrainInsert) -> Config {
    Config::FloDb(FloDbConfig { buckets, partition_bits, lower, insert, update: Update::InPlace })
}

fn front(memtable: &Memtable) -> &dyn FrontLevel {
    memtable.front_level().unwrap()
}

fn configs() -> Vec<Config> {
    let both = [LowerLevel::BTree, LowerLevel::SkipList].into_iter();
    let all = both.flat_map(|lower| {
        [
            config(lower, 0, 0, DrainInsert::Multi),
            config(lower, 1, 0, DrainInsert::Multi),
            config(lower, 4, 2, DrainInsert::Multi),
            config(lower, 64, 3, DrainInsert::Single),
            config(lower, 1024, 6, DrainInsert::Multi),
        ]
    });
    // Under Miri, a few suffice, because the others would run the same code.
    all.enumerate()
        .filter(|(at, _)| !cfg!(miri) || [0, 2, 8].contains(at))
        .map(|(_, one)| one)
        .collect()
}

fn some(count: u64) -> u64 {
    if cfg!(miri) { count / 50 } else { count }
}

/// Returns a value whose length and bytes follow from its sequence number.
fn value_of(seq: SeqNo) -> Vec<u8> {
    let len = 8 + (seq % 40) as usize;
    seq.to_be_bytes().iter().cycle().take(len).copied().collect()
}

fn key_of(number: u64) -> Vec<u8> {
    let head = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    if number.is_multiple_of(3) { head.to_vec() } else { format!("key{number:05}").into_bytes() }
}

type Versions = BTreeMap<(Vec<u8>, Reverse<SeqNo>), EntryKind>;

/// The state of all keys at `seq` in the oracle, without tombstones.
fn visible_at(versions: &Versions, seq: SeqNo) -> Vec<(Vec<u8>, SeqNo)> {
    let mut found: BTreeMap<&[u8], (SeqNo, EntryKind)> = BTreeMap::new();
    for ((key, Reverse(version)), kind) in versions {
        if *version <= seq {
            found.entry(key).or_insert((*version, *kind));
        }
    }
    let values = found.into_iter().filter(|(_, (_, kind))| *kind == EntryKind::Value);
    values.map(|(key, (seq, _))| (key.to_vec(), seq)).collect()
}

/// The state of all keys at `seq` as a cursor visits it, forward or backward.
fn scan(memtable: &Arc<Memtable>, seq: SeqNo, is_forward: bool) -> Vec<(Vec<u8>, SeqNo)> {
    let mut cursor = memtable.cursor();
    let mut newest: BTreeMap<Vec<u8>, (SeqNo, EntryKind)> = BTreeMap::new();
    if is_forward {
        cursor.seek_first();
    } else {
        cursor.seek_last();
    }
    while let Some(entry) = cursor.entry() {
        if entry.kind == EntryKind::Value {
            assert_eq!(entry.value, value_of(entry.seq));
        }
        if entry.seq <= seq {
            let version = newest.entry(entry.key.to_vec()).or_insert((entry.seq, entry.kind));
            *version = (*version).max((entry.seq, entry.kind));
        }
        if is_forward { cursor.next() } else { cursor.previous() }
    }
    let values = newest.into_iter().filter(|(_, (_, kind))| *kind == EntryKind::Value);
    values.map(|(key, (seq, _))| (key, seq)).collect()
}

fn assert_lookup(memtable: &Arc<Memtable>, versions: &Versions, key: &[u8], seq: SeqNo) {
    let range = (key.to_vec(), Reverse(seq))..=(key.to_vec(), Reverse(0));
    let expected = versions.range(range).next().map(|((_, Reverse(seq)), kind)| (*seq, *kind));
    match memtable.look_up(key, seq) {
        Lookup::Found(found, kind, value) => {
            assert_eq!(Some((found, kind)), expected, "{key:?} at {seq}");
            if kind == EntryKind::Value {
                assert_eq!(value[..], value_of(found));
            }
        }
        Lookup::Absent => assert_eq!(None, expected, "{key:?} at {seq}"),
        Lookup::Overwritten => panic!("{key:?} at {seq} was overwritten, but is {expected:?}"),
    }
}

#[test]
fn what_snapshots_see_is_never_forgotten() {
    for (number, config) in configs().into_iter().enumerate() {
        let mut rng = Rng::new(seed_from_env(31) + number as u64);
        let memtable = Memtable::new(config, &Pool::new(0));
        let mut versions = Versions::new();
        let mut held: Vec<SeqNo> = Vec::new();
        for seq in 1..=some(6000) {
            let keys = if rng.percent(50) { 10 } else { 300 };
            let key = key_of(rng.below(keys));
            let kind = if rng.percent(15) { EntryKind::Tombstone } else { EntryKind::Value };
            let value = if kind == EntryKind::Value { value_of(seq) } else { Vec::new() };
            let horizon = held.iter().copied().min().unwrap_or(seq - 1);
            memtable.update(&key, seq, kind, &value, || horizon);
            versions.insert((key, Reverse(seq)), kind);
            match rng.below(100) {
                0..=1 => held.push(seq),
                2..=3 if !held.is_empty() => drop(held.swap_remove(rng.index(held.len()))),
                4 => _ = front(&memtable).drain(),
                5 if rng.percent(20) => front(&memtable).drain_all(),
                _ => {}
            }
            let at = held.get(rng.index(held.len() + 1)).copied().unwrap_or(seq);
            assert_lookup(&memtable, &versions, &key_of(rng.below(300)), at);
            if rng.percent(1) {
                assert_eq!(scan(&memtable, at, rng.percent(50)), visible_at(&versions, at));
            }
        }
        for at in held.into_iter().chain([some(6000)]) {
            assert_eq!(scan(&memtable, at, true), visible_at(&versions, at));
            assert_eq!(scan(&memtable, at, false), visible_at(&versions, at));
        }
    }
}

#[test]
fn what_is_written_before_and_after_keys_were_learned_is_one() {
    let has_front = |config: &Config| matches!(config, Config::FloDb(flodb) if flodb.buckets > 0);
    for (round, config) in configs().into_iter().filter(has_front).enumerate() {
        let memtable = Memtable::with_keys(config, &Pool::new(0), ExpectedKeys::Unknown);
        let mut versions = Versions::new();
        let mut rng = Rng::new(seed_from_env(37));
        let mut cursor = memtable.cursor();
        let mut in_front = 0;
        // Enough keys to learn the span from; then most of them again, and others near them.
        let (learned_at, end) = (some(1200), some(3000));
        for seq in 1..=end {
            let number = if seq <= learned_at { 100 + seq % 1100 } else { rng.below(1400) };
            let key = format!("user{number:06}").into_bytes();
            let inserted = memtable.update(&key, seq, EntryKind::Value, &value_of(seq), || 0);
            in_front += u64::from(inserted.is_in_membuffer);
            versions.insert((key, Reverse(seq)), EntryKind::Value);
            assert!(seq > learned_at || in_front == 0);
            if seq == learned_at {
                // An open cursor continues.
                cursor.seek(b"user000500", MAX_SEQ);
                assert!(front(&memtable).needs_enabling());
                let filled = memtable.filled_bytes();
                // A drain thread creates the table, if there is one; it counts from then on.
                if round % 2 == 0 {
                    let before = memtable.memory().total_bytes();
                    assert!(!front(&memtable).needs_drain(), "nobody has asked for it");
                    front(&memtable).request();
                    assert!(front(&memtable).needs_drain());
                    assert_eq!(front(&memtable).drain(), 0);
                    assert!(front(&memtable).is_prepared() && !front(&memtable).needs_drain());
                    assert!(front(&memtable).needs_enabling(), "writes do not use it yet");
                    assert!(memtable.memory().total_bytes() > before);
                }
                front(&memtable).enable();
                assert!(front(&memtable).is_prepared() && !front(&memtable).needs_enabling());
                assert_eq!(memtable.filled_bytes(), filled, "the table does not fill it");
            }
        }
        assert!(in_front > 0);
        assert_eq!(memtable.len() as u64, end);
        for at in [1, learned_at, learned_at + 1, some(2000), end] {
            assert_eq!(scan(&memtable, at, true), visible_at(&versions, at));
            assert_eq!(scan(&memtable, at, false), visible_at(&versions, at));
            assert_lookup(&memtable, &versions, b"user000500", at);
        }
        let mut walked = 0;
        while let Some(entry) = cursor.entry().filter(|entry| entry.key < &b"user000600"[..]) {
            walked += usize::from(entry.seq <= learned_at);
            cursor.next();
        }
        let range = (b"user000500".to_vec(), Reverse(end))..(b"user000600".to_vec(), Reverse(end));
        let expected = versions.range(range).filter(|((_, seq), _)| seq.0 <= learned_at);
        assert_eq!(walked, expected.count());
    }
}

#[test]
fn a_late_reader_is_told_that_its_version_was_overwritten() {
    for is_drained in [false, true] {
        let memtable =
            Memtable::new(config(LowerLevel::BTree, 4, 0, DrainInsert::Multi), &Pool::new(0));
        for seq in 1..=5 {
            memtable.update(b"k", seq, EntryKind::Value, &value_of(seq), || seq - 1);
        }
        if is_drained {
            front(&memtable).drain_all();
        }
        // Two versions remain, because the last one was not visible when it was inserted.
        assert_eq!(memtable.len(), 2);
        assert!(matches!(memtable.look_up(b"k", 3), Lookup::Overwritten));
        assert!(matches!(memtable.look_up(b"k", 4), Lookup::Found(4, ..)));
        assert!(matches!(memtable.look_up(b"k", 9), Lookup::Found(5, ..)));
        assert!(matches!(memtable.look_up(b"j", 3), Lookup::Absent));
    }
}

/// The cursor kept the entry on which it had been, whose pin was gone with the position.
#[test]
fn a_cursor_that_skips_the_front_level_is_on_no_entry_before_its_next_seek() {
    for config in configs() {
        let memtable = Memtable::new(config, &Pool::new(0));
        memtable.insert(b"k", 1, EntryKind::Value, &value_of(1));
        front(&memtable).drain_all();
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        assert_eq!(cursor.entry().map(|entry| entry.seq), Some(1));
        cursor.skip_front_level();
        assert!(!cursor.is_valid() && cursor.pin_value().is_none());
        cursor.seek_first();
        assert_eq!(cursor.entry().map(|entry| entry.seq), Some(1));
    }
}

#[test]
fn versions_that_come_late_find_their_place() {
    let orders: [[SeqNo; 5]; 4] =
        [[5, 4, 3, 2, 1], [3, 5, 1, 4, 2], [2, 1, 5, 3, 4], [4, 5, 1, 2, 3]];
    for order in orders {
        for drained_after in 0..6 {
            let memtable = Memtable::new(
                config(LowerLevel::SkipList, 1, 0, DrainInsert::Multi),
                &Pool::new(0),
            );
            for (step, seq) in order.into_iter().enumerate() {
                if step == drained_after {
                    front(&memtable).drain_all();
                }
                memtable.insert(b"k", seq, EntryKind::Value, &value_of(seq));
                // Other keys take the slot once its versions are linked.
                if step == drained_after {
                    for other in 0..6 {
                        memtable.insert(&[other], 100 + u64::from(other), EntryKind::Value, b"");
                    }
                }
                for at in 0..7 {
                    let newest = order[..=step].iter().filter(|seq| **seq <= at).max();
                    let found = memtable.get_pinned(b"k", at).map(|(seq, _, _)| seq);
                    assert_eq!(found, newest.copied(), "{order:?} {drained_after} at {at}");
                }
            }
        }
    }
}

#[test]
fn keys_that_are_written_again_take_no_more_memory() {
    let memtable =
        Memtable::new(config(LowerLevel::BTree, 256, 2, DrainInsert::Multi), &Pool::new(0));
    let write = |from: SeqNo, to: SeqNo| {
        for seq in from..to {
            memtable.update(&key_of(seq % 50), seq, EntryKind::Value, &[7; 100], || seq - 1);
        }
    };
    write(1, 200);
    let before = memtable.memory();
    write(200, if cfg!(miri) { 350 } else { 50_000 });
    let after = memtable.memory();
    assert_eq!(after.used_bytes(), before.used_bytes());
    assert_eq!(memtable.len(), 100);
    // A snapshot keeps its versions and all later ones.
    let more = if cfg!(miri) { 100 } else { 1000 };
    for seq in 100_000..100_000 + more {
        memtable.update(&key_of(seq % 50), seq, EntryKind::Value, &[7; 100], || 99_999);
    }
    assert_eq!(memtable.len() as u64, 50 + more);
}

/// A snapshot is open while one key is written repeatedly: neither writes nor lookups walk all the
/// versions that are kept for it.
#[test]
fn a_key_with_many_versions_is_as_fast_as_others() {
    const OTHERS: SeqNo = 100;
    // A walk through all versions per operation would take longer than the limit of the guard.
    let count = if cfg!(miri) { 60 } else { 500_000 };
    for (lower, is_drained) in [
        (LowerLevel::BTree, false),
        (LowerLevel::BTree, true),
        (LowerLevel::SkipList, false),
        (LowerLevel::SkipList, true),
    ] {
        let memtable = Memtable::new(config(lower, 64, 2, DrainInsert::Multi), &Pool::new(0));
        // Other keys of its partition.
        for seq in 1..=OTHERS {
            memtable.update(&key_of(seq), seq, EntryKind::Value, &value_of(seq), || seq - 1);
        }
        let (first, last) = (OTHERS + 1, OTHERS + count);
        let guard = HangGuard::new();
        for seq in first..=last {
            guard.check(|| format!("{seq} of {count} versions"));
            memtable.update(b"hot", seq, EntryKind::Value, &value_of(seq), || first);
            if is_drained && seq % (count / 10) == 0 {
                front(&memtable).drain_all();
            }
        }
        let at = |seq: SeqNo| match memtable.look_up(b"hot", seq) {
            Lookup::Found(found, _, value) => {
                assert_eq!(value[..], value_of(found));
                found
            }
            other => panic!("{other:?} at {seq}"),
        };
        for seq in
            (first..=last).step_by(count as usize / if cfg!(miri) { 6 } else { 100 }).chain([last])
        {
            assert_eq!(at(seq), seq);
        }
        assert!(matches!(memtable.look_up(b"hot", first - 1), Lookup::Absent));

        // Once the snapshot is dropped, only later versions are kept.
        let before = memtable.len();
        for seq in last + 1..=last + 10 {
            memtable.update(b"hot", seq, EntryKind::Value, &value_of(seq), || seq - 1);
        }
        assert_eq!(at(last + 10), last + 10);
        assert!(memtable.len() <= before + 2, "{} and {before}", memtable.len());
    }
}

#[test]
fn pinned_values_stay_what_they_were() {
    let memtable =
        Memtable::new(config(LowerLevel::BTree, 16, 0, DrainInsert::Multi), &Pool::new(0));
    let mut pinned = Vec::new();
    for seq in 1..=some(5000) {
        let key = key_of(seq % 7);
        memtable.update(&key, seq, EntryKind::Value, &value_of(seq), || seq - 1);
        if seq % 13 == 0 {
            let (found, _, value) = memtable.get_pinned(&key, seq).unwrap();
            assert_eq!(found, seq);
            pinned.push((seq, value.clone()));
        }
        if seq % 97 == 0 {
            front(&memtable).drain_all();
        }
        if seq % 501 == 0 {
            pinned.drain(..pinned.len() / 2);
        }
    }
    drop(memtable);
    for (seq, value) in pinned {
        assert_eq!(value[..], value_of(seq));
    }
}

/// Assigns sequence numbers and makes them visible in order, like an engine.
#[derive(Default)]
struct Order {
    state: Mutex<(SeqNo, BTreeSet<SeqNo>)>,
    visible: AtomicU64,
    held: Mutex<BTreeMap<SeqNo, usize>>,
    oldest_held: AtomicU64,
}

impl Order {
    fn begin(&self) -> SeqNo {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        let seq = state.0;
        state.1.insert(seq);
        seq
    }

    /// Returns once `seq` is visible.
    fn finish(&self, seq: SeqNo) {
        {
            let mut state = self.state.lock().unwrap();
            state.1.remove(&seq);
            let visible = state.1.first().map_or(state.0, |first| first - 1);
            self.visible.fetch_max(visible, Ordering::SeqCst);
        }
        while self.visible.load(Ordering::SeqCst) < seq {
            std::thread::yield_now();
        }
    }

    fn hold(&self) -> SeqNo {
        let mut held = self.held.lock().unwrap();
        let oldest = held.keys().next().copied().unwrap_or(SeqNo::MAX);
        self.oldest_held.store(oldest.min(self.visible.load(Ordering::SeqCst)), Ordering::SeqCst);
        let seq = self.visible.load(Ordering::SeqCst);
        *held.entry(seq).or_default() += 1;
        seq
    }

    fn release(&self, seq: SeqNo) {
        let mut held = self.held.lock().unwrap();
        let count = held.get_mut(&seq).unwrap();
        *count -= 1;
        if *count == 0 {
            held.remove(&seq);
        }
        let oldest = held.keys().next().copied().unwrap_or(SeqNo::MAX);
        self.oldest_held.store(oldest, Ordering::SeqCst);
    }
}

#[derive(Clone, Copy)]
struct OrderReaders<'a>(&'a Order);

impl Readers for OrderReaders<'_> {
    fn bounds(&self) -> SeqBounds {
        let visible = self.0.visible.load(Ordering::SeqCst);
        let oldest = self.0.oldest_held.load(Ordering::SeqCst);
        SeqBounds { visible, oldest, newest: if oldest == SeqNo::MAX { 0 } else { SeqNo::MAX } }
    }

    fn hold_any(&self, seqs: Range<SeqNo>) -> bool {
        self.0.held.lock().unwrap().range(seqs).next().is_some()
    }
}

/// Looks up the newest version of a key, and retries while it is overwritten.
fn newest(memtable: &Arc<Memtable>, order: &Order, key: &[u8]) -> SeqNo {
    loop {
        match memtable.look_up(key, order.visible.load(Ordering::SeqCst)) {
            Lookup::Found(seq, _, value) => {
                assert_eq!(value[..], value_of(seq));
                return seq;
            }
            Lookup::Absent => return 0,
            Lookup::Overwritten => {}
        }
    }
}

const KEYS: u64 = 12;

/// The state that the threads of a history share.
struct History {
    memtable: Arc<Memtable>,
    order: Order,
    /// For each key, the newest write that has returned.
    acknowledged: Vec<AtomicU64>,
    is_over: AtomicBool,
}

impl History {
    fn put(&self, name: &[u8], rng: &mut Rng) -> SeqNo {
        let seq = self.order.begin();
        if rng.percent(5) {
            std::thread::yield_now();
        }
        let readers = OrderReaders(&self.order);
        let added = self.memtable.update(name, seq, EntryKind::Value, &value_of(seq), readers);
        self.order.finish(seq);
        if added.needs_reclaim {
            self.memtable.reclaim_hidden(name, seq, readers);
        }
        seq
    }

    fn write(&self, mut rng: Rng) {
        for _ in 0..if cfg!(miri) { 12 } else { 1500 } {
            let key = rng.below(KEYS);
            let seq = self.put(&key_of(key), &mut rng);
            self.acknowledged[key as usize].fetch_max(seq, Ordering::SeqCst);
            // Other keys of the same buckets.
            let other = key_of(KEYS + rng.below(5000));
            self.put(&other, &mut rng);
        }
    }

    fn acknowledged(&self) -> Vec<SeqNo> {
        self.acknowledged.iter().map(|seq| seq.load(Ordering::SeqCst)).collect()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn drain(&self) {
        while !self.is_over() {
            front(&self.memtable).drain();
            std::thread::yield_now();
        }
    }

    /// Readers under Miri yield to the writers that they wait for.
    fn leave_time() {
        if cfg!(miri) {
            (0..50).for_each(|_| std::thread::yield_now());
        }
    }

    /// Reads the newest version: never older than a write that returned or a version that was read
    /// before.
    fn read(&self, mut rng: Rng) {
        let mut seen = vec![0; KEYS as usize];
        while !self.is_over() {
            let key = rng.index(KEYS as usize);
            let before = self.acknowledged()[key];
            let found = newest(&self.memtable, &self.order, &key_of(key as u64));
            assert!(found >= before && found >= seen[key], "key {key}");
            seen[key] = found;
            Self::leave_time();
        }
    }

    /// Reads at snapshots, in several ways that must agree.
    fn read_snapshots(&self, mut rng: Rng) {
        while !self.is_over() {
            let before = self.acknowledged();
            let at = self.order.hold();
            let look = |key| match self.memtable.look_up_held(&key_of(key), at) {
                Lookup::Found(seq, ..) => seq,
                Lookup::Absent => 0,
                Lookup::Overwritten => panic!("key {key} at {at} is held"),
            };
            let first: Vec<SeqNo> = (0..KEYS).map(look).collect();
            assert!(first.iter().zip(&before).all(|(found, before)| found >= before));
            let scanned: BTreeMap<Vec<u8>, SeqNo> =
                scan(&self.memtable, at, rng.percent(70)).into_iter().collect();
            for (key, found) in (0..KEYS).zip(&first) {
                assert_eq!(scanned.get(&key_of(key)).copied().unwrap_or(0), *found);
            }
            assert_eq!((0..KEYS).map(look).collect::<Vec<_>>(), first);
            self.order.release(at);
            Self::leave_time();
        }
    }
}

#[test]
fn the_order_of_writes_never_turns_round_and_snapshots_are_exact() {
    for (number, config) in configs().into_iter().enumerate() {
        let seed = (seed_from_env(51) + number as u64) * 10;
        let history = History {
            memtable: Memtable::new(config, &Pool::new(0)),
            order: Order { oldest_held: AtomicU64::new(SeqNo::MAX), ..Order::default() },
            acknowledged: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
            is_over: AtomicBool::new(false),
        };
        let all = &history;
        std::thread::scope(|scope| {
            let write = |thread| scope.spawn(move || all.write(Rng::new(seed + thread)));
            let writers: Vec<_> = (0..3).map(write).collect();
            scope.spawn(|| all.drain());
            scope.spawn(|| all.read(Rng::new(seed + 7)));
            scope.spawn(|| all.read_snapshots(Rng::new(seed + 8)));
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            all.is_over.store(true, Ordering::SeqCst);
        });
        for (key, acknowledged) in (0..).zip(history.acknowledged()) {
            assert_eq!(newest(&history.memtable, &history.order, &key_of(key)), acknowledged);
        }
    }
}
