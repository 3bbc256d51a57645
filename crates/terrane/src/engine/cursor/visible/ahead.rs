//! Separated values that a forward scan reads before it comes to them.
//!
//! A scan that comes to a value which is not in memory, while reads wait for a device, reads the values of the next
//! entries of the same block with it. It may need none of them, so a read has about twice as many as the one before only
//! if the scan has come to half of those, and otherwise half as many. Values that cannot be read are left out, and read
//! when the scan comes to them.

use std::collections::VecDeque;

use super::VisibleCursor;
use crate::base::error::Result;
use crate::files::value::Value;
use crate::files::value_file::{SeparatedEntry, ValueFiles};
use crate::files::value_pointer::ValuePointer;

/// The maximum number of entries whose values are read ahead, and about the maximum of their bytes.
const COUNT_MAX: usize = 32;
const BYTES_MAX: u64 = 1 << 20;

/// The values that a scan has read ahead.
#[derive(Debug, Default)]
pub(super) struct ValuesAhead {
    /// The values and where they are, in the order in which they were read.
    values: VecDeque<(ValuePointer, Value)>,
    /// The number of entries whose values the next read has besides the current one.
    count: usize,
    /// The number of values of the last read to which the scan has not come.
    unused: usize,
}

impl ValuesAhead {
    /// Returns a value that was read ahead. Those before it may be of another run.
    fn take(&mut self, pointer: &[u8]) -> Option<Value> {
        let pointer = ValuePointer::decode(pointer).ok().filter(|_| !self.values.is_empty())?;
        let at = self.values.iter().position(|(of, _)| *of == pointer)?;
        self.unused = self.unused.saturating_sub(1);
        self.values.remove(at).map(|(_, value)| value)
    }

    /// Keeps values that were read, besides those of other runs to which the scan has not come.
    fn keep(&mut self, values: Vec<(ValuePointer, Value)>) {
        let was_used = self.unused * 2 <= self.count;
        self.count = if was_used { (self.count * 2 + 1).min(COUNT_MAX) } else { self.count / 2 };
        self.unused = values.len();
        self.values.extend(values);
        let excess = self.values.len().saturating_sub(2 * COUNT_MAX);
        self.values.drain(..excess);
    }
}

impl VisibleCursor {
    /// Loads the separated value of the current entry of a forward scan.
    pub(super) fn load_separated(&mut self, files: &ValueFiles) -> Result<Value> {
        let pointer = self.merge.value();
        if let Some(value) = self.ahead.as_mut().and_then(|ahead| ahead.take(pointer)) {
            return Ok(value);
        }
        let (key, seq) = (self.merge.key(), self.merge.seq());
        let alone = || files.read_scanned(key, seq, self.merge.value());
        if !files.reads_wait() {
            return alone();
        }
        let entry = SeparatedEntry { key, seq, pointer: self.merge.pin_value() };
        if let Some(value) = files.cached(&entry) {
            return Ok(value);
        }
        let mut entries = vec![entry];
        let mut bytes = 0;
        let count = self.ahead.as_ref().map_or(0, |ahead| ahead.count);
        self.merge.separated_after(count, |pointer| {
            bytes += ValuePointer::decode(&pointer).map_or(0, |pointer| u64::from(pointer.len));
            if bytes <= BYTES_MAX {
                entries.push(SeparatedEntry { key: &[], seq: 0, pointer });
            }
        });
        let mut values = files.read_together(&entries).into_iter();
        let value = values.next().flatten().map_or_else(alone, Ok);
        let next = entries.iter().skip(1).zip(values);
        let kept: Vec<_> = next
            .filter_map(|(entry, value)| Some((ValuePointer::decode(&entry.pointer).ok()?, value?)))
            .collect();
        self.ahead.get_or_insert_default().keep(kept);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(file: u64, offset: u64) -> ValuePointer {
        ValuePointer { file, offset, len: 1, checksum: 0 }
    }

    fn read(file: u64) -> Vec<(ValuePointer, Value)> {
        (0..20).map(|offset| (pointer(file, offset), Value::from(&[offset as u8][..]))).collect()
    }

    fn take(ahead: &mut ValuesAhead, file: u64, offset: u64) -> Option<u8> {
        let mut encoded = Vec::new();
        pointer(file, offset).encode(&mut encoded);
        ahead.take(&encoded).map(|value| value[0])
    }

    #[test]
    fn values_of_two_runs_are_kept_until_the_scan_comes_to_them() {
        let mut ahead = ValuesAhead::default();
        ahead.keep(read(1));
        ahead.keep(read(2));
        for offset in 0..20 {
            for file in [1, 2] {
                assert_eq!(take(&mut ahead, file, offset), Some(offset as u8), "{file}");
            }
        }
        assert_eq!(take(&mut ahead, 1, 0), None);
        (0..9).for_each(|file| ahead.keep(read(file)));
        assert_eq!(ahead.values.len(), 2 * COUNT_MAX);
    }

    #[test]
    fn a_scan_that_uses_no_values_reads_fewer_ahead() {
        let mut ahead = ValuesAhead::default();
        for expected in [1, 3, 7] {
            ahead.keep(Vec::new());
            assert_eq!(ahead.count, expected);
        }
        ahead.keep(read(1));
        assert_eq!(ahead.count, 15);
        for expected in [7, 3, 1, 0] {
            ahead.keep(read(1));
            assert_eq!(ahead.count, expected);
        }
    }
}
