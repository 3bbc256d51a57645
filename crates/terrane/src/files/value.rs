//! Values and keys returned by reads.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

use terrane_memtable::PinnedValue;

use crate::files::buffer::{BlockRef, BlockView};

/// The length up to which bytes are stored in the value itself, because copying them is cheaper than
/// sharing them.
const INLINE_BYTES: usize = 22;

/// A value read from a database.
///
/// It shares its bytes with the memtable or the block that contains them, and pins
/// their memory. To keep a value for a long time, copy it with [`Value::to_vec`].
#[derive(Clone)]
pub struct Value(Repr);

#[derive(Clone)]
enum Repr {
    Inline(u8, [u8; INLINE_BYTES]),
    Memtable(PinnedValue),
    Block(BlockRef, u32, u32),
    Owned(Arc<[u8]>),
}

impl Value {
    /// Returns an empty value.
    pub(crate) fn empty() -> Self {
        Self(Repr::Inline(0, [0; INLINE_BYTES]))
    }

    /// Stores `bytes` in the value itself, if they fit.
    #[inline]
    fn inline(bytes: &[u8]) -> Option<Self> {
        let mut inline = [0; INLINE_BYTES];
        inline.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self(Repr::Inline(bytes.len() as u8, inline)))
    }

    pub(crate) fn pinned(value: PinnedValue) -> Self {
        Self::inline(&value).unwrap_or(Self(Repr::Memtable(value)))
    }

    /// Returns the value in a range of a block.
    #[inline]
    pub(crate) fn of_block(block: BlockView<'_>, part: Range<usize>) -> Self {
        let bytes = block.get(part.clone()).unwrap_or_default();
        // Values are at most 1 GiB long, and a block is little longer than its largest value.
        let pin = || Self(Repr::Block(block.share(), part.start as u32, bytes.len() as u32));
        Self::inline(bytes).unwrap_or_else(pin)
    }

    /// Returns the value without its first `count` bytes; empty if it has fewer.
    #[must_use]
    pub(crate) fn skip(self, count: usize) -> Self {
        let rest = self.get(count..).unwrap_or_default();
        if let Some(inline) = Self::inline(rest) {
            return inline;
        }
        // More than `count` bytes are left.
        match self.0 {
            Repr::Memtable(value) => Self(Repr::Memtable(value.skip(count))),
            Repr::Block(block, start, len) => {
                Self(Repr::Block(block, start + count as u32, len - count as u32))
            }
            Repr::Inline(..) | Repr::Owned(_) => Self::from(rest),
        }
    }

    /// Returns a copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        (**self).to_vec()
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Memtable(value) => value,
            Repr::Block(block, start, len) => block.part(*start, *len),
            Repr::Owned(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::inline(bytes).unwrap_or_else(|| Self(Repr::Owned(bytes.into())))
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Self {
        value.to_vec()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Value {}

/// A key read from a database. Short keys are stored inline, long ones are shared.
#[derive(Clone)]
pub struct Key(KeyRepr);

#[derive(Clone)]
enum KeyRepr {
    Inline(u8, [u8; INLINE_BYTES]),
    Shared(Arc<[u8]>),
}

impl Key {
    /// Returns a copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        (**self).to_vec()
    }
}

impl From<&[u8]> for Key {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        let mut inline = [0; INLINE_BYTES];
        match inline.get_mut(..bytes.len()) {
            Some(part) => {
                part.copy_from_slice(bytes);
                Self(KeyRepr::Inline(bytes.len() as u8, inline))
            }
            None => Self(KeyRepr::Shared(bytes.into())),
        }
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            KeyRepr::Inline(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            KeyRepr::Shared(bytes) => bytes,
        }
    }
}

impl From<Key> for Vec<u8> {
    fn from(key: Key) -> Self {
        key.to_vec()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Key {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_bytes_read_back() {
        assert!(size_of::<Value>() <= 32 && size_of::<Key>() <= 24);
        for len in [0, 1, INLINE_BYTES, INLINE_BYTES + 1, 1000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            assert_eq!(Value::from(&bytes[..]), bytes);
            assert_eq!(Key::from(&bytes[..]), bytes);
            assert_eq!(Value::from(&bytes[..]).clone().to_vec(), bytes);
            for skipped in [0, 1, 8, 30, 2000] {
                let rest = bytes.get(skipped..).unwrap_or_default();
                assert_eq!(Value::from(&bytes[..]).skip(skipped), rest);
            }
        }
        assert_eq!(format!("{:?}", Key::from(&b"a\0\xff"[..])), "b\"a\\x00\\xff\"");
        assert!(Key::from(&b"a"[..]).cmp(&Key::from(&b"a\0"[..])).is_lt());
    }
}
