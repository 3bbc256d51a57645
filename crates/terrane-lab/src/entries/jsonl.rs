//! Lines of JSON objects with a `key` and a `value`; see [`crate::json`] for bytes in JSON.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::Entry;
use crate::json::{JsonBytes, ParsedBytes, write_line};

#[derive(Deserialize)]
struct ParsedEntry {
    key: ParsedBytes,
    value: ParsedBytes,
}

/// An entry to write.
#[derive(Serialize)]
pub struct JsonEntry<'a> {
    key: JsonBytes<'a>,
    value: JsonBytes<'a>,
}

/// Parses a line, which must not be empty.
///
/// # Errors
///
/// A sentence, if the line is not an entry.
pub fn parse(line: &[u8]) -> Result<Entry, String> {
    let entry: ParsedEntry = serde_json::from_slice(line).map_err(|error| {
        // Drop the position: the parser sees a single line.
        let text = error.to_string();
        text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
    })?;
    Ok((entry.key.0, entry.value.0))
}

/// Writes an entry as a line.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, key: &[u8], value: &[u8]) -> io::Result<()> {
    write_line(out, &JsonEntry { key: JsonBytes(key), value: JsonBytes(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_round_trip_and_errors_name_missing_fields() {
        for (key, value) in [(&b""[..], &b"\n\"\\"[..]), (b"\xff\x00", b"caf\xc3\xa9")] {
            let mut line = Vec::new();
            write(&mut line, key, value).unwrap();
            assert_eq!(parse(&line), Ok((key.into(), value.into())));
        }
        assert_eq!(
            parse(br#" {"value":"1","key":"a","more":[]} "#),
            Ok((b"a".into(), b"1".into()))
        );
        assert_eq!(parse(br#"{"key":"a"}"#), Err("missing field `value`".into()));
        assert!(parse(b"{").is_err());
        assert!(parse(br#"{"key":1,"value":"a"}"#).unwrap_err().contains("expected a string"));
    }
}
