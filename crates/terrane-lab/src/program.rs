//! The identity of this program: results are measured again when the code changes.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::OnceLock;

/// Returns the hash of the executable as 16 hexadecimal digits; zeros if it cannot be read.
#[must_use]
pub fn hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        let file = std::env::current_exe().and_then(File::open);
        let hash = file.ok().and_then(|file| fnv(BufReader::with_capacity(1 << 16, file)));
        format!("{:016x}", hash.unwrap_or(0))
    })
}

/// Returns the 64-bit FNV-1a hash of all bytes.
fn fnv(mut from: impl Read) -> Option<u64> {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer).ok()?;
        if read == 0 {
            return Some(hash);
        }
        for byte in &buffer[..read] {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_differ_in_a_byte_have_different_hashes() {
        assert_eq!(hash().len(), 16);
        assert_ne!(hash(), "0000000000000000");
        assert_eq!(fnv(&b"a"[..]), Some(0xaf63_dc4c_8601_ec8c));
        assert_ne!(fnv(&b"abc"[..]), fnv(&b"abd"[..]));
    }
}
