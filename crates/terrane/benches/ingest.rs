//! The speed of an ingest, compared with puts and batches of the same sorted entries.
//!
//! `cargo bench -p terrane --bench ingest -- ENTRIES VALUE_BYTES ROUNDS DIR` alternately loads by `put`, by
//! batches of 256 KiB, and by an ingest, each time into a new database. The time runs from the first entry
//! until the entries are in tables: puts and batches end with a flush, and in the last column also wait for
//! compactions. An ingest syncs its tables, and the others sync theirs at the flush. Prints the medians of
//! the rounds, and the medians of the ratios to puts in the same round.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a benchmark removes its files")]

use std::path::Path;
use std::time::Instant;

use terrane::{Db, Options, WriteBatch};

const BATCH_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, Copy)]
enum Way {
    Puts,
    Batches,
    Ingest,
}

const WAYS: [(Way, &str); 3] =
    [(Way::Puts, "puts"), (Way::Batches, "batches"), (Way::Ingest, "ingest")];

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn load(db: &Db, way: Way, entries: u64, value: &mut [u8]) {
    match way {
        Way::Puts => {
            for number in 0..entries {
                value[..8].copy_from_slice(&number.to_le_bytes());
                db.put(key(number), &value).unwrap();
            }
            db.flush().unwrap();
        }
        Way::Batches => {
            let (mut batch, mut bytes) = (WriteBatch::new(), 0);
            for number in 0..entries {
                value[..8].copy_from_slice(&number.to_le_bytes());
                batch.put(key(number), &value);
                bytes += 16 + value.len();
                if bytes >= BATCH_BYTES || number + 1 == entries {
                    db.write(&batch).unwrap();
                    batch.clear();
                    bytes = 0;
                }
            }
            db.flush().unwrap();
        }
        Way::Ingest => {
            let mut ingest = db.default_keyspace().begin_ingest().unwrap();
            for number in 0..entries {
                value[..8].copy_from_slice(&number.to_le_bytes());
                ingest.put(key(number), &value).unwrap();
            }
            ingest.commit().unwrap();
        }
    }
}

/// Returns the seconds until the entries are in tables, and until no compaction is due.
fn round(dir: &Path, way: Way, entries: u64, value: &mut [u8]) -> [f64; 2] {
    let db = Options::new().memory_budget(1 << 30).open(dir).unwrap();
    let start = Instant::now();
    load(&db, way, entries, value);
    let loaded = start.elapsed().as_secs_f64();
    db.wait_for_compactions().unwrap();
    let settled = start.elapsed().as_secs_f64();
    assert_eq!(db.get(key(entries - 1)).unwrap().unwrap(), *value);
    db.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    [loaded, settled]
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    let (entries, value_bytes, rounds) = (number(0, 2_000_000), number(1, 100), number(2, 5));
    let home = tempfile::tempdir().unwrap();
    let dir = arguments.get(3).map_or(home.path(), Path::new).join("ingest");
    let mut value: Vec<u8> = (0..value_bytes.max(8)).map(|at| (at * 131 % 251) as u8).collect();
    let mut times = WAYS.map(|_| Vec::new());
    for turn in 0..rounds {
        for at in 0..WAYS.len() {
            // Each way goes first in some rounds.
            let at = (at + turn as usize) % WAYS.len();
            times[at].push(round(&dir, WAYS[at].0, entries, &mut value));
        }
    }
    println!("{entries} entries of 16 + {value_bytes} bytes, medians of {rounds} rounds");
    println!("{:8} {:>12} {:>12} {:>8} {:>8}", "", "ns/entry", "settled", "puts /", "settled");
    for ((_, name), own) in WAYS.iter().zip(&times) {
        let of = |column: usize| median(own.iter().map(|time| time[column]).collect());
        let nanos = [0, 1].map(|column| of(column) * 1e9 / entries as f64);
        let ratios = [0, 1].map(|column| {
            let pairs = times[0].iter().zip(own);
            median(pairs.map(|(puts, own)| puts[column] / own[column]).collect())
        });
        let ([loaded, settled], [ratio, settled_ratio]) = (nanos, ratios);
        println!("{name:8} {loaded:12.0} {settled:12.0} {ratio:8.2} {settled_ratio:8.2}");
    }
}
