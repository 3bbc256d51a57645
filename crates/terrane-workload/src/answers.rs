//! Checks of the answers of a store, and their counts.

use std::hint::black_box;

use crate::store::Direction;
use crate::value::{ValueCheck, key_prefix};

/// Counts of one client, with the fields of the [report](crate::Report).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) found: u64,
    pub(crate) missing: u64,
    pub(crate) not_found: u64,
    pub(crate) phantoms: u64,
    pub(crate) wrong_values: u64,
    pub(crate) out_of_order: u64,
    pub(crate) bytes_written: u64,
    pub(crate) bytes_read: u64,
}

impl Tally {
    /// Returns the number of wrong answers.
    pub(crate) fn wrong_answers(&self) -> u64 {
        self.not_found + self.phantoms + self.wrong_values + self.out_of_order
    }

    /// Adds the counts of another client.
    pub(crate) fn add(&mut self, other: &Self) {
        self.found += other.found;
        self.missing += other.missing;
        self.not_found += other.not_found;
        self.phantoms += other.phantoms;
        self.wrong_values += other.wrong_values;
        self.out_of_order += other.out_of_order;
        self.bytes_written += other.bytes_written;
        self.bytes_read += other.bytes_read;
    }

    /// Counts an entry that the store returned: reads the first and last bytes of the value, and
    /// checks that the value belongs to the key.
    #[inline]
    pub(crate) fn look_at(&mut self, check: ValueCheck, key: &[u8], value: &[u8]) {
        black_box(value.last());
        self.wrong_values += u64::from(!check.accepts(key, value));
        self.bytes_read += (key.len() + value.len()) as u64;
    }
}

/// Checks the entries of one scan, whose keys all have the same size.
///
/// Compares keys by their first eight bytes, which differ for any two keys; comparing and copying
/// whole keys would cost as much as the scan.
pub(crate) struct ScanCheck {
    direction: Direction,
    check: ValueCheck,
    pub(crate) previous: Option<u64>,
}

impl ScanCheck {
    pub(crate) fn new(direction: Direction, check: ValueCheck) -> Self {
        Self { direction, check, previous: None }
    }

    /// Checks the next entry.
    #[inline]
    pub(crate) fn look_at(&mut self, tally: &mut Tally, key: &[u8], value: &[u8]) {
        let prefix = key_prefix(key);
        let in_order = match (self.previous, self.direction) {
            (None, _) => true,
            (Some(previous), Direction::Forward) => previous < prefix,
            (Some(previous), Direction::Backward) => previous > prefix,
        };
        self.previous = Some(prefix);
        tally.out_of_order += u64::from(!in_order);
        tally.found += 1;
        tally.look_at(self.check, key, value);
    }
}
