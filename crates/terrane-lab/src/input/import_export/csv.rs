//! CSV (RFC 4180) with two columns: key and value. If the value expires, a third field has the expiry
//! time in microseconds since the Unix epoch.
//!
//! Fields with commas, quotes or line ends are quoted, so keys and values may be any bytes. The first
//! line is the header `key,value`; a file may lack it, or name the third field `expires_at_micros`
//! (`ends_micros` in earlier files).

use std::io::{self, Read, Write};

use csv::{ByteRecord, Reader, ReaderBuilder, WriterBuilder};

use super::{Entry, parse_expiry};

const HEADERS: [[&[u8]; 3]; 2] =
    [[b"key", b"value", b"expires_at_micros"], [b"key", b"value", b"ends_micros"]];

/// A reader of entries.
#[derive(Debug)]
pub struct CsvReader<R> {
    records: Reader<R>,
    record: ByteRecord,
}

impl<R: Read> CsvReader<R> {
    /// Creates a reader of `input`.
    pub fn new(input: R) -> Self {
        let records = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
        Self { records, record: ByteRecord::new() }
    }

    /// Returns the next entry, or `None` at the end.
    ///
    /// # Errors
    ///
    /// A sentence with the line, if a record does not have two fields or the input cannot be read.
    pub fn read(&mut self) -> Result<Option<Entry>, String> {
        loop {
            let is_first = self.records.position().byte() == 0;
            let read = self.records.read_byte_record(&mut self.record);
            if !read.map_err(|error| error.to_string())? {
                return Ok(None);
            }
            let is_header = is_first && self.is_header();
            if !is_header {
                let entry = self.entry();
                return entry.map(Some).map_err(|what| format!("line {}: {what}", self.line()));
            }
        }
    }

    fn is_header(&self) -> bool {
        let is = |header: &[&[u8]; 3]| self.record.iter().zip(header).all(|(a, b)| a == *b);
        (2..=3).contains(&self.record.len()) && HEADERS.iter().any(is)
    }

    fn entry(&self) -> Result<Entry, String> {
        let (key, value) = (self.record.get(0), self.record.get(1));
        let (Some(key), Some(value), 2..=3) = (key, value, self.record.len()) else {
            let count = self.record.len();
            return Err(format!(
                "expected a key and a value, optionally an expiry time; found {count} fields"
            ));
        };
        let expires_at_micros = self.record.get(2).map(parse_expiry).transpose()?;
        Ok(Entry { key: key.to_vec(), value: value.to_vec(), expires_at_micros })
    }

    /// Returns the line of the last entry, from 1.
    pub fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    /// Returns the bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.records.position().byte()
    }
}

/// Writes the header.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write_header(out: &mut dyn Write) -> io::Result<()> {
    write(out, Entry::new(HEADERS[0][0], HEADERS[0][1]))
}

/// Writes an entry as a line.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, entry: Entry<&[u8]>) -> io::Result<()> {
    let Entry { key, value, expires_at_micros } = entry;
    let mut line =
        WriterBuilder::new().buffer_capacity(key.len() + value.len() + 32).from_writer(out);
    match expires_at_micros {
        None => line.write_record([key, value])?,
        Some(expires_at) => line.write_record([key, value, expires_at.to_string().as_bytes()])?,
    }
    line.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Result<Vec<Entry>, String> {
        let mut reader = CsvReader::new(text);
        let mut entries = Vec::new();
        while let Some(entry) = reader.read()? {
            entries.push(entry);
        }
        Ok(entries)
    }

    #[test]
    fn a_header_may_name_the_expiry_time_as_earlier_dumps_did() {
        for header in ["key,value", "key,value,expires_at_micros", "key,value,ends_micros"] {
            let entries = all(format!("{header}\na,1,7\n").as_bytes()).unwrap();
            assert_eq!((entries.len(), entries[0].expires_at_micros), (1, Some(7)), "{header}");
        }
    }

    #[test]
    fn all_bytes_are_read_back() {
        let entries: Vec<Entry> = [
            (&b"a"[..], &b"1"[..]),
            (b"", b""),
            (b"a,b", b"say \"x\""),
            (b"two\nlines\r\n", b"\xff\x00"),
            (b"key", b"value"),
        ]
        .map(|(key, value)| Entry {
            key: key.to_vec(),
            value: value.to_vec(),
            expires_at_micros: (key.len() > 2).then_some(5),
        })
        .to_vec();
        let mut text = Vec::new();
        write_header(&mut text).unwrap();
        for Entry { key, value, expires_at_micros } in &entries {
            write(&mut text, Entry { key, value, expires_at_micros: *expires_at_micros }).unwrap();
        }
        assert_eq!(all(&text), Ok(entries));
    }

    #[test]
    fn a_header_is_optional_and_other_fields_are_refused() {
        let entry =
            |key: &str, value: &str| Entry::new(key.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(all(b"a,1\nb,2"), Ok(vec![entry("a", "1"), entry("b", "2")]));
        assert_eq!(all(b"key,value\r\na,\"1\"\r\n"), Ok(vec![entry("a", "1")]));
        assert_eq!(all(b""), Ok(Vec::new()));
        let expiring = Entry { expires_at_micros: Some(3), ..entry("b", "2") };
        assert_eq!(all(b"key,value,expires_at_micros\nb,2,3\n"), Ok(vec![expiring]));
        let error = all(b"a,1\nb,2,x\n").unwrap_err();
        assert_eq!(
            error,
            "line 2: invalid expiry time 'x'; expected microseconds since the Unix epoch"
        );
        let error = all(b"a,1\nb,2,3,4\n").unwrap_err();
        assert!(error.contains("found 4 fields"), "{error}");
        assert!(all(b"alone\n").unwrap_err().starts_with("line 1"));
    }
}
