//! Operations that are applied atomically.

mod op;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::base::expiry::{EXPIRY_BYTES, expires_at_micros, micros_of, stored};
use crate::base::types::KeyspaceId;

pub(crate) use op::{Op, Ops};

/// The maximum length of a batch in bytes. It leaves room for at least one value of maximum length.
pub(crate) const MAX_BATCH_BYTES: usize = (1 << 31) - (1 << 20);

/// Operations that are applied atomically.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    encoded: Vec<u8>,
    count: u32,
    user_bytes: usize,
    /// The keyspaces written to, without duplicates.
    keyspaces: Vec<KeyspaceId>,
    deletes_ranges: bool,
    /// True if some puts have a time to live. Until [`Self::with_expiry_times`] is called, their
    /// stored values begin with that time instead of an expiry time.
    has_ttls: bool,
    /// True if some puts have an expiry time.
    has_expiry_times: bool,
    /// True if some operations are merges.
    has_merges: bool,
    /// The error of the first invalid operation; with such an error, the whole batch is rejected.
    refused: Option<Error>,
}

impl Batch {
    pub(crate) fn add(&mut self, keyspace: KeyspaceId, op: Op<'_>) {
        let len = op.encoded_len(keyspace);
        let fits = self.encoded.len() + len <= MAX_BATCH_BYTES;
        let checked = op.check().and_then(|()| {
            let too_large = || Error::invalid("batch", "larger", "at most 2 GiB in all");
            if fits { Ok(()) } else { Err(too_large()) }
        });
        match checked {
            Ok(()) => {
                self.encoded.reserve(len);
                op.encode(keyspace, &mut self.encoded);
                self.count += 1;
                self.user_bytes += op.user_bytes();
                self.deletes_ranges |= matches!(op, Op::DeleteRange { .. });
                self.has_merges |= matches!(op, Op::Merge { .. });
                if !self.keyspaces.contains(&keyspace) {
                    self.keyspaces.push(keyspace);
                }
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Adds a put whose value expires after a time; see [`Self::with_expiry_times`].
    pub(crate) fn add_with_ttl(
        &mut self,
        keyspace: KeyspaceId,
        (key, value): (&[u8], &[u8]),
        ttl: Duration,
    ) {
        self.has_ttls = true;
        let stored = stored(micros_of(ttl), value);
        self.add(keyspace, Op::PutExpiring { key, stored: &stored });
        self.check_times();
    }

    /// Adds a put whose value expires at a time. Must not be mixed with times to live.
    pub(crate) fn add_expiring(
        &mut self,
        keyspace: KeyspaceId,
        (key, value): (&[u8], &[u8]),
        expires_at_micros: u64,
    ) {
        self.has_expiry_times = true;
        let stored = stored(expires_at_micros, value);
        self.add(keyspace, Op::PutExpiring { key, stored: &stored });
        self.check_times();
    }

    /// Refuses a batch that mixes expiry times and times to live.
    fn check_times(&mut self) {
        if self.has_expiry_times && self.has_ttls {
            let found = "with a time to live, next to values that expire at a given time";
            self.refuse(Error::invalid("batch", found, "with times of one kind"));
        }
    }

    /// Returns true if some operations are merges.
    pub(crate) fn has_merges(&self) -> bool {
        self.has_merges
    }

    /// Returns the keyspaces that have operands.
    pub(crate) fn merged_keyspaces(&self) -> BTreeSet<KeyspaceId> {
        // Every operation was checked when it was added.
        let ops = Ops::new(&self.encoded).flatten();
        ops.filter_map(|(id, op)| matches!(op, Op::Merge { .. }).then_some(id)).collect()
    }

    /// Returns true if some puts have a time to live.
    pub(crate) fn has_ttls(&self) -> bool {
        self.has_ttls
    }

    /// Returns the batch with expiry times, as of `now_micros`, in place of times to live. Puts without
    /// their own time get the time of their keyspace in `defaults`, if there is one.
    pub(crate) fn with_expiry_times(
        &self,
        now_micros: u64,
        defaults: &[(KeyspaceId, u64)],
    ) -> Self {
        let mut resolved = Self { refused: self.refused.clone(), ..Self::default() };
        // Every operation was checked when it was added.
        for (id, op) in Ops::new(&self.encoded).flatten() {
            let default = defaults.iter().find(|(keyspace, _)| *keyspace == id);
            let (key, ttl, value) = match (op, default) {
                (Op::PutExpiring { key, stored }, _) if self.has_ttls => {
                    (key, expires_at_micros(stored), stored.get(EXPIRY_BYTES..).unwrap_or_default())
                }
                (Op::Put { key, value }, Some((_, ttl))) => (key, *ttl, value),
                (other, _) => {
                    resolved.add(id, other);
                    continue;
                }
            };
            let stored = stored(now_micros.saturating_add(ttl), value);
            resolved.add(id, Op::PutExpiring { key, stored: &stored });
        }
        resolved
    }

    /// Appends the operations of another batch. The caller ensures that the
    /// result does not exceed [`MAX_BATCH_BYTES`].
    pub(crate) fn append(&mut self, other: &Self) {
        self.encoded.extend_from_slice(&other.encoded);
        self.count += other.count;
        self.user_bytes += other.user_bytes;
        self.deletes_ranges |= other.deletes_ranges;
        self.has_ttls |= other.has_ttls;
        self.has_expiry_times |= other.has_expiry_times;
        self.has_merges |= other.has_merges;
        for keyspace in &other.keyspaces {
            if !self.keyspaces.contains(keyspace) {
                self.keyspaces.push(*keyspace);
            }
        }
        if let Some(error) = &other.refused {
            self.refuse(error.clone());
        }
    }

    /// Invalidates the whole batch; the first error wins.
    pub(crate) fn refuse(&mut self, error: Error) {
        self.refused.get_or_insert(error);
    }

    /// Returns the encoded operations, or the error that invalidates the batch.
    pub(crate) fn checked(&self) -> Result<&[u8]> {
        self.refused.clone().map_or(Ok(&self.encoded), Err)
    }

    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn user_bytes(&self) -> usize {
        self.user_bytes
    }

    pub(crate) fn keyspaces(&self) -> &[KeyspaceId] {
        &self.keyspaces
    }

    /// Returns true if any operation deletes a range.
    pub(crate) fn deletes_ranges(&self) -> bool {
        self.deletes_ranges
    }

    pub(crate) fn clear(&mut self) {
        self.encoded.clear();
        self.count = 0;
        self.user_bytes = 0;
        self.keyspaces.clear();
        self.deletes_ranges = false;
        self.has_ttls = false;
        self.has_expiry_times = false;
        self.has_merges = false;
        self.refused = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::types::MAX_KEY_LEN;

    const OPS: [Op<'static>; 7] = [
        Op::Put { key: b"", value: b"" },
        Op::Put { key: b"key", value: b"value" },
        Op::PutExpiring { key: b"key", stored: b"\xff\0\0\0\0\0\0\0value" },
        Op::Merge { key: b"key", operand: b"operand" },
        Op::Delete { key: b"key" },
        Op::DeleteRange { start: b"a", end: Some(b"b") },
        Op::DeleteRange { start: b"z", end: None },
    ];

    #[test]
    fn operations_round_trip() {
        let mut batch = Batch::default();
        for (number, op) in OPS.iter().enumerate() {
            let keyspace = KeyspaceId(number as u32 * 100);
            let before = batch.encoded.len();
            batch.add(keyspace, *op);
            assert_eq!(batch.encoded.len() - before, op.encoded_len(keyspace));
        }
        let decoded: Vec<_> = Ops::new(batch.checked().unwrap()).map(Result::unwrap).collect();
        assert_eq!(decoded.len(), batch.len());
        for (number, (keyspace, op)) in decoded.into_iter().enumerate() {
            assert_eq!((keyspace.0, op), (number as u32 * 100, OPS[number]));
        }
    }

    #[test]
    fn times_to_live_become_expiry_times_when_a_batch_is_applied() {
        let (plain, short) = (KeyspaceId(1), KeyspaceId(2));
        let mut batch = Batch::default();
        batch.add_with_ttl(plain, (b"a", b"1"), Duration::from_micros(5));
        batch.add(plain, Op::Put { key: b"b", value: b"2" });
        batch.add(short, Op::Put { key: b"c", value: b"3" });
        batch.add_with_ttl(short, (b"d", b"4"), Duration::MAX);
        batch.add(short, Op::Delete { key: b"e" });
        let resolved = batch.with_expiry_times(100, &[(short, 50)]);
        let ops: Vec<_> = Ops::new(resolved.checked().unwrap()).map(|op| op.unwrap().1).collect();
        let value = |expires_at: u64, value: &[u8]| [&expires_at.to_le_bytes()[..], value].concat();
        assert_eq!(
            ops,
            [
                Op::PutExpiring { key: b"a", stored: &value(105, b"1") },
                Op::Put { key: b"b", value: b"2" },
                Op::PutExpiring { key: b"c", stored: &value(150, b"3") },
                Op::PutExpiring { key: b"d", stored: &value(u64::MAX, b"4") },
                Op::Delete { key: b"e" },
            ]
        );
        assert_eq!((resolved.len(), resolved.has_ttls()), (5, false));
        batch.refuse(Error::invalid("key", "refused", "another"));
        assert!(batch.with_expiry_times(100, &[]).checked().is_err());
    }

    #[test]
    fn damaged_operations_end_in_one_error() {
        let mut batch = Batch::default();
        OPS.iter().for_each(|op| batch.add(KeyspaceId(1), *op));
        let encoded = batch.checked().unwrap();
        for len in 0..encoded.len() {
            let decoded: Vec<_> = Ops::new(&encoded[..len]).collect();
            assert!(decoded.iter().rev().skip(1).all(Result::is_ok));
        }
        assert_eq!(Ops::new(&[9, 0, 0]).filter(Result::is_err).count(), 1);
    }

    #[test]
    fn oversized_operations_refuse_the_whole_batch() {
        let mut batch = Batch::default();
        batch.add(KeyspaceId(0), Op::Delete { key: &[0; MAX_KEY_LEN] });
        assert!(batch.checked().is_ok());
        batch.add(KeyspaceId(0), Op::Delete { key: &[0; MAX_KEY_LEN + 1] });
        batch.add(KeyspaceId(0), Op::Delete { key: b"fine" });
        assert!(batch.checked().is_err());
        batch.clear();
        assert!(batch.checked().is_ok());
    }
}
