//! Ranges of keys: `a..m`, `a..=m`, `..m`, `a..`, `..`.

use std::ops::Bound;

use super::parse::{LiteralError, parse};

/// A key range in the form that the engine takes.
pub type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Returns the range of all keys.
pub fn all_keys() -> KeyBounds {
    (Bound::Unbounded, Bound::Unbounded)
}

/// Returns the range of the keys that begin with `prefix`.
pub fn prefix_bounds(prefix: &[u8]) -> KeyBounds {
    let mut end = prefix.to_vec();
    while end.last() == Some(&0xff) {
        end.pop();
    }
    let end = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(end)
        }
        None => Bound::Unbounded,
    };
    (Bound::Included(prefix.to_vec()), end)
}

/// Parses the range at the start of `text`; returns it with the rest of the text.
///
/// # Errors
/// If `text` does not start with a range, or a bound is malformed.
pub fn parse_range(text: &str) -> Result<(KeyBounds, &str), LiteralError> {
    let (start, rest) = if text.starts_with("..") {
        (Bound::Unbounded, text)
    } else {
        let (start, rest) = parse(text)?;
        (Bound::Included(start), rest)
    };
    let Some(rest) = rest.strip_prefix("..") else {
        let forms = "a..m, a..=m (m included), ..m, a.. or ..";
        return Err(LiteralError::new(format!("expected a range such as {forms}")));
    };
    let (is_inclusive, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
    if rest.is_empty() || rest.starts_with(char::is_whitespace) {
        return if is_inclusive {
            Err(LiteralError::new("expected a key after ..="))
        } else {
            Ok(((start, Bound::Unbounded), rest))
        };
    }
    let (end, rest) = parse(rest)?;
    let end = if is_inclusive { Bound::Included(end) } else { Bound::Excluded(end) };
    Ok(((start, end), rest))
}
