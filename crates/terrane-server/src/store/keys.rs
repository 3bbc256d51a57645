//! The keys of a database, whatever the type of their values.

use std::iter::Peekable;
use std::ops::Bound;

use terrane::{Key, LookupPath, Result, Value};

use super::Store;
use super::hash_layout::{field_key, header_key, header_range, key_of_header};

/// Keys of a database, in order.
pub(crate) type Keys<'a> = Box<dyn Iterator<Item = Result<Key>> + 'a>;

/// Strings of a database with their keys, in order.
pub(crate) type Strings<'a> = Box<dyn DoubleEndedIterator<Item = Result<(Key, Value)>> + 'a>;

/// Which keys an iteration returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    All,
    Strings,
    Hashes,
    /// A type of Redis that the server does not have.
    Other,
}

impl Store<'_> {
    /// Returns the keys of a range.
    pub(crate) fn keys(
        &self,
        db: usize,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        kind: Kind,
    ) -> Result<Keys<'_>> {
        let has_hashes = self.databases.hashes(db).is_some();
        Ok(match kind {
            Kind::Strings => self.string_keys(db, range)?,
            Kind::All if !has_hashes => self.string_keys(db, range)?,
            Kind::All => Box::new(Merged {
                strings: self.string_keys(db, range)?.peekable(),
                hashes: self.hash_keys(db, range)?.peekable(),
            }),
            Kind::Hashes => self.hash_keys(db, range)?,
            Kind::Other => Box::new(std::iter::empty()),
        })
    }

    fn string_keys(
        &self,
        db: usize,
        (start, end): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<Keys<'_>> {
        let range = (start.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec));
        Ok(match (self.databases.existing(db), &self.transaction) {
            (None, _) => Box::new(std::iter::empty()),
            (Some(keyspace), None) => Box::new(keyspace.range(range)?.into_keys()),
            (Some(keyspace), Some(transaction)) => {
                Box::new(transaction.range_in(keyspace, range)?.into_keys())
            }
        })
    }

    /// Returns the strings of a range of keys.
    pub(crate) fn strings(
        &self,
        db: usize,
        (start, end): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<Strings<'_>> {
        let range = (start.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec));
        Ok(match (self.databases.existing(db), &self.transaction) {
            (None, _) => Box::new(std::iter::empty()),
            (Some(keyspace), None) => Box::new(keyspace.range(range)?),
            (Some(keyspace), Some(transaction)) => Box::new(transaction.range_in(keyspace, range)?),
        })
    }

    /// Explains the lookups of a key: its string, its hash, and a field of the hash.
    pub(crate) fn explain(
        &self,
        db: usize,
        key: &[u8],
        field: Option<&[u8]>,
    ) -> Result<Vec<LookupPath>> {
        let mut paths = Vec::new();
        if let Some(keyspace) = self.databases.existing(db) {
            paths.push(keyspace.explain(key)?);
        }
        if let Some(hashes) = self.databases.hashes(db) {
            paths.push(hashes.keyspace.explain(header_key(key))?);
            if let (Some(field), Some(header)) = (field, self.header(db, key)?) {
                paths.push(hashes.keyspace.explain(field_key(header.generation, field))?);
            }
        }
        Ok(paths)
    }

    fn hash_keys(&self, db: usize, (start, end): (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Keys<'_>> {
        let range = header_range(start, end);
        let bare = |key: Result<Key>| key.map(|key| Key::from(key_of_header(&key)));
        Ok(match (self.databases.hashes(db), &self.transaction) {
            (None, _) => Box::new(std::iter::empty()),
            (Some(hashes), None) => Box::new(hashes.keyspace.range(range)?.into_keys().map(bare)),
            (Some(hashes), Some(transaction)) => {
                Box::new(transaction.range_in(&hashes.keyspace, range)?.into_keys().map(bare))
            }
        })
    }
}

/// The keys of strings and hashes, in order.
struct Merged<'a> {
    strings: Peekable<Keys<'a>>,
    hashes: Peekable<Keys<'a>>,
}

impl Iterator for Merged<'_> {
    type Item = Result<Key>;

    fn next(&mut self) -> Option<Self::Item> {
        match (self.strings.peek(), self.hashes.peek()) {
            (Some(Ok(string)), Some(Ok(hash))) if hash < string => self.hashes.next(),
            (Some(Ok(string)), Some(Ok(hash))) if hash == string => {
                // A program that bypasses the server has set a string of the same key.
                self.hashes.next();
                self.strings.next()
            }
            (None | Some(Ok(_)), Some(Err(_))) | (None, _) => self.hashes.next(),
            _ => self.strings.next(),
        }
    }
}
