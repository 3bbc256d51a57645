//! The entries of a memtable: versions of keys.

/// A position in the total order of writes; higher is newer. At most [`MAX_SEQ`].
pub type SeqNo = u64;

/// The largest sequence number. It has 56 bits, so that a sequence number and a kind fit in 64 bits
/// together.
pub const MAX_SEQ: SeqNo = (1 << 56) - 1;

/// The maximum length of a key, in bytes.
pub const MAX_KEY_LEN: usize = 64 << 10;

/// The maximum length of a value, in bytes.
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// The kind of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EntryKind {
    /// The key was deleted.
    Tombstone = 0,
    /// The key was given a value.
    Value = 1,
    /// The key was given a value that is stored elsewhere; the entry's bytes are its location.
    Separated = 2,
    /// The key was given a value that expires; the entry's bytes begin with the expiry time.
    Expiring = 3,
    /// The entry's bytes are an operand: the key's value is that of its older versions combined
    /// with these bytes.
    Operand = 4,
}

impl EntryKind {
    /// Returns the kind that a stored byte encodes.
    pub const fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Tombstone),
            1 => Some(Self::Value),
            2 => Some(Self::Separated),
            3 => Some(Self::Expiring),
            4 => Some(Self::Operand),
            _ => None,
        }
    }

    /// Returns true unless the key was deleted.
    #[inline]
    pub const fn is_value(self) -> bool {
        !matches!(self, Self::Tombstone)
    }

    /// Returns true if the key has a value until its next version, independent of the time and of
    /// older versions.
    #[inline]
    pub const fn is_lasting(self) -> bool {
        matches!(self, Self::Value | Self::Separated)
    }

    /// Returns true if a reader that sees this version needs no older one.
    #[inline]
    pub const fn hides_older(self) -> bool {
        !matches!(self, Self::Operand)
    }
}

/// One version of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The sequence number of the write.
    pub seq: SeqNo,
    /// A value, a tombstone, or the place of a value.
    pub kind: EntryKind,
    /// The value; empty for a tombstone.
    pub value: &'a [u8],
}

impl Entry<'_> {
    /// Returns the number of bytes of key and value together.
    pub(crate) fn data_bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }
}

/// Packs sequence number and kind into one word that sorts by sequence number.
pub(crate) const fn pack(seq: SeqNo, kind: EntryKind) -> u64 {
    (seq << 8) | kind as u64
}

/// Returns the sequence number of a packed word.
pub(crate) const fn seq_of(packed: u64) -> SeqNo {
    packed >> 8
}

/// Returns the kind of a packed word. Only words made by [`pack`] are ever stored, so any other byte
/// is a value.
pub(crate) const fn kind_of(packed: u64) -> EntryKind {
    const TOMBSTONE: u64 = EntryKind::Tombstone as u64;
    const SEPARATED: u64 = EntryKind::Separated as u64;
    const EXPIRING: u64 = EntryKind::Expiring as u64;
    const OPERAND: u64 = EntryKind::Operand as u64;
    match packed & 0xff {
        TOMBSTONE => EntryKind::Tombstone,
        SEPARATED => EntryKind::Separated,
        EXPIRING => EntryKind::Expiring,
        OPERAND => EntryKind::Operand,
        _ => EntryKind::Value,
    }
}
