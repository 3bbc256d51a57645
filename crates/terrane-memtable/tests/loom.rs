//! Small models of every kind of memtable, run in all interleavings of their threads and with all
//! values that their atomics may return: `cargo xtask loom`.
//!
//! Under `--cfg loom` a node of the B-link tree holds three entries, so that a few inserts split
//! it.
#![cfg(loom)]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use loom::thread::spawn;
use terrane_memtable::{
    BTreeConfig, Config, DrainInsert, EntryKind, FloDbConfig, HashLinkedListConfig,
    HashSkipListConfig, HashVectorConfig, HashView, Lookup, LowerLevel, MAX_SEQ, Memtable, Pool,
    SkipListConfig, Update, VectorConfig, VectorQuery,
};

const SKIP_LIST: Config = Config::SkipList(SkipListConfig { branching: 2, height: 2 });
const B_TREE: Config = Config::BTree(BTreeConfig);
const VECTOR: Config =
    Config::Vector(VectorConfig { prealloc_bytes: 0, query: VectorQuery::Resort });
/// Each prefix has its own bucket, so that every step of a scan leaves a bucket.
const HASH_SKIP_LIST: Config = Config::HashSkipList(HashSkipListConfig {
    prefix: 1,
    buckets: 2,
    height: 2,
    view: HashView::Kept,
});
const HASH_LINKED_LIST: Config = Config::HashLinkedList(HashLinkedListConfig {
    prefix: 1,
    buckets: 1,
    threshold: 1,
    view: HashView::Kept,
});
const HASH_VECTOR: Config =
    Config::HashVector(HashVectorConfig { prefix: 1, buckets: 1, view: HashView::Kept });
const SCANNED: Config =
    Config::Vector(VectorConfig { prealloc_bytes: 0, query: VectorQuery::Scan });

/// Allows more steps than loom's default, because splitting a node takes hundreds.
fn model(test: impl Fn() + Sync + Send + 'static) {
    model_with(loom::model::Builder::new().preemption_bound, test);
}

/// As [`model`], with at most `switches` preemptions.
fn model_with(switches: Option<usize>, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = switches;
    builder.max_branches = 100_000;
    builder.check(test);
}

fn empty(config: Config) -> Arc<Memtable> {
    Memtable::new(config, &Pool::new(0))
}

fn put(memtable: &Memtable, key: &str, seq: u64) {
    memtable.insert(key.as_bytes(), seq, EntryKind::Value, &value(key, seq));
}

fn value(key: &str, seq: u64) -> Vec<u8> {
    format!("{key}@{seq}").into_bytes()
}

/// Returns the version of `key` at `seq`, after checking its bytes.
fn get(memtable: &Memtable, key: &str, seq: u64) -> Option<u64> {
    let entry = memtable.get(key.as_bytes(), seq)?;
    assert_eq!((entry.key, entry.value), (key.as_bytes(), &value(key, entry.seq)[..]));
    Some(entry.seq)
}

fn scan(memtable: &Arc<Memtable>) -> Vec<(String, u64)> {
    let mut cursor = memtable.cursor();
    let mut found = Vec::new();
    cursor.seek_first();
    while let Some(entry) = cursor.entry() {
        let key = String::from_utf8(entry.key.to_vec()).unwrap();
        assert_eq!(entry.value, value(&key, entry.seq));
        found.push((key, entry.seq));
        cursor.next();
    }
    found
}

fn scan_backward(memtable: &Arc<Memtable>) -> Vec<(String, u64)> {
    let mut cursor = memtable.cursor();
    let mut found = Vec::new();
    cursor.seek_last();
    while let Some(entry) = cursor.entry() {
        let key = String::from_utf8(entry.key.to_vec()).unwrap();
        assert_eq!(entry.value, value(&key, entry.seq));
        found.push((key, entry.seq));
        cursor.previous();
    }
    found.reverse();
    found
}

/// Checks that the keys are sorted, appear once, and include all of `must`.
fn assert_scan(found: &[(String, u64)], must: &[&str]) {
    assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{found:?}");
    assert!(must.iter().all(|key| found.iter().any(|(other, _)| other == key)), "{found:?}");
}

/// Two threads insert `first` and `second` into a memtable that holds `before`.
fn two_writers(
    config: Config,
    before: &'static [&str],
    first: &'static [&str],
    second: &'static [&str],
) {
    let switches = loom::model::Builder::new().preemption_bound;
    two_writers_with(switches, config, before, first, second);
}

fn two_writers_with(
    switches: Option<usize>,
    config: Config,
    before: &'static [&str],
    first: &'static [&str],
    second: &'static [&str],
) {
    model_with(switches, move || {
        let memtable = empty(config);
        let fill = |memtable: &Memtable, keys: &[&str], from: u64| {
            keys.iter().zip(from..).for_each(|(key, seq)| put(memtable, key, seq));
        };
        fill(&memtable, before, 1);
        let other = Arc::clone(&memtable);
        let writer = spawn(move || {
            fill(&other, first, 20);
        });
        fill(&memtable, second, 40);
        writer.join().unwrap();
        let all = [before, first, second].concat();
        let found = scan(&memtable);
        assert_scan(&found, &all);
        assert_eq!(found.len(), all.len());
        assert_eq!(scan_backward(&memtable), found);
        assert!(all.iter().all(|key| get(&memtable, key, MAX_SEQ).is_some()));
        assert_eq!(memtable.len(), all.len());
    });
}

/// One thread reads a memtable that holds `before` while another inserts `added`.
fn writer_and_reader(
    config: Config,
    before: &'static [&str],
    added: &'static [&str],
    read: fn(&Arc<Memtable>, &[&str], &[&str]),
) {
    model(move || {
        let memtable = empty(config);
        before.iter().zip(1..).for_each(|(key, seq)| put(&memtable, key, seq));
        let other = Arc::clone(&memtable);
        let writer = spawn(move || {
            added.iter().zip(20..).for_each(|(key, seq)| put(&other, key, seq));
        });
        read(&memtable, before, added);
        writer.join().unwrap();
        assert_scan(&scan(&memtable), &[before, added].concat());
    });
}

fn read_by_gets(memtable: &Arc<Memtable>, before: &[&str], added: &[&str]) {
    for key in added {
        get(memtable, key, MAX_SEQ);
    }
    assert!(before.iter().all(|key| get(memtable, key, MAX_SEQ).is_some()));
}

fn read_together(memtable: &Arc<Memtable>, before: &[&str], added: &[&str]) {
    let keys: Vec<&[u8]> = added.iter().chain(before).map(|key| key.as_bytes()).collect();
    let mut found = vec![false; keys.len()];
    memtable.look_up_all_held(&keys, MAX_SEQ, |at, lookup| {
        found[at] = matches!(lookup, Lookup::Found(..));
    });
    assert!(found[added.len()..].iter().all(|is_found| *is_found));
}

fn read_by_scan(memtable: &Arc<Memtable>, before: &[&str], _added: &[&str]) {
    assert_scan(&scan(memtable), before);
}

fn read_by_scan_backward(memtable: &Arc<Memtable>, before: &[&str], _added: &[&str]) {
    assert_scan(&scan_backward(memtable), before);
}

/// Covers every registered kind, including new ones.
#[test]
fn every_kind_inserts_from_two_threads() {
    for config in Config::SMALLEST {
        two_writers_with(Some(2), *config, &[], &["b"], &["a"]);
    }
}

#[test]
fn every_kind_is_read_during_an_insert() {
    for config in Config::SMALLEST {
        for read in [read_by_gets, read_by_scan, read_by_scan_backward] {
            writer_and_reader(*config, &["b"], &["a"], read);
        }
    }
}

#[test]
fn skip_list_inserts_of_neighbours() {
    two_writers(SKIP_LIST, &[], &["a"], &["b"]);
    two_writers(SKIP_LIST, &["a", "d"], &["b"], &["c"]);
}

#[test]
fn skip_list_appends() {
    two_writers(SKIP_LIST, &["a"], &["b"], &["c"]);
    two_writers(SKIP_LIST, &["a"], &["d"], &["c"]);
}

#[test]
fn skip_list_insert_and_get() {
    writer_and_reader(SKIP_LIST, &["a", "c"], &["b"], read_by_gets);
    writer_and_reader(SKIP_LIST, &["b"], &["a", "c"], read_by_gets);
}

#[test]
fn skip_list_insert_and_scan() {
    writer_and_reader(SKIP_LIST, &["b", "d"], &["c", "a"], read_by_scan);
    writer_and_reader(SKIP_LIST, &["b", "d"], &["c", "e"], read_by_scan_backward);
}

#[test]
fn b_tree_inserts_into_one_leaf() {
    two_writers(B_TREE, &[], &["a"], &["b"]);
    two_writers(B_TREE, &["b"], &["a"], &["c"]);
}

#[test]
fn b_tree_inserts_that_split_a_leaf() {
    two_writers(B_TREE, &["b", "d"], &["a"], &["c"]);
    two_writers(B_TREE, &["b", "d", "f"], &["c"], &["e"]);
    two_writers(B_TREE, &["b", "d", "f"], &["g"], &["h"]);
}

#[test]
fn b_tree_inserts_that_split_an_inner_node() {
    const FULL: &[&str] = &["a", "c", "e", "g", "i", "k", "m", "o", "q", "s", "u"];
    // This model has too many steps for two preemptions.
    two_writers_with(Some(1), B_TREE, FULL, &["v"], &["w"]);
    two_writers_with(Some(1), B_TREE, FULL, &["w"], &["b"]);
}

#[test]
fn b_tree_insert_and_get() {
    writer_and_reader(B_TREE, &["a", "c"], &["b"], read_by_gets);
    writer_and_reader(B_TREE, &["b", "d", "f"], &["c"], read_by_gets);
    writer_and_reader(B_TREE, &["b", "d", "f"], &["g"], read_by_gets);
}

#[test]
fn b_tree_insert_and_get_together() {
    writer_and_reader(B_TREE, &["a", "c"], &["b"], read_together);
    writer_and_reader(B_TREE, &["b", "d", "f"], &["c"], read_together);
    writer_and_reader(B_TREE, &["b", "d", "f"], &["g"], read_together);
}

/// Keys whose first eight bytes are equal. Two leaves of them have been split, so the tree has new heads, which the
/// next writer gives to the leaf that it locks.
#[test]
fn b_tree_gives_a_leaf_new_heads() {
    const ALIKE: &[&str] = &[
        "prefix--1",
        "prefix--2",
        "prefix--3",
        "prefix--4",
        "prefix--5",
        "prefix--6",
        "prefix--7",
    ];
    fn read_last(memtable: &Arc<Memtable>, before: &[&str], added: &[&str]) {
        get(memtable, added[0], MAX_SEQ);
        assert!(get(memtable, before[before.len() - 1], MAX_SEQ).is_some());
    }
    writer_and_reader(B_TREE, ALIKE, &["prefix--8"], read_last);
    // This model has too many steps for two preemptions.
    two_writers_with(Some(1), B_TREE, ALIKE, &["prefix--8"], &["prefix--75"]);
}

#[test]
fn b_tree_insert_and_scan() {
    writer_and_reader(B_TREE, &["b", "d", "f"], &["c"], read_by_scan);
    writer_and_reader(B_TREE, &["b", "d", "f"], &["a"], read_by_scan_backward);
    writer_and_reader(B_TREE, &["b", "d", "f"], &["g"], read_by_scan_backward);
}

#[test]
fn vector_insert_and_read() {
    two_writers(VECTOR, &[], &["a"], &["b"]);
    writer_and_reader(VECTOR, &["a", "c"], &["b"], read_by_gets);
    writer_and_reader(VECTOR, &["b"], &["a", "c"], read_by_scan);
}

#[test]
fn hash_inserts_make_one_bucket() {
    two_writers(HASH_LINKED_LIST, &[], &["a"], &["b"]);
    two_writers(HASH_SKIP_LIST, &["a"], &["b"], &["c"]);
}

#[test]
fn hash_insert_and_get() {
    writer_and_reader(HASH_LINKED_LIST, &["a", "c"], &["b"], read_by_gets);
    writer_and_reader(HASH_SKIP_LIST, &["a"], &["b"], read_by_gets);
}

/// The walk over the buckets interleaved with an insert: later reads find the entry once.
#[test]
fn hash_insert_and_scan() {
    writer_and_reader(HASH_SKIP_LIST, &["b"], &["a"], read_by_scan);
    writer_and_reader(HASH_SKIP_LIST, &[], &["a", "b"], read_by_scan);
    writer_and_reader(HASH_LINKED_LIST, &["b"], &["c"], read_by_scan_backward);
}

#[test]
fn hash_vector_inserts_into_one_bucket() {
    two_writers(HASH_VECTOR, &[], &["a"], &["b"]);
    two_writers(HASH_VECTOR, &["a"], &["b"], &["c"]);
}

/// Under loom a lookup visits at most two nodes of a chain, and uses the sorted view beyond.
#[test]
fn hash_vector_insert_and_get() {
    writer_and_reader(HASH_VECTOR, &["a"], &["b"], read_by_gets);
    writer_and_reader(HASH_VECTOR, &["a", "c"], &["b"], read_by_gets);
}

#[test]
fn hash_vector_insert_and_scan() {
    writer_and_reader(HASH_VECTOR, &["b"], &["a"], read_by_scan);
    writer_and_reader(HASH_VECTOR, &["b"], &["c"], read_by_scan_backward);
}

#[test]
fn vector_that_scans_insert_and_read() {
    two_writers(SCANNED, &[], &["a"], &["b"]);
    writer_and_reader(SCANNED, &["a", "c"], &["b"], read_by_gets);
    writer_and_reader(SCANNED, &["b"], &["a", "c"], read_by_scan);
}

/// A lookup searches the fresh nodes while another reader sorts them.
#[test]
fn vector_that_scans_is_sorted_while_it_is_searched() {
    model(|| {
        let memtable = empty(SCANNED);
        ["a", "b", "c"].iter().zip(1..).for_each(|(key, seq)| put(&memtable, key, seq));
        let other = Arc::clone(&memtable);
        let reader = spawn(move || assert_eq!(scan(&other).len(), 3));
        for (key, seq) in [("a", 1), ("c", 3)] {
            assert_eq!(get(&memtable, key, MAX_SEQ), Some(seq));
        }
        reader.join().unwrap();
    });
}

/// A reader sees the old or the new version of a key, and versions in order.
#[test]
fn versions_of_a_key_are_never_missing() {
    for config in [SKIP_LIST, B_TREE, VECTOR, SCANNED, HASH_SKIP_LIST, HASH_VECTOR] {
        model(move || {
            let memtable = empty(config);
            put(&memtable, "k", 5);
            let other = Arc::clone(&memtable);
            let writer = spawn(move || put(&other, "k", 9));
            let first = get(&memtable, "k", MAX_SEQ).unwrap();
            let second = get(&memtable, "k", MAX_SEQ).unwrap();
            assert!(first <= second, "a version that was seen is gone");
            assert_eq!(get(&memtable, "k", 7), Some(5));
            writer.join().unwrap();
            assert_eq!(get(&memtable, "k", MAX_SEQ), Some(9));
        });
    }
}

/// Two threads find the last chunk of an arena full, and one of them adds another.
#[test]
fn arenas_grow_under_two_threads() {
    for config in [SKIP_LIST, B_TREE] {
        model(move || {
            const LARGE: usize = 15 << 10;
            let memtable = empty(config);
            for seq in 1..4 {
                memtable.insert(&[seq as u8], seq, EntryKind::Value, &[seq as u8; LARGE]);
            }
            let other = Arc::clone(&memtable);
            let writer = spawn(move || other.insert(b"x", 20, EntryKind::Value, &[20; LARGE]));
            memtable.insert(b"y", 21, EntryKind::Value, &[21; LARGE]);
            writer.join().unwrap();
            for (key, seq) in [(&[1u8][..], 1), (&[3], 3), (b"x", 20), (b"y", 21)] {
                let entry = memtable.get(key, MAX_SEQ).unwrap();
                assert!(entry.value.len() == LARGE && entry.value.iter().all(|&byte| byte == seq));
            }
        });
    }
}

/// FloDB's memtables with one bucket.
const FLO_DBS: [Config; 2] = [flodb(LowerLevel::BTree), flodb(LowerLevel::SkipList)];

const fn flodb(lower: LowerLevel) -> Config {
    Config::FloDb(FloDbConfig {
        buckets: 1,
        partition_bits: 0,
        lower,
        insert: DrainInsert::Multi,
        update: Update::InPlace,
    })
}

/// Writes a version that may hide all versions up to `horizon`.
fn update(memtable: &Memtable, key: &str, seq: u64, horizon: u64) {
    memtable.update(key.as_bytes(), seq, EntryKind::Value, &value(key, seq), || horizon);
}

/// Looks up a version without a snapshot at `seq`, and checks that it is at least `least` and has all its bytes.
fn look_up(memtable: &Arc<Memtable>, key: &str, seq: u64, least: u64) {
    match memtable.look_up(key.as_bytes(), seq) {
        Lookup::Found(found, _, bytes) => {
            assert!(found >= least && found <= seq, "{key} at {seq}: {found}");
            assert_eq!(bytes[..], value(key, found));
            // Still pinned.
            loom::thread::yield_now();
            assert_eq!(bytes[..], value(key, found));
        }
        Lookup::Absent => assert_eq!(least, 0, "{key} at {seq} is gone"),
        Lookup::Overwritten => {}
    }
}

fn drain_all(memtable: &Memtable) {
    memtable.front_level().unwrap().drain_all();
}

/// Runs a model with an empty memtable of each lower level.
fn for_flodbs(test: impl Fn(Arc<Memtable>) + Copy + Sync + Send + 'static) {
    for config in FLO_DBS {
        model_with(Some(2), move || test(empty(config)));
    }
}

#[test]
fn flodb_updates_in_place_leave_readers_whole_versions() {
    for_flodbs(|memtable| {
        update(&memtable, "k", 1, 0);
        update(&memtable, "k", 2, 1);
        let writer = Arc::clone(&memtable);
        // The first reuses the memory of version 1, the second that of version 2.
        let writing = spawn(move || {
            update(&writer, "k", 3, 2);
            update(&writer, "k", 4, 3);
        });
        look_up(&memtable, "k", 2, 2);
        writing.join().unwrap();
        assert!(matches!(memtable.look_up(b"k", 2), Lookup::Overwritten));
        look_up(&memtable, "k", 3, 3);
        look_up(&memtable, "k", 9, 4);
    });
}

/// A memtable without a Membuffer: a leaf is overwritten in place.
const IN_PLACE_TREE: Config = Config::FloDb(FloDbConfig {
    buckets: 0,
    partition_bits: 0,
    lower: LowerLevel::BTree,
    insert: DrainInsert::Multi,
    update: Update::InPlace,
});

/// A version is written, the one before it is removed, and the next one takes its memory, while a
/// reader looks up the key or walks. If the model includes the first of these writes, there are too
/// many steps to explore with two preemptions.
#[test]
fn flodb_overwrites_leaves_under_lookups_and_cursors() {
    for (switches, before, by_cursor) in [(1, 1, false), (1, 1, true), (2, 2, false), (2, 2, true)]
    {
        model_with(Some(switches), move || {
            let memtable = empty(IN_PLACE_TREE);
            (1..=before).for_each(|seq| update(&memtable, "k", seq, seq - 1));
            let writer = Arc::clone(&memtable);
            let writing = spawn(move || {
                if before < 2 {
                    update(&writer, "k", 2, 1);
                }
                // Removes version 1, whose memory version 3 takes.
                writer.reclaim_hidden(b"k", 2, || 2);
                update(&writer, "k", 3, 2);
            });
            if by_cursor {
                let found = scan(&memtable);
                assert!(!found.is_empty() && found.iter().all(|(key, _)| key == "k"));
            } else {
                look_up(&memtable, "k", 2, before);
            }
            writing.join().unwrap();
            assert_eq!(scan(&memtable), [("k".to_owned(), 3), ("k".to_owned(), 2)]);
            assert!(matches!(memtable.look_up(b"k", 1), Lookup::Overwritten));
        });
    }
}

/// The first entry of a leaf is overwritten by a version in the left neighbour, while a reader looks it
/// up or walks over the two leaves. If an entry of the left neighbour is overwritten first, there are
/// too many steps to explore with two preemptions.
#[test]
fn flodb_overwrites_the_first_entry_of_a_leaf() {
    for (switches, overwritten) in [(1, &["b", "c"][..]), (2, &["c"])] {
        for reader in 0..3 {
            model_with(Some(switches), move || {
                let memtable = empty(IN_PLACE_TREE);
                for (key, seq) in ["a", "c", "d", "b"].into_iter().zip(1..) {
                    update(&memtable, key, seq, seq - 1);
                }
                let writer = Arc::clone(&memtable);
                let writing = spawn(move || {
                    for (key, seq) in overwritten.iter().zip(5..) {
                        update(&writer, key, seq, seq - 1);
                        writer.reclaim_hidden(key.as_bytes(), seq, || seq);
                    }
                });
                match reader {
                    0 => assert_walk(&scan(&memtable)),
                    1 => assert_walk(&scan_backward(&memtable)),
                    _ => look_up(&memtable, "c", 4, 2),
                }
                writing.join().unwrap();
                let mut left = vec![("a", 1), ("b", 4), ("c", 2), ("d", 3)];
                for (key, seq) in overwritten.iter().zip(5..) {
                    left.iter_mut()
                        .filter(|(other, _)| other == key)
                        .for_each(|(_, old)| *old = seq);
                }
                let left: Vec<_> =
                    left.iter().map(|(key, seq)| ((*key).to_owned(), *seq)).collect();
                assert_eq!(scan(&memtable), left);
                assert_eq!(scan_backward(&memtable), left);
            });
        }
    }
}

/// Checks that a walk found every key, and versions in order. It holds no number, so the version of
/// "c" may leave the right leaf after the walk has left the left one.
fn assert_walk(found: &[(String, u64)]) {
    assert!(found.is_sorted_by(|a, b| (&a.0, b.1) < (&b.0, a.1)), "{found:?}");
    let has = |key: &str| found.iter().any(|(other, _)| other == key);
    assert!(["a", "b", "d"].into_iter().all(has), "{found:?}");
}

/// A drained version replaces one in a leaf, while a reader follows the chain or the leaf to the older one.
#[test]
fn flodb_drains_overwrite_leaves_under_lookups() {
    model_with(Some(2), || {
        let memtable = empty(FLO_DBS[0]);
        update(&memtable, "k", 1, 0);
        drain_all(&memtable);
        update(&memtable, "k", 2, 1);
        let writer = Arc::clone(&memtable);
        let writing = spawn(move || {
            writer.reclaim_hidden(b"k", 2, || 2);
            // Reloads the bounds of readers that drains use.
            update(&writer, "j", 100, 99);
            drain_all(&writer);
            update(&writer, "i", 200, 199);
        });
        look_up(&memtable, "k", 2, 1);
        writing.join().unwrap();
        look_up(&memtable, "k", 2, 2);
    });
}

#[test]
fn flodb_drains_beside_updates_lose_nothing() {
    for_flodbs(|memtable| {
        update(&memtable, "k", 1, 0);
        let writer = Arc::clone(&memtable);
        let writing = spawn(move || update(&writer, "k", 2, 1));
        let drainer = Arc::clone(&memtable);
        let draining = spawn(move || drain_all(&drainer));
        look_up(&memtable, "k", 1, 1);
        writing.join().unwrap();
        draining.join().unwrap();
        look_up(&memtable, "k", 2, 2);
        look_up(&memtable, "k", 1, 1);
        let found = scan(&memtable);
        assert_eq!(found, [("k".to_owned(), 2), ("k".to_owned(), 1)]);
    });
}

#[test]
fn flodb_writes_of_one_key_keep_their_order() {
    for_flodbs(|memtable| {
        let threads = [3, 2].map(|seq| {
            let memtable = Arc::clone(&memtable);
            spawn(move || update(&memtable, "k", seq, 0))
        });
        drain_all(&memtable);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        for (at, newest) in [(2, 2), (3, 3), (9, 3)] {
            look_up(&memtable, "k", at, newest);
        }
        assert_eq!(scan(&memtable), [("k".to_owned(), 3), ("k".to_owned(), 2)]);
    });
}
