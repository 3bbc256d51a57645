//! The report's formulas (§2.3.3, §2.4.1, §2.6.1), compared with page counts of the engine.
//!
//! The trees are in memory and merge serially, so counts are the same in every run. A formula omits
//! constants, so each measurement is divided by it: the quotient must stay about the same while the
//! tree grows and the fanout changes.

use std::sync::Arc;

use anyhow::Result;
use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Durability, Options, Stats};
use terrane_lab::output::human;
use terrane_policy::cost::blocked_false_positive_rate;
use terrane_policy::cost::dent::DentTree;

use crate::results::Results;

const PAGE_BYTES: f64 = 4096.0;
const ENTRIES_PER_FLUSH: u64 = 2048;
const LOOKUPS: u64 = 4000;
const FILTER_BITS: f64 = 2.0;

/// For each fanout, numbers of flushes, n/b, each one less than a power of the fanout, so that all
/// levels are full. With a fanout of 2, a settled level of our tree is one run, as in leveling.
const TREES: [(u32, [u64; 2]); 3] = [(3, [26, 242]), (4, [63, 255]), (8, [63, 511])];

/// Entries of a range.
const RANGES: [u64; 3] = [1, 100, 10_000];

/// The flushes of the trees whose fanout is n/b (§2.2).
const EXTREME_FLUSHES: u32 = 64;

pub(super) fn measure(results: &mut Results) -> Result<()> {
    let mut rows = Vec::new();
    for (fanout, sizes) in TREES {
        for flushes in sizes {
            let tree = CountedTree::load("tiering", fanout, flushes)?;
            let model = tree.model();
            let keys = [fanout.to_string(), flushes.to_string()];
            let keys = [&*keys[0], &*keys[1]];
            let update = (tree.pages_per_page(), model.tiered_update() * model.buffer_pages);
            let lookup = (tree.pages_per_lookup()?, model.tiered_lookup());
            results.record("model_update", &keys, update.0 / update.1);
            results.record("model_lookup", &keys, lookup.0 / lookup.1);
            let mut row = vec![fanout.to_string(), flushes.to_string()];
            row.extend([pair(update), pair(lookup)]);
            for entries in RANGES {
                let of_model = model.tiered_range(entries as f64, tree.entry_bytes(), PAGE_BYTES);
                let range = (tree.pages_per_range(entries)?, of_model);
                let about = format!("{entries} of {flushes}");
                results.record("model_range", &[keys[0], &about], range.0 / range.1);
                row.push(pair(range));
            }
            rows.push(row);
        }
    }
    let introduction = "Counted pages, and in parentheses the formula without its constants: (1 + μ) log_f(n/b) pages moved for a \
                        page\nof puts with μ = 1, φ f log_f(n/b) pages read for a missing key, and d f e Δ/p for a range of Δ entries.";
    let headers = ["f", "n/b", "a page of puts", "a missing key", "Δ = 1", "Δ = 100", "Δ = 10,000"];
    results.table_with_introduction("Formulas (§2.3 to §2.6)", introduction, &headers, rows);
    extremes(results)
}

/// With the fanout n/b, leveling is a sorted array and tiering a log (§2.2).
fn extremes(results: &mut Results) -> Result<()> {
    let mut rows = Vec::new();
    for (eagerness, name) in [("leveling", "array"), ("tiering", "log")] {
        // One flush less, so that the first level of the log is not full.
        let tree = CountedTree::load(eagerness, EXTREME_FLUSHES, u64::from(EXTREME_FLUSHES) - 1)?;
        let (written, runs) = (tree.pages_written_per_page(), tree.runs());
        results.record("model_extreme", &[name, "written"], written);
        results.record("model_extreme", &[name, "runs"], runs);
        rows.push(vec![
            name.to_owned(),
            eagerness.to_owned(),
            human::number(written),
            human::number(runs),
        ]);
    }
    let introduction = format!("f = n/b = {EXTREME_FLUSHES}.");
    let headers = ["tree", "design", "pages written for a page of puts", "runs"];
    results.table_with_introduction(
        "The ends of the design space (§2.2)",
        introduction,
        &headers,
        rows,
    );
    Ok(())
}

fn pair((counted, model): (f64, f64)) -> String {
    format!("{} ({})", human::number(counted), human::number(model))
}

/// A tree that was filled in random order.
struct CountedTree {
    db: Db,
    fanout: u32,
    flushes: u64,
    loaded: Stats,
}

impl CountedTree {
    fn load(eagerness: &str, fanout: u32, flushes: u64) -> Result<Self> {
        let design = format!(
            "{eagerness} T={fanout} L0={level0}; trigger=run-count; granularity=level; movement=none; \
             buffer=1MiB; table=1GiB; filter={FILTER_BITS}; delay=2000; stop=4000",
            level0 = if eagerness == "tiering" { fanout } else { 1 },
        );
        let options = Options::new()
            .storage(Arc::new(MemoryStorage::new(1)))
            .background(Background::Inline)
            .durability(Durability::None)
            .memory_budget(512 << 20)
            .design(design.parse()?);
        let db = options.open("db")?;
        for flush in 0..flushes {
            for number in 0..ENTRIES_PER_FLUSH {
                db.put(key(flush * ENTRIES_PER_FLUSH + number, 0), [0; 4])?;
            }
            db.flush()?;
            while db.run_background_job()? {}
        }
        let loaded = db.stats();
        Ok(Self { db, fanout, flushes, loaded })
    }

    fn model(&self) -> DentTree {
        let buffer_pages = self.pages() / self.flushes as f64;
        DentTree {
            pages: self.pages(),
            buffer_pages,
            fanout: f64::from(self.fanout),
            false_positive_rate: blocked_false_positive_rate(FILTER_BITS, None),
            read_cost: 1.0,
        }
    }

    fn pages(&self) -> f64 {
        self.loaded.flush_bytes_written as f64 / PAGE_BYTES
    }

    fn entry_bytes(&self) -> f64 {
        let entries = (self.flushes * ENTRIES_PER_FLUSH) as f64;
        self.loaded.flush_bytes_written as f64 / entries
    }

    /// Returns the pages read and written by flushes and merges for each page that was flushed.
    fn pages_per_page(&self) -> f64 {
        let Stats { compaction_bytes_read, .. } = self.loaded;
        compaction_bytes_read as f64 / PAGE_BYTES / self.pages() + self.pages_written_per_page()
    }

    fn pages_written_per_page(&self) -> f64 {
        let Stats { flush_bytes_written, compaction_bytes_written, .. } = self.loaded;
        (flush_bytes_written + compaction_bytes_written) as f64 / PAGE_BYTES / self.pages()
    }

    fn runs(&self) -> f64 {
        self.loaded.sorted_runs as f64
    }

    /// Returns the pages that a lookup of a missing key reads.
    fn pages_per_lookup(&self) -> Result<f64> {
        let before = self.db.stats().get_blocks;
        for number in 0..LOOKUPS {
            self.db.get(key(number, 1))?;
        }
        Ok((self.db.stats().get_blocks - before) as f64 / LOOKUPS as f64)
    }

    /// Returns the pages that a range of `entries` entries reads.
    fn pages_per_range(&self, entries: u64) -> Result<f64> {
        let ranges = (100_000 / entries).clamp(20, 1000);
        let pages = |stats: Stats| stats.cache.data_hits + stats.cache.data_misses;
        let before = pages(self.db.stats());
        for number in 0..ranges {
            let mut range = self.db.range(key(number, 2)..)?;
            for _ in 0..entries {
                range.advance()?;
            }
        }
        Ok((pages(self.db.stats()) - before) as f64 / ranges as f64)
    }
}

/// Returns the key for a number, distinct within its space; keys of all spaces are in random order.
fn key(number: u64, space: u8) -> [u8; 9] {
    let mut key = [space; 9];
    // An odd factor maps different numbers to different keys.
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key
}
