//! Parses literals.

use std::fmt;

use crate::input::import_export::pairs;

/// A sentence that explains why a string is not a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiteralError(String);

impl LiteralError {
    /// Creates an error with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Creates the error for text after a complete literal.
    pub fn trailing(rest: &str) -> Self {
        Self(format!("unexpected '{rest}' after the end; quote text that contains blanks"))
    }
}

impl fmt::Display for LiteralError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LiteralError {}

/// Parses the literal at the start of `text`; returns its bytes and the rest of the text.
///
/// # Errors
///
/// If `text` is empty or the literal is malformed.
pub fn parse(text: &str) -> Result<(Vec<u8>, &str), LiteralError> {
    let mut chars = text.chars();
    match chars.next() {
        None => Err(LiteralError::new("a key or a value is missing; write '' for an empty one")),
        Some('\'') => single_quoted(chars.as_str()),
        Some('"') => double_quoted(chars.as_str()),
        Some('@') => file(chars.as_str()),
        Some(_) => {
            let (word, rest) = split_word(text);
            if word.is_empty() {
                return Err(LiteralError::new(format!(
                    "'{}' is a range where a single key is expected; quote it if it is text",
                    text.split_whitespace().next().unwrap_or(text)
                )));
            }
            Ok((word_bytes(word)?, rest))
        }
    }
}

/// Splits `text` after its first word, which ends at white space, `..` or the end of the text.
fn split_word(text: &str) -> (&str, &str) {
    let blank = text.find(char::is_whitespace).unwrap_or(text.len());
    let end = text.find("..").map_or(blank, |dots| dots.min(blank));
    text.split_at(end)
}

fn word_bytes(word: &str) -> Result<Vec<u8>, LiteralError> {
    if let Some(digits) = word.strip_prefix("0x") {
        return hexadecimal(digits).ok_or_else(|| {
            let what = "is not hexadecimal with two digits a byte; quote it if it is text";
            LiteralError::new(format!("'{word}' {what}"))
        });
    }
    let Some((kind, number)) = word.split_once(':') else { return Ok(word.into()) };
    let bytes = match kind {
        "u64" => number.parse::<u64>().ok().map(|number| number.to_be_bytes().to_vec()),
        "u32" => number.parse::<u32>().ok().map(|number| number.to_be_bytes().to_vec()),
        "i64" => number.parse::<i64>().ok().map(|number| ordered_i64(number).to_vec()),
        "i32" => number.parse::<i32>().ok().map(|number| pairs::encode(number).to_vec()),
        _ => return Ok(word.into()),
    };
    bytes.ok_or_else(|| {
        let what = "is not a number of that kind; quote it if it is text";
        LiteralError::new(format!("'{word}' {what}"))
    })
}

/// Encodes a number so that its bytes sort like the number.
fn ordered_i64(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let bytes = (0..digits.len()).step_by(2);
    bytes.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}

/// Parses the text after an opening single quote.
fn single_quoted(text: &str) -> Result<(Vec<u8>, &str), LiteralError> {
    let end = text.find('\'').ok_or_else(|| LiteralError::new("the closing ' is missing"))?;
    let rest = &text[end + 1..];
    ends_well(rest)?;
    Ok((text[..end].into(), rest))
}

/// Parses the text after an opening double quote.
fn double_quoted(text: &str) -> Result<(Vec<u8>, &str), LiteralError> {
    let mut bytes = Vec::new();
    let mut chars = text.chars();
    loop {
        match chars.next() {
            None => return Err(LiteralError::new("the closing \" is missing")),
            Some('"') => break,
            Some('\\') => bytes.push(escaped(&mut chars)?),
            Some(other) => bytes.extend(other.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    ends_well(chars.as_str())?;
    Ok((bytes, chars.as_str()))
}

/// Parses the text after a backslash.
fn escaped(chars: &mut std::str::Chars<'_>) -> Result<u8, LiteralError> {
    let known = "\\n \\t \\r \\0 \\\\ \\\" and \\x with two hexadecimal digits";
    let bad = |found: String| {
        LiteralError::new(format!("unknown escape '\\{found}'; known escapes: {known}"))
    };
    match chars.next() {
        Some('n') => Ok(b'\n'),
        Some('t') => Ok(b'\t'),
        Some('r') => Ok(b'\r'),
        Some('0') => Ok(0),
        Some('\\') => Ok(b'\\'),
        Some('"') => Ok(b'"'),
        Some('x') => {
            let digits: String = chars.by_ref().take(2).collect();
            let byte = hexadecimal(&digits).and_then(|bytes| bytes.first().copied());
            byte.filter(|_| digits.len() == 2).ok_or_else(|| bad(format!("x{digits}")))
        }
        other => Err(bad(other.map(String::from).unwrap_or_default())),
    }
}

/// Parses the text after an `@`: a path, quoted if it contains blanks.
fn file(text: &str) -> Result<(Vec<u8>, &str), LiteralError> {
    let (path, rest) = match text.chars().next() {
        Some('\'') => single_quoted(&text[1..])?,
        Some('"') => double_quoted(&text[1..])?,
        _ => {
            // A path may begin with `../`, so only white space ends it.
            let (path, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
            (path.into(), rest)
        }
    };
    let path = String::from_utf8(path).map_err(|_| LiteralError::new("the path is not UTF-8"))?;
    let bytes = std::fs::read(&path)
        .map_err(|error| LiteralError::new(format!("cannot read {path}: {error}")))?;
    Ok((bytes, rest))
}

/// Checks that white space, `..` or the end of the text follows a quoted literal.
fn ends_well(rest: &str) -> Result<(), LiteralError> {
    if rest.is_empty() || rest.starts_with(char::is_whitespace) || rest.starts_with("..") {
        Ok(())
    } else {
        Err(LiteralError::new(format!(
            "expected a blank before '{rest}'; a text that contains ' is quoted with \""
        )))
    }
}
