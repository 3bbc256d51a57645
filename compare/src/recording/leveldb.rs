//! Runs LevelDB and reads what it did.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use terrane_policy::recorded::{Event, Trace};

use super::assemble::{self, Facts};
use super::load::{Operation, key};
use super::manifest;
use super::plan::Recording;
use crate::engines::{SmallTables, by_name};
use crate::settings::{Compression, Durability, Settings};

/// Keys, writes and bytes of a value. Level 1 holds 10 MiB and level 2 100 MiB, so four levels need
/// some 130 MB.
const KEYS: u64 = 20_000;
const WRITES: u64 = 40_000;
const VALUE_BYTES: usize = 8_000;
const TABLE_BYTES: usize = 1 << 20;
const SETTINGS: Settings = Settings {
    memtable_bytes: 1 << 20,
    cache_bytes: 8 << 20,
    block_bytes: 4096,
    filter_bits_per_key: 0,
    background_threads: 1,
    compression: Compression::None,
    durability: Durability::Process,
    budget_bytes_per_second: None,
    memory_limit_bytes: None,
    is_direct: false,
};
/// Writes between two looks at LOG: a fraction of a buffer, so that no two flushes fall between.
const LOOK_WRITES: usize = 16;
/// LOG is complete if it has not changed for this long and its last line ends a job.
const QUIET: Duration = Duration::from_millis(1);
/// LevelDB rests although a level is over its limit if it has done nothing for this long.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(recording: &Recording, dir: &Path) -> Result<Trace> {
    let db = SmallTables::open(dir, &SETTINGS, TABLE_BYTES);
    let db = db.map_err(|error| anyhow!("{error}"))?;
    let rests = load(&db, recording, dir)?;
    drop(db);
    let facts = Facts { rests, ..Facts::default() };
    let mut trace = assemble::events(&manifest::read(dir)?, &facts);
    give_reasons(&mut trace);
    Ok(Trace {
        system: by_name("leveldb").map_or_else(String::new, |one| (one.version)()),
        options: recording.options.clone(),
        load: recording.load.to_string(),
        design: recording.design.clone(),
        ..trace
    })
}

/// Names the reason of each compaction, which LevelDB does not record: it compacts a level that is over
/// its limit, and if there is none, tables that many lookups have read in vain.
fn give_reasons(trace: &mut Trace) {
    let mut levels: Vec<Vec<(u64, u64)>> = Vec::new();
    let add = |levels: &mut Vec<Vec<(u64, u64)>>, level: usize, table: (u64, u64)| {
        levels.resize_with(levels.len().max(level + 2), Vec::new);
        levels[level].push(table);
    };
    for event in &mut trace.events {
        match event {
            Event::Flush { level, table } => {
                add(&mut levels, *level, (table.id.0, table.size_bytes));
            }
            Event::Compaction(compaction) => {
                let by_size = is_over_limit(&levels);
                compaction.reason = if by_size { "size" } else { "seeks" }.to_owned();
                let taken: BTreeSet<u64> = compaction.input_ids().map(|id| id.0).collect();
                let mut moved: Vec<(u64, u64)> = Vec::new();
                for tables in &mut levels {
                    moved.extend(tables.extract_if(.., |(number, _)| taken.contains(number)));
                }
                if let Some(outputs) = &compaction.outputs {
                    moved = outputs.iter().map(|one| (one.id.0, one.size_bytes)).collect();
                }
                moved.into_iter().for_each(|table| add(&mut levels, compaction.level, table));
            }
            Event::Rest | Event::Base(_) => {}
        }
    }
}

fn load(db: &SmallTables, recording: &Recording, dir: &Path) -> Result<BTreeSet<usize>> {
    let store = db.store();
    let failed = |error| anyhow!("{error}");
    let value = vec![b'v'; VALUE_BYTES];
    let mut rests = BTreeSet::new();
    for (count, operation) in recording.load.operations(KEYS, WRITES).enumerate() {
        match operation {
            Operation::Put(number) => store.put(&key(number), &value),
            Operation::Delete(number) => store.delete(&key(number)),
            Operation::Get(number) => store.get(&key(number), &mut |_| {}).map(|_| ()),
        }
        .map_err(failed)?;
        if count % LOOK_WRITES == 0 {
            rests.insert(wait_until_quiet(db, dir)?);
        }
    }
    Ok(rests)
}

/// Waits until LevelDB's thread rests, and returns the number of flushes so far. LOG names the
/// beginning and the end of every job, except for the edit of MANIFEST after a flush, and the removal
/// of files after a compaction. So the table of the last flush must be part of the tree, and while a
/// level is over its limit, another job is expected.
fn wait_until_quiet(db: &SmallTables, dir: &Path) -> Result<usize> {
    let begin = Instant::now();
    let mut before = usize::MAX;
    loop {
        let log = std::fs::read_to_string(dir.join("LOG")).context("LOG")?;
        let text = |line: &&str| !line.contains("Delete type=");
        let last = log.lines().rev().find(text).unwrap_or_default();
        let is_busy = last.ends_with("started")
            || last.contains("Compacting ")
            || last.contains("Generated table")
            || last.contains(" files => ");
        let tables = db.tables();
        let flushed: Vec<&str> = log.lines().filter_map(flushed_table).collect();
        let is_in = flushed.last().is_none_or(|number| is_done(number, &tables, &log));
        let expects_more = !is_in || is_over_limit(&tables);
        if !is_busy && log.len() == before && (!expects_more || begin.elapsed() > PATIENCE) {
            return Ok(flushed.len());
        }
        before = log.len();
        std::thread::sleep(QUIET);
    }
}

/// The number in a line such as `… Level-0 table #12: 1058449 bytes OK`.
fn flushed_table(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("Level-0 table #")?;
    let (number, end) = rest.split_once(':')?;
    end.ends_with("bytes OK").then_some(number)
}

/// Returns true if a flushed table is part of the tree, or was before a compaction took it.
fn is_done(number: &str, tables: &[Vec<(u64, u64)>], log: &str) -> bool {
    let is_listed = |table: &(u64, u64)| table.0.to_string() == number;
    let removed = format!("Delete type=2 #{number}\n");
    tables.iter().flatten().any(is_listed) || log.contains(&removed)
}

/// Returns true if a level holds as much as makes LevelDB compact it: four tables in level 0, 10 MiB
/// in level 1 and ten times as much in each deeper level.
fn is_over_limit(levels: &[Vec<(u64, u64)>]) -> bool {
    let over = |(level, tables): (usize, &Vec<(u64, u64)>)| match u32::try_from(level) {
        Ok(0) => tables.len() >= 4,
        Ok(deeper) => {
            let bytes: u64 = tables.iter().map(|(_, bytes)| bytes).sum();
            bytes >= (10u64 << 20) * 10u64.pow(deeper - 1)
        }
        Err(_) => false,
    };
    // Nothing moves out of the last level.
    let above_last = levels.len().saturating_sub(1);
    levels.iter().take(above_last).enumerate().any(over)
}
