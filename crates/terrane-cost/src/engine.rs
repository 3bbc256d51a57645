//! The operations of the engine.

use std::hint::black_box;
use std::path::Path;

use terrane::{Background, Db, Durability, Options};

use crate::data::{ENTRIES, VALUE, key};
use crate::operation::{Operation, Outcome, operation};

/// The repetitions of an operation on one key.
const REPEATED: u64 = 4_000;

/// The keys of a batch, and of a lookup of several keys.
const BATCH: u64 = 100;

/// The repetitions of a sync, whose cost is one system call.
const SYNCED: u64 = 50;

/// The runs of a level that a scan merges.
const RUNS: u64 = 4;

/// A budget that holds one part in ten of [`ENTRIES`].
const SMALL_BUDGET: u64 = 1 << 20;

const LARGE_VALUE: [u8; 1000] = [7; 1000];

/// Measures all operations.
pub(crate) fn measure() -> Outcome {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    measure_in_memory(&dir.join("memory"))?;
    measure_tables(&dir.join("tables"))?;
    measure_runs(&dir.join("runs"))?;

    // Background jobs would read and write, too.
    let options = Options::new().background(Background::Inline);
    let cold = options.clone().memory_budget(SMALL_BUDGET).open(dir.join("cold"))?;
    fill(&cold, 0..ENTRIES, &LARGE_VALUE)?;
    cold.flush()?;
    operation!(get_cold, REPEATED).measure(&cold, &cold)?;

    let synced = Options::new().durability(Durability::Sync).open(dir.join("synced"))?;
    synced.put(key(0), VALUE)?;
    operation!(put_synced, SYNCED).measure(&synced, &synced)?;

    let mut options = options;
    options.set("design", "balanced; buffer=256KiB; table=256KiB")?;
    let load = options.open(dir.join("load"))?;
    operation!(put_flushed_and_compacted, ENTRIES).measure(&load, &load)
}

/// Measures operations that find all in the memtable.
fn measure_in_memory(dir: &Path) -> Outcome {
    let db = Db::open(dir)?;
    fill(&db, 0..ENTRIES, &VALUE)?;
    let operations: [Operation<Db>; 7] = [
        operation!(put, REPEATED),
        operation!(overwrite, REPEATED),
        operation!(batch, REPEATED),
        operation!(transaction, REPEATED),
        operation!(get_of_memtable, REPEATED),
        operation!(scan_memtable, ENTRIES),
        operation!(delete, REPEATED),
    ];
    operations.iter().try_for_each(|operation| operation.measure(&db, &db))
}

/// Measures reads of tables whose blocks are in memory.
fn measure_tables(dir: &Path) -> Outcome {
    let db = Db::open(dir)?;
    fill(&db, 0..ENTRIES, &VALUE)?;
    db.flush()?;
    db.compact_range(..)?;
    // Blocks come into memory as they are read.
    get_all(&db, ENTRIES)?;
    scan(&db, ENTRIES)?;
    let operations: [Operation<Db>; 5] = [
        operation!(get_hit, ENTRIES),
        operation!(get_miss, REPEATED),
        operation!(multi_get, ENTRIES),
        operation!(seek, REPEATED),
        operation!(next, ENTRIES),
    ];
    operations.iter().try_for_each(|operation| operation.measure(&db, &db))
}

/// Measures reads of several runs with keys of the same range.
fn measure_runs(dir: &Path) -> Outcome {
    let db = Options::new().background(Background::Inline).open(dir)?;
    for run in 0..RUNS {
        fill(&db, ENTRIES * run / RUNS..ENTRIES * (run + 1) / RUNS, &VALUE)?;
        db.flush()?;
    }
    get_all(&db, ENTRIES)?;
    let operations: [Operation<Db>; 3] = [
        operation!(get_of_runs, ENTRIES),
        operation!(seek_in_runs, REPEATED),
        operation!(next_of_runs, ENTRIES),
    ];
    operations.iter().try_for_each(|operation| operation.measure(&db, &db))
}

/// Distinguishes functions with the same body, which the compiler would merge.
fn distinct(name: &str) {
    black_box(name);
}

fn fill(db: &Db, numbers: std::ops::Range<u64>, value: &[u8]) -> Outcome {
    for number in numbers {
        db.put(key(number), value)?;
    }
    Ok(())
}

#[inline(never)]
fn put(db: &Db) -> Outcome {
    fill(db, ENTRIES..ENTRIES + REPEATED, &VALUE)
}

#[inline(never)]
fn overwrite(db: &Db) -> Outcome {
    fill(db, 0..REPEATED, &VALUE)
}

#[inline(never)]
fn delete(db: &Db) -> Outcome {
    for number in 0..REPEATED {
        db.delete(key(number))?;
    }
    Ok(())
}

/// Puts the keys in batches.
#[inline(never)]
fn batch(db: &Db) -> Outcome {
    let mut batch = terrane::WriteBatch::new();
    for first in (0..REPEATED).step_by(BATCH as usize) {
        batch.clear();
        for number in first..first + BATCH {
            batch.put(key(2 * ENTRIES + number), VALUE);
        }
        db.write(&batch)?;
    }
    Ok(())
}

/// Reads and overwrites a key in each transaction.
#[inline(never)]
fn transaction(db: &Db) -> Outcome {
    for number in 0..REPEATED {
        let mut transaction = db.begin();
        black_box(transaction.get(key(number))?);
        transaction.put(key(number), VALUE);
        transaction.commit()?;
    }
    Ok(())
}

#[inline(never)]
fn get_of_memtable(db: &Db) -> Outcome {
    distinct("get_of_memtable");
    get_all(db, REPEATED)
}

#[inline(never)]
fn scan_memtable(db: &Db) -> Outcome {
    distinct("scan_memtable");
    scan(db, ENTRIES)
}

#[inline(never)]
fn get_hit(db: &Db) -> Outcome {
    distinct("get_hit");
    get_all(db, ENTRIES)
}

#[inline(never)]
fn get_of_runs(db: &Db) -> Outcome {
    distinct("get_of_runs");
    get_all(db, ENTRIES)
}

#[inline(never)]
fn get_cold(db: &Db) -> Outcome {
    distinct("get_cold");
    get_all(db, REPEATED)
}

fn get_all(db: &Db, count: u64) -> Outcome {
    for number in 0..count {
        black_box(db.get(key(number))?.ok_or("a key is missing")?);
    }
    Ok(())
}

#[inline(never)]
fn get_miss(db: &Db) -> Outcome {
    for number in ENTRIES..ENTRIES + REPEATED {
        if db.get(key(number))?.is_some() {
            return Err("a lookup found an absent key".into());
        }
    }
    Ok(())
}

#[inline(never)]
fn multi_get(db: &Db) -> Outcome {
    for first in (0..ENTRIES).step_by(BATCH as usize) {
        black_box(db.multi_get((first..first + BATCH).map(key))?);
    }
    Ok(())
}

/// Creates an iterator and reads its first entry.
#[inline(never)]
fn seek(db: &Db) -> Outcome {
    distinct("seek");
    seek_all(db)
}

#[inline(never)]
fn seek_in_runs(db: &Db) -> Outcome {
    distinct("seek_in_runs");
    seek_all(db)
}

fn seek_all(db: &Db) -> Outcome {
    for number in 0..REPEATED {
        let mut entries = db.range(key(number)..)?;
        entries.advance()?;
        black_box((entries.key(), entries.value()));
    }
    Ok(())
}

#[inline(never)]
fn next(db: &Db) -> Outcome {
    distinct("next");
    scan(db, ENTRIES)
}

#[inline(never)]
fn next_of_runs(db: &Db) -> Outcome {
    distinct("next_of_runs");
    scan(db, ENTRIES)
}

/// Reads the first entries in order.
fn scan(db: &Db, count: u64) -> Outcome {
    let mut entries = db.iter()?;
    for _ in 0..count {
        if !entries.advance()? {
            return Err("the scan ended early".into());
        }
        black_box((entries.key(), entries.value()));
    }
    Ok(())
}

#[inline(never)]
fn put_synced(db: &Db) -> Outcome {
    fill(db, 0..SYNCED, &VALUE)
}

/// Puts the entries with the flushes and compactions that they cause.
#[inline(never)]
fn put_flushed_and_compacted(db: &Db) -> Outcome {
    fill(db, 0..ENTRIES, &VALUE)?;
    Ok(db.flush()?)
}
