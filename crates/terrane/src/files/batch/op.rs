//! The operations of a write, encoded as in the log.
//!
//! ```text
//! operation: | tag u8 | keyspace varint | key: length varint, bytes | rest, by tag |
//! 0 delete; 1 put: value: length varint, bytes; 2 delete range: end: length varint, bytes;
//! 3 delete range without end; 4 put a value that expires: stored value: length varint, bytes;
//! 5 merge: operand: length varint, bytes
//! ```
//!
//! The operations of a batch take consecutive sequence numbers, in order.

use crate::base::codec::{Decoded, Reader, SliceWriter, varint_len};
use crate::base::error::{Error, Result};
use crate::base::expiry::EXPIRY_BYTES;
use crate::base::types::{EntryKind, KeyspaceId, MAX_KEY_LEN, MAX_VALUE_LEN};

const DELETE: u8 = 0;
const PUT: u8 = 1;
const DELETE_RANGE: u8 = 2;
const DELETE_FROM: u8 = 3;
const PUT_EXPIRING: u8 = 4;
const MERGE: u8 = 5;

/// One operation of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Put {
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Puts a value that expires at a time, as [`crate::base::expiry`] stores it.
    PutExpiring {
        key: &'a [u8],
        stored: &'a [u8],
    },
    /// Combines the value with an operand.
    Merge {
        key: &'a [u8],
        operand: &'a [u8],
    },
    Delete {
        key: &'a [u8],
    },
    /// Deletes all keys from `start` to the exclusive `end`, or all from `start` on.
    DeleteRange {
        start: &'a [u8],
        end: Option<&'a [u8]>,
    },
}

impl<'a> Op<'a> {
    /// Rejects keys and values that are too long.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Put { key, value }
                if key.len() <= MAX_KEY_LEN && value.len() <= MAX_VALUE_LEN =>
            {
                Ok(())
            }
            _ => self.check_all(),
        }
    }

    fn check_all(&self) -> Result<()> {
        let (key, value, end) = match self {
            Self::Put { key, value } | Self::Merge { key, operand: value } => {
                (key.len(), value.len(), 0)
            }
            // The expiry time counts towards the limit, so the entry is no longer than any other.
            Self::PutExpiring { key, stored } if stored.len() >= EXPIRY_BYTES => {
                (key.len(), stored.len(), 0)
            }
            Self::PutExpiring { .. } => {
                let found = "without its expiry time";
                return Err(Error::invalid("value", found, "with its expiry time"));
            }
            Self::Delete { key } => (key.len(), 0, 0),
            // An end may be the successor of a key of maximum length.
            Self::DeleteRange { start, end } => {
                (start.len().saturating_sub(1), 0, end.map_or(0, |end| end.len().saturating_sub(1)))
            }
        };
        if key.max(end) > MAX_KEY_LEN {
            let found = format!("{} bytes long", key.max(end));
            return Err(Error::invalid("key", found, "at most 64 KiB"));
        }
        if value > MAX_VALUE_LEN {
            let expected = match self {
                Self::PutExpiring { .. } => "at most 1 GiB with the 8 bytes of its expiry time",
                _ => "at most 1 GiB",
            };
            return Err(Error::invalid("value", format!("{value} bytes long"), expected));
        }
        Ok(())
    }

    /// Returns the key of an operation on one key.
    #[inline]
    pub(crate) fn point_key(&self) -> Option<&'a [u8]> {
        self.point_entry().map(|(key, ..)| key)
    }

    /// Returns the key of an operation on one key, and the kind and the bytes of the entry that it writes.
    #[inline]
    pub(crate) fn point_entry(&self) -> Option<(&'a [u8], EntryKind, &'a [u8])> {
        match *self {
            Self::Put { key, value } => Some((key, EntryKind::Value, value)),
            Self::PutExpiring { key, stored } => Some((key, EntryKind::Expiring, stored)),
            Self::Merge { key, operand } => Some((key, EntryKind::Operand, operand)),
            Self::Delete { key } => Some((key, EntryKind::Tombstone, &[])),
            Self::DeleteRange { .. } => None,
        }
    }

    #[inline]
    pub(crate) fn is_delete(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::DeleteRange { .. })
    }

    /// Returns the total length of the keys and the value as the user passed them in.
    #[inline]
    pub(crate) fn user_bytes(&self) -> usize {
        match self {
            Self::Put { key, value } | Self::Merge { key, operand: value } => {
                key.len() + value.len()
            }
            Self::PutExpiring { key, stored } => {
                key.len() + stored.len().saturating_sub(EXPIRY_BYTES)
            }
            Self::Delete { key } => key.len(),
            Self::DeleteRange { start, end } => start.len() + end.map_or(0, <[u8]>::len),
        }
    }

    /// Appends the encoded operation.
    pub(crate) fn encode(&self, keyspace: KeyspaceId, out: &mut Vec<u8>) {
        let before = out.len();
        out.resize(before + self.encoded_len(keyspace) - self.tail_len(), 0);
        let tail = self.encode_head(keyspace, &mut SliceWriter::new(&mut out[before..]));
        out.extend_from_slice(tail);
    }

    /// Encodes the operation without its tail, the bytes of its last key or value, which it returns.
    #[inline(always)]
    pub(crate) fn encode_head(&self, keyspace: KeyspaceId, out: &mut SliceWriter<'_>) -> &'a [u8] {
        let (tag, first, second) = match *self {
            Self::Put { key, value } => (PUT, key, Some(value)),
            Self::PutExpiring { key, stored } => (PUT_EXPIRING, key, Some(stored)),
            Self::Merge { key, operand } => (MERGE, key, Some(operand)),
            Self::Delete { key } => (DELETE, key, None),
            Self::DeleteRange { start, end: Some(end) } => (DELETE_RANGE, start, Some(end)),
            Self::DeleteRange { start, end: None } => (DELETE_FROM, start, None),
        };
        out.put_u8(tag);
        out.put_varint(keyspace.0.into());
        out.put_varint(first.len() as u64);
        let Some(second) = second else { return first };
        out.put(first);
        out.put_varint(second.len() as u64);
        second
    }

    /// Returns the length of the tail of the encoded operation.
    #[inline]
    pub(crate) fn tail_len(&self) -> usize {
        match self {
            Self::Put { value: tail, .. }
            | Self::PutExpiring { stored: tail, .. }
            | Self::Merge { operand: tail, .. }
            | Self::Delete { key: tail }
            | Self::DeleteRange { end: Some(tail), .. }
            | Self::DeleteRange { start: tail, end: None } => tail.len(),
        }
    }

    /// Returns the length of the encoded operation.
    #[inline(always)]
    pub(crate) fn encoded_len(&self, keyspace: KeyspaceId) -> usize {
        let slice = |bytes: &[u8]| varint_len(bytes.len() as u64) + bytes.len();
        let rest = match *self {
            Self::Put { key, value: second }
            | Self::PutExpiring { key, stored: second }
            | Self::Merge { key, operand: second } => slice(key) + slice(second),
            Self::Delete { key } => slice(key),
            Self::DeleteRange { start, end } => slice(start) + end.map_or(0, slice),
        };
        1 + varint_len(keyspace.0.into()) + rest
    }
}

/// Iterates over encoded operations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ops<'a>(Reader<'a>);

impl<'a> Ops<'a> {
    pub(crate) fn new(encoded: &'a [u8]) -> Self {
        Self(Reader::new(encoded))
    }

    fn decode(&mut self) -> Decoded<(KeyspaceId, Op<'a>)> {
        let reader = &mut self.0;
        let tag = reader.u8("operation")?;
        let keyspace = KeyspaceId(reader.varint_u32("keyspace")?);
        let key = reader.slice("key")?;
        let op = match tag {
            DELETE => Op::Delete { key },
            PUT => Op::Put { key, value: reader.slice("value")? },
            MERGE => Op::Merge { key, operand: reader.slice("operand")? },
            PUT_EXPIRING => Op::PutExpiring { key, stored: reader.slice("value")? },
            DELETE_RANGE => Op::DeleteRange { start: key, end: Some(reader.slice("range end")?) },
            DELETE_FROM => Op::DeleteRange { start: key, end: None },
            _ => return Err(reader.error("operation")),
        };
        // The limits of the public methods apply, so that replay inserts only what a memtable accepts.
        op.check().map_err(|_| reader.error("operation"))?;
        Ok((keyspace, op))
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Decoded<(KeyspaceId, Op<'a>)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let next = self.decode();
        if next.is_err() {
            self.0 = Reader::new(&[]);
        }
        Some(next)
    }
}
