//! Checksums of everything on disk: XXH3-64, seeded with the location.
//!
//! The seed makes a checksum valid only for the file and offset that it was computed for, which
//! detects blocks written to or read from a wrong location.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Returns the checksum of `bytes`; `seed` stands for their location.
#[inline]
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// Returns the checksum of several slices as if they were one slice.
#[inline]
pub(crate) fn checksum_of(parts: &[&[u8]], seed: u64) -> u64 {
    match parts {
        [one] => checksum(one, seed),
        _ => checksum_of_several(parts, seed),
    }
}

fn checksum_of_several(parts: &[&[u8]], seed: u64) -> u64 {
    let mut hasher = Xxh3::with_seed(seed);
    for part in parts {
        hasher.update(part);
    }
    hasher.digest()
}

/// An incremental checksum.
#[derive(Clone)]
pub(crate) struct RunningChecksum(Box<Xxh3>);

impl RunningChecksum {
    pub(crate) fn new() -> Self {
        Self(Box::new(Xxh3::with_seed(0)))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.0.digest()
    }
}

/// Returns the seed for a location: a unique file number and an offset.
#[inline]
pub(crate) fn place_seed(file: u64, offset: u64) -> u64 {
    // Multiplication by an odd number is a bijection, so changing only one of the two numbers always
    // changes the seed.
    file.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_up_to_the_whole() {
        let bytes: Vec<u8> = (0..2000u32).map(|i| i as u8).collect();
        for cut in [0, 1, 7, 240, 241, 1024, 2000] {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(checksum_of(&[a, b], 5), checksum(&bytes, 5));
        }
        let mut running = RunningChecksum::new();
        running.update(&bytes[..999]);
        running.update(&bytes[999..]);
        assert_eq!(running.digest(), checksum(&bytes, 0));
    }

    #[test]
    fn another_place_is_another_checksum() {
        let here = checksum(b"block", place_seed(1, 4096));
        assert_ne!(here, checksum(b"block", place_seed(1, 8192)));
        assert_ne!(here, checksum(b"block", place_seed(2, 4096)));
    }

    /// The file format depends on this function; a known value detects a change in the library.
    #[test]
    fn checksum_is_the_published_function() {
        assert_eq!(checksum(b"", 0), 0x2d06_8005_38d3_94c2);
    }
}
