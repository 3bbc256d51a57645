//! The properties of a table.
//!
//! A list of `(tag varint, length varint, bytes)`. A reader skips unknown even tags, and refuses a
//! table with an unknown odd tag, because that changes how the table must be read.

#[cfg(test)]
use terrane_policy::ValueFileId;
use terrane_policy::{Expiry, ValueRef};

use crate::base::codec::{DecodeError, Decoded, Reader, put_slice, put_varint};
use crate::base::expiry::{put_expiry, read_expiry};
use crate::base::types::SeqNo;
use crate::files::value_pointer::{put_value_refs, value_refs};

/// Properties of a table's contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Properties {
    /// The number of point entries, including tombstones.
    pub(crate) entries: u64,
    /// The number of point tombstones.
    pub(crate) tombstones: u64,
    /// The number of fragments of range tombstones.
    pub(crate) range_tombstones: u64,
    /// The number of distinct user keys.
    pub(crate) keys: u64,
    /// The total length of all keys, as the user passed them in.
    pub(crate) key_bytes: u64,
    /// The total length of all values, as the user passed them in, wherever they are stored.
    pub(crate) value_bytes: u64,
    /// The separated values to which entries refer, by value file.
    pub(crate) value_refs: Vec<ValueRef>,
    /// The number of data blocks.
    pub(crate) blocks: u64,
    /// The smallest sequence number.
    pub(crate) smallest_seq: SeqNo,
    /// The largest sequence number.
    pub(crate) largest_seq: SeqNo,
    /// When the table was created, in microseconds since the Unix epoch.
    pub(crate) created_micros: u64,
    /// When the oldest tombstone in it was flushed, in microseconds since the Unix epoch.
    pub(crate) oldest_tombstone_micros: Option<u64>,
    /// The entries whose values expire.
    pub(crate) expiry: Option<Expiry>,
    /// The number of the keyspace.
    pub(crate) keyspace: u32,
    /// The smallest key of entries and range tombstones.
    pub(crate) start: Vec<u8>,
    /// The exclusive upper bound of the keys of entries and range tombstones; `None` if there is no
    /// bound.
    pub(crate) end: Option<Vec<u8>>,
}

const ENTRIES: u64 = 2;
const TOMBSTONES: u64 = 4;
const RANGE_TOMBSTONES: u64 = 6;
const KEYS: u64 = 8;
const KEY_BYTES: u64 = 10;
const VALUE_BYTES: u64 = 12;
const BLOCKS: u64 = 14;
const SMALLEST_SEQ: u64 = 16;
const LARGEST_SEQ: u64 = 18;
const CREATED: u64 = 20;
const OLDEST_TOMBSTONE: u64 = 22;
const START: u64 = 24;
const END: u64 = 26;
const KEYSPACE: u64 = 28;
const VALUE_REFS: u64 = 30;
const EXPIRY: u64 = 32;

impl Properties {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut number = |tag: u64, value: u64| {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            put_varint(&mut out, tag);
            put_slice(&mut out, &bytes);
        };
        number(ENTRIES, self.entries);
        number(TOMBSTONES, self.tombstones);
        number(RANGE_TOMBSTONES, self.range_tombstones);
        number(KEYS, self.keys);
        number(KEY_BYTES, self.key_bytes);
        number(VALUE_BYTES, self.value_bytes);
        number(BLOCKS, self.blocks);
        number(SMALLEST_SEQ, self.smallest_seq);
        number(LARGEST_SEQ, self.largest_seq);
        number(CREATED, self.created_micros);
        number(KEYSPACE, self.keyspace.into());
        if let Some(micros) = self.oldest_tombstone_micros {
            number(OLDEST_TOMBSTONE, micros);
        }
        if !self.value_refs.is_empty() {
            let mut refs = Vec::new();
            put_value_refs(&mut refs, &self.value_refs);
            put_varint(&mut out, VALUE_REFS);
            put_slice(&mut out, &refs);
        }
        if let Some(expiry) = &self.expiry {
            let mut bytes = Vec::new();
            put_expiry(&mut bytes, expiry);
            put_varint(&mut out, EXPIRY);
            put_slice(&mut out, &bytes);
        }
        put_varint(&mut out, START);
        put_slice(&mut out, &self.start);
        if let Some(end) = &self.end {
            put_varint(&mut out, END);
            put_slice(&mut out, end);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut properties = Self::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let at = reader.position();
            let tag = reader.varint("property")?;
            let value = reader.slice("property")?;
            properties.set(tag, value).map_err(|error| DecodeError { at, ..error })?;
        }
        Ok(properties)
    }

    fn set(&mut self, tag: u64, value: &[u8]) -> Decoded<()> {
        let number = || Reader::new(value).varint("property value");
        match tag {
            ENTRIES => self.entries = number()?,
            TOMBSTONES => self.tombstones = number()?,
            RANGE_TOMBSTONES => self.range_tombstones = number()?,
            KEYS => self.keys = number()?,
            KEY_BYTES => self.key_bytes = number()?,
            VALUE_BYTES => self.value_bytes = number()?,
            BLOCKS => self.blocks = number()?,
            SMALLEST_SEQ => self.smallest_seq = number()?,
            LARGEST_SEQ => self.largest_seq = number()?,
            CREATED => self.created_micros = number()?,
            OLDEST_TOMBSTONE => self.oldest_tombstone_micros = Some(number()?),
            KEYSPACE => self.keyspace = Reader::new(value).varint_u32("keyspace")?,
            VALUE_REFS => self.value_refs = value_refs(&mut Reader::new(value))?,
            EXPIRY => self.expiry = Some(read_expiry(&mut Reader::new(value))?),
            START => self.start = value.to_vec(),
            END => self.end = Some(value.to_vec()),
            unknown if unknown % 2 == 1 => {
                return Err(DecodeError::unknown("property", unknown));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_round_trip_and_unknown_ones_are_skipped_if_even() {
        let properties = Properties {
            entries: 1,
            tombstones: 2,
            range_tombstones: 3,
            keys: 4,
            key_bytes: 5,
            value_bytes: 6,
            value_refs: vec![ValueRef { file: ValueFileId(3), bytes: 1 << 40, values: 2 }],
            blocks: 7,
            smallest_seq: 8,
            largest_seq: u64::MAX,
            created_micros: 9,
            keyspace: 10,
            oldest_tombstone_micros: Some(0),
            expiry: Some(Expiry { entries: 1, first_micros: 3, last_micros: u64::MAX }),
            start: vec![1, 2],
            end: Some(vec![]),
        };
        let mut bytes = properties.encode();
        assert_eq!(Properties::decode(&bytes), Ok(properties.clone()));
        put_varint(&mut bytes, 1000);
        put_slice(&mut bytes, b"later");
        assert_eq!(Properties::decode(&bytes), Ok(properties));
        put_varint(&mut bytes, 1001);
        put_slice(&mut bytes, b"much later");
        let newer = Properties::decode(&bytes).unwrap_err();
        let error = newer.of_file("7.sst".as_ref(), |_| panic!("it is not damage"));
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
        assert!(error.to_string().contains("property with the unknown tag 1001"), "{error}");
        let empty = Properties::default();
        assert_eq!(Properties::decode(&empty.encode()), Ok(empty));
    }
}
