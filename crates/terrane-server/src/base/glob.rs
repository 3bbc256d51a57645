//! Patterns of keys: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a literal byte.

/// Returns whether a string matches a pattern. The time is at most the product of their lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Where to continue after a mismatch: after the last `*`, one byte further in the string.
    let mut retry: Option<(usize, usize)> = None;
    while position < text.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            retry = Some((at, position));
        } else if let Some(len) = pattern.get(at..).and_then(|rest| matched(rest, text[position])) {
            at += len;
            position += 1;
        } else if let Some((after_star, from)) = retry {
            at = after_star;
            position = from + 1;
            retry = Some((after_star, from + 1));
        } else {
            return false;
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// Returns the length of the first element of the pattern if it matches `byte`.
fn matched(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [b'[', rest @ ..] => class(rest, byte).map(|len| len + 1),
        [literal, ..] => (*literal == byte).then_some(1),
    }
}

/// Returns the length of a class of bytes, which begins after `[`, if it contains `byte`. An unterminated
/// class ends with the pattern, as in Redis.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let is_negated = pattern.first() == Some(&b'^');
    let mut at = usize::from(is_negated);
    let mut contains = false;
    loop {
        match pattern.get(at..).unwrap_or_default() {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', literal, ..] => {
                contains |= *literal == byte;
                at += 2;
            }
            [from, b'-', to, ..] => {
                contains |= (*from.min(to)..=*from.max(to)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                contains |= *literal == byte;
                at += 1;
            }
        }
    }
    (contains != is_negated).then_some(at)
}

/// Returns the prefix that all matching strings share.
pub(crate) fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        rest = match rest {
            [] | [b'*' | b'?' | b'[', ..] => return prefix,
            [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
                prefix.push(*literal);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hello", false),
            ("user:*:name", "user:1:2:name", true),
            ("user:*:name", "user:1:names", false),
            ("a*b*c", "aXbXbXc", true),
            ("a**", "a", true),
            ("", "", true),
            ("", "a", false),
            ("[a", "a", true),
            ("\\", "\\", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn stars_take_no_exponential_time() {
        let text = vec![b'a'; 10_000];
        let pattern = [b"a*".repeat(50), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &text));
    }

    #[test]
    fn prefixes_end_at_the_first_wildcard() {
        assert_eq!(literal_prefix(b"user:*"), b"user:");
        assert_eq!(literal_prefix(b"a\\*b?"), b"a*b");
        assert_eq!(literal_prefix(b"[ab]"), b"");
        assert_eq!(literal_prefix(b"plain"), b"plain");
    }
}
