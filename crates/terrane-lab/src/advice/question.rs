//! The workload, from a mix of operations or from the counters of a database.

use std::time::Duration;
use terrane_policy::TreeShape;
use terrane_policy::advice::{OperationShares, Prices};

use anyhow::{Result, anyhow};
use terrane::{Design, OperationCounts};
use terrane_sim::{MachineModel, Skew};
use terrane_workload::{Distribution, OperationKind, OperationMix};

use crate::output::human;

/// The number of entries that a scan is assumed to read.
const SCAN_ENTRIES: f64 = 16.0;

/// The time that a lookup spends on each run: a comparison with the run's key range, and a cache
/// line of the run's filter.
const RUN_SECONDS: f64 = 0.1e-6;

/// The time to read from a cached data block: to search the index, find the block and find the key
/// in it.
const BLOCK_SECONDS: f64 = 1e-6;

/// The time that a scan spends on each entry.
const SCAN_ENTRY_SECONDS: f64 = 0.1e-6;

/// The minimum number of operations on which advice can be based.
pub const OPERATIONS_MIN: u64 = 1000;

/// The operations of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperationProfile {
    /// The shares of the kinds of operations.
    pub shares: OperationShares,
    /// The share of writes that insert a new key.
    pub inserts: f64,
    /// The share of writes that delete a key.
    pub deletes: f64,
    /// The skew of updated keys.
    pub skew: Skew,
    /// Operations per second, if known.
    pub rate: Option<f64>,
}

/// The overhead of a separated value: a header of 32 bytes in its value file, and a pointer of about 16
/// bytes in its table. The copy of its key in the value file is small compared with a value that is worth
/// separating.
const SEPARATED_BYTES: u64 = 48;

/// The data of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordProfile {
    /// The number of records.
    pub count: f64,
    /// Bytes of a key and its value.
    pub bytes: f64,
}

impl OperationProfile {
    /// Returns the operations of a mix.
    pub fn of_mix(mix: &OperationMix, records: f64) -> Result<Self> {
        let (mut parts, mut inserts, mut deletes, mut entries) = ([0.0; 4], 0.0, 0.0, 0.0);
        let mut skew = Skew::Uniform;
        for (part, share) in mix.parts().iter().zip(mix.overall_shares()) {
            match part.kind {
                OperationKind::Insert => inserts += share,
                OperationKind::Get => parts[1] += share,
                OperationKind::Missing => parts[2] += share,
                OperationKind::Scan(length) => {
                    parts[3] += share;
                    entries += share * length.entries(records as u64) as f64;
                }
                OperationKind::Delete => deletes += share,
                OperationKind::Update
                | OperationKind::DeleteMissing
                | OperationKind::DeleteRange(_) => {}
            }
            parts[0] += if part.kind.writes() { share } else { 0.0 };
            if let (OperationKind::Update, Some(chosen)) = (part.kind, part.distribution) {
                skew = skew_of(chosen);
            }
        }
        let of_writes = |share: f64| if parts[0] > 0.0 { share / parts[0] } else { 0.0 };
        let (inserts, deletes) = (of_writes(inserts), of_writes(deletes));
        let entries = if parts[3] > 0.0 { entries / parts[3] } else { SCAN_ENTRIES };
        let shares =
            OperationShares::new(parts, entries).ok_or_else(|| anyhow!("the mix is empty"))?;
        Ok(Self { shares, inserts, deletes, skew, rate: None })
    }

    /// Returns the operations that a database counted; `None` if there are too few.
    pub fn counted(counts: &OperationCounts) -> Option<Self> {
        let all = counts.total();
        if all < OPERATIONS_MIN {
            return None;
        }
        let missing = counts.gets.saturating_sub(counts.gets_found);
        let parts = [counts.writes, counts.gets_found, missing, counts.scans];
        let entries = match counts.scans {
            0 => SCAN_ENTRIES,
            scans => (counts.scan_entries as f64 / scans as f64).max(1.0),
        };
        let shares = OperationShares::new(parts.map(|count| count as f64), entries)?;
        let time = Duration::from_micros(counts.open_micros);
        let rate = Some(all as f64 / time.as_secs_f64().max(1e-3));
        let deletes = counts.deletes as f64 / (counts.writes as f64).max(1.0);
        // Inserts are not counted separately; in the long run most writes are updates.
        Some(Self { shares, inserts: 0.0, deletes, skew: Skew::Uniform, rate })
    }

    /// Describes the operations in words.
    pub fn sentence(&self) -> String {
        let percent = |share: f64| match share * 100.0 {
            whole if whole >= 9.95 => format!("{whole:.0}"),
            part => human::number(part),
        };
        let shares = &self.shares;
        let mut words = Vec::new();
        if shares.writes > 0.0 {
            let new = match self.inserts {
                part if part >= 1.0 => ", all inserts".to_owned(),
                part if part > 0.0 => format!(", {} % of them inserts", percent(part)),
                _ => String::new(),
            };
            let dead = match self.deletes {
                part if part > 0.0 => format!(", {} % of them deletes", percent(part)),
                _ => String::new(),
            };
            words.push(format!("{} % writes ({}{new}{dead})", percent(shares.writes), self.skew));
        }
        let kinds = [
            (shares.found, "lookups of existing keys".to_owned()),
            (shares.missing, "lookups of missing keys".to_owned()),
            (shares.scans, format!("scans of {} entries", human::number(shares.scan_entries))),
        ];
        let kinds = kinds.into_iter().filter(|(share, _)| *share > 0.0);
        words.extend(kinds.map(|(share, what)| format!("{} % {what}", percent(share))));
        words.join(", ")
    }
}

fn skew_of(chosen: Distribution) -> Skew {
    match chosen {
        Distribution::Zipf { theta }
        | Distribution::YcsbZipf { theta }
        | Distribution::Latest { theta } => Skew::Zipf(theta),
        Distribution::Uniform
        | Distribution::Normal { .. }
        | Distribution::Beta { .. }
        | Distribution::Sequential => Skew::Uniform,
    }
}

impl RecordProfile {
    /// Estimates the records of a tree from its tables: one record per entry, minus the records
    /// that tombstones hide. A separated value counts as if it were in its table.
    pub fn of_tree(shape: &TreeShape, machine: &MachineModel) -> Option<Self> {
        let entries: u64 = shape.tables().map(|table| table.entries).sum();
        let hidden: u64 = shape.tables().map(|table| 2 * table.tombstones).sum();
        let references = shape.tables().flat_map(|table| table.value_refs.iter());
        let separated: u64 = references.map(|used| used.values).sum();
        let stored = shape.size_bytes() + shape.live_value_bytes();
        let bytes =
            stored.saturating_sub(separated * SEPARATED_BYTES) as f64 / entries.max(1) as f64;
        let count = entries.saturating_sub(hidden) as f64;
        let bytes = (bytes - machine.costs.table_entry_bytes).max(1.0);
        (count >= 1.0).then_some(Self { count, bytes })
    }
}

/// Returns the prices of a machine on which `memory` bytes of the data are cached.
pub fn prices(
    machine: &MachineModel,
    design: &Design,
    records: RecordProfile,
    memory: u64,
) -> Prices {
    let device = &machine.device;
    let data = records.count * records.bytes;
    let misses = 1.0 - (memory as f64 / data.max(1.0)).min(1.0);
    let byte = 1.0 / machine.budget.unwrap_or(f64::INFINITY).min(device.bytes_per_second);
    let read = device.request_seconds + f64::from(design.block_bytes) / device.bytes_per_second;
    Prices {
        write: machine.costs.write_seconds + machine.costs.flush_seconds,
        merge_entry: machine.costs.merge_seconds,
        byte,
        block: BLOCK_SECONDS + misses * read,
        run: RUN_SECONDS,
        scan_entry: SCAN_ENTRY_SECONDS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_writes_lookups_and_scans() {
        let mix: OperationMix =
            "insert=10,update=30@zipf:0.9,get=40,missing=10,scan:1%=10".parse().unwrap();
        let operations = OperationProfile::of_mix(&mix, 10_000.0).unwrap();
        let OperationProfile { shares, inserts, skew, .. } = operations;
        assert_eq!((shares.writes, shares.found, shares.missing), (0.4, 0.4, 0.1));
        assert_eq!((shares.scans, shares.scan_entries), (0.1, 100.0));
        assert_eq!((inserts, skew), (0.25, Skew::Zipf(0.9)));
        assert_eq!(
            operations.sentence(),
            "40 % writes (zipf(0.9), 25 % of them inserts), 40 % lookups of existing keys, \
             10 % lookups of missing keys, 10 % scans of 100 entries"
        );
    }

    #[test]
    fn deletes_are_a_share_of_the_writes() {
        let mix: OperationMix = "update=30,delete=10,get=60".parse().unwrap();
        let operations = OperationProfile::of_mix(&mix, 10_000.0).unwrap();
        assert_eq!(operations.deletes, 0.25);
        assert!(operations.sentence().starts_with("40 % writes (uniform, 25 % of them deletes)"));
        let mut counts = OperationCounts::default();
        (counts.writes, counts.deletes) = (2000, 500);
        assert_eq!(OperationProfile::counted(&counts).unwrap().deletes, 0.25);
    }

    /// Records of 16 KiB used to count as records of 14 bytes, so the advice was for small records.
    #[test]
    fn separated_values_are_part_of_their_records() {
        let machine = MachineModel::default();
        let record = |shape: &str| {
            let shape: TreeShape = shape.parse().unwrap();
            RecordProfile::of_tree(&shape, &machine).unwrap()
        };
        let separated =
            record("L1 r1: 1=a..=z:4000,entries=100,values=7:1643200/100\nV 7: 1643200");
        assert_eq!(separated.count, 100.0);
        assert!((16_384.0..16_450.0).contains(&separated.bytes), "{separated:?}");
        let inline = record("L1 r1: 1=a..=z:1640000,entries=100");
        assert!((16_350.0..16_450.0).contains(&inline.bytes), "{inline:?}");
    }

    #[test]
    fn cached_data_is_not_read_from_the_device() {
        let records = RecordProfile { count: 1e6, bytes: 100.0 };
        let design = "leveling".parse().unwrap();
        let block = |memory| prices(&MachineModel::default(), &design, records, memory).block;
        assert_eq!(block(1 << 30), BLOCK_SECONDS);
        assert!(block(0) > 100.0 * BLOCK_SECONDS);
        assert!(block(50_000_000) < block(0));
    }
}
