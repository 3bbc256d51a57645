//! The identity of this program: its hash, its commit, and how it was called. Results are measured again
//! when the code changes.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file that contains the code, if that is not the executable.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Names the file that contains this code, for a library in a program such as an interpreter. Only the
/// first call has an effect, and only if it precedes the first call of [`hash`].
pub fn set_file(path: PathBuf) {
    // Later calls are ignored, because all results of a process name one program.
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

/// Returns the commit that this program was built from, with `-dirty` if files differed from it; `None` if
/// it is not a release build, or was built outside a checkout.
#[must_use]
pub fn commit() -> Option<&'static str> {
    option_env!("TERRANE_COMMIT")
}

/// Returns the command line of this process, quoted for a shell, without the directory of the program.
#[must_use]
pub fn command_line() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned());
    let words: Vec<String> =
        program.into_iter().chain(words).map(|word| shell_quoted(&word)).collect();
    words.join(" ")
}

/// Quotes a word for a shell if necessary.
pub fn shell_quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_=+.,:/@%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
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
    fn command_lines_can_be_pasted_into_a_shell() {
        assert_eq!(shell_quoted("--num=1_000"), "--num=1_000");
        assert_eq!(
            shell_quoted("tiering T=3; scheduler=greedy"),
            "'tiering T=3; scheduler=greedy'"
        );
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
        assert_eq!(shell_quoted(""), "''");
    }

    #[test]
    fn programs_that_differ_in_a_byte_have_different_hashes() {
        assert_eq!(hash().len(), 16);
        assert_ne!(hash(), "0000000000000000");
        assert_eq!(fnv(&b"a"[..]), Some(0xaf63_dc4c_8601_ec8c));
        assert_ne!(fnv(&b"abc"[..]), fnv(&b"abd"[..]));
    }
}
