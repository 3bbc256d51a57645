//! The contents of the database, and its live bytes.

use anyhow::Result;
use terrane::Db;
use terrane_workload::{KeyOrder, KeySpace, OperationKind, RunOptions, Workload, YcsbMix};

use super::plan::loads;

/// The largest database to scan for live bytes; a larger one would take too long.
const SCAN_BYTES_MAX: u64 = 2 << 30;

/// The contents that workloads left in the database.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Contents {
    /// The order of the loaded keys; `None` if some are missing.
    pub loaded: Option<KeyOrder>,
    /// True if keys were deleted; lookups may then find nothing.
    pub has_deletes: bool,
    live: Option<LiveBytes>,
}

/// Bytes of the keys and values that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBytes {
    /// The number of bytes.
    pub bytes: u64,
    /// How the number was determined: `workload` or `scan`.
    pub source: &'static str,
}

impl Contents {
    /// An empty database.
    pub(super) const EMPTY: Self = Self { loaded: None, has_deletes: false, live: None };

    /// Detects the contents of a database loaded earlier with the same options; `None` if they do not
    /// match.
    pub(super) fn found_in(db: &Db, run: &RunOptions) -> Result<Option<Self>> {
        for order in [run.key_order, KeyOrder::Hashed, KeyOrder::Ordered] {
            let keys = KeySpace::new(order, run.key_size_bytes, run.num)?;
            if db.contains(keys.key(0))? && db.contains(keys.key(run.num - 1))? {
                return Ok(Some(Self { loaded: Some(order), ..Self::EMPTY }));
            }
        }
        Ok(None)
    }

    /// Returns the contents after a workload.
    pub(super) fn after(self, workload: Workload, run: &RunOptions) -> Self {
        let mut after = self;
        if loads(workload) {
            after = Self { loaded: workload.key_order_loaded(run), ..Self::EMPTY };
            after.live = known_live(run, run.num);
        }
        match workload {
            Workload::FillSync => {
                after.loaded = None;
                after.live = known_live(run, workload.operations(run));
            }
            Workload::DeleteRandom => {
                after.has_deletes = true;
                after.live = None;
            }
            Workload::Ycsb(YcsbMix::D | YcsbMix::E) => after.live = None,
            Workload::Mix if !run.mix.writes() => {}
            Workload::Mix => {
                after.has_deletes |= run.mix.has(OperationKind::Delete) || run.mix.deletes_ranges();
                after.live = None;
            }
            // Overwriting changes the live bytes only if sizes differ.
            workload if workload.writes() && !has_one_size(run) => after.live = None,
            // After deletes, overwriting also restores keys.
            workload if workload.writes() && after.has_deletes => after.live = None,
            _ => {}
        }
        after
    }

    /// Returns the live bytes: those computed from the workloads if they are exact, else the result
    /// of a scan; `None` if the scan would take too long.
    pub(super) fn live(&mut self, db: &Db) -> Result<Option<LiveBytes>> {
        let stats = db.stats();
        if self.live.is_none() && stats.table_bytes + stats.value_bytes <= SCAN_BYTES_MAX {
            let mut bytes = 0;
            let mut entries = db.iter()?;
            while entries.advance()? {
                bytes += (entries.key().len() + entries.value().len()) as u64;
            }
            self.live = Some(LiveBytes { bytes, source: "scan" });
        }
        Ok(self.live)
    }
}

fn has_one_size(run: &RunOptions) -> bool {
    run.value_size.min_bytes() == run.value_size.max_bytes()
}

fn known_live(run: &RunOptions, keys: u64) -> Option<LiveBytes> {
    let entry_bytes = (run.key_size_bytes + run.value_size.min_bytes()) as u64;
    has_one_size(run).then_some(LiveBytes { bytes: keys * entry_bytes, source: "workload" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(workloads: &[&str]) -> Contents {
        let run = RunOptions { num: 1000, ..RunOptions::default() };
        workloads
            .iter()
            .fold(Contents::EMPTY, |contents, name| contents.after(name.parse().unwrap(), &run))
    }

    #[test]
    fn live_bytes_are_known_if_every_write_is() {
        let live = |workloads: &[&str]| after(workloads).live.map(|live| live.bytes);
        assert_eq!(live(&["fillrandom"]), Some(116_000));
        assert_eq!(live(&["fillrandom", "overwrite", "readrandom", "ycsb-f"]), Some(116_000));
        assert_eq!(live(&["fillsync"]), Some(1_160));
        assert_eq!(live(&["fillrandom", "deleterandom"]), None);
        assert_eq!(live(&["fillrandom", "deleterandom", "overwrite"]), None);
        assert_eq!(live(&["fillrandom", "ycsb-d"]), None);
        assert_eq!(live(&["deleterandom", "fillrandom"]), Some(116_000));
    }

    #[test]
    fn loaded_keys_are_known() {
        assert_eq!(after(&["fillseq"]).loaded, Some(KeyOrder::Ordered));
        assert_eq!(after(&["fillseq", "fillrandom"]).loaded, Some(KeyOrder::Hashed));
        assert_eq!(after(&["fillsync"]).loaded, None);
        assert!(after(&["fillrandom", "deleterandom"]).has_deletes);
    }

    #[test]
    fn a_scan_counts_live_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.put("key", "value").unwrap();
        db.put("gone", "x").unwrap();
        db.delete("gone").unwrap();
        let mut contents = Contents::EMPTY;
        let live = contents.live(&db).unwrap().unwrap();
        assert_eq!(live, LiveBytes { bytes: 8, source: "scan" });
    }
}
