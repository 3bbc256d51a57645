//! CSV (RFC 4180) with two columns: key and value.
//!
//! Fields with commas, quotes or line ends are quoted, so keys and values may be any bytes. The first
//! line is the header `key,value`; a file may lack it.

use std::io::{self, Read, Write};

use csv::{ByteRecord, Reader, ReaderBuilder, WriterBuilder};

use super::Entry;

const HEADER: [&[u8]; 2] = [b"key", b"value"];

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
            let is_header = is_first && self.record.iter().eq(HEADER);
            match (self.record.get(0), self.record.get(1), self.record.len()) {
                _ if is_header => {}
                (Some(key), Some(value), 2) => return Ok(Some((key.to_vec(), value.to_vec()))),
                (_, _, count) => {
                    let line = self.line();
                    return Err(format!(
                        "line {line}: expected a key and a value, found {count} fields"
                    ));
                }
            }
        }
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
    write(out, HEADER[0], HEADER[1])
}

/// Writes an entry as a line.
///
/// # Errors
///
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, key: &[u8], value: &[u8]) -> io::Result<()> {
    let mut line =
        WriterBuilder::new().buffer_capacity(key.len() + value.len() + 8).from_writer(out);
    line.write_record([key, value])?;
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
    fn all_bytes_are_read_back() {
        let entries: Vec<Entry> = [
            (&b"a"[..], &b"1"[..]),
            (b"", b""),
            (b"a,b", b"say \"x\""),
            (b"two\nlines\r\n", b"\xff\x00"),
            (b"key", b"value"),
        ]
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .to_vec();
        let mut text = Vec::new();
        write_header(&mut text).unwrap();
        for (key, value) in &entries {
            write(&mut text, key, value).unwrap();
        }
        assert_eq!(all(&text), Ok(entries));
    }

    #[test]
    fn a_header_is_optional_and_other_fields_are_refused() {
        let entry = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(all(b"a,1\nb,2"), Ok(vec![entry("a", "1"), entry("b", "2")]));
        assert_eq!(all(b"key,value\r\na,\"1\"\r\n"), Ok(vec![entry("a", "1")]));
        assert_eq!(all(b""), Ok(Vec::new()));
        let error = all(b"a,1\nb,2,3\n").unwrap_err();
        assert_eq!(error, "line 2: expected a key and a value, found 3 fields");
        assert!(all(b"alone\n").unwrap_err().starts_with("line 1"));
    }
}
