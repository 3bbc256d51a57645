//! Separated values: where the values of a table are, and how many of them merges keep.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_policy::cost::{POINTER_BYTES, VALUE_RECORD_BYTES};
use terrane_policy::{
    Design, ValueFileId, ValueFileInfo, ValueFileUsage, ValueRef, ValueSeparation,
};

use super::SimulatedTree;
use super::cut::ContentRange;

/// The sizes of separated values.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueSizes {
    /// The bytes of a value file record.
    pub(super) record: f64,
    /// The target size of a value file.
    file: f64,
}

/// The expected number of values of a range in each value file, by group of keys.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueCounts(BTreeMap<ValueFileId, Vec<f64>>);

impl ValueSizes {
    /// Returns the value sizes for records of a key and a value, and the bytes of key and pointer,
    /// which stay in tables. Returns `None` if the design stores these values inline.
    pub(super) fn of(design: &Design, key_bytes: f64, record_bytes: f64) -> Option<(Self, f64)> {
        let value = (record_bytes - key_bytes).max(0.0);
        let ValueSeparation { file_bytes, .. } = design.values.separation()?;
        let sizes = Self { record: record_bytes + VALUE_RECORD_BYTES, file: *file_bytes as f64 };
        design.values.is_separated(value as u64).then_some((sizes, key_bytes + POINTER_BYTES))
    }
}

impl ValueCounts {
    /// Adds the values of `others`, scaled by `part` and, in each group, by the share `kept`.
    pub(super) fn add(&mut self, others: &ValueCounts, part: f64, kept: Option<&[f64]>) {
        for (file, counts) in &others.0 {
            let sums = self.0.entry(*file).or_insert_with(|| vec![0.0; counts.len()]);
            for (group, (sum, count)) in sums.iter_mut().zip(counts).enumerate() {
                *sum += count * part * kept.map_or(1.0, |kept| kept[group]);
            }
        }
    }

    /// Removes the values of some files, and returns their number by group.
    pub(super) fn take(&mut self, files: &[ValueFileId]) -> Vec<f64> {
        let mut taken = Vec::new();
        for file in files {
            let Some(counts) = self.0.remove(file) else { continue };
            taken.resize(counts.len(), 0.0);
            taken.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        taken
    }

    /// Returns the references of a table. Less than half an expected value counts as none.
    fn refs(&self, sizes: ValueSizes) -> Box<[ValueRef]> {
        let refs = self.0.iter().map(|(file, counts)| {
            let values = counts.iter().sum::<f64>();
            let bytes = (values * sizes.record).round() as u64;
            ValueRef { file: *file, bytes, values: values.round() as u64 }
        });
        refs.filter(|used| used.values > 0).collect()
    }
}

impl SimulatedTree {
    /// Returns the bytes of values that are written to value files when these ranges become tables.
    pub(super) fn fresh_bytes(&self, pieces: &[ContentRange]) -> f64 {
        let fresh: f64 = pieces.iter().flat_map(|piece| &piece.fresh).sum();
        fresh * self.values.map_or(0.0, |sizes| sizes.record)
    }

    /// Writes the fresh values of adjacent ranges to new value files.
    pub(super) fn write_values(&mut self, pieces: &mut [ContentRange], micros: u64) {
        let Some(sizes) = self.values else { return };
        // The open file, with its bytes so far.
        let mut open: Option<(ValueFileId, f64)> = None;
        for piece in pieces {
            let fresh = std::mem::take(&mut piece.fresh);
            let bytes = fresh.iter().sum::<f64>() * sizes.record;
            if bytes < sizes.record / 2.0 {
                continue;
            }
            // If the values of a range fill several files, each file gets an equal part.
            let files = (bytes / sizes.file).round().max(1.0);
            for _ in 0..files as usize {
                let (file, filled) =
                    open.take().unwrap_or_else(|| (ValueFileId(self.take_table()), 0.0));
                let part = ValueCounts([(file, fresh.clone())].into());
                piece.values.add(&part, 1.0 / files, None);
                let filled = filled + bytes / files;
                let mut info = ValueFileInfo::new(file.0, filled.round() as u64);
                info.values = (filled / sizes.record).round() as u64;
                info.created_micros = micros;
                self.put_value_file(info);
                open = (filled < sizes.file * 0.75).then_some((file, filled));
            }
        }
    }

    fn put_value_file(&mut self, info: ValueFileInfo) {
        let files = &mut self.shape.value_files;
        match files.binary_search_by_key(&info.id, |file| file.id) {
            Ok(at) => files[at] = Arc::new(info),
            Err(at) => files.insert(at, Arc::new(info)),
        }
    }

    pub(super) fn refs_of(&self, counts: &ValueCounts) -> Box<[ValueRef]> {
        self.values.map_or_else(Box::default, |sizes| {
            let is_known = |used: &ValueRef| self.shape.value_file(used.file).is_some();
            counts.refs(sizes).into_vec().into_iter().filter(is_known).collect()
        })
    }

    pub(super) fn remove_dead_value_files(&mut self) {
        if self.shape.value_files.is_empty() {
            return;
        }
        let dead = self.shape.value_usage().into_iter().filter(ValueFileUsage::is_dead);
        let dead: Vec<ValueFileId> = dead.map(|usage| usage.file.id).collect();
        self.shape.value_files.retain(|file| dead.binary_search(&file.id).is_err());
    }
}
