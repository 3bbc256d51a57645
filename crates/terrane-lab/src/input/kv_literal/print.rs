//! Prints bytes as the shortest literal that parses back to them.

use std::fmt::Write;

use super::parse::parse;

/// Returns the shortest literal of `bytes`; among equally short literals, the most readable.
pub fn print(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok();
    if let Some(word) = text.filter(|text| is_word(text, bytes)) {
        // Only a number of eight bytes would be shorter, and text stays readable as text.
        return word.to_owned();
    }
    if let Some(text) = text.filter(|text| !text.contains('\'') && text.chars().all(is_printable)) {
        return format!("'{text}'");
    }
    let candidates = [number(bytes), Some(double_quoted(bytes)), Some(hexadecimal(bytes))];
    let shortest = candidates.into_iter().flatten().min_by_key(String::len);
    shortest.unwrap_or_default()
}

/// Returns true if the text can be printed without quotes.
fn is_word(text: &str, bytes: &[u8]) -> bool {
    // Answers such as `(nil)` are not words, and neither is text that would merge with the `..` or
    // `..=` of a range.
    let is_taken = text.starts_with(['(', '@', '.', '=']) || text.ends_with('.');
    !is_taken
        && text.chars().all(|char| is_printable(char) && !char.is_whitespace())
        && parse(text).is_ok_and(|(parsed, rest)| parsed == bytes && rest.is_empty())
}

/// Returns true if a character is visible and prints as itself.
fn is_printable(char: char) -> bool {
    match char {
        ' '..='~' => true,
        _ => !char.is_ascii() && !char.is_whitespace() && char.escape_debug().len() == 1,
    }
}

fn double_quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                '\0' => text.push_str("\\0"),
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                char if is_printable(char) => text.push(char),
                char => escape(char.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text.push('"');
    text
}

fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::from("0x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the shortest `u64:`, `i64:`, `u32:` or `i32:` literal for 8 or 4 bytes.
fn number(bytes: &[u8]) -> Option<String> {
    let (unsigned, signed) = match bytes.len() {
        8 => {
            let number = u64::from_be_bytes(bytes.try_into().ok()?);
            let signed = (number ^ (1 << 63)).cast_signed();
            (format!("u64:{number}"), format!("i64:{signed}"))
        }
        4 => {
            let number = u32::from_be_bytes(bytes.try_into().ok()?);
            let signed = (number ^ (1 << 31)).cast_signed();
            (format!("u32:{number}"), format!("i32:{signed}"))
        }
        _ => return None,
    };
    Some(if signed.len() < unsigned.len() { signed } else { unsigned })
}
