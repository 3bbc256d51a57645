//! Helpers for text forms: lists whose members have arguments in parentheses.

use crate::error::ParseError;

/// Splits at a separator that is not between parentheses; the parts are trimmed.
pub(crate) fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if character == separator && depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// Returns a word and the text in parentheses after it: `name` or `name(arguments)`.
///
/// # Errors
/// Returns an error if a parenthesis is not closed, or text follows it.
pub(crate) fn call(text: &str) -> Result<(&str, Option<&str>), ParseError> {
    let Some((name, rest)) = text.split_once('(') else { return Ok((text.trim(), None)) };
    rest.trim_end()
        .strip_suffix(')')
        .map(|arguments| (name.trim(), Some(arguments)))
        .ok_or_else(|| ParseError::new("arguments", text, "a ')' at the end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_in_parentheses_do_not_split() {
        assert_eq!(split_outside("a(1,2), b ,c(3,(4,5))", ','), ["a(1,2)", "b", "c(3,(4,5))"]);
        assert_eq!(split_outside("", '+'), [""]);
    }

    #[test]
    fn calls_have_a_name_and_arguments() {
        assert_eq!(call("ttl(1h)"), Ok(("ttl", Some("1h"))));
        assert_eq!(call("ttl"), Ok(("ttl", None)));
        assert!(call("ttl(1h").is_err() && call("ttl(1h)x").is_err());
    }
}
