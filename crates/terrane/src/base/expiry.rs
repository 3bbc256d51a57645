//! Values that expire at a time.
//!
//! ```text
//! stored value: | expiry time u64 | value |
//! ```
//!
//! An entry of kind [`EntryKind::Expiring`](crate::base::types::EntryKind::Expiring) stores the time in
//! microseconds since the Unix epoch before its value. From that time on the entry hides older versions of
//! its key as a tombstone does.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrane_policy::Expiry;

use crate::base::clock::Clock;
use crate::base::codec::{Decoded, Reader, put_varint};
use crate::base::types::EntryKind;

/// The length of the time before a value.
pub(crate) const EXPIRY_BYTES: usize = 8;

/// Returns when a stored value expires. The caller has checked that its length is at least
/// [`EXPIRY_BYTES`]; a shorter one has expired.
#[inline]
pub(crate) fn expires_at_micros(stored: &[u8]) -> u64 {
    stored.first_chunk().map_or(0, |micros| u64::from_le_bytes(*micros))
}

/// Returns a value as it is stored, with its expiry time.
pub(crate) fn stored(expires_at_micros: u64, value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(EXPIRY_BYTES + value.len());
    stored.extend_from_slice(&expires_at_micros.to_le_bytes());
    stored.extend_from_slice(value);
    stored
}

/// Returns a time to live in microseconds.
pub(crate) fn micros_of(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the expiry time of a value that is written now.
pub(crate) fn expiry_after(clock: &dyn Clock, ttl: Duration) -> u64 {
    clock.now_micros().saturating_add(micros_of(ttl))
}

/// Appends the number of entries that expire, and the times of the first and the last.
pub(crate) fn put_expiry(out: &mut Vec<u8>, expiry: &Expiry) {
    let Expiry { entries, first_micros, last_micros } = *expiry;
    [entries, first_micros, last_micros].iter().for_each(|&number| put_varint(out, number));
}

/// Reads what [`put_expiry`] wrote.
pub(crate) fn read_expiry(reader: &mut Reader<'_>) -> Decoded<Expiry> {
    let mut number = || reader.varint("expiry");
    let expiry = Expiry { entries: number()?, first_micros: number()?, last_micros: number()? };
    if expiry.entries == 0 || expiry.first_micros > expiry.last_micros {
        return Err(reader.error("expiry"));
    }
    Ok(expiry)
}

/// The time as of which a read sees values that expire.
#[derive(Debug)]
pub(crate) struct ReadTime<'a> {
    clock: &'a dyn Clock,
    micros: Cell<Option<u64>>,
}

impl<'a> ReadTime<'a> {
    /// Returns the given time; without one, the time at which the read first meets a value that expires.
    pub(crate) fn new(clock: &'a dyn Clock, micros: Option<u64>) -> Self {
        Self { clock, micros: Cell::new(micros) }
    }

    /// Returns whether an entry has a value for this read.
    #[inline]
    pub(crate) fn is_value(&self, kind: EntryKind, stored: &[u8]) -> bool {
        match kind {
            EntryKind::Tombstone => false,
            EntryKind::Value | EntryKind::Separated | EntryKind::Operand => true,
            EntryKind::Expiring => expires_at_micros(stored) > self.micros(),
        }
    }

    /// Returns the time.
    #[cold]
    pub(crate) fn micros(&self) -> u64 {
        let micros = self.micros.get().unwrap_or_else(|| self.clock.now_micros());
        self.micros.set(Some(micros));
        micros
    }
}

/// The default time to live for puts without their own, in microseconds, if there is one.
#[derive(Debug, Default)]
pub(crate) struct DefaultTtl {
    /// 0 for none.
    micros: AtomicU64,
}

impl DefaultTtl {
    /// Returns the time in microseconds.
    #[inline]
    pub(crate) fn get(&self) -> Option<u64> {
        // Relaxed: it orders nothing, and a put that runs concurrently with a change may use either time.
        Some(self.micros.load(Ordering::Relaxed)).filter(|&micros| micros > 0)
    }

    /// Sets the time in microseconds; 0 for none.
    pub(crate) fn set(&self, micros: u64) {
        self.micros.store(micros, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::ManualClock;

    #[test]
    fn a_value_expires_at_its_time_and_a_read_has_one_time() {
        let clock = ManualClock::new(100);
        let value = stored(150, b"value");
        assert_eq!((expires_at_micros(&value), &value[EXPIRY_BYTES..]), (150, &b"value"[..]));
        assert_eq!(expiry_after(&clock, Duration::from_micros(50)), 150);
        assert_eq!(expiry_after(&clock, Duration::MAX), u64::MAX);
        let (read, as_of) = (ReadTime::new(&clock, None), ReadTime::new(&clock, Some(150)));
        assert!(read.is_value(EntryKind::Expiring, &value));
        assert!(!as_of.is_value(EntryKind::Expiring, &value));
        clock.advance(Duration::from_micros(100));
        assert!(read.is_value(EntryKind::Expiring, &value));
        assert!(!ReadTime::new(&clock, None).is_value(EntryKind::Expiring, &value));
        assert!(read.is_value(EntryKind::Value, b"") && !read.is_value(EntryKind::Tombstone, b""));
    }
}
