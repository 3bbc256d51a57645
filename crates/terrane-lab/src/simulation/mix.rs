//! A mix of operations as the load of a simulation.

use anyhow::Result;
use terrane_sim::{ReadLoad, Skew, WriteMix};
use terrane_workload::{Distribution, OperationKind, OperationMix};

use crate::error::usage;

/// The writes and reads of a mix, per write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixLoad {
    /// The kinds of writes.
    pub writes: WriteMix,
    /// The reads that come with a write.
    pub reads: ReadLoad,
    /// The share of operations that write.
    pub write_share: f64,
}

impl MixLoad {
    /// Returns the load of a mix on `records` loaded records; the share `cold` of their blocks is not
    /// in memory.
    ///
    /// # Errors
    ///
    /// If the mix does not write, or has phases or deletes that the simulator does not support.
    pub fn of(mix: &OperationMix, records: u64, cold: f64) -> Result<Self> {
        let mut writes = WriteMix { deleted_return: false, ..WriteMix::default() };
        let mut reads = ReadLoad { cold, ..ReadLoad::default() };
        let (mut written, mut all, mut entries) = (0.0, 0.0, 0.0);
        if mix.phases().count() > 1 {
            return Err(usage("the simulator plays one phase; give it a mix without ';'"));
        }
        for part in mix.parts() {
            let share = part.share;
            all += share;
            match part.kind {
                OperationKind::Update => written += share,
                OperationKind::Insert => {
                    writes.inserts += share;
                    written += share;
                }
                OperationKind::Delete => {
                    writes.deletes += share;
                    written += share;
                }
                OperationKind::Get => reads.gets += share,
                OperationKind::Missing => reads.missing += share,
                OperationKind::Scan(length) => {
                    reads.scans += share;
                    entries += share * length.entries(records) as f64;
                }
                OperationKind::DeleteMissing | OperationKind::DeleteRange(_) => {
                    let kind = part.kind;
                    return Err(usage(format!("the simulator does not play '{kind}' of a mix")));
                }
            }
        }
        if written <= 0.0 {
            return Err(usage("the mix has no writes; add insert, update or delete"));
        }
        if reads.scans > 0.0 {
            reads.scan_entries = entries / reads.scans;
        }
        for share in [
            &mut writes.inserts,
            &mut writes.deletes,
            &mut reads.gets,
            &mut reads.missing,
            &mut reads.scans,
        ] {
            *share /= written;
        }
        Ok(Self { writes, reads, write_share: written / all })
    }
}

/// Returns the skew of a distribution, or `None` if the simulator has no equivalent.
pub fn skew_of(distribution: Distribution) -> Option<Skew> {
    match distribution {
        Distribution::Uniform => Some(Skew::Uniform),
        Distribution::Zipf { theta } | Distribution::YcsbZipf { theta } => Some(Skew::Zipf(theta)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_per_write() {
        let mix: OperationMix = "update=20,insert=10,delete=10,get=40,scan:16=20".parse().unwrap();
        let load = MixLoad::of(&mix, 1000, 0.5).unwrap();
        assert_eq!((load.writes.inserts, load.writes.deletes), (0.25, 0.25));
        assert_eq!((load.reads.gets, load.reads.scans), (1.0, 0.5));
        assert_eq!((load.reads.scan_entries, load.reads.cold), (16.0, 0.5));
        assert!((load.write_share - 0.4).abs() < 1e-12);
        for refused in ["get=1", "update=1; get=1", "update=1,delete-range:5=1"] {
            assert!(MixLoad::of(&refused.parse().unwrap(), 10, 1.0).is_err(), "{refused}");
        }
    }
}
