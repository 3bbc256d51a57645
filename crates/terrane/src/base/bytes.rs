//! Comparison of short byte strings without a call of the C library, which costs more than it compares.

/// Returns true if `a` and `b` are equal.
#[inline(always)]
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        0 => true,
        1..4 => a.iter().zip(b).all(|(a, b)| a == b),
        4..8 => same_ends::<4>(a, b),
        8..=16 => same_ends::<8>(a, b),
        17..=32 => same_ends::<16>(a, b),
        _ => a == b,
    }
}

/// Returns the part of `bytes` after `prefix`; `None` if they do not begin with it.
#[inline(always)]
pub(crate) fn after_prefix<'a>(bytes: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = bytes.split_at_checked(prefix.len())?;
    is_same(start, prefix).then_some(rest)
}

/// Compares the first and the last `N` bytes, which may overlap. The lengths are equal, and at least `N`.
#[inline(always)]
fn same_ends<const N: usize>(a: &[u8], b: &[u8]) -> bool {
    a.first_chunk::<N>() == b.first_chunk() && a.last_chunk::<N>() == b.last_chunk()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_the_same_if_every_byte_is() {
        for len in 0..70 {
            let a: Vec<u8> = (0..len).collect();
            assert!(is_same(&a, &a.clone()));
            assert!(!is_same(&a, &[&a[..], &[1]].concat()));
            assert_eq!(after_prefix(&a, &a[..a.len() / 2]), Some(&a[a.len() / 2..]));
            assert_eq!(after_prefix(&a, &[&a[..], &[1]].concat()), None);
            assert_eq!(after_prefix(&a, &[0xff]), None);
            for at in 0..a.len() {
                let mut b = a.clone();
                b[at] ^= 0x80;
                assert!(!is_same(&a, &b), "{len} {at}");
            }
        }
    }
}
