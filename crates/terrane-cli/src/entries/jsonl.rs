//! Lines of JSON objects with a `key` and a `value`; see [`terrane_lab::json`] for bytes in JSON.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::Entry;
use terrane_lab::json::{GivenBytes, JsonBytes, write_line};

#[derive(Deserialize)]
struct GivenEntry {
    key: GivenBytes,
    value: GivenBytes,
}

/// An entry, to be written.
#[derive(Serialize)]
pub(crate) struct JsonEntry<'a> {
    key: JsonBytes<'a>,
    value: JsonBytes<'a>,
}

/// The entry of a line, which is not empty.
///
/// # Errors
/// It is not the JSON that is expected, in a sentence.
pub(crate) fn parse(line: &[u8]) -> Result<Entry, String> {
    let entry: GivenEntry = serde_json::from_slice(line).map_err(|error| {
        // It counts lines of its own, which start from 1 again each time.
        let text = error.to_string();
        text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
    })?;
    Ok((entry.key.0, entry.value.0))
}

/// Writes an entry as a line.
pub(crate) fn write(out: &mut dyn Write, key: &[u8], value: &[u8]) -> io::Result<()> {
    write_line(out, &JsonEntry { key: JsonBytes(key), value: JsonBytes(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_and_errors_say_what_is_missing() {
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
