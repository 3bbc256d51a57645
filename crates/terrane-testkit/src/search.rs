//! Searches for bytes in the contents of files.

/// Returns true if `part` occurs in `bytes`. It is here because, unlike the engine tests that search files,
/// this crate is optimised.
pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
