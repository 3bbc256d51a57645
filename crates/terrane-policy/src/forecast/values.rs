//! The value files of merged tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::compaction::Compaction;
use crate::shape::{TableInfo, ValueFileId, ValueRef};

/// Returns the references of merged tables that their job relocates.
pub(super) fn relocated_refs<'a>(
    job: &'a Compaction,
    tables: &'a [Arc<TableInfo>],
) -> impl Iterator<Item = &'a ValueRef> {
    let refs = tables.iter().flat_map(|table| table.value_refs.iter());
    refs.filter(|used| job.relocated.binary_search(&used.file).is_ok())
}

pub(super) fn relocated_bytes(job: &Compaction, tables: &[Arc<TableInfo>]) -> u64 {
    relocated_refs(job, tables).map(|used| used.bytes).sum()
}

/// Returns the references of the result of a merge, which keeps all values. Relocated values are in
/// `file`, or inline if there is none.
pub(super) fn refs_after(
    job: &Compaction,
    tables: &[Arc<TableInfo>],
    file: Option<ValueFileId>,
) -> Vec<ValueRef> {
    let mut sums: BTreeMap<ValueFileId, (u64, u64)> = BTreeMap::new();
    for used in tables.iter().flat_map(|table| table.value_refs.iter()) {
        let is_relocated = job.relocated.binary_search(&used.file).is_ok();
        let Some(file) = (if is_relocated { file } else { Some(used.file) }) else { continue };
        let sum = sums.entry(file).or_default();
        *sum = (sum.0 + used.bytes, sum.1 + used.values);
    }
    let refs = sums.into_iter();
    refs.map(|(file, (bytes, values))| ValueRef { file, bytes, values }).collect()
}

/// Returns the references of one of several equal pieces of a merge.
pub(super) fn part_of_refs(refs: &[ValueRef], piece: u64, pieces: u64) -> Box<[ValueRef]> {
    let part = |sum: u64| sum / pieces + u64::from(piece < sum % pieces);
    let refs = refs.iter().map(|used| ValueRef {
        file: used.file,
        bytes: part(used.bytes),
        values: part(used.values),
    });
    refs.filter(|used| used.bytes > 0).collect()
}
