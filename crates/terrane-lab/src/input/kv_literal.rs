//! Literals for keys and values: one grammar for the shell and for arguments.
//!
//! | form | bytes |
//! |---|---|
//! | `word` | its UTF-8 |
//! | `'single quoted'` | the quoted text, unchanged |
//! | `"esc\n\t\r\0\\\"\x00"` | the quoted text, with escapes |
//! | `0xdeadbeef` | the bytes in hexadecimal |
//! | `u64:42`, `u32:7` | big-endian, so that keys sort like the numbers |
//! | `i64:-1`, `i32:-1` | big-endian with the sign bit flipped, for the same reason |
//! | `@file` | the contents of a file |
//!
//! A word ends at white space or at the `..` of a range. `print` writes the shortest form that
//! parses back to the same bytes; [`parse_range`] documents ranges.

mod parse;
mod print;
mod range;
#[cfg(test)]
mod tests;

pub use parse::{LiteralError, parse};
pub use print::print;
pub use range::{KeyBounds, all_keys, parse_range, prefix_bounds};

/// Parses an argument that is a single literal.
pub fn parse_all(text: &str) -> Result<Vec<u8>, LiteralError> {
    let (bytes, rest) = parse(text)?;
    if rest.is_empty() { Ok(bytes) } else { Err(LiteralError::trailing(rest)) }
}

/// Parses an argument that is a single range.
pub fn parse_range_argument(text: &str) -> Result<KeyBounds, LiteralError> {
    let (bounds, rest) = parse_range(text)?;
    if rest.is_empty() { Ok(bounds) } else { Err(LiteralError::trailing(rest)) }
}
