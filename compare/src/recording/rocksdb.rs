//! Runs RocksDB and reads what it did.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use rocksdb::{DB, FlushOptions, Options, WaitForCompactOptions, WriteOptions};
use serde_json::Value;
use terrane_policy::recorded::Trace;

use super::assemble::{self, Facts};
use super::load::{Load, Operation, key};
use super::manifest;
use super::plan::Recording;

/// Keys, writes and bytes of a value: 12 MB of data in flushes of 64 KiB.
const KEYS: u64 = 12_000;
const WRITES: u64 = 24_000;
const VALUE_BYTES: usize = 1_000;
/// Writes of one flush.
const FLUSH_WRITES: usize = 62;
/// RocksDB's default of seven levels.
const LAST_LEVEL: usize = 6;
const COMMON: &str = "create_if_missing=true; compression=kNoCompression; max_background_jobs=1; \
                      write_buffer_size=1048576; level0_slowdown_writes_trigger=100; \
                      level0_stop_writes_trigger=200";

pub(super) fn run(recording: &Recording, dir: &Path) -> Result<Trace> {
    let options = format!("{COMMON}; {}", recording.options);
    let options = Options::default().get_options_from_string(&options).context("the options")?;
    let db = DB::open(&options, dir).context("open RocksDB")?;
    let rests = load(&db, recording.load)?;
    drop(db);
    let log = std::fs::read_to_string(dir.join("LOG")).context("LOG")?;
    let mut facts = read_log(&log)?;
    facts.rests = rests;
    facts.has_sequence = recording.options.contains("Oldest");
    if recording.load != Load::Deletes {
        facts.entries.clear();
    }
    if !recording.options.contains("dynamic_level_bytes=true") {
        facts.bases.clear();
    }
    let trace = assemble::events(&manifest::read(dir)?, &facts);
    Ok(Trace {
        system: version(),
        options: recording.options.clone(),
        load: recording.load.to_string(),
        design: recording.design.clone(),
        ..trace
    })
}

fn version() -> String {
    let version = crate::engines::version_of("librocksdb-sys");
    format!("RocksDB {}", version.split_once('+').map_or(version, |(_, own)| own))
}

/// Runs the load, and returns the numbers of flushes after which RocksDB was at rest.
fn load(db: &DB, load: Load) -> Result<BTreeSet<usize>> {
    let mut plain = WriteOptions::default();
    plain.disable_wal(true);
    let mut flush = FlushOptions::default();
    flush.set_wait(true);
    let value = vec![b'v'; VALUE_BYTES];
    let mut rests = BTreeSet::new();
    let (mut written, mut flushed, mut batch, mut left) = (0, 0, 0, load.flushes(0));
    let hold = |is_held: bool| {
        let value = if is_held { "true" } else { "false" };
        db.set_options(&[("disable_auto_compactions", value)]).context("hold compactions")
    };
    for operation in load.operations(KEYS, WRITES) {
        match operation {
            Operation::Put(number) => db.put_opt(key(number), &value, &plain)?,
            Operation::Delete(number) => db.delete_opt(key(number), &plain)?,
            Operation::Get(number) => drop(db.get_pinned(key(number))?),
        }
        written += 1;
        if written % FLUSH_WRITES != 0 {
            continue;
        }
        db.flush_opt(&flush).context("flush")?;
        flushed += 1;
        left -= 1;
        if left > 0 {
            continue;
        }
        if load == Load::Bursts {
            hold(false)?;
        }
        db.wait_for_compact(&WaitForCompactOptions::default()).context("wait for compactions")?;
        rests.insert(flushed);
        batch += 1;
        left = load.flushes(batch);
        if load == Load::Bursts {
            hold(true)?;
        }
    }
    Ok(rests)
}

/// Reads the events of LOG, and the base levels that it names after each edit.
fn read_log(log: &str) -> Result<Facts> {
    const EVENT: &str = "EVENT_LOG_v1 ";
    let mut facts = Facts::default();
    let mut bases: Vec<(&str, usize)> = Vec::new();
    for line in log.lines() {
        if let Some((_, event)) = line.split_once(EVENT) {
            let event: Value = serde_json::from_str(event).context("an event of LOG")?;
            take_event(&event, &mut facts);
        } else if let Some(base) = base_after_edit(line) {
            bases.push(base);
        }
    }
    // Two threads write to LOG, and each line has the time of its edit.
    bases.sort_unstable();
    facts.bases = bases.into_iter().map(|(_, level)| level).collect();
    Ok(facts)
}

/// The time and the base level of a line that sums up the levels after an edit. While all data is in
/// level 0, the line does not name the base level, which is the last level then.
fn base_after_edit(line: &str) -> Option<(&str, usize)> {
    const TIME: &str = "(Original Log Time ";
    const BASE: &str = ": base level ";
    let (before, _) = line.split_once(" files[")?;
    let (_, time) = before.split_once(TIME)?;
    let time = time.split(')').next()?;
    let Some((_, base)) = before.split_once(BASE) else { return Some((time, LAST_LEVEL)) };
    Some((time, base.split(' ').next()?.parse().ok()?))
}

fn take_event(event: &Value, facts: &mut Facts) {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    match event["event"].as_str() {
        Some("table_file_creation") => {
            let facts_of = &event["table_properties"];
            let counts = (number(&facts_of["num_entries"]), number(&facts_of["num_deletions"]));
            facts.entries.insert(number(&event["file_number"]), counts);
        }
        Some("compaction_started") => {
            let fields: BTreeMap<&String, &Value> =
                event.as_object().into_iter().flatten().collect();
            let files = fields.iter().filter(|(name, _)| name.starts_with("files_L"));
            let inputs = files.filter_map(|(_, list)| list.as_array()).flatten().map(number);
            let reason = event["compaction_reason"].as_str().unwrap_or("-");
            facts.reasons.insert(inputs.collect(), reason.to_owned());
        }
        _ => {}
    }
}
