//! The memory and speed of a memtable, measured by filling a memtable.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;
use terrane::Design;
use terrane::memtable::{self, EntryKind, MAX_SEQ, Pool};

use terrane_lab::output::human;

/// Typical sizes of keys and values.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;

/// More entries would take longer without changing the result.
const ENTRIES_MAX: usize = 100_000;

/// A hash table takes up to half of a buffer, and preallocation up to twice as much.
const BUFFER_BYTES_MAX: u64 = 256 << 20;

/// The time limit for lookups, because some kinds of memtable have slow lookups.
const LOOKUP_TIME: Duration = Duration::from_millis(20);

/// The memory of a full memtable of a design, for entries of 16 + 100 bytes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Overhead {
    /// Bytes that the memtable occupies before the first entry.
    fixed_bytes: u64,
    /// Bytes that each entry occupies in addition to its key and value.
    entry_bytes: f64,
    /// The number of entries that fit in the buffer.
    entries: u64,
    #[serde(skip)]
    speed: MeasuredSpeed,
}

/// Measured times of operations, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct MeasuredSpeed {
    entries: usize,
    insert: f64,
    lookup: f64,
}

/// The keys, in random order.
fn key(number: usize) -> [u8; KEY_BYTES] {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&mixed.to_be_bytes());
    key[8..].copy_from_slice(&(number as u64).to_be_bytes());
    key
}

impl Overhead {
    /// Fills a memtable of this design; `None` if its buffer is too large to measure.
    pub(super) fn of(design: &Design) -> Option<Self> {
        if design.buffer_bytes > BUFFER_BYTES_MAX {
            return None;
        }
        let pool = Pool::new(0);
        let memtable = memtable::new(design.memtable, design.buffer_bytes, &pool);
        let fixed_bytes = memtable.memory().used_bytes();
        // Fill the memtable completely, because the share of a hash table depends on the number of
        // entries.
        let most = usize::try_from(design.buffer_bytes).unwrap_or(usize::MAX);
        let start = Instant::now();
        let mut count = 0;
        while count < ENTRIES_MAX && memtable.filled_bytes() < most {
            let value = [7; VALUE_BYTES];
            memtable.insert(&key(count), count as u64 + 1, EntryKind::Value, &value);
            count += 1;
        }
        let insert = start.elapsed().as_nanos() as f64 / count.max(1) as f64;
        let (start, mut lookups) = (Instant::now(), 0usize);
        while lookups == 0 || start.elapsed() < LOOKUP_TIME {
            let number = lookups.wrapping_mul(7919) % count.max(1);
            black_box(memtable.get(&key(number), MAX_SEQ));
            lookups += 1;
        }
        let lookup = start.elapsed().as_nanos() as f64 / lookups as f64;
        let memory = memtable.memory();
        let own = (memory.used_bytes() - fixed_bytes) as f64 / count.max(1) as f64;
        let entry_bytes = own - (KEY_BYTES + VALUE_BYTES) as f64;
        // The memory of an empty memtable counts only if it depends on the settings.
        let before = fixed_bytes.saturating_sub(fixed_of_none());
        let room = design.buffer_bytes.saturating_sub(before as u64);
        Some(Self {
            fixed_bytes: fixed_bytes as u64,
            entry_bytes,
            entries: (room as f64 / own) as u64,
            speed: MeasuredSpeed { entries: count, insert, lookup },
        })
    }
}

/// Returns the size of an empty memtable without its hash table, in bytes.
fn fixed_of_none() -> usize {
    let vector = terrane_policy::MemtableKind::VECTOR;
    memtable::new(vector, 1, &Pool::new(0)).memory().used_bytes()
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fixed_bytes, entry_bytes, entries, speed } = self;
        writeln!(
            f,
            "  overhead: {} before the first entry and {entry_bytes:.1} bytes per entry; about \
             {entries} entries of {KEY_BYTES} + {VALUE_BYTES} bytes fit",
            human::bytes(*fixed_bytes)
        )?;
        let (insert, lookup) = (human::number(speed.insert), human::number(speed.lookup));
        write!(
            f,
            "  measured just now with {} entries: {insert} ns per insert, {lookup} ns per lookup",
            speed.entries
        )
    }
}
