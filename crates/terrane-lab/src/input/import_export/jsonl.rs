//! Lines of JSON objects with a `key`, a `value`, and `expires_at_micros` if the value expires; see
//! [`crate::output::json`] for bytes in JSON.
//!
//! Lines of other programs may name the fields otherwise. A string stands for its text, and a number, an array or
//! an object for its JSON text, except an object with the only field `hex`, which stands for bytes.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use terrane_policy::suggest::did_you_mean;

use super::columns::{Columns, EXPIRY, KEY, VALUE, ValueColumns};
use super::entry::{Entry, parse_expiry};
use super::read_options::{NullRule, ReadOptions, Taken};
use crate::output::json::{JsonBytes, ParsedBytes, write_line};

/// Reads objects as entries.
#[derive(Debug)]
pub(super) struct JsonReader {
    columns: Columns,
    null: NullRule,
    is_raw: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    expires_at_micros: Option<u64>,
}

/// The fields of an object, with the JSON texts of their values.
struct Object<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl JsonReader {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            columns: options.columns.clone(),
            null: options.null,
            is_raw: options.is_raw,
            key: Vec::new(),
            value: Vec::new(),
            expires_at_micros: None,
        }
    }

    /// Takes a line. Its entry is [`JsonReader::entry`].
    pub(super) fn take(&mut self, line: &[u8]) -> Result<Taken, String> {
        let text = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned())?;
        let object = object(text)?;
        let key = self.columns.key.as_deref().unwrap_or(KEY);
        self.reject_unselected(&object, key)?;
        let Some(found) = object.get(key) else { return Err(missing(&object, key, "--key")) };
        self.key.clear();
        self.value.clear();
        match first(found) {
            b'n' => return self.null.key(),
            b'[' => {
                return Err(format!(
                    "the field '{key}' is an array; a key is a string or a number"
                ));
            }
            b'{' if self.is_raw || !is_hex(found) => {
                return Err(format!(
                    "the field '{key}' is an object; a key is a string or a number"
                ));
            }
            _ => put_text(&mut self.key, found, self.is_raw)?,
        }
        self.expires_at_micros = self.expiry(&object)?;
        self.take_value(&object, text)
    }

    fn take_value(&mut self, object: &Object<'_>, text: &str) -> Result<Taken, String> {
        let name = match &self.columns.value {
            ValueColumns::Nothing => return Ok(Taken::Entry),
            ValueColumns::All => {
                self.value.extend_from_slice(text.trim_ascii().as_bytes());
                return Ok(Taken::Entry);
            }
            ValueColumns::Several(names) => {
                compose(&mut self.value, object, names);
                return Ok(Taken::Entry);
            }
            ValueColumns::Unspecified => VALUE,
            ValueColumns::One(name) => name,
        };
        match object.get(name) {
            None => Err(missing(object, name, "--value")),
            Some(found) if first(found) == b'n' => self.null.value(),
            Some(found) => {
                put_text(&mut self.value, found, self.is_raw)?;
                Ok(Taken::Entry)
            }
        }
    }

    /// Returns the entry that [`JsonReader::take`] took last.
    pub(super) fn entry(&self) -> Entry<&[u8]> {
        Entry { key: &self.key, value: &self.value, expires_at_micros: self.expires_at_micros }
    }

    fn expiry(&self, object: &Object<'_>) -> Result<Option<u64>, String> {
        let found = match &self.columns.expiry {
            Some(name) => object.get(name),
            None => EXPIRY.iter().find_map(|name| object.get(name)),
        };
        let text = found.filter(|found| first(found) != b'n');
        text.map(|text| parse_expiry(text.trim_matches('"').as_bytes())).transpose()
    }

    /// Refuses fields that would be left out although the caller did not leave them out.
    fn reject_unselected(&self, object: &Object<'_>, key: &str) -> Result<(), String> {
        if self.columns.are_selected() {
            return Ok(());
        }
        let is_value =
            |name: &str| name == VALUE && matches!(self.columns.value, ValueColumns::Unspecified);
        let is_expiry =
            |name: &str| EXPIRY.contains(&name) || self.columns.expiry.as_deref() == Some(name);
        let names = || object.0.iter().map(|(name, _)| &**name);
        // A missing field is the clearer message.
        if !names().any(|name| name == key) {
            return Ok(());
        }
        match names().find(|name| *name != key && !is_value(name) && !is_expiry(name)) {
            None => Ok(()),
            Some(name) => Err(format!(
                "the field '{name}' would be left out; choose the value with --value, such as --value '*' for the whole \
                 object, --value value for one field, or --keys-only"
            )),
        }
    }
}

impl<'a> Object<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }
}

fn object(text: &str) -> Result<Object<'_>, String> {
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'[') => {
            Err("expected an object in each line; convert an array with `jq -c '.[]'`".into())
        }
        Some(b'{') => serde_json::from_str(text).map_err(|error| without_position(&error)),
        _ => Err("expected an object such as {\"key\":\"a\",\"value\":\"1\"}".into()),
    }
}

/// Drops the position: the parser sees a single line.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    match what {
        "trailing characters" => "more text after the object; write one object in each line".into(),
        _ if error.is_eof() => {
            format!("{what}; write one object in each line, or convert with `jq -c`")
        }
        _ => what.to_owned(),
    }
}

fn missing(object: &Object<'_>, name: &str, flag: &str) -> String {
    let meant = did_you_mean(name, object.0.iter().map(|(name, _)| &**name));
    format!("missing field `{name}`{meant}; name another field with {flag}")
}

/// Returns the first byte of a JSON text.
fn first(json: &str) -> u8 {
    json.bytes().next().unwrap_or(b'n')
}

/// Returns true if a JSON text is an object with the only field `hex`.
fn is_hex(json: &str) -> bool {
    let inside = json.strip_prefix('{').map_or("", str::trim_ascii_start);
    inside.starts_with("\"hex\"")
        && object(json).is_ok_and(|object| object.0.len() == 1 && object.0[0].1.starts_with('"'))
}

/// Appends the bytes that a JSON text stands for.
fn put_text(out: &mut Vec<u8>, json: &str, is_raw: bool) -> Result<(), String> {
    let inside = json.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inside {
        Some(text) if !text.contains('\\') => out.extend_from_slice(text.as_bytes()),
        Some(_) => {
            let text: String =
                serde_json::from_str(json).map_err(|error| without_position(&error))?;
            out.extend_from_slice(text.as_bytes());
        }
        None if !is_raw && is_hex(json) => {
            let bytes: ParsedBytes = serde_json::from_str(json).map_err(|error| {
                format!("{}; if it is text, add --raw", without_position(&error))
            })?;
            out.extend_from_slice(&bytes.0);
        }
        None => out.extend_from_slice(json.as_bytes()),
    }
    Ok(())
}

/// Appends an object of the named fields that exist.
fn compose(out: &mut Vec<u8>, object: &Object<'_>, names: &[String]) {
    out.push(b'{');
    for name in names {
        let Some(value) = object.get(name) else { continue };
        if out.len() > 1 {
            out.push(b',');
        }
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut *out, name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields: Vec<(Cow<'de, str>, &'de str)> = Vec::with_capacity(4);
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    let name = name.0;
                    if fields.iter().any(|(earlier, _)| *earlier == name) {
                        return Err(serde::de::Error::custom(format_args!(
                            "duplicate field `{name}`"
                        )));
                    }
                    fields.push((name, map.next_value::<&'de RawValue>()?.get()));
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// The name of a field, borrowed from the line unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// An entry to write.
#[derive(Serialize)]
struct JsonEntry<'a> {
    key: JsonBytes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<JsonBytes<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_micros: Option<u64>,
}

/// Writes an entry as a line.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, entry: Entry<&[u8]>) -> io::Result<()> {
    let Entry { key, value, expires_at_micros } = entry;
    let value = Some(JsonBytes(value));
    write_line(out, &JsonEntry { key: JsonBytes(key), value, expires_at_micros })
}

/// Writes a key as a line, without its value.
pub(super) fn write_key(out: &mut dyn Write, entry: Entry<&[u8]>) -> io::Result<()> {
    let Entry { key, expires_at_micros, .. } = entry;
    write_line(out, &JsonEntry { key: JsonBytes(key), value: None, expires_at_micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &ReadOptions, line: &str) -> Result<(String, String), String> {
        let mut reader = JsonReader::new(options);
        assert_eq!(reader.take(line.as_bytes())?, Taken::Entry);
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let entry = reader.entry();
        Ok((text(entry.key), text(entry.value)))
    }

    fn selected(key: &str, value: &str) -> ReadOptions {
        let columns =
            Columns { key: Some(key.into()), value: ValueColumns::parse(value), expiry: None };
        ReadOptions { columns, ..ReadOptions::default() }
    }

    #[test]
    fn values_are_texts_numbers_and_documents() {
        let plain = ReadOptions::default();
        let value = |json: &str| read(&plain, &format!("{{\"key\":\"k\",\"value\":{json}}}"));
        for (json, expected) in [
            (r#""a\u00e9\n""#, "a\\xc3\\xa9\\n"),
            ("1.50", "1.50"),
            ("true", "true"),
            (r#"{"a": [1, 2]}"#, "{\\\"a\\\": [1, 2]}"),
            (r#"{"hex":"00ff"}"#, "\\x00\\xff"),
            (r#"{"hex":"00ff","b":1}"#, "{\\\"hex\\\":\\\"00ff\\\",\\\"b\\\":1}"),
        ] {
            assert_eq!(value(json).unwrap().1, expected, "{json}");
        }
        assert!(value("{\"hex\":\"zz\"}").unwrap_err().contains("--raw"));
        let raw = ReadOptions { is_raw: true, ..ReadOptions::default() };
        let text = read(&raw, r#"{"key":"k","value":{"hex":"zz"}}"#).unwrap().1;
        assert_eq!(text, "{\\\"hex\\\":\\\"zz\\\"}");
        assert_eq!(read(&plain, r#"{"key":7,"value":""}"#).unwrap().0, "7");
    }

    #[test]
    fn fields_have_any_name_and_none_is_left_out_in_silence() {
        let line = r#" {"id":"a","name":"Ada","born":1815} "#;
        assert_eq!(read(&selected("id", "name"), line).unwrap(), ("a".into(), "Ada".into()));
        let whole = read(&selected("id", "*"), line).unwrap().1;
        assert_eq!(whole, line.trim().escape_default().to_string());
        let two = read(&selected("id", "born,none,name"), line).unwrap().1;
        assert_eq!(two, r#"{"born":1815,"name":"Ada"}"#.escape_default().to_string());
        let plain = ReadOptions::default();
        for (line, what) in [
            (r#"{"id":"a"}"#, "missing field `key`; name another field with --key"),
            (r#"{"key":"a","valeu":"1"}"#, "'valeu' would be left out"),
            (r#"{"key":"a","value":"1","more":[]}"#, "'more' would be left out"),
            (r#"{"key":"a","key":"b"}"#, "duplicate field `key`"),
            (r#"{"key":"a","value":"1"}{"key":"b"}"#, "one object in each line"),
            (r#"{"key":["a"],"value":"1"}"#, "a key is a string or a number"),
            ("[", "jq -c"),
            ("{", "write one object in each line"),
            ("plain", "expected an object"),
        ] {
            let error = read(&plain, line).unwrap_err();
            assert!(error.contains(what), "{line}: {error}");
        }
        let earlier = r#"{"key":"a","value":"1","ends_micros":7}"#;
        let mut reader = JsonReader::new(&plain);
        reader.take(earlier.as_bytes()).unwrap();
        assert_eq!(reader.entry().expires_at_micros, Some(7));
    }
}
