//! Ranges of keys as arguments, and their conversion to half-open ranges.

use std::borrow::Cow;
use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use terrane_policy::key_range::successor;

/// A range of keys: `..`, or a range of the standard library over a type that converts to bytes.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// use std::ops::Bound::{Excluded, Unbounded};
///
/// db.range(..)?;
/// db.range("a".."c")?;
/// db.range(b"a"..=b"b")?;
/// db.range(vec![1, 2]..)?;
/// db.range((Excluded("a"), Unbounded))?;
/// # Ok(())
/// # }
/// ```
///
/// Unlike [`RangeBounds`], this trait does not name the type of the keys, so that `..` needs no
/// annotation. Any other `RangeBounds` is passed as the pair of its bounds.
pub trait KeyBounds: sealed::Sealed {
    /// Returns the range with an inclusive start and an exclusive end.
    #[doc(hidden)]
    fn half_open(&self) -> (Cow<'_, [u8]>, Option<Cow<'_, [u8]>>);
}

mod sealed {
    /// Keeps other crates from implementing the trait, so that methods can be added to it.
    pub trait Sealed {}
}

impl sealed::Sealed for RangeFull {}

impl KeyBounds for RangeFull {
    fn half_open(&self) -> HalfOpen<'_> {
        ALL_KEYS
    }
}

impl<R: KeyBounds + ?Sized> sealed::Sealed for &R {}

impl<R: KeyBounds + ?Sized> KeyBounds for &R {
    fn half_open(&self) -> HalfOpen<'_> {
        (**self).half_open()
    }
}

macro_rules! key_bounds {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> sealed::Sealed for $range {}

        impl<K: AsRef<[u8]>> KeyBounds for $range {
            fn half_open(&self) -> HalfOpen<'_> {
                let start = RangeBounds::<K>::start_bound(self);
                let end = RangeBounds::<K>::end_bound(self);
                half_open(start.map(AsRef::as_ref), end.map(AsRef::as_ref))
            }
        }
    )*};
}

key_bounds!(
    Range<K>,
    RangeFrom<K>,
    RangeInclusive<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

/// The smallest key in a range and the smallest key after it; `None` if there is no upper bound.
pub(crate) type HalfOpen<'a> = (Cow<'a, [u8]>, Option<Cow<'a, [u8]>>);

/// The range of all keys.
pub(crate) const ALL_KEYS: HalfOpen<'static> = (Cow::Borrowed(&[]), None);

/// Returns the smallest key in a range and the smallest key after the range; the latter is `None`
/// if the range has no upper bound.
pub(crate) fn bounds_of(range: &impl KeyBounds) -> HalfOpen<'_> {
    range.half_open()
}

fn half_open<'a>(start: Bound<&'a [u8]>, end: Bound<&'a [u8]>) -> HalfOpen<'a> {
    let after = |key: &[u8]| Cow::Owned(successor(key).to_vec());
    let start = match start {
        Bound::Included(key) => Cow::Borrowed(key),
        Bound::Excluded(key) => after(key),
        Bound::Unbounded => Cow::Borrowed(&[][..]),
    };
    let end = match end {
        Bound::Included(key) => Some(after(key)),
        Bound::Excluded(key) => Some(Cow::Borrowed(key)),
        Bound::Unbounded => None,
    };
    (start, end)
}

/// Returns the range of all keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> HalfOpen<'_> {
    let mut end = prefix.to_vec();
    // The smallest key above every key with this prefix: drop trailing 0xff bytes, then increment
    // the last byte.
    while end.last() == Some(&0xff) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Some(Cow::Owned(end))
        }
        None => None,
    };
    (Cow::Borrowed(prefix), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_half_open() {
        let key = |bytes: &'static [u8]| Cow::Borrowed(bytes);
        assert_eq!(bounds_of(&("a".."b")), (key(b"a"), Some(key(b"b"))));
        assert_eq!(bounds_of(&("a"..="b")), (key(b"a"), Some(key(b"b\0"))));
        assert_eq!(bounds_of(&(..)), (key(b""), None));
        assert_eq!(bounds_of(&(b"a"..b"b")), (key(b"a"), Some(key(b"b"))));
        assert_eq!(bounds_of(&(..=vec![7])), (key(b""), Some(key(b"\x07\0"))));
        assert_eq!(bounds_of(&(String::from("a")..)), (key(b"a"), None));
        let excluded = (Bound::Excluded("a"), Bound::Unbounded);
        assert_eq!(bounds_of(&excluded), (key(b"a\0"), None));
    }

    #[test]
    fn prefixes_end_before_the_next_key_without_them() {
        let key = |bytes: &'static [u8]| Cow::Borrowed(bytes);
        assert_eq!(prefix_bounds(b"ab"), (key(b"ab"), Some(key(b"ac"))));
        assert_eq!(prefix_bounds(b"a\xff\xff").1, Some(key(b"b")));
        assert_eq!(prefix_bounds(b"\xff").1, None);
        assert_eq!(prefix_bounds(b"").1, None);
    }
}
