//! The range tombstones of a table.
//!
//! ```text
//! | count varint | then for each fragment, in key order:
//! | start: length varint, bytes | has end: u8 | end: length varint, bytes | count varint | seqs: varints |
//! ```

use terrane_memtable::Fragment;

use crate::base::codec::{Decoded, Reader, put_option, put_slice, put_varint};
use crate::base::types::MAX_SEQ;

pub(super) fn encode(fragments: &[Fragment]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, fragments.len() as u64);
    for fragment in fragments {
        put_slice(&mut out, &fragment.start);
        put_option(&mut out, fragment.end.as_deref(), put_slice);
        put_varint(&mut out, fragment.seqs.len() as u64);
        for &seq in &fragment.seqs {
            put_varint(&mut out, seq);
        }
    }
    out
}

pub(super) fn decode(bytes: &[u8]) -> Decoded<Vec<Fragment>> {
    let mut reader = Reader::new(bytes);
    let count = reader.varint("fragment count")?;
    let mut fragments: Vec<Fragment> = Vec::new();
    for _ in 0..count {
        let start = reader.slice("fragment start")?.into();
        let end = reader.option("fragment end", |reader| reader.slice("fragment end"))?;
        let mut seqs = Vec::new();
        for _ in 0..reader.varint("tombstone count")? {
            seqs.push(reader.varint("tombstone")?);
        }
        let fragment = Fragment { start, end: end.map(Into::into), seqs };
        if !is_ordered(fragments.last(), &fragment) {
            return Err(reader.error("fragment order"));
        }
        fragments.push(fragment);
    }
    Ok(fragments)
}

/// Returns true if `next` is a valid fragment after `before`.
fn is_ordered(before: Option<&Fragment>, next: &Fragment) -> bool {
    let after =
        before.is_none_or(|before| before.end.as_ref().is_some_and(|end| *end <= next.start));
    after
        && next.end.as_ref().is_none_or(|end| next.start < *end)
        && !next.seqs.is_empty()
        && next.seqs.iter().all(|&seq| seq <= MAX_SEQ)
        && next.seqs.is_sorted_by(|newer, older| newer > older)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(start: &str, end: Option<&str>, seqs: &[u64]) -> Fragment {
        let bytes = |text: &str| text.as_bytes().into();
        Fragment { start: bytes(start), end: end.map(bytes), seqs: seqs.to_vec() }
    }

    #[test]
    fn fragments_round_trip() {
        let fragments = [
            fragment("a", Some("b"), &[9, 3]),
            fragment("b", Some("c"), &[7]),
            fragment("x", None, &[1]),
        ];
        assert_eq!(decode(&encode(&fragments)).unwrap(), fragments);
        assert_eq!(decode(&encode(&[])).unwrap(), []);
    }

    #[test]
    fn fragments_out_of_order_are_refused() {
        for broken in [
            vec![fragment("b", Some("a"), &[1])],
            vec![fragment("a", Some("c"), &[1]), fragment("b", Some("d"), &[1])],
            vec![fragment("a", None, &[1]), fragment("b", Some("d"), &[1])],
            vec![fragment("a", None, &[])],
            vec![fragment("a", None, &[1, 2])],
        ] {
            assert!(decode(&encode(&broken)).is_err());
        }
        assert!(decode(&[0xff; 9]).is_err());
    }
}
