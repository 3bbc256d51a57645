//! Lines of JSON objects with a `key`, a `value`, and `expires_at_micros` if the value expires; see
//! [`crate::output::json`] for bytes in JSON.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::Entry;
use crate::output::json::{JsonBytes, ParsedBytes, write_line};

#[derive(Deserialize)]
struct ParsedEntry {
    key: ParsedBytes,
    value: ParsedBytes,
    // Without the alias, a dump of an earlier version would silently lose its expiry times.
    #[serde(alias = "ends_micros")]
    expires_at_micros: Option<u64>,
}

/// An entry to write.
#[derive(Serialize)]
pub struct JsonEntry<'a> {
    key: JsonBytes<'a>,
    value: JsonBytes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_micros: Option<u64>,
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
    let ParsedEntry { key, value, expires_at_micros } = entry;
    Ok(Entry { key: key.0, value: value.0, expires_at_micros })
}

/// Writes an entry as a line.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, entry: Entry<&[u8]>) -> io::Result<()> {
    let Entry { key, value, expires_at_micros } = entry;
    write_line(out, &JsonEntry { key: JsonBytes(key), value: JsonBytes(value), expires_at_micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_round_trip_and_errors_name_missing_fields() {
        for (key, value) in [(&b""[..], &b"\n\"\\"[..]), (b"\xff\x00", b"caf\xc3\xa9")] {
            for expires_at_micros in [None, Some(0), Some(u64::MAX)] {
                let mut line = Vec::new();
                write(&mut line, Entry { key, value, expires_at_micros }).unwrap();
                let (key, value) = (key.to_vec(), value.to_vec());
                assert_eq!(parse(&line), Ok(Entry { key, value, expires_at_micros }));
            }
        }
        assert_eq!(
            parse(br#" {"value":"1","key":"a","more":[]} "#),
            Ok(Entry::new(b"a".into(), b"1".into()))
        );
        let earlier = parse(br#"{"key":"a","value":"1","ends_micros":7}"#);
        assert_eq!(earlier.map(|entry| entry.expires_at_micros), Ok(Some(7)));
        assert_eq!(parse(br#"{"key":"a"}"#), Err("missing field `value`".into()));
        assert!(parse(b"{").is_err());
        assert!(parse(br#"{"key":1,"value":"a"}"#).unwrap_err().contains("expected a string"));
    }
}
