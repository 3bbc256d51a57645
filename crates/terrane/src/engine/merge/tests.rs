//! Checks the drop rules: after any merge, every snapshot reads as before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_memtable::{Config, Memtable, Pool, SkipListConfig};
use terrane_policy::{Compression, KeyRange, TreeShape, Values};
use terrane_testkit::{Rng, seed_from_env};

use super::output::NextTable;
use super::value_output::NextValueFile;
use super::*;
use crate::base::compaction_filter::{
    CompactionFilter, CompactionFilters, FilterDecision, KeyspaceFilter,
};
use crate::base::error::Error;
use crate::base::types::EntryKind;
use crate::engine::cursor::{DeletedRanges, Sight, Source, VisibleCursor};
use crate::engine::version::Version;
use crate::files::buffer::BufferPool;
use crate::files::storage::{Access, MemoryStorage, Storage};
use crate::files::table::{Table, TableConfig, TableEnvironment, TableFileId};
use crate::files::value_file::ValueFiles;
use crate::files::value_pointer::ValueFileName;

fn environment(storage: &MemoryStorage) -> Arc<TableEnvironment> {
    let (storage, buffer) = (Arc::new(storage.clone()), BufferPool::new(1 << 20));
    Arc::new(TableEnvironment::alone(storage, Access::Buffered, buffer))
}

/// Merges one memtable into tables of a few hundred bytes.
fn merge_memtable(
    memtable: &Arc<Memtable>,
    storage: &MemoryStorage,
    snapshots: &[SeqNo],
    older: OlderTables,
    grandparents: Vec<Arc<terrane_policy::TableInfo>>,
) -> Vec<FinishedTable> {
    let rules = DropRules::new(snapshots.to_vec(), older);
    merge_by(memtable, storage, rules, grandparents)
}

fn merge_by(
    memtable: &Arc<Memtable>,
    storage: &MemoryStorage,
    rules: DropRules,
    grandparents: Vec<Arc<terrane_policy::TableInfo>>,
) -> Vec<FinishedTable> {
    let mut input = MergeCursor::new(vec![Source::Memtable(memtable.cursor())]);
    input.seek_first().unwrap();
    let mut number = 0;
    let next_table = move || {
        number += 1;
        let id = TableFileId { number, writer: 1 };
        (id, Path::new(".").join(id.file_name()))
    };
    let table = TableConfig {
        block_bytes: 100,
        filter_bits: 10.0,
        filter_probes: None,
        compression: Compression::None,
        keyspace: 0,
        sync_bytes: 0,
        access: Access::Buffered,
    };
    let mut output = Output::new(
        OutputConfig {
            storage: Arc::new(storage.clone()),
            table,
            table_bytes: 300,
            parts_bytes_max: usize::MAX,
            warmer: None,
            grandparents,
            next_table: Box::new(next_table),
            now_micros: 5,
            oldest_tombstone_micros: None,
        },
        ValueOutputConfig::inline(),
    );
    merge(input, None, memtable.range_tombstones().fragments(), rules, &mut output, &mut |_| Ok(()))
        .unwrap()
}

fn version(tables: &[FinishedTable], storage: &MemoryStorage) -> Arc<Version> {
    let environment = environment(storage);
    let text: String = tables.iter().map(|table| format!(" {}", table.info)).collect();
    let shape: TreeShape = format!("L1 r1:{text}").parse().unwrap();
    let open = tables.iter().map(|table| {
        let opened = Table::new(table.id, Arc::clone(&table.info), Path::new("."), &environment);
        opened.verify().unwrap();
        (table.info.id, opened)
    });
    Arc::new(Version::new(shape, open.collect(), ValueFiles::default()))
}

fn read_version(version: &Arc<Version>, seq: SeqNo) -> Vec<(Vec<u8>, Vec<u8>)> {
    let runs = version
        .runs()
        .iter()
        .map(|run| Source::Run(crate::engine::cursor::RunCursor::new(Arc::clone(run))));
    let sight = Sight { seq, state: 0 };
    let deleted =
        DeletedRanges::new(std::iter::empty(), version, (&Arc::default(), seq), sight).unwrap();
    read(VisibleCursor::new(MergeCursor::new(runs), (seq, 0), deleted, None))
}

fn read_memtable(memtable: &Arc<Memtable>, seq: SeqNo) -> Vec<(Vec<u8>, Vec<u8>)> {
    let sources = vec![Source::Memtable(memtable.cursor())];
    let (none, dead, sight) = (Arc::default(), Arc::default(), Sight { seq, state: 0 });
    let deleted =
        DeletedRanges::new(std::iter::once(memtable), &none, (&dead, seq), sight).unwrap();
    read(VisibleCursor::new(MergeCursor::new(sources), (seq, 0), deleted, None))
}

fn read(mut cursor: VisibleCursor) -> Vec<(Vec<u8>, Vec<u8>)> {
    cursor.seek(b"").unwrap();
    let mut all = Vec::new();
    while cursor.is_valid() {
        all.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.step().unwrap();
    }
    all
}

fn random_memtable(rng: &mut Rng, entries: u64) -> Arc<Memtable> {
    let memtable =
        Memtable::new(Config::SkipList(SkipListConfig { branching: 4, height: 12 }), &Pool::new(0));
    let keys = rng.between(1, 40);
    for seq in 1..=entries {
        let key = [rng.below(keys) as u8];
        match rng.below(20) {
            0 => {
                let end = [key[0] + rng.below(15) as u8];
                memtable.insert_range_tombstone(
                    &key,
                    rng.percent(90).then_some(&end[..]),
                    seq,
                    seq,
                );
            }
            1..=5 => memtable.insert(&key, seq, EntryKind::Tombstone, &[]),
            _ => memtable.insert(&key, seq, EntryKind::Value, &vec![seq as u8; rng.index(40)]),
        }
    }
    memtable
}

#[test]
fn merged_tables_read_as_the_memtable_did_at_every_snapshot() {
    let seed = seed_from_env(71);
    for round in 0..150 {
        let mut rng = Rng::new(seed + round);
        let entries = rng.between(1, 200);
        let memtable = random_memtable(&mut rng, entries);
        let mut snapshots: Vec<SeqNo> = (0..rng.below(5)).map(|_| rng.below(entries + 1)).collect();
        snapshots.sort_unstable();
        snapshots.dedup();
        for has_older in [false, true] {
            let storage = MemoryStorage::new(1);
            let everything = terrane_policy::TableInfo::new(999, KeyRange::all(), 1);
            let older = if has_older { vec![vec![Arc::new(everything)]] } else { vec![] };
            let tables =
                merge_memtable(&memtable, &storage, &snapshots, OlderTables::new(older), vec![]);
            let story = format!("seed {} snapshots {snapshots:?}", seed + round);
            if tables.is_empty() {
                assert!(
                    !has_older
                        && snapshots.is_empty()
                        && read_memtable(&memtable, entries).is_empty()
                );
                continue;
            }
            let version = version(&tables, &storage);
            for &seq in snapshots.iter().chain([&entries]) {
                assert_eq!(
                    read_version(&version, seq),
                    read_memtable(&memtable, seq),
                    "{story} at {seq}"
                );
            }
            let tombstones: u64 = tables
                .iter()
                .map(|table| table.info.tombstones + table.info.range_tombstones)
                .sum();
            assert!(has_older || !snapshots.is_empty() || tombstones == 0, "{story}");
        }
    }
}

/// Removes the values of a third of the keys, and replaces those of another third.
#[derive(Debug)]
struct Thirds;

impl CompactionFilter for Thirds {
    fn name(&self) -> &'static str {
        "thirds"
    }

    fn decide(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
        match key[0] % 3 {
            0 => FilterDecision::Remove,
            1 => FilterDecision::Replace(b"replaced".to_vec()),
            _ => FilterDecision::Keep,
        }
    }
}

/// Listed snapshots read as before. Later readers find values that no snapshot sees filtered, and
/// no older version in place of a removed value.
#[test]
fn a_filter_decides_the_versions_that_no_snapshot_sees() {
    let seed = seed_from_env(73);
    let mut filters = CompactionFilters::default();
    filters.add(Arc::new(Thirds));
    for round in 0..150 {
        let mut rng = Rng::new(seed + round);
        let entries = rng.between(1, 200);
        let memtable = random_memtable(&mut rng, entries);
        let mut snapshots: Vec<SeqNo> = (0..rng.below(4)).map(|_| rng.below(entries + 1)).collect();
        snapshots.sort_unstable();
        snapshots.dedup();
        let newest = snapshots.last().copied().unwrap_or(0);
        let version_of = |key: &[u8]| match memtable.look_up(key, entries) {
            terrane_memtable::Lookup::Found(seq, ..) => seq,
            _ => 0,
        };
        let expected = read_memtable(&memtable, entries).into_iter().filter_map(|(key, value)| {
            match (key[0] % 3, version_of(&key) > newest) {
                (0, true) => None,
                (1, true) => Some((key, b"replaced".to_vec())),
                _ => Some((key, value)),
            }
        });
        let expected: Vec<_> = expected.collect();
        for has_older in [false, true] {
            let filter: KeyspaceFilter = filters.find("thirds");
            let storage = MemoryStorage::new(1);
            let everything = terrane_policy::TableInfo::new(999, KeyRange::all(), 1);
            let older = if has_older { vec![vec![Arc::new(everything)]] } else { vec![] };
            let rules = DropRules::new(snapshots.clone(), OlderTables::new(older));
            let rules = rules.filtering(Some(Filtering::new(&Arc::new(filter), &Arc::default())));
            let tables = merge_by(&memtable, &storage, rules, vec![]);
            let story = format!("seed {} snapshots {snapshots:?}", seed + round);
            if tables.is_empty() {
                assert!(!has_older && snapshots.is_empty() && expected.is_empty(), "{story}");
                continue;
            }
            let version = version(&tables, &storage);
            assert_eq!(read_version(&version, entries), expected, "{story}");
            for &seq in &snapshots {
                let before = read_memtable(&memtable, seq);
                assert_eq!(read_version(&version, seq), before, "{story} at {seq}");
            }
            let tombstones: u64 = tables.iter().map(|table| table.info.tombstones).sum();
            assert!(has_older || !snapshots.is_empty() || tombstones == 0, "{story}");
        }
    }
}

#[test]
fn tombstones_stay_exactly_where_older_tables_lie() {
    let memtable =
        Memtable::new(Config::SkipList(SkipListConfig { branching: 4, height: 12 }), &Pool::new(0));
    for key in 0..10u8 {
        memtable.insert(&[key], u64::from(key) + 1, EntryKind::Tombstone, &[]);
    }
    memtable.insert_range_tombstone(&[20], Some(&[30]), 50, 50);
    memtable.insert_range_tombstone(&[40], Some(&[50]), 51, 51);
    let info = |number, start: u8, end: u8| {
        Arc::new(terrane_policy::TableInfo::new(number, KeyRange::new(&[start], Some(&[end])), 1))
    };
    let older = OlderTables::new(vec![vec![info(1, 2, 4), info(2, 45, 46)], vec![info(3, 8, 9)]]);
    let storage = MemoryStorage::new(1);
    let tables = merge_memtable(&memtable, &storage, &[], older, vec![]);
    let kept: u64 = tables.iter().map(|table| table.info.tombstones).sum();
    assert_eq!(kept, 3);
    let version = version(&tables, &storage);
    let fragments = version.range_tombstones().unwrap().unwrap().fragments();
    assert_eq!(fragments.len(), 1);
    assert_eq!(*fragments[0].start, [40]);
}

#[test]
fn tables_are_cut_by_size_and_by_grandparents_never_within_a_key() {
    let memtable =
        Memtable::new(Config::SkipList(SkipListConfig { branching: 4, height: 12 }), &Pool::new(0));
    let mut seq = 0;
    for key in 0..60u8 {
        for _ in 0..if key == 7 { 30 } else { 1 } {
            seq += 1;
            memtable.insert(&[key], seq, EntryKind::Value, &[key; 20]);
        }
    }
    memtable.insert_range_tombstone(&[5], Some(&[55]), 1, 1);
    let storage = MemoryStorage::new(1);
    let snapshots: Vec<SeqNo> = (1..seq).collect();
    // One grandparent of 4000 bytes is more than ten tables of 300 bytes.
    let grandparents =
        vec![Arc::new(terrane_policy::TableInfo::new(1, KeyRange::new(&[50], Some(&[52])), 4000))];
    let everything = Arc::new(terrane_policy::TableInfo::new(2, KeyRange::all(), 1));
    let older = OlderTables::new(vec![vec![everything]]);
    let tables = merge_memtable(&memtable, &storage, &snapshots, older, grandparents);
    assert!(tables.len() > 5);
    for pair in tables.windows(2) {
        let end = pair[0].info.range.end.as_ref().unwrap();
        assert!(**end <= *pair[1].info.range.start);
    }
    assert!(tables.iter().any(|table| *table.info.range.start == [52]));
    let version = version(&tables, &storage);
    for &seq in &snapshots {
        assert_eq!(read_version(&version, seq), read_memtable(&memtable, seq));
    }
}

/// Returns an output that cuts no tables.
fn one_table<'a>(
    storage: &MemoryStorage,
    next_table: NextTable<'a>,
    values: ValueOutputConfig<'a>,
) -> Output<'a> {
    let table = TableConfig {
        block_bytes: 100,
        filter_bits: 0.0,
        filter_probes: None,
        compression: Compression::None,
        keyspace: 0,
        sync_bytes: 0,
        access: Access::Buffered,
    };
    let config = OutputConfig {
        storage: Arc::new(storage.clone()),
        table,
        table_bytes: 1 << 20,
        parts_bytes_max: usize::MAX,
        warmer: None,
        grandparents: vec![],
        next_table,
        now_micros: 0,
        oldest_tombstone_micros: None,
    };
    Output::new(config, values)
}

/// Only pointers were counted, so a merge wrote hundreds of megabytes before it yielded to other
/// merges.
#[test]
fn values_that_move_count_as_input() {
    let values: Values = "separate(1KiB)".parse().unwrap();
    let memtable =
        Memtable::new(Config::SkipList(SkipListConfig { branching: 4, height: 12 }), &Pool::new(0));
    for key in 0..20u8 {
        memtable.insert(&[key], u64::from(key) + 1, EntryKind::Value, &vec![key; 40 << 10]);
    }
    let storage = MemoryStorage::new(1);
    let run = |source, number, config: ValueOutputConfig<'_>| {
        let mut input = MergeCursor::new(vec![source]);
        input.seek_first().unwrap();
        let id = TableFileId { number, writer: 1 };
        let next_table = move || (id, PathBuf::from(id.file_name()));
        let mut output = one_table(&storage, Box::new(next_table), config);
        let rules = DropRules::new(vec![], OlderTables::default());
        let mut calls = 0;
        let mut count = |_| {
            calls += 1;
            Ok(())
        };
        let mut tables = merge(input, None, vec![], rules, &mut output, &mut count).unwrap();
        (tables.remove(0), output.take_value_files(), calls)
    };
    let named = |number| {
        let name = ValueFileName { number, writer: 1 };
        let next_file: NextValueFile<'static> =
            Box::new(move || (name, PathBuf::from(name.file_name())));
        next_file
    };
    let separated =
        ValueOutputConfig { values, next_file: named(1), ..ValueOutputConfig::inline() };
    let (table, mut files, calls) = run(Source::Memtable(memtable.cursor()), 2, separated);
    assert!((9..=21).contains(&calls), "{calls} calls");
    let environment = environment(&storage);
    let file = files.remove(0);
    let dir = Path::new("");
    let file =
        crate::files::value_file::ValueFile::new(file.name, file.size_bytes, dir, &environment);
    let source = Arc::new(ValueFiles::new(dir, BTreeMap::from([(1, file)])));
    let inline =
        || ValueOutputConfig { source: Arc::clone(&source), ..ValueOutputConfig::inline() };
    let relocated = vec![terrane_policy::ValueFileId(1)];
    let moved = ValueOutputConfig { values, relocated, next_file: named(4), ..inline() };
    for (number, config) in [(3, moved), (5, inline())] {
        let open = Table::new(table.id, Arc::clone(&table.info), dir, &environment);
        let run_of = Arc::new(crate::engine::version::OpenRun::of_tables(vec![open]));
        let (_, files, calls) =
            run(Source::Run(crate::engine::cursor::RunCursor::new(run_of)), number, config);
        assert_eq!(files.len(), usize::from(number == 3));
        assert!((9..=21).contains(&calls), "{calls} calls");
    }
}

#[test]
fn a_stopped_merge_names_the_files_it_began() {
    let memtable = random_memtable(&mut Rng::new(1), 3000);
    let storage = MemoryStorage::new(1);
    let mut input = MergeCursor::new(vec![Source::Memtable(memtable.cursor())]);
    input.seek_first().unwrap();
    let next_table = || (TableFileId { number: 1, writer: 1 }, PathBuf::from("1"));
    let mut output = one_table(&storage, Box::new(next_table), ValueOutputConfig::inline());
    let rules = DropRules::new(vec![], OlderTables::default());
    let stopped = merge(input, None, vec![], rules, &mut output, &mut |_| Err(Error::Closed));
    assert!(matches!(stopped, Err(Error::Closed)));
    assert_eq!(output.paths().len(), 1);
    assert_eq!(storage.list(Path::new(".")).unwrap(), ["1"]);
}

#[test]
fn a_merge_is_ready_to_give_way_after_each_chunk() {
    let storage = MemoryStorage::new(1);
    let memtable =
        Memtable::new(Config::SkipList(SkipListConfig { branching: 4, height: 12 }), &Pool::new(0));
    let value = vec![b'v'; CHUNK_BYTES / 4];
    for seq in 1..=40 {
        memtable.insert(format!("{seq:02}").as_bytes(), seq, EntryKind::Value, &value);
    }
    let before = turns::STEPS.get();
    let older = OlderTables::default();
    let tables = merge_memtable(&memtable, &storage, &[], older, Vec::new());
    // Each table builds a filter, in one step.
    let steps = turns::STEPS.get() - before - tables.len();
    assert!((9..=14).contains(&steps), "{steps}");
}
