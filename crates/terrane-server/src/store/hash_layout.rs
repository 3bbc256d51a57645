//! How hashes are stored: the keys and values of the keyspace that a database has for its hashes.
//!
//! | key | value |
//! |---|---|
//! | `h`, key of the hash | header: generation (8 bytes), number of fields (8 bytes), both little-endian |
//! | `f`, generation (8 bytes, big-endian), field | value of the field |
//! | `e`, expiry time (8 bytes, big-endian), generation (8 bytes, big-endian) | key of the hash |
//!
//! 1. The number of fields is exact and not 0, because a batch that adds or removes a field also writes
//!    the header.
//! 2. A generation belongs to one hash, because it is larger than that of any field that is stored, and
//!    the fields are removed in the batch that removes the header.
//! 3. A hash that expires has exactly one entry of the third kind. Its header is a value of the engine
//!    with the same expiry time. So the fields of a hash whose header has expired are found in the order
//!    of their expiry, and need no expiry time of their own.

use std::ops::Bound;

/// Before the key of a hash.
const HEADER: u8 = b'h';
/// Before a generation and a field.
const FIELD: u8 = b'f';
/// Before an expiry time and a generation.
const EXPIRY: u8 = b'e';

/// The bytes before a field.
const FIELD_PREFIX: usize = 9;

/// The data of a hash besides its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) generation: u64,
    /// The number of fields.
    pub(crate) fields: u64,
    /// When it expires, in microseconds since the Unix epoch: the expiry time of the header's value.
    pub(crate) expires_at: Option<u64>,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (generation, fields) = bytes.split_at_mut(8);
        generation.copy_from_slice(&self.generation.to_le_bytes());
        fields.copy_from_slice(&self.fields.to_le_bytes());
        bytes
    }

    /// Returns the header in a value; `None` if the value is not a header.
    pub(super) fn decode(value: &[u8], expires_at: Option<u64>) -> Option<Self> {
        let (generation, rest) = value.split_first_chunk()?;
        let fields = u64::from_le_bytes(rest.try_into().ok()?);
        Some(Self { generation: u64::from_le_bytes(*generation), fields, expires_at })
    }
}

/// A key of the keyspace, in place if it is short.
#[derive(Debug)]
pub(super) enum StoredKey {
    Short(u8, [u8; SHORT]),
    Long(Vec<u8>),
}

const SHORT: usize = 62;

impl StoredKey {
    fn of(parts: [&[u8]; 3]) -> Self {
        let mut short = [0; SHORT];
        let mut at = 0;
        for part in parts {
            match short.get_mut(at..at + part.len()) {
                Some(place) => place.copy_from_slice(part),
                None => return Self::Long(parts.concat()),
            }
            at += part.len();
        }
        Self::Short(at as u8, short)
    }
}

impl AsRef<[u8]> for StoredKey {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

/// Returns the key of a hash's header.
pub(super) fn header_key(key: &[u8]) -> StoredKey {
    StoredKey::of([&[HEADER], key, &[]])
}

/// Returns the range of the headers of a range of hashes.
pub(super) fn header_range(
    start: Bound<&[u8]>,
    end: Bound<&[u8]>,
) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let stored = |key: &[u8]| header_key(key).as_ref().to_vec();
    let start = match start.map(stored) {
        Bound::Unbounded => Bound::Included(vec![HEADER]),
        bound => bound,
    };
    let end = match end.map(stored) {
        Bound::Unbounded => Bound::Excluded(vec![HEADER + 1]),
        bound => bound,
    };
    (start, end)
}

/// Returns the key of the hash whose header is at a key.
pub(super) fn key_of_header(stored: &[u8]) -> &[u8] {
    stored.get(1..).unwrap_or_default()
}

/// Returns the key of a field.
pub(super) fn field_key(generation: u64, field: &[u8]) -> StoredKey {
    StoredKey::of([&[FIELD], &generation.to_be_bytes(), field])
}

/// Returns the range of the fields of a hash, those after a field if it is given.
pub(super) fn field_range(
    generation: u64,
    after: Option<&[u8]>,
) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let key = |field| field_key(generation, field).as_ref().to_vec();
    let start =
        after.map_or_else(|| Bound::Included(key(&[])), |after| Bound::Excluded(key(after)));
    let end = match generation.checked_add(1) {
        Some(next) => field_key(next, &[]).as_ref().to_vec(),
        None => vec![FIELD + 1],
    };
    (start, Bound::Excluded(end))
}

/// Returns the range of all fields.
pub(super) fn all_fields() -> std::ops::Range<[u8; 1]> {
    [FIELD]..[FIELD + 1]
}

/// Returns the field at a key.
pub(super) fn field_of(stored: &[u8]) -> &[u8] {
    stored.get(FIELD_PREFIX..).unwrap_or_default()
}

/// Returns the generation of the field at a key.
pub(super) fn generation_of_field(stored: &[u8]) -> Option<u64> {
    stored.get(1..FIELD_PREFIX)?.try_into().ok().map(u64::from_be_bytes)
}

/// Returns the key of the entry of an expiry time.
pub(super) fn expiry_key(expires_at: u64, generation: u64) -> StoredKey {
    StoredKey::of([&[EXPIRY], &expires_at.to_be_bytes(), &generation.to_be_bytes()])
}

/// Returns the range of the hashes that expire before a time.
pub(super) fn expired_before(time: u64) -> std::ops::Range<Vec<u8>> {
    vec![EXPIRY]..expiry_key(time, 0).as_ref().to_vec()
}

/// Returns the expiry time and the generation at a key.
pub(super) fn expiry_of(stored: &[u8]) -> Option<(u64, u64)> {
    let (expires_at, generation) = stored.get(1..)?.split_first_chunk()?;
    Some((u64::from_be_bytes(*expires_at), u64::from_be_bytes(generation.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let header = Header { generation: 7 << 40, fields: 3, expires_at: Some(9) };
        assert_eq!(Header::decode(&header.encode(), Some(9)), Some(header));
        assert_eq!(Header::decode(&[0; 15], None), None);
        assert_eq!(Header::decode(&[0; 17], None), None);
        for field in [&b""[..], b"f", &[0xFF; 52], &[0xFF; 54], &[0; 1000]] {
            let stored = field_key(u64::MAX - 1, field);
            assert_eq!(field_of(stored.as_ref()), field);
            assert_eq!(generation_of_field(stored.as_ref()), Some(u64::MAX - 1));
            assert_eq!(key_of_header(header_key(field).as_ref()), field);
        }
        assert_eq!(expiry_of(expiry_key(5, 6).as_ref()), Some((5, 6)));
        assert_eq!((expiry_of(b"e"), generation_of_field(b"f1")), (None, None));
    }

    #[test]
    fn ranges_contain_what_they_should() {
        use std::ops::RangeBounds;
        let contains = |range: &(Bound<Vec<u8>>, Bound<Vec<u8>>), key: StoredKey| {
            range.contains(&key.as_ref().to_vec())
        };
        let fields = field_range(255, None);
        assert!(
            contains(&fields, field_key(255, b""))
                && contains(&fields, field_key(255, &[0xFF; 100]))
        );
        assert!(
            !contains(&fields, field_key(256, b""))
                && !contains(&fields, field_key(254, &[0xFF; 100]))
        );
        let rest = field_range(u64::MAX, Some(b"b"));
        assert!(
            contains(&rest, field_key(u64::MAX, b"b\0"))
                && !contains(&rest, field_key(u64::MAX, b"b"))
        );
        let headers = header_range(Bound::Unbounded, Bound::Unbounded);
        assert!(
            contains(&headers, header_key(b"")) && contains(&headers, header_key(&[0xFF; 100]))
        );
        assert!(!contains(&headers, field_key(0, b"")) && !contains(&headers, expiry_key(0, 0)));
        let expired = expired_before(10);
        assert!(expired.contains(&expiry_key(9, u64::MAX).as_ref().to_vec()));
        assert!(!expired.contains(&expiry_key(10, 0).as_ref().to_vec()));
    }
}
