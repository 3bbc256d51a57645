//! The version of the C library that a Linux program needs.

use std::path::Path;

/// The oldest version that released files run with: that of the build container in
/// `.github/workflows/release.yml`. A program built on a newer system may need a newer one.
pub(super) const OLDEST: u32 = 28;

/// Returns the largest N such that the program needs version `GLIBC_2.N` of a symbol; `None` if it
/// needs no version.
pub(super) fn needed(program: &Path) -> Result<Option<u32>, String> {
    let bytes =
        std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(largest(&bytes))
}

/// The versions are names in the dynamic string table, so it suffices to search for their text. Each
/// ends with NUL; other texts, such as messages, do not.
fn largest(bytes: &[u8]) -> Option<u32> {
    const PREFIX: &[u8] = b"\0GLIBC_2.";
    let versions = bytes.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX);
    let number = |at: usize| {
        let rest = &bytes[at + PREFIX.len()..];
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        // A third number, as in 2.2.5, is older than all that matter.
        matches!(rest[digits], 0 | b'.').then_some(())?;
        std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
    };
    versions.filter_map(|(at, _)| number(at)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_version_of_a_symbol_is_needed() {
        let table = b"\0malloc\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0libc.so.6\0";
        assert_eq!(largest(table), Some(34));
        assert_eq!(largest(b"static \0GLIBC_2.99 is a message"), None);
        assert_eq!(largest(b"\0GLIBC_2."), None);
    }
}
