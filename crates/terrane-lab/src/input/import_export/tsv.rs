//! Lines of key, tab, value.
//!
//! Tabs, line ends, backslashes, control characters and invalid UTF-8 are written as `\t`, `\n`, `\r`,
//! `\0`, `\\` and `\x` with two digits, so that the file is always text. A value may contain tabs:
//! only the first tab of a line separates. `\e` and a number after the value give its expiry time, in
//! microseconds since the Unix epoch.

use std::io::{self, Write};

use super::{Entry, parse_expiry};
use crate::output::json::hex;

/// Parses a line, which must not be empty.
///
/// # Errors
///
/// A sentence, if the tab is missing or an escape is invalid.
pub fn parse(line: &[u8]) -> Result<Entry, String> {
    // Lines may end as on Windows.
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let tab = line.iter().position(|&byte| byte == b'\t');
    let tab = tab.ok_or("expected a tab between key and value")?;
    let (value, expires_at_micros) = split_expiry(&line[tab + 1..])?;
    Ok(Entry { key: unescape(&line[..tab])?, value: unescape(value)?, expires_at_micros })
}

/// Splits an escaped value from its expiry time.
fn split_expiry(text: &[u8]) -> Result<(&[u8], Option<u64>), String> {
    let mut at = 0;
    while let Some(next) = text[at..].iter().position(|&byte| byte == b'\\') {
        at += next;
        if text.get(at + 1) == Some(&b'e') {
            return Ok((&text[..at], Some(parse_expiry(&text[at + 2..])?)));
        }
        at = (at + 2).min(text.len());
    }
    Ok((text, None))
}

/// Writes an entry as a line.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, entry: Entry<&[u8]>) -> io::Result<()> {
    write_escaped(out, entry.key)?;
    out.write_all(b"\t")?;
    write_escaped(out, entry.value)?;
    if let Some(expires_at) = entry.expires_at_micros {
        write!(out, "\\e{expires_at}")?;
    }
    out.write_all(b"\n")
}

fn write_escaped(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for chunk in bytes.utf8_chunks() {
        let text = chunk.valid();
        let mut plain_from = 0;
        for (at, byte) in text.bytes().enumerate() {
            if !byte.is_ascii_control() && byte != b'\\' {
                continue;
            }
            out.write_all(&text.as_bytes()[plain_from..at])?;
            plain_from = at + 1;
            match byte {
                b'\t' => out.write_all(b"\\t")?,
                b'\n' => out.write_all(b"\\n")?,
                b'\r' => out.write_all(b"\\r")?,
                b'\0' => out.write_all(b"\\0")?,
                b'\\' => out.write_all(b"\\\\")?,
                other => write!(out, "\\x{other:02x}")?,
            }
        }
        out.write_all(&text.as_bytes()[plain_from..])?;
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let (byte, length) = escaped(&rest[at + 1..])?;
        bytes.push(byte);
        rest = &rest[at + 1 + length..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

/// Parses the text after the backslash of an escape, and returns the byte and the length of the
/// escape.
fn escaped(text: &[u8]) -> Result<(u8, usize), String> {
    let byte = match text {
        [b't', ..] => b'\t',
        [b'n', ..] => b'\n',
        [b'r', ..] => b'\r',
        [b'0', ..] => 0,
        [b'\\', ..] => b'\\',
        [b'x', high, low, ..] => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            let (Some(high), Some(low)) = (digit(high), digit(low)) else {
                return Err(bad_escape(&text[..3]));
            };
            return Ok(((high * 16 + low) as u8, 3));
        }
        _ => return Err(bad_escape(&text[..text.len().min(1)])),
    };
    Ok((byte, 1))
}

fn bad_escape(found: &[u8]) -> String {
    let found = match std::str::from_utf8(found) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("0x{}", hex(found)),
    };
    format!("invalid escape '\\{found}'; write \\\\ for a backslash, or \\t \\n \\r \\0 \\x00")
}

#[cfg(test)]
mod tests {
    use terrane_testkit::Rng;

    use super::*;

    fn line_of(key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, Entry::new(key, value)).unwrap();
        out
    }

    #[test]
    fn lines_are_text_and_lines_of_other_programs_are_read() {
        assert_eq!(line_of(b"a", "caf\u{e9} x".as_bytes()), "a\tcaf\u{e9} x\n".as_bytes());
        assert_eq!(line_of(b"\t\\\xff", b"\n\x07"), b"\\t\\\\\\xff\t\\n\\x07\n");
        assert_eq!(parse(b"a\tb\tc\r"), Ok(Entry::new(b"a".into(), b"b\tc".into())));
        assert_eq!(parse(b"\t"), Ok(Entry::new(b"".into(), b"".into())));
        assert!(parse(b"no tab").is_err());
        for bad in ["C:\\dir\tv", "k\t\\", "k\t\\x1", "k\t\\xzz"] {
            assert!(parse(bad.as_bytes()).unwrap_err().contains("invalid escape"), "{bad}");
        }
    }

    #[test]
    fn the_expiry_time_is_apart_from_the_bytes_of_a_value() {
        let expiring = |value: &[u8], expires_at_micros| Entry {
            expires_at_micros,
            ..Entry::new(b"k".to_vec(), value.into())
        };
        let mut line = Vec::new();
        write(&mut line, Entry { expires_at_micros: Some(7), ..Entry::new(&b"k"[..], b"\\e5") })
            .unwrap();
        assert_eq!(line, b"k\t\\\\e5\\e7\n");
        assert_eq!(parse(b"k\t\\\\e5\\e7"), Ok(expiring(b"\\e5", Some(7))));
        assert_eq!(parse(b"k\t\\\\e5"), Ok(expiring(b"\\e5", None)));
        for bad in [&b"k\tv\\e"[..], b"k\tv\\e-1", b"k\tv\\e1\\e2", b"k\tv\\e18446744073709551616"]
        {
            assert!(
                parse(bad).unwrap_err().starts_with("invalid expiry time '"),
                "{}",
                bad.escape_ascii()
            );
        }
        assert!(parse(b"k\\e1\tv").unwrap_err().contains("invalid escape"));
    }

    #[test]
    fn random_bytes_round_trip() {
        let mut rng = Rng::new(11);
        let alphabet = b"ab\\tnrx0 \t\n\r\0\x7f\xff\xc3\xa9";
        for _ in 0..20_000 {
            let mut bytes =
                || -> Vec<u8> { (0..rng.index(9)).map(|_| *rng.pick(alphabet)).collect() };
            let (key, value) = (bytes(), bytes());
            let line = line_of(&key, &value);
            let (end, line) = line.split_last().unwrap();
            assert_eq!(*end, b'\n');
            assert!(!line.contains(&b'\n'));
            assert_eq!(parse(line), Ok(Entry::new(key, value)), "{line:?}");
        }
    }
}
