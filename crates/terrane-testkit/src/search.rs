//! Searches for bytes in the contents of files.

/// Returns true if `part` occurs in `bytes`. The tests of the engine, which search files, are not optimised; this
/// crate is.
pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
