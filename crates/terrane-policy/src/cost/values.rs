//! Separated values: what a design stores in tables, and the cost of value file collections.
//!
//! A flush writes each value once to a value file, and merges rewrite keys and pointers only. Under
//! overwrites of equally likely keys, the values of a file die at a constant rate, so after x
//! overwrites per key the live share of a file is e^-x. Let files be collected at that age, when
//! their share of garbage is g = 1 - e^-x. In steady state, 1/x of the bytes in files are written per
//! unit of age, each either new or relocated, so
//!
//! - value files take x / g bytes per live byte, and
//! - 1 / g bytes are written to them per byte that the user overwrites.
//!
//! These are the costs of log-structured cleaning of uniform updates (Rosenblum and Ousterhout,
//! SOSP 1991; Desnoyers, SYSTOR 2012). Skewed updates cost less.

use libm::{expm1, log1p};

use super::DataProfile;
use crate::design::{Design, ValueSeparation};

/// The bytes of a pointer in a table.
pub const POINTER_BYTES: f64 = 19.0;

/// The bytes of a value file record in addition to key and value.
pub const VALUE_RECORD_BYTES: f64 = 32.0;

/// Collections begin when garbage reaches this share of what the space bound allows, as in
/// [`crate::pick`].
const START: f64 = 0.85;

/// The steady-state costs of value files when all keys are equally likely to be overwritten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueFileCosts {
    /// Bytes written to value files per byte of values that the user overwrites, by flushes and
    /// collections together.
    pub written: f64,
    /// Bytes of value files per byte of live values.
    pub space: f64,
    /// A file's share of garbage when it is collected.
    pub garbage: f64,
}

impl ValueFileCosts {
    /// Returns the costs if collections keep the files at `space` bytes per live byte, where `space`
    /// is more than 1.
    pub fn at_space(space: f64) -> Self {
        let garbage = |age: f64| -expm1(-age);
        let (mut low, mut high) = (1e-9, space.max(1.0) + 1.0);
        for _ in 0..100 {
            let age = f64::midpoint(low, high);
            if age / garbage(age) < space { low = age } else { high = age }
        }
        let garbage = garbage(high);
        Self { written: 1.0 / garbage, space: high / garbage, garbage }
    }

    /// Returns the costs of a design's settings: a file is collected when it reaches its own garbage
    /// limit, or earlier if all files together would exceed the space bound.
    pub fn of(separation: &ValueSeparation) -> Self {
        let bound = 1.0 + (f64::from(separation.space_percent) / 100.0 - 1.0) * START;
        let by_space = Self::at_space(bound);
        let limit = f64::from(separation.garbage_percent.min(99)) / 100.0;
        if by_space.garbage <= limit {
            return by_space;
        }
        Self { written: 1.0 / limit, space: -log1p(-limit) / limit, garbage: limit }
    }
}

/// If the design stores the values of these records separately, returns the data that remains in
/// tables, and the bytes of a value's record.
pub(super) fn separated(design: &Design, data: &DataProfile) -> Option<(DataProfile, f64)> {
    let value = (data.record_bytes - data.key_bytes).max(0.0);
    if !design.values.is_separated(value as u64) {
        return None;
    }
    let in_table = data.key_bytes + POINTER_BYTES;
    // A memtable holds the value as well.
    let memtable_entry_bytes = data.memtable_entry_bytes + data.record_bytes - in_table;
    let tables = DataProfile { record_bytes: in_table, memtable_entry_bytes, ..*data };
    Some((tables, data.record_bytes + VALUE_RECORD_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::costs;

    #[test]
    fn less_space_costs_more_writes() {
        for (space, written) in [(1.1, 5.85), (1.3, 2.32), (1.5, 1.72), (2.0, 1.26)] {
            let costs = ValueFileCosts::at_space(space);
            assert!((costs.space - space).abs() < 1e-6, "{costs:?}");
            assert!((costs.written - written).abs() < 0.4, "{space}: {costs:?}");
        }
    }

    #[test]
    fn the_limit_of_a_file_holds_if_it_is_stricter_than_the_bound() {
        let bound = ValueFileCosts::of(&ValueSeparation::at(1024));
        assert!((bound.space - 1.255).abs() < 1e-6, "{bound:?}");
        let limit = ValueSeparation { garbage_percent: 20, ..ValueSeparation::at(1024) };
        let limit = ValueFileCosts::of(&limit);
        assert!(limit.space < bound.space && (limit.written - 5.0).abs() < 1e-9, "{limit:?}");
    }

    #[test]
    fn large_values_are_written_once_and_small_ones_do_not_change() {
        let of = |values: &str, record: f64| {
            let design = format!("balanced; values={values}").parse().unwrap();
            costs(&design, &DataProfile::new(1e6, record))
        };
        let (inline, separated) = (of("inline", 16_400.0), of("separate(1KiB)", 16_400.0));
        assert!(inline.write_amplification > 3.0, "{inline:?}");
        assert!(separated.write_amplification < 1.1, "{separated:?}");
        assert!(separated.table_bytes < inline.table_bytes / 200.0);
        assert!(separated.value_bytes > 16_400e6 && inline.value_bytes == 0.0);
        assert_eq!((inline.value_reads, separated.value_reads), (0.0, 1.0));
        assert_eq!(of("inline", 100.0), of("separate(1KiB)", 100.0));
    }
}
