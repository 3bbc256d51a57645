//! Reading and writing hashes.
//!
//! A command that only reads locks no key, and reads the header of a hash and its fields one after the other.
//! If it finds no field, the hash may have been removed or replaced in between, so it looks at the header
//! again. If it finds one, the hash existed at that moment, because its fields are removed with its header.

use terrane::{Key, Result, Value};

use super::changes::Changes;
use super::databases::Hashes;
use super::hash_layout::{Header, field_key, field_of, field_range, header_key};
use super::noted::Change;
use super::{KEYS_AT_ONCE, Store, ValueWithExpiry};

/// Fields of a hash with their values, in order.
pub(crate) type Fields<'a> = Box<dyn Iterator<Item = Result<(Key, Value)>> + 'a>;

/// Up to this number of fields, their lookups are cheaper one by one.
const FEW: usize = 4;

/// Why an operation on a value failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The key has a value of another type.
    WrongType,
    /// A hash is too large to be copied at once.
    TooLarge,
    /// The database reported an error.
    Database(terrane::Error),
}

impl From<terrane::Error> for Fault {
    fn from(error: terrane::Error) -> Self {
        Self::Database(error)
    }
}

impl Store<'_> {
    /// Returns the header of a hash, whatever string the key has.
    #[inline]
    pub(super) fn header(&self, db: usize, key: &[u8]) -> Result<Option<Header>> {
        let Some(hashes) = self.databases.hashes(db) else { return Ok(None) };
        let stored = header_key(key);
        let found = match &self.transaction {
            None => hashes.keyspace.get_with_expiry(stored)?,
            Some(transaction) => transaction.get_with_expiry_in(&hashes.keyspace, stored)?,
        };
        Ok(found.and_then(|(value, expires_at)| Header::decode(&value, expires_at)))
    }

    /// Returns the hash of a key; fails if the key has a value of another type.
    pub(crate) fn hash(&self, db: usize, key: &[u8]) -> Result<Option<Header>, Fault> {
        self.look(key, || match self.header(db, key)? {
            None if self.contains_string(db, key)? => Err(Fault::WrongType),
            found => Ok(found),
        })
    }

    /// Reads fields of a hash. `read` returns `None` if it found none.
    pub(crate) fn read_hash<T>(
        &self,
        db: usize,
        key: &[u8],
        read: impl Fn(&Header) -> Result<Option<T>>,
    ) -> Result<Option<T>, Fault> {
        let mut last = self.hash(db, key)?;
        while let Some(header) = last {
            if let Some(found) = read(&header)? {
                return Ok(Some(found));
            }
            let now = self.hash(db, key)?;
            if now.is_some_and(|now| now.generation == header.generation) {
                break;
            }
            last = now;
        }
        Ok(None)
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, db: usize, header: &Header, field: &[u8]) -> Result<Option<Value>> {
        let Some(hashes) = self.databases.hashes(db) else { return Ok(None) };
        let stored = field_key(header.generation, field);
        match &self.transaction {
            None => hashes.keyspace.get(stored),
            Some(transaction) => transaction.get_in(&hashes.keyspace, stored),
        }
    }

    /// Returns the values of several fields, from one snapshot. Stops soon after they have more
    /// than `bytes_max` bytes, and then returns fewer values than fields.
    pub(crate) fn some_fields<'k>(
        &self,
        db: usize,
        header: &Header,
        fields: impl Iterator<Item = &'k [u8]>,
        bytes_max: usize,
    ) -> Result<Vec<Option<Value>>> {
        let Some(hashes) = self.databases.hashes(db) else {
            return Ok(fields.map(|_| None).collect());
        };
        let stored: Vec<_> = fields.map(|field| field_key(header.generation, field)).collect();
        self.look_up(&hashes.keyspace, &stored, bytes_max)
    }

    /// Returns the fields of a hash, those after a field if it is given.
    pub(crate) fn fields(
        &self,
        db: usize,
        header: &Header,
        after: Option<&[u8]>,
    ) -> Result<Fields<'_>> {
        let range = field_range(header.generation, after);
        let bare = |entry: Result<(Key, Value)>| {
            entry.map(|(key, value)| (Key::from(field_of(&key)), value))
        };
        Ok(match (self.databases.hashes(db), &self.transaction) {
            (None, _) => Box::new(std::iter::empty()),
            (Some(hashes), None) => Box::new(hashes.keyspace.range(range)?.map(bare)),
            (Some(hashes), Some(transaction)) => {
                Box::new(transaction.range_in(&hashes.keyspace, range)?.map(bare))
            }
        })
    }

    /// Returns how many of the fields, which are distinct, a hash has.
    fn count_existing(&self, db: usize, header: &Header, fields: &[&[u8]]) -> Result<u64> {
        let mut count = 0;
        if fields.len() <= FEW {
            for field in fields {
                count += u64::from(self.field(db, header, field)?.is_some());
            }
        } else {
            // In parts, because the values are read too.
            for fields in fields.chunks(KEYS_AT_ONCE) {
                let found = self.some_fields(db, header, fields.iter().copied(), usize::MAX)?;
                count += found.iter().flatten().count() as u64;
            }
        }
        Ok(count)
    }

    /// Sets fields of a hash, which is created if there is none. Returns how many fields are new. The hash is
    /// the result of [`Self::hash`], and the caller holds the lock of the key.
    pub(crate) fn set_fields(
        &mut self,
        db: usize,
        key: &[u8],
        hash: Option<Header>,
        pairs: &[(&[u8], &[u8])],
    ) -> Result<u64> {
        let mut distinct: Vec<&[u8]> = pairs.iter().map(|(field, _)| *field).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let existing = match &hash {
            Some(header) => self.count_existing(db, header, &distinct)?,
            None => 0,
        };
        let added = distinct.len() as u64 - existing;
        let hashes = self.databases.hashes_for_write(db)?;
        let new = || Header { generation: hashes.new_generation(), fields: 0, expires_at: None };
        let mut header = hash.unwrap_or_else(new);
        header.fields += added;
        self.touch(db, key, Change::FieldsSet);
        self.change(|changes| {
            if added > 0 {
                changes.put_header(hashes, key, &header, header.expires_at)?;
            }
            for (field, value) in pairs {
                let stored = field_key(header.generation, field);
                changes.put(&hashes.keyspace, stored.as_ref(), value, None)?;
            }
            Ok(())
        })?;
        Ok(added)
    }

    /// Removes fields of a hash, and the hash with its last field. Returns how many fields it had. The hash
    /// is the result of [`Self::hash`], and the caller holds the lock of the key.
    pub(crate) fn remove_fields<'k>(
        &mut self,
        db: usize,
        key: &[u8],
        mut header: Header,
        fields: impl Iterator<Item = &'k [u8]>,
    ) -> Result<u64> {
        let mut distinct: Vec<&[u8]> = fields.collect();
        distinct.sort_unstable();
        distinct.dedup();
        let removed = self.count_existing(db, &header, &distinct)?;
        let Some(hashes) = self.databases.hashes(db).filter(|_| removed > 0) else { return Ok(0) };
        header.fields = header.fields.saturating_sub(removed);
        self.touch(db, key, Change::FieldsRemoved);
        if header.fields == 0 {
            self.touch(db, key, Change::Removed);
        }
        self.change(|changes| {
            if header.fields == 0 {
                changes.delete_header(hashes, key, &header)?;
            } else {
                changes.put_header(hashes, key, &header, header.expires_at)?;
            }
            for field in &distinct {
                let stored = field_key(header.generation, field);
                changes.delete(&hashes.keyspace, stored.as_ref())?;
            }
            Ok(())
        })?;
        Ok(removed)
    }

    /// Replaces a hash by a string, or by nothing.
    #[cold]
    pub(super) fn replace_hash(
        &mut self,
        db: usize,
        key: &[u8],
        header: &Header,
        string: Option<(&[u8], Option<u64>)>,
    ) -> Result<()> {
        let keyspace = self.databases.for_write(db)?;
        let Some(hashes) = self.databases.hashes(db) else { return Ok(()) };
        let set = |(_, expires_at): (&[u8], Option<u64>)| Change::Set {
            has_expiry: expires_at.is_some(),
        };
        self.touch(db, key, string.map_or(Change::Removed, set));
        let _change = self.databases.type_changes.begin();
        self.change(|changes| {
            changes.delete_hash(hashes, key, header)?;
            match string {
                Some((value, expires_at)) => changes.put(keyspace, key, value, expires_at),
                None => Ok(()),
            }
        })
    }
}

/// A value of any type.
#[derive(Debug)]
pub(crate) enum Found {
    String(ValueWithExpiry),
    Hash(Header),
}

impl Found {
    /// Returns when the value expires, in microseconds since the Unix epoch.
    pub(crate) fn expires_at(&self) -> Option<u64> {
        match self {
            Self::String((_, expires_at)) => *expires_at,
            Self::Hash(header) => header.expires_at,
        }
    }
}

/// Whether a copy keeps its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Stays,
    IsRemoved,
}

impl Store<'_> {
    /// Returns the value of a key, of any type.
    pub(crate) fn find(&self, db: usize, key: &[u8]) -> Result<Option<Found>> {
        self.look(key, || match self.string_with_expiry(db, key)? {
            Some(value) => Ok(Some(Found::String(value))),
            None => Ok(self.header(db, key)?.map(Found::Hash)),
        })
    }

    /// Changes when a value expires.
    pub(crate) fn set_expiry(
        &mut self,
        db: usize,
        key: &[u8],
        found: &Found,
        expires_at: Option<u64>,
    ) -> Result<()> {
        match (found, self.databases.hashes(db)) {
            (Found::String((value, _)), _) => self.put(db, key, value, expires_at),
            (Found::Hash(header), Some(hashes)) => {
                self.touch(db, key, Change::Set { has_expiry: expires_at.is_some() });
                let new = Header { expires_at, ..*header };
                self.change(|changes| changes.put_header(hashes, key, &new, header.expires_at))
            }
            (Found::Hash(_), None) => Ok(()),
        }
    }

    /// Copies or moves a value of any type to another key, whose value it replaces. Within a database a hash
    /// is moved without its fields; otherwise they are copied, unless they have more than `bytes_max` bytes.
    pub(crate) fn place(
        &mut self,
        from: (usize, &[u8]),
        to: (usize, &[u8]),
        found: &Found,
        (source, bytes_max): (Source, usize),
    ) -> Result<(), Fault> {
        let target = self.databases.for_write(to.0)?;
        let replaced = self.header(to.0, to.1)?;
        if source == Source::IsRemoved {
            self.touch(from.0, from.1, Change::Taken);
        }
        self.touch(to.0, to.1, Change::Placed);
        let copied = match found {
            Found::Hash(header) if from.0 != to.0 || source == Source::Stays => {
                Some(self.all_fields(from.0, header, bytes_max)?)
            }
            _ => None,
        };
        let (databases, is_hash) = (self.databases, matches!(found, Found::Hash(_)));
        let _change = databases.type_changes.begin();
        let target_hashes = match is_hash {
            true => Some(databases.hashes_for_write(to.0)?),
            false => databases.hashes(to.0),
        };
        self.change(|changes| {
            if let (Some(header), Some(hashes)) = (&replaced, target_hashes) {
                changes.delete_hash(hashes, to.1, header)?;
            }
            match (found, target_hashes) {
                (Found::String((value, expires_at)), _) => {
                    changes.put(target, to.1, value, *expires_at)?;
                }
                (Found::Hash(header), Some(hashes)) => {
                    changes.delete(target, to.1)?;
                    put_hash(changes, hashes, to.1, header, copied.as_deref())?;
                }
                (Found::Hash(_), None) => {}
            }
            if source == Source::Stays {
                return Ok(());
            }
            match (found, databases.existing(from.0), databases.hashes(from.0)) {
                (Found::String(_), Some(keyspace), _) => changes.delete(keyspace, from.1),
                (Found::Hash(header), _, Some(hashes)) if copied.is_some() => {
                    changes.delete_hash(hashes, from.1, header)
                }
                (Found::Hash(_), _, Some(hashes)) => {
                    changes.delete(&hashes.keyspace, header_key(from.1).as_ref())
                }
                _ => Ok(()),
            }
        })?;
        Ok(())
    }

    /// Returns all fields of a hash, unless they have more than `bytes_max` bytes.
    fn all_fields(
        &self,
        db: usize,
        header: &Header,
        bytes_max: usize,
    ) -> Result<Vec<(Key, Value)>, Fault> {
        let (mut fields, mut bytes) = (Vec::new(), 0);
        for entry in self.fields(db, header, None)? {
            let (field, value) = entry?;
            bytes += field.len() + value.len();
            if bytes > bytes_max {
                return Err(Fault::TooLarge);
            }
            fields.push((field, value));
        }
        Ok(fields)
    }
}

/// Writes a hash to another key: with its fields as a new hash if they are given, otherwise its header only.
fn put_hash(
    changes: &mut Changes<'_>,
    hashes: &Hashes,
    key: &[u8],
    header: &Header,
    fields: Option<&[(Key, Value)]>,
) -> Result<()> {
    let Some(fields) = fields else {
        // The entry of the expiry time is written again, because it holds the key.
        return changes.put_header(hashes, key, header, None);
    };
    let generation = hashes.new_generation();
    let new = Header { generation, fields: fields.len() as u64, expires_at: header.expires_at };
    changes.put_header(hashes, key, &new, None)?;
    for (field, value) in fields {
        let stored = field_key(generation, field);
        changes.put(&hashes.keyspace, stored.as_ref(), value, None)?;
    }
    Ok(())
}
