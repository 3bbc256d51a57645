//! The identity of this program: results are measured again when the code changes.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The file that contains the code, if that is not the executable.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Names the file that contains this code, for a library in a program such as an interpreter. Has an effect
/// once, before the first call of [`hash`].
pub fn set_file(path: PathBuf) {
    // The first file stays: results of one process have one program.
    let _ = FILE.set(path);
}

/// Returns the hash of the program as 16 hexadecimal digits; zeros if it cannot be read. The program is the
/// executable, unless [`set_file`] named another file.
#[must_use]
pub fn hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        let path = FILE.get().map_or_else(std::env::current_exe, |path| Ok(path.clone()));
        let file = path.and_then(File::open);
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
